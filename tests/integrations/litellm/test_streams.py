"""LiteLLM's streams with a memory: what they still are, and what is not taken for complete."""

from __future__ import annotations

import gc
import weakref
from contextlib import closing, suppress
from functools import wraps
from typing import TYPE_CHECKING, Any

import litellm
import openai
import pytest
from litellm.responses.streaming_iterator import BaseResponsesAPIStreamingIterator

from tests.integrations.litellm.talking import CLAUDE, Scripted, asked, at, router, text, user
from tests.leases.helping import SHORT, said
from turnstore import LeaseLostError
from turnstore.clients._litellm_folding import ChunkFolding
from turnstore.testing import Reply

if TYPE_CHECKING:
    from turnstore import AsyncConversation, Conversation
    from turnstore.testing import ModelServer

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]

HERE = {"model": "scripted/m"}


def calls(name: str) -> dict[str, Any]:
    """The arguments of a streaming call."""
    given = {"messages": [user("Hi")]} if "completion" in name else {"input": [user("Hi")]}
    return {**given, "stream": True}


def last(chunk: Any) -> str:
    """What LiteLLM says at the end, whether the provider did or not."""
    return str(chunk.choices[0].finish_reason if hasattr(chunk, "choices") else chunk.type.value)


@pytest.mark.parametrize("finish", ["", "stop"], ids=["cut short", "complete"])
@pytest.mark.parametrize("through", ["function", "router"])
@pytest.mark.parametrize("name", ["completion", "responses"])
def test_a_finish_reason_that_litellm_made_up_is_told_from_one_of_the_provider(
    chat: Conversation, scripted: Scripted, name: str, through: str, finish: str
) -> None:
    scripted.finish = finish
    if through == "function":
        stream = chat.wrap(getattr(litellm, name))(**HERE, **calls(name))
    else:
        stream = getattr(chat.wrap(router(HERE)), name)(model="m", **calls(name))
    chunks = list(stream)
    assert last(chunks[-1]) in {"stop", "response.completed"}
    assert len(chat.turns()) == bool(finish)


@pytest.mark.parametrize("finish", ["", "stop"], ids=["cut short", "complete"])
@pytest.mark.parametrize("through", ["function", "router"])
@pytest.mark.parametrize("name", ["acompletion", "aresponses"])
async def test_so_it_is_in_async_streams(
    achat: AsyncConversation, scripted: Scripted, name: str, through: str, finish: str
) -> None:
    scripted.finish = finish
    if through == "function":
        stream = await achat.wrap(getattr(litellm, name))(**HERE, **calls(name))
    else:
        stream = await getattr(achat.wrap(router(HERE)), name)(model="m", **calls(name))
    chunks = [chunk async for chunk in stream]
    assert last(chunks[-1]) in {"stop", "response.completed"}
    assert len(await achat.turns()) == bool(finish)


@pytest.mark.parametrize("ending", ["truncated", "cut"])
@pytest.mark.parametrize("name", ["openai/gpt-4o", CLAUDE])
@pytest.mark.parametrize("through", ["function", "router"])
def test_a_stream_that_a_server_cuts_short_saves_nothing(
    chat: Conversation, model: ModelServer, name: str, through: str, ending: Any
) -> None:
    model.script(Reply("Hello you", ending=ending))
    where = at(model, name)
    if through == "function":
        stream = chat.wrap(litellm.completion)(**where, **calls("completion"))
    else:
        stream = chat.wrap(router(where)).completion(model="m", **calls("completion"))
    seen: list[Any] = []
    with suppress(openai.APIError):  # not all versions of LiteLLM notice
        seen.extend(stream)
    assert text(seen) == "Hello you"
    assert chat.read() == []


def test_it_is_still_a_stream_of_its_class(chat: Conversation, model: ModelServer) -> None:
    stream = chat.wrap(litellm.completion)(**asked(model, "Hello", stream=True))
    assert isinstance(stream, litellm.CustomStreamWrapper)
    assert iter(stream) is stream
    assert stream.model == "gpt-4o"
    first = next(stream)
    assert isinstance(first, litellm.ModelResponseStream)
    assert stream.chunks[0] is first
    with stream as same:
        assert same is stream
        assert text([first, *stream]).endswith("Hello")
    assert len(stream.chunks) > 2
    assert stream.response_uptil_now.endswith("Hello")
    assert litellm.stream_chunk_builder(stream.chunks)
    assert len(chat.turns()) == 1
    assert list(stream) == []
    assert len(chat.turns()) == 1
    ask: Any = chat.wrap(litellm.responses, on_other_format="text")
    events = ask("Hi", **at(model), stream=True)
    assert BaseResponsesAPIStreamingIterator in type(events).__mro__
    assert last(list(events)[-1]) == "response.completed"
    assert len(chat.turns()) == 2


def passed_on(function: Any) -> Any:
    """A decorator that streams through a generator of its own."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        stream = function(*args, **kwargs)
        return (chunk for chunk in stream)

    return call


def passed_on_async(function: Any) -> Any:
    """The same for an async function."""

    @wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        stream = await function(*args, **kwargs)
        return (chunk async for chunk in stream)

    return call


def mapped(function: Any) -> Any:
    """A decorator after which nobody can tell what is below its stream."""
    return wraps(function)(lambda *args, **kwargs: map(str, function(*args, **kwargs)))


@pytest.mark.parametrize("finish", ["", "stop"], ids=["cut short", "complete"])
def test_a_decorator_may_pass_a_stream_on(
    chat: Conversation, scripted: Scripted, finish: str
) -> None:
    scripted.finish = finish
    told: Any = chat.wrap(passed_on(litellm.completion))
    with closing(told(**HERE, **calls("completion"))) as stream:
        next(stream)
    assert chat.read() == []
    assert text(list(told(**HERE, **calls("completion")))) == "Hello you"
    assert len(chat.turns()) == bool(finish)


@pytest.mark.parametrize("finish", ["", "stop"], ids=["cut short", "complete"])
async def test_so_may_an_async_one(
    achat: AsyncConversation, scripted: Scripted, finish: str
) -> None:
    scripted.finish = finish
    told: Any = achat.wrap(passed_on_async(litellm.acompletion))
    stream = await told(**HERE, **calls("acompletion"))
    assert text([chunk async for chunk in stream]) == "Hello you"
    assert len(await achat.turns()) == bool(finish)


def test_where_nobody_can_tell_what_the_provider_said_nothing_is_saved(
    chat: Conversation, scripted: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    scripted.finish = "stop"
    ask: Any = chat.wrap(mapped(litellm.completion))
    assert len(list(ask(**HERE, **calls("completion")))) > 2
    assert chat.read() == []
    assert "not saved" in caplog.text


@pytest.mark.parametrize("how", ["close", "with", "aclose"])
async def test_a_stream_that_is_closed_saves_nothing(
    chat: Conversation, model: ModelServer, how: str
) -> None:
    told = chat.wrap(litellm.completion, on_conflict="serialize")
    for name in ("completion", "responses"):
        if name == "responses":
            told = chat.wrap(litellm.responses, on_conflict="serialize")
        stream = told(**at(model), **calls(name))
        next(stream)
        if how == "with":
            with stream if name == "completion" else closing(stream):
                pass
        elif how == "close":
            stream.close()
        else:
            await stream.aclose()
        assert list(stream) == []
    stream = told(**at(model), **calls("responses"))  # the lease was given back
    assert list(stream)
    assert len(chat.turns()) == 1


async def test_an_async_stream_that_is_closed_saves_nothing(
    achat: AsyncConversation, model: ModelServer
) -> None:
    for name in ("acompletion", "aresponses"):
        told = achat.wrap(getattr(litellm, name), on_conflict="serialize")
        stream = await told(**at(model), **calls(name))
        await anext(stream)
        await stream.aclose()
        assert [chunk async for chunk in stream] == []
        assert await achat.turns() == []
        stream = await told(**at(model), **calls(name))  # the lease was given back
        assert [chunk async for chunk in stream]
        await achat.clear()


@pytest.mark.parametrize("name", ["acompletion", "aresponses"])
async def test_a_stream_that_nobody_reads_is_not_waited_for(
    achat: AsyncConversation, model: ModelServer, name: str
) -> None:
    told: Any = achat.wrap(getattr(litellm, name), on_conflict="serialize", lease=SHORT)
    unread = await told(**at(model), **calls(name))
    assert await said(achat, "next") == []
    with pytest.raises(LeaseLostError):
        assert [chunk async for chunk in unread]


def test_nor_is_a_sync_one(chat: Conversation, model: ModelServer) -> None:
    serial: Any = {"on_conflict": "serialize", "lease": SHORT}
    unread: Any = chat.wrap(litellm.completion, **serial)(**at(model), **calls("completion"))
    with chat.turn("next", **serial) as turn:
        turn.reply("fine")
    with pytest.raises(LeaseLostError):
        list(unread)


async def test_a_stream_of_a_store_is_read_by_for(chat: Conversation, model: ModelServer) -> None:
    stream = chat.wrap(litellm.completion)(**asked(model, "Hello", stream=True))
    with pytest.raises(TypeError, match="read it by `for`"):
        async for _ in stream:
            pass
    stream.close()


async def test_a_stream_of_an_async_store_is_read_by_async_for(
    achat: AsyncConversation, model: ModelServer
) -> None:
    stream = await achat.wrap(litellm.acompletion)(**asked(model, "Hello", stream=True))
    with pytest.raises(TypeError, match="read it by `async for`"):
        list(stream)
    await stream.aclose()


async def test_a_class_of_one_stream_is_not_kept(
    achat: AsyncConversation, model: ModelServer
) -> None:
    """The Router makes a class for each stream of responses."""
    ask: Any = achat.wrap(router(at(model))).aresponses
    stream = await ask(model="m", **calls("aresponses"))
    assert [event async for event in stream]
    kind = weakref.ref(type(stream))
    del stream
    gc.collect()
    assert kind() is None


@pytest.mark.parametrize("model_name", ["openai/m", "gpt-4o"])
def test_streams_that_litellm_makes_of_a_whole_answer(
    chat: Conversation, model: ModelServer, model_name: str
) -> None:
    """It does for models that are not on its list, and for mocks."""
    mocked = {"mock_response": "Hi"} if model_name == "gpt-4o" else {**at(model)}
    told: Any = chat.wrap(litellm.responses)
    assert list(told("Hello", **{**mocked, "model": model_name}, stream=True))
    assert len(chat.turns()) == 1


ODD = [
    {},
    {"choices": None},
    {"choices": [None]},
    {"choices": [{"delta": None}]},
    {
        "choices": [
            {"index": None, "delta": {"thinking_blocks": "x", "provider_specific_fields": 3}}
        ]
    },
    {"choices": [{"delta": {"thinking_blocks": [None, {}, {"type": "thinking"}]}}]},
    {"choices": [{"delta": {"provider_specific_fields": {"citation": None, "citations": 3}}}]},
    {"choices": [{"delta": {"annotations": {}, "images": None, "reasoning_items": [None]}}]},
]


@pytest.mark.parametrize("chunk", ODD)
def test_a_chunk_of_an_odd_shape_breaks_nothing(chunk: Any) -> None:
    folding = ChunkFolding()
    folding.add(chunk)
    folding.add({"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]})
    assert folding.reply()["choices"][0]["message"]["content"] == "Hi"


PIECES: list[dict[str, Any]] = [  # what stands between two that are text alone
    {},
    {"delta": {"content": "Hi", "role": "assistant"}},
    {"delta": {"content": "Hi", "reasoning_content": "hm"}},
    {"delta": {"content": "Hi", "tool_calls": [{"id": "c", "function": {"name": "f"}}]}},
    {"delta": {"content": "Hi", "zz": {"odd": [1.0]}}},
    {"delta": {"content": [{"type": "text", "text": "Hi"}]}},
    {"delta": {"content": ""}},
    {"delta": {"content": None}},
    {"delta": {"content": "Hi"}, "index": 1},
    {"delta": {"content": "Hi"}, "logprobs": {"content": [], "refusal": None}},
    {"delta": {"content": "Hi"}, "finish_reason": "stop"},
    {"delta": {"content": "Hi"}, "zz": 1},
    {"delta": {"content": "Hi"}, "of": {"usage": {"prompt_tokens": 1}, "citations": ["x"]}},
]


@pytest.mark.parametrize("odd", PIECES, ids=str)
def test_a_chunk_of_text_alone_is_folded_as_any_other(odd: dict[str, Any]) -> None:
    def chunk(delta: dict[str, Any], of: Any = None, **more: Any) -> litellm.ModelResponseStream:
        return litellm.ModelResponseStream(
            id="c", created=1, model="m", choices=[{"delta": delta, **more}], **(of or {})
        )

    chunks = [chunk({"content": "a ", "role": "assistant"}), chunk({"content": "b "})]
    chunks += [chunk(**odd)] if odd else []
    chunks += [chunk({"content": "c"}), chunk({}, finish_reason="stop")]
    seen, read = ChunkFolding(), ChunkFolding()
    for one in chunks:
        seen.take(one, None)
        read.add(one.model_dump(exclude_unset=True, warnings=False))
    assert seen.reply() == read.reply()


def test_thoughts_without_positions_end_with_their_signatures() -> None:
    folding = ChunkFolding()
    pieces = [
        {"type": "thinking", "thinking": "Let "},
        {"type": "thinking", "thinking": "me"},
        {"type": "thinking", "thinking": "", "signature": "s1"},
        {"type": "thinking", "thinking": "More"},
        {"type": "thinking", "thinking": "More", "signature": "s2"},
        {"type": "redacted_thinking", "data": "d"},
        {"type": "thinking", "thinking": "Last", "signature": None},
    ]
    for piece in pieces:
        folding.add({"choices": [{"index": 0, "delta": {"thinking_blocks": [piece]}}]})
    assert folding.reply()["choices"][0]["message"]["thinking_blocks"] == [
        {"type": "thinking", "thinking": "Let me", "signature": "s1"},
        {"type": "thinking", "thinking": "More", "signature": "s2"},
        {"type": "redacted_thinking", "data": "d"},
        {"type": "thinking", "thinking": "Last", "signature": None},
    ]
