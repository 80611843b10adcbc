"""Streams: forwarded as they come, saved only when they were read to a good end."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import TYPE_CHECKING, Any

import pytest
from openai import AsyncOpenAI, AsyncStream, OpenAI, Stream
from pydantic import BaseModel

from tests.clients.talking import BROKEN, CHAT, RESPONSES, parsed, texts
from tests.waiting import wait_until_async
from turnstore.testing import Reply, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.conftest import Wrap
    from tests.clients.talking import Api
    from tests.servers.proxy import Proxy
    from turnstore import AsyncConversation, AsyncStore, Store
    from turnstore.testing import ModelServer

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]


class City(BaseModel):
    name: str


async def test_a_stream_is_saved_like_the_plain_call(
    ada: AsyncOpenAI, wrap: Wrap, chat: AsyncConversation, store: AsyncStore, api: Api
) -> None:
    other = store.conversation("plain")
    for text in ("My name is Ada.", "What is my name?"):
        plain = await api.say(wrap(other), text)
        assert await api.read(await api.create(ada, text, stream=True)) == plain
    streamed, at_once = await chat.read(), await other.read()
    for message in [*streamed, *at_once]:
        message.pop("id", None)
    assert streamed == at_once


async def test_the_stream_is_the_sdks_own(chat: AsyncConversation, base: Any, api: Api) -> None:
    made = api.of(chat.wrap(base)).create(**api.asked("Hello", stream=True))
    if isinstance(base, AsyncOpenAI):
        stream = await made
        assert isinstance(stream, AsyncStream)
        await stream.close()
    else:
        assert isinstance(base, OpenAI)
        assert isinstance(made, Stream)
        made.close()


async def test_chunks_arrive_while_the_model_speaks_and_are_saved_before_the_end(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer, api: Api
) -> None:
    hold = threading.Event()
    model.script(Reply("Hello you", hold=hold))
    said, stored = [], []
    async for event in await api.create(ada, "Hi", stream=True):
        if piece := api.piece(event):
            said.append(piece)
            stored.append(len(await chat.read()))
            hold.set()
    assert said == ["Hello", " you"]
    assert stored == [0, 0]
    assert await texts(chat) == ["Hi", "Hello you"]


async def test_what_is_known_of_a_streamed_turn(
    ada: AsyncOpenAI, chat: AsyncConversation, api: Api
) -> None:
    options = {"stream_options": {"include_usage": True}} if api is CHAT else {}
    await api.read(await api.create(ada, "Hello", stream=True, **options))
    (turn,) = (await chat.turns()).__iter__()
    assert turn.meta.pop("usage")["total_tokens"] > 0
    assert turn.meta.pop("response_id").endswith("1")
    assert turn.meta == {"model": "m", "finish_reason": "stop" if api is CHAT else "completed"}


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply("Wel", ending="truncated"), id="truncated"),
        pytest.param(Reply(events=[]), id="empty"),
        pytest.param(Reply("Wel", finish="content_filter"), id="content_filter"),
        pytest.param(Reply("Wel", finish="error"), id="error"),
        pytest.param(Reply(refusal="No."), id="refusal"),
    ],
)
async def test_a_stream_that_did_not_succeed_saves_nothing(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer, reply: Reply, api: Api
) -> None:
    model.script(reply)
    await api.read(await api.create(ada, "Hello", stream=True))
    assert await chat.read() == []


@pytest.mark.parametrize("finish", ["length", "failed"])
async def test_a_response_that_was_not_completed_saves_nothing(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer, finish: str
) -> None:
    model.script(Reply("Wel", finish=finish))
    await RESPONSES.read(await RESPONSES.create(ada, "Hello", stream=True))
    assert await chat.read() == []


async def test_a_connection_that_breaks_saves_nothing(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer, api: Api
) -> None:
    model.script(Reply("Hello you", ending="cut"))
    stream = await api.create(ada, "Hello", stream=True)
    with pytest.raises(BROKEN):
        await api.read(stream)
    assert await chat.read() == []


async def test_a_stream_that_is_left_saves_nothing_then_or_later(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer, api: Api
) -> None:
    for leave in ("break", "close", "with", "never begun"):
        stream = await api.create(ada, "Hello", stream=True)
        if leave == "break":
            async for _ in stream:
                break
        elif leave == "close":
            await stream.__anext__()
            await stream.close()
        elif leave == "with":
            async with stream:
                await stream.__anext__()
        del stream
        gc.collect()
    assert await chat.read() == []
    await api.say(ada, "My name is Ada.")
    assert len(model.requests[-1].messages) == 1
    assert len(await chat.read()) == 2


async def test_a_stream_left_after_its_last_word_but_before_its_end_saves_nothing(
    ada: AsyncOpenAI, chat: AsyncConversation
) -> None:
    async for chunk in await CHAT.create(ada, "Hello", stream=True):
        if chunk.choices[0].finish_reason:
            break
    gc.collect()
    assert await chat.read() == []


@pytest.mark.parametrize("ending", ["complete", "truncated"])
async def test_a_finish_reason_is_a_good_end_also_without_done(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer, ending: Any
) -> None:
    choice = {"index": 1, "delta": {"role": "assistant", "content": "Hi"}, "finish_reason": "eos"}
    model.script(Reply(events=[{"choices": [choice]}], ending=ending))
    await CHAT.read(await CHAT.create(ada, "Hello", stream=True))
    assert await texts(chat) == ["Hello", "Hi"]


async def test_dialects_and_unknown_fields_are_folded(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer
) -> None:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f"}}
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "reasoning_content": "Let "},
        {"role": "assistant", "reasoning_content": "me", "reasoning_details": [{"t": 1}]},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "assistant", "tool_calls": [{**call, "function": {"arguments": "{}"}}]},
    ]
    events: list[Any] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    model.script(Reply(events=events))
    async for _ in await CHAT.create(ada, "Hello", stream=True):
        pass
    assert (await chat.read())[1] == {
        "role": "assistant",
        "content": None,
        "reasoning_content": "Let me",
        "reasoning_details": [{"t": 1}],
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        ],
    }


async def test_helpers(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer, api: Api
) -> None:
    async with api.of(ada).stream(**api.asked("My name is Ada.")) as helper:
        async for _ in helper:
            pass
    async with api.of(ada).stream(**api.asked("What is my name?")) as helper:
        if api is CHAT:
            reply = await helper.get_final_completion()
        else:
            reply = await helper.get_final_response()
    assert api.text(reply) == "Your name is Ada."
    kind: Any = {"response_format": City} if api is CHAT else {"text_format": City}
    model.script(Reply('{"name": "Rome"}'))
    async with api.of(ada).stream(**api.asked("A city?"), **kind) as helper:
        await (helper.get_final_completion() if api is CHAT else helper.get_final_response())
    assert (await texts(chat))[-1] == '{"name": "Rome"}'
    assert len(await chat.read()) == 6
    async with api.of(ada).stream(**api.asked("Hello")):
        pass  # left
    assert len(await chat.read()) == 6


async def test_raw_responses(ada: AsyncOpenAI, chat: AsyncConversation, api: Api) -> None:
    asked = api.asked("My name is Ada.", stream=True)
    raw = await api.of(ada).with_raw_response.create(**asked)
    assert raw.headers["content-type"] == "text/event-stream"
    assert "Ada" in await api.read(await parsed(raw))
    assert len(await chat.read()) == 2
    asked = api.asked("What is my name?", stream=True)
    async with api.of(ada).with_streaming_response.create(**asked) as response:
        assert await api.read(await parsed(response)) == "Your name is Ada."
    assert len(await chat.read()) == 4


async def test_the_conversation_is_bound_when_the_call_is_made(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer, api: Api
) -> None:
    early = await api.create(ada, "early", stream=True)
    await api.say(ada, "late")
    await api.read(early)
    assert (await texts(chat))[::2] == ["late", "early"]
    assert len(model.requests[0].messages) == 1


async def test_one_load_and_one_save(
    far: AsyncConversation, proxy: Proxy, wrap: Wrap, model: ModelServer, api: Api
) -> None:
    client = wrap(far).with_options(max_retries=2)
    await api.say(client, "Hello")
    proxy.clear()
    model.script(Reply.error(500), Reply("fine", tool_calls=[ToolCall(name="f")]))
    await api.read(await api.create(client, "Hello", stream=True))
    assert (proxy.count("LRANGE"), proxy.count("EVALSHA")) == (1, 1)


@pytest.mark.parametrize("moment", ["waiting for the answer", "in the stream"])
async def test_a_cancelled_stream_saves_nothing(
    make_async_store: Callable[..., AsyncStore],
    model: ModelServer,
    moment: str,
    api: Api,
) -> None:
    chat = make_async_store().conversation("ada")
    base = AsyncOpenAI(base_url=model.base_url, api_key="none", max_retries=0)
    hold, begun = threading.Event(), asyncio.Event()
    model.script(Reply("Hello you", hold=hold))

    async def talk() -> None:
        stream = moment == "in the stream"
        answer = await api.create(chat.wrap(base), "Hi", stream=stream)
        async for event in answer:
            if api.piece(event):
                begun.set()

    task = asyncio.create_task(talk())
    if moment == "in the stream":
        await begun.wait()
    else:
        await wait_until_async(lambda: model.requests)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    hold.set()
    assert await chat.read() == []
    await base.close()


def test_a_sync_stream_that_a_generator_gives_up(
    make_store: Callable[..., Store], client: OpenAI
) -> None:
    chat = make_store().conversation("ada")

    def words() -> Any:
        for chunk in chat.wrap(client).chat.completions.create(**CHAT.asked("Hello"), stream=True):
            yield CHAT.piece(chunk)

    talk = words()
    next(talk)
    talk.close()
    assert chat.read() == []
    assert "".join(words()).endswith("Hello")
    assert len(chat.read()) == 2
