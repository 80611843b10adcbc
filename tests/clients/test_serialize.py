"""Calls of a wrapped client that wait for one another: a stream holds the lease to its end."""

from __future__ import annotations

import asyncio
import gc
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.talking import BROKEN, texts
from tests.leases.helping import nobody_renews
from tests.leases.line import Queue
from tests.waiting import wait_until_async
from turnstore import Lease, LeaseLostError, LeaseTimeoutError
from turnstore.testing import Reply, ToolCall

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

    from tests.clients.conftest import Wrap
    from tests.clients.talking import Api
    from tests.servers.running import Server
    from turnstore import AsyncConversation
    from turnstore.testing import ModelServer

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]


@pytest.fixture
def queue(server: Server, chat: AsyncConversation) -> Queue:
    """Give the queue of `chat`, seen from behind."""
    return Queue(server, chat)


@pytest.fixture
def ada(wrap: Wrap, chat: AsyncConversation) -> AsyncOpenAI:
    """Give a client whose calls wait for one another."""
    return wrap(chat, on_conflict="serialize", lease=Lease(wait=timedelta(minutes=5)))


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_waits_for_the_one_before_and_sees_it(  # noqa: PLR0913 - fixtures
    ada: AsyncOpenAI,
    chat: AsyncConversation,
    queue: Queue,
    model: ModelServer,
    api: Api,
    *,
    stream: bool,
) -> None:
    hold = threading.Event()
    model.script(Reply("slow one", hold=hold), Reply("quick"))
    first = asyncio.create_task(talked(api, ada, "first", stream=stream))
    await wait_until_async(lambda: model.requests)
    second = asyncio.create_task(talked(api, ada, "second", stream=stream))
    await wait_until_async(lambda: queue.waiting == 1)
    assert len(model.requests) == 1
    hold.set()
    assert await first == "slow one"
    assert await second == "quick"
    assert len(model.requests[1].messages) == 3
    assert await texts(chat) == ["first", "slow one", "second", "quick"]
    assert not queue.line.held
    await wait_until_async(nobody_renews)


async def talked(api: Api, client: AsyncOpenAI, text: str, *, stream: bool) -> str:
    if stream:
        return await api.read(await api.create(client, text, stream=True))
    return await api.say(client, text)


async def test_a_call_that_waits_too_long_asks_no_model(
    wrap: Wrap, chat: AsyncConversation, model: ModelServer, api: Api
) -> None:
    impatient = wrap(chat, on_conflict="serialize", lease=Lease(wait=timedelta(0)))
    async with chat.turn("q", on_conflict="serialize"):
        for stream in (False, True):
            with pytest.raises(LeaseTimeoutError):
                await api.create(impatient, "Hello", stream=stream)
    assert model.requests == []


async def test_a_call_that_fails_gives_the_lease_back(
    ada: AsyncOpenAI, queue: Queue, model: ModelServer, api: Api
) -> None:
    for stream in (False, True):
        model.script(Reply.error(500))
        with pytest.raises(Exception, match="scripted error"):
            await api.create(ada, "Hello", stream=stream)
        assert not queue.line.held


async def test_a_stream_that_breaks_gives_the_lease_back(
    ada: AsyncOpenAI, chat: AsyncConversation, queue: Queue, model: ModelServer, api: Api
) -> None:
    model.script(Reply("Hello you", ending="cut"))
    with pytest.raises(BROKEN):
        await api.read(await api.create(ada, "Hi", stream=True))
    assert not queue.line.held
    assert await chat.read() == []


async def test_a_closed_stream_gives_the_lease_back(
    ada: AsyncOpenAI, chat: AsyncConversation, queue: Queue, api: Api
) -> None:
    for read in (True, False):
        stream = await api.create(ada, "Hi", stream=True)
        assert queue.line.held
        if read:
            await anext(aiter(stream))
        await stream.close()
        assert not queue.line.held
    assert await chat.read() == []


@pytest.mark.parametrize("read", [True, False])
async def test_a_stream_that_nobody_has_any_more_gives_the_lease_back(
    chat: AsyncConversation, queue: Queue, base: Any, api: Api, *, read: bool
) -> None:
    client = chat.wrap(base, on_conflict="serialize")
    stream: Any = api.of(client).create(**api.asked("Hi", stream=True))
    if asyncio.iscoroutine(stream):
        stream = await stream
        if read:
            await anext(aiter(stream))
    elif read:
        next(iter(stream))
    assert queue.line.held
    del stream
    # The parts of a stream lead back to one another, and are collected one after the other.
    await wait_until_async(lambda: gc.collect() >= 0 and not queue.line.held)
    await wait_until_async(nobody_renews)


async def test_the_sdks_own_stream_helper_gives_the_lease_back(
    ada: AsyncOpenAI, chat: AsyncConversation, queue: Queue, api: Api
) -> None:
    async with api.of(ada).stream(**api.asked("Hello")) as events:
        async for _ in events:
            assert queue.line.held or await chat.read()
    assert not queue.line.held
    assert len(await chat.read()) == 2


async def test_a_slow_model_is_waited_for_and_the_lease_renewed(
    wrap: Wrap, chat: AsyncConversation, queue: Queue, model: ModelServer, api: Api
) -> None:
    ada = wrap(chat, on_conflict="serialize", lease=Lease(ttl=timedelta(seconds=3)))
    hold = threading.Event()
    model.script(Reply("Hello you", hold=hold))
    stream = await api.create(ada, "Hi", stream=True)
    reading = asyncio.create_task(api.read(stream))
    await wait_until_async(lambda: model.requests)
    first = queue.line
    await wait_until_async(lambda: queue.line.until_ms > first.until_ms + 1500)
    assert queue.line.number == first.number
    hold.set()
    assert await reading == "Hello you"


async def test_a_reader_that_stands_still_is_not_waited_for(
    wrap: Wrap, chat: AsyncConversation, queue: Queue, api: Api
) -> None:
    ada = wrap(chat, on_conflict="serialize", lease=Lease(ttl=timedelta(milliseconds=500)))
    stream = await api.create(ada, "Hi", stream=True)
    await anext(aiter(stream))
    other = wrap(chat, on_conflict="serialize")
    await api.say(other, "next")
    with pytest.raises(LeaseLostError) as caught:
        await api.read(stream)
    assert api.text(caught.value.reply)
    assert (await texts(chat))[::2] == ["next"]
    assert not queue.line.held


async def test_a_reader_that_comes_back_in_time_saves(
    wrap: Wrap, chat: AsyncConversation, queue: Queue, api: Api
) -> None:
    ada = wrap(chat, on_conflict="serialize", lease=Lease(ttl=timedelta(milliseconds=500)))
    stream = await api.create(ada, "Hi", stream=True)
    await anext(aiter(stream))
    queue.run_out()
    await api.read(stream)
    assert (await texts(chat))[::2] == ["Hi"]


async def test_a_lost_lease_raises_the_answer(
    wrap: Wrap, chat: AsyncConversation, queue: Queue, model: ModelServer, api: Api
) -> None:
    ada = wrap(chat, on_conflict="serialize")
    for stream in (False, True):
        hold = threading.Event()
        model.script(Reply("slow one", hold=hold), Reply("quick"))
        model.requests.clear()
        slow = asyncio.create_task(talked(api, ada, "first", stream=stream))
        await wait_until_async(lambda: model.requests)
        queue.run_out()
        await api.say(ada, "second")
        hold.set()
        with pytest.raises(LeaseLostError) as caught:
            await slow
        assert api.text(caught.value.reply) == "slow one"
    assert await texts(chat) == ["second", "quick"] * 2


async def test_a_tool_call_gives_the_lease_back_and_its_result_takes_it_again(
    ada: AsyncOpenAI, chat: AsyncConversation, queue: Queue, model: ModelServer
) -> None:
    model.script(Reply(tool_calls=[ToolCall(name="f")]), Reply("done"))
    reply = await ada.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "Hi"}]
    )
    assert not queue.line.held
    (call,) = reply.choices[0].message.tool_calls or []
    await ada.chat.completions.create(
        model="m", messages=[{"role": "tool", "tool_call_id": call.id, "content": "1"}]
    )
    assert (await chat.stat()).turns == 1
    assert not queue.line.held


def test_a_sync_stream_that_is_broken_off(client: OpenAI, make_store: Any, server: Server) -> None:
    chat = make_store().conversation("ada")
    stream = chat.wrap(client, on_conflict="serialize").chat.completions.create(
        model="m", messages=[{"role": "user", "content": "Hi"}], stream=True
    )
    queue = Queue(server, chat)
    for _ in stream:
        assert queue.line.held
        break
    stream.close()
    assert not queue.line.held
