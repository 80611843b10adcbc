"""Redis that fails, turns that conflict, and calls at the same time."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from openai import AsyncOpenAI, OpenAI
from openai._models import FinalRequestOptions
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from tests.clients.talking import CHAT, texts
from tests.servers.proxy import Cut
from tests.waiting import wait_until_async
from turnstore import LimitError, SaveError, TurnConflictError, UnavailableError
from turnstore.clients._openai_call import call_of
from turnstore.testing import ModelServer, Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.conftest import Wrap
    from tests.clients.talking import Api
    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from turnstore import AsyncConversation, AsyncStore, Store

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]


async def test_no_redis_at_load_asks_no_model(
    far: AsyncConversation, proxy: Proxy, wrap: Wrap, model: ModelServer, api: Api
) -> None:
    proxy.go_down()
    for stream in (False, True):
        with pytest.raises(UnavailableError):
            await api.create(wrap(far), "Hello", stream=stream)
    assert model.requests == []


async def test_going_on_without_memory(
    far: AsyncConversation, proxy: Proxy, wrap: Wrap, caplog: pytest.LogCaptureFixture, api: Api
) -> None:
    client = wrap(far, on_load_error="continue")
    await api.say(client, "My name is Ada.")
    proxy.go_down()
    with caplog.at_level(logging.WARNING):
        assert await api.say(client, "What is my name?") == "You have not told me your name."
    assert "without memory" in caplog.text
    proxy.come_up()
    assert await api.say(client, "What is my name?") == "Your name is Ada."
    assert len(await far.read()) == 4


async def test_no_redis_at_the_save_raises_the_reply(
    far: AsyncConversation, proxy: Proxy, wrap: Wrap, model: ModelServer, api: Api
) -> None:
    for stream in (False, True):
        before = await texts(far)
        hold = threading.Event()
        model.script(Reply("Hello Ada", hold=hold))
        model.requests.clear()
        task = asyncio.create_task(talked(api, wrap(far), "Hi", stream=stream))
        await wait_until_async(lambda: model.requests)
        proxy.go_down()
        hold.set()
        with pytest.raises(SaveError) as caught:
            await task
        assert isinstance(caught.value.reply, ChatCompletion if api is CHAT else Response)
        assert api.text(caught.value.reply) == "Hello Ada"
        proxy.come_up()
        assert await texts(far) == before
        await saved(caught.value)
        await saved(caught.value)
        assert await texts(far) == [*before, "Hi", "Hello Ada"]


async def saved(error: SaveError) -> None:
    """Save again, as the error says."""
    again: Any = error.turn.save
    if asyncio.iscoroutinefunction(again):
        await again()
    else:
        await asyncio.to_thread(again)


async def test_a_save_whose_answer_was_lost_is_not_doubled(
    far: AsyncConversation, proxy: Proxy, wrap: Wrap, api: Api
) -> None:
    client = wrap(far)
    await api.say(client, "Hello")
    proxy.next(Cut.REPLY_LOST, command="EVALSHA")
    await api.say(client, "Hello again")
    assert len(await far.read()) == 4


async def test_a_raw_response_is_the_reply_of_its_error(
    new_store: NewStore, wrap: Wrap, api: Api
) -> None:
    client = wrap(new_store(max_turn_bytes=10).conversation("ada"))
    with pytest.raises(SaveError) as caught:
        await api.of(client).with_raw_response.create(**api.asked("Hello"))
    assert isinstance(caught.value.__cause__, LimitError)
    assert api.text(caught.value.reply.parse()).endswith("Hello")


def test_an_answer_that_is_a_page_of_a_proxy_is_not_saved(
    make_store: Callable[..., Store],
) -> None:
    chat = make_store().conversation("ada")
    asked: Any = {"method": "post", "url": "/chat/completions", "json_data": CHAT.asked("Hello")}
    call = call_of(FinalRequestOptions.construct(**asked), stream=False)
    assert call is not None
    with chat.turn(call.given) as turn:
        call.keep_content(turn, b"<html>", "<html>")
    assert chat.read() == []


async def test_a_reply_that_is_no_json_that_can_be_stored(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer
) -> None:
    message = {"role": "assistant", "content": "Hi", "score": float("nan")}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    model.script(Reply(body={"id": "c", "choices": [choice]}))
    with pytest.raises(SaveError, match=r"(?i)\bnan\b") as caught:
        await CHAT.create(ada, "Hello")
    assert CHAT.text(caught.value.reply) == "Hi"
    assert await chat.read() == []


@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_that_came_between_is_a_conflict_where_it_is_rejected(
    wrap: Wrap, chat: AsyncConversation, model: ModelServer, api: Api, *, stream: bool
) -> None:
    hold = threading.Event()
    model.script(Reply("slow one", hold=hold), Reply("quick"))
    reply = asyncio.create_task(
        talked(api, wrap(chat, on_conflict="reject"), "first", stream=stream)
    )
    await wait_until_async(lambda: model.requests)
    await api.say(wrap(chat), "second")
    hold.set()
    with pytest.raises(TurnConflictError) as caught:
        await reply
    assert api.text(caught.value.reply) == "slow one"
    assert await texts(chat) == ["second", "quick"]


async def talked(api: Api, client: AsyncOpenAI, text: str, *, stream: bool) -> str:
    if stream:
        return await api.read(await api.create(client, text, stream=True))
    return await api.say(client, text)


async def test_many_calls_at_once_on_one_client_lose_nothing(
    ada: AsyncOpenAI, chat: AsyncConversation, api: Api
) -> None:
    said = [f"I am number {n}." for n in range(16)]
    await asyncio.gather(
        *(talked(api, ada, text, stream=n % 2 == 1) for n, text in enumerate(said))
    )
    stored = await texts(chat)
    assert sorted(stored[::2]) == sorted(said)
    for asked, answered in zip(stored[::2], stored[1::2], strict=True):
        assert answered.endswith(asked)


def test_many_threads_on_one_client(
    make_store: Callable[..., Store], client: OpenAI, api: Api
) -> None:
    chat = make_store().conversation("ada")
    wrapped: Any = chat.wrap(client)

    def talk(n: int) -> str:
        return api.text(api.of(wrapped).create(**api.asked(f"I am number {n}.")))

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(talk, range(16)))
    assert all(answer.endswith(f"number {n}.") for n, answer in enumerate(answers))
    assert len(chat.read()) == 32


async def test_a_cancelled_save_is_finished_first(
    make_async_store: Callable[..., AsyncStore], model: ModelServer, api: Api
) -> None:
    chat = make_async_store().conversation("ada")
    async with AsyncOpenAI(base_url=model.base_url, api_key="none", max_retries=0) as base:
        for stream in (False, True):
            for ticks in range(0, 60, 3):
                task = asyncio.create_task(talked(api, chat.wrap(base), "Hi", stream=stream))
                for _ in range(ticks):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
    turns = await chat.turns()
    assert all([m["role"] for m in turn.messages] == ["user", "assistant"] for turn in turns)


async def test_a_cancellation_in_the_middle_of_the_save(
    far: AsyncConversation, proxy: Proxy, base: OpenAI | AsyncOpenAI, api: Api
) -> None:
    if not isinstance(base, AsyncOpenAI):
        pytest.skip("a thread cannot be cancelled")
    client = far.wrap(base)
    await api.say(client, "Hello")
    proxy.clear()
    proxy.next(Cut.NEVER, command="EVALSHA", delay_seconds=0.2)
    task = asyncio.create_task(api.say(client, "Hello again"))
    await wait_until_async(lambda: proxy.count("EVALSHA"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(await far.read()) == 4
