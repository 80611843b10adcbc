"""Functions with a memory: every kind, wrapped and decorated."""

from __future__ import annotations

import asyncio
import gc
import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.leases.helping import SHORT, said
from turnstore import AsyncStore, LeaseLostError, SaveError, Store, remember
from turnstore.testing._answers import answer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from turnstore import Conversation

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]

Json = dict[str, Any]


def text(messages: list[Json]) -> str:
    return answer(messages)


def message(messages: list[Json]) -> Json:
    return {"role": "assistant", "content": answer(messages), "zz": 1}


def loop(messages: list[Json]) -> list[Json]:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "1"},
        message(messages),
    ]


def iterator(messages: list[Json]) -> Iterator[str]:
    return iter(answer(messages).partition(" "))


def words(messages: list[Json]) -> Iterator[str | None]:
    yield None
    yield from answer(messages).partition(" ")


class Model:
    def __call__(self, messages: list[Json]) -> str:
        return answer(messages)

    def method(self, messages: list[Json]) -> str:
        return answer(messages)


def decorated(function: Any) -> Any:
    made: Any = remember
    return made(function)


def whole(reply: Any) -> str:
    if isinstance(reply, str):
        return reply
    if isinstance(reply, dict):
        return str(reply["content"])
    items = list(reply)
    return items[-1]["content"] if isinstance(items[-1], dict) else "".join(filter(None, items))


SYNC = [text, message, loop, iterator, words, Model(), Model().method, partial(text)]


@pytest.fixture
def chat(make_store: Callable[..., Store]) -> Conversation:
    return make_store().conversation("ada")


@pytest.mark.parametrize("function", SYNC, ids=lambda one: getattr(one, "__name__", "object"))
def test_what_was_said_is_known(chat: Conversation, function: Any) -> None:
    told, ask = chat.wrap(function), decorated(function)
    whole(told("My name is Ada."))
    assert whole(told([{"role": "user", "content": "What is my name?"}])) == "Your name is Ada."
    assert whole(ask(chat, "What is my name?")) == "Your name is Ada."
    assert whole(ask(messages="What is my name?", conversation=chat)) == "Your name is Ada."
    assert len(chat.turns()) == 4
    assert chat.read()[-1]["content"] == "Your name is Ada."


async def async_text(messages: list[Json]) -> str:
    return answer(messages)


async def async_iterator(messages: list[Json]) -> AsyncIterator[str]:
    return async_words(messages)


async def async_words(messages: list[Json]) -> AsyncIterator[str]:
    for word in answer(messages).partition(" "):
        yield word


async def awhole(reply: Any) -> str:
    reply = await reply if inspect.isawaitable(reply) else reply
    return reply if isinstance(reply, str) else "".join([piece async for piece in reply])


@pytest.mark.parametrize("function", [async_text, async_iterator, async_words])
async def test_what_was_said_is_known_to_async_functions(
    make_async_store: Callable[..., AsyncStore], function: Any
) -> None:
    chat = make_async_store().conversation("ada")
    told, ask = chat.wrap(function), decorated(function)
    await awhole(told("My name is Ada."))
    assert await awhole(told("What is my name?")) == "Your name is Ada."
    assert await awhole(ask(chat, "What is my name?")) == "Your name is Ada."
    assert len(await chat.turns()) == 3


@pytest.mark.parametrize("function", [text, words, async_text, async_words])
def test_it_is_still_a_function_of_its_kind(function: Any) -> None:
    for store in (Store, AsyncStore):
        chat = store.from_url("redis://127.0.0.1:1", name="t").conversation("ada")
        is_async = function in (async_text, async_words)
        if is_async is not (store is AsyncStore):
            with pytest.raises(TypeError, match="needs a conversation of"):
                chat.wrap(function)
            continue
        for made in (chat.wrap(function), decorated(function)):
            assert made.__name__ == function.__name__
            for kind in ("isgeneratorfunction", "iscoroutinefunction", "isasyncgenfunction"):
                assert getattr(inspect, kind)(made) == getattr(inspect, kind)(function)
    assert list(inspect.signature(decorated(function)).parameters) == ["conversation", "messages"]


def test_other_arguments_are_passed_on(chat: Conversation) -> None:
    def ask(messages: list[Json], model: str, *, loud: bool = False) -> str:
        return f"{model}{len(messages)}{'!' * loud}"

    assert chat.wrap(ask)("Hi", "m", loud=True) == "m1!"  # type: ignore[arg-type]
    assert chat.wrap(ask)(messages=[{"role": "user", "content": "x"}], model="m") == "m3"
    assert remember(ask)(chat, "Hi", "m", loud=True) == "m5!"
    assert remember(on_conflict="reject", meta={"a": 1})(ask)(chat, "Hi", model="m") == "m7"
    assert chat.turns(1).__iter__().__next__().meta == {"a": 1}
    with pytest.raises(TypeError, match="without its messages"):
        remember(ask)(chat)  # type: ignore[call-arg]


def test_what_fails_saves_nothing(chat: Conversation) -> None:
    def fails(messages: list[Json]) -> str:
        raise LookupError(len(messages))

    def breaks(_messages: list[Json]) -> Iterator[str]:
        yield "a"
        raise LookupError

    def nothing(_messages: list[Json]) -> None:
        pass

    def number(_messages: list[Json]) -> int:
        return 3

    with pytest.raises(LookupError):
        chat.wrap(fails)("Hi")  # type: ignore[arg-type]
    with pytest.raises(LookupError):
        list(remember(breaks)(chat, "Hi"))
    with pytest.raises(TypeError, match="None"):
        remember(nothing)(chat, "Hi")
    with pytest.raises(SaveError, match="int") as caught:
        remember(number)(chat, "Hi")
    assert caught.value.reply == 3
    assert chat.read() == []


@pytest.mark.parametrize("function", [iterator, words])
def test_what_is_left_saves_nothing(chat: Conversation, function: Any) -> None:
    ask = chat.wrap(function)
    next(ask("Hi"))
    pieces = ask("Hi")
    next(pieces)
    pieces.close()
    ask("Hi")
    del pieces
    gc.collect()
    assert chat.read() == []


def test_the_function_that_was_left_is_closed(chat: Conversation) -> None:
    ended = []

    def words(_messages: list[Json]) -> Iterator[str]:
        try:
            yield "a"
            yield "b"
        finally:
            ended.append(1)

    pieces: Any = remember(words)(chat, "Hi")
    next(pieces)
    pieces.close()
    assert ended == [1]


class Piece(str):
    """A piece of a text, which notices when it is added to another one."""

    __slots__ = ()

    def __radd__(self, other: str) -> str:
        pytest.fail(f"{len(other)} characters were copied to add {len(self)}")


def test_many_pieces_are_joined_once(chat: Conversation) -> None:
    def speak(messages: list[Json]) -> Iterator[Any]:
        yield {"role": "assistant", "content": f"{len(messages)} message"}
        yield from map(Piece, "abc" * 100)

    assert len(list(chat.wrap(speak)("Hi"))) == 301  # type: ignore[arg-type]
    assert [message["content"] for message in chat.read()][1:] == ["1 message", "abc" * 100]


def test_messages_and_texts_may_be_yielded_together(chat: Conversation) -> None:
    def ask(messages: list[Json]) -> Iterator[Any]:
        *before, last = loop(messages)
        yield from before
        yield "It is "
        yield "done."
        assert last

    list(remember(ask)(chat, "Hi"))
    assert [m["role"] for m in chat.read()] == ["user", "assistant", "tool", "assistant"]
    assert chat.read()[-1] == {"role": "assistant", "content": "It is done."}


def test_an_empty_stream_saves_nothing(chat: Conversation) -> None:
    def ask(_messages: list[Json]) -> Iterator[str]:
        yield ""

    assert list(remember(ask)(chat, "Hi")) == [""]
    assert chat.read() == []


def test_what_is_async_after_all_is_refused(chat: Conversation) -> None:
    made = async_words([])
    hidden: Any = lambda _: made  # noqa: E731 - nothing says that it is async
    with pytest.raises(TypeError, match="AsyncStore"):
        chat.wrap(hidden)([])
    wrong: Any = chat
    with pytest.raises(TypeError, match="AsyncStore"):
        asyncio.run(remember(async_text)(wrong, "Hi"))


def test_what_is_no_function(chat: Conversation) -> None:
    for thing in (3, str, "f"):
        with pytest.raises(TypeError):
            remember(thing)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="wrap knows functions"):
            chat.wrap(thing)


async def test_a_cancelled_function_saves_nothing(
    make_async_store: Callable[..., AsyncStore],
) -> None:
    chat = make_async_store().conversation("ada")
    begun = asyncio.Event()

    async def ask(_messages: list[Json]) -> str:
        begun.set()
        await asyncio.sleep(60)
        return "late"

    task = asyncio.create_task(remember(ask)(chat, "Hi"))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await chat.read() == []


def test_pieces_that_nobody_asks_for_are_not_waited_for(chat: Conversation) -> None:
    serial: Any = {"on_conflict": "serialize", "lease": SHORT}
    unread: Any = chat.wrap(iterator, **serial)([])
    with chat.turn("next", **serial) as turn:
        turn.reply("fine")
    with pytest.raises(LeaseLostError):
        list(unread)


async def test_nor_are_async_ones(make_async_store: Callable[..., AsyncStore]) -> None:
    async def ask(messages: list[Json]) -> AsyncIterator[str]:
        return async_words(messages)

    chat = make_async_store().conversation("ada")
    serial: Any = {"on_conflict": "serialize", "lease": SHORT}
    unread: Any = await chat.wrap(ask, **serial)([])
    assert await said(chat, "next") == []
    with pytest.raises(LeaseLostError):
        assert [piece async for piece in unread]


def test_another_format(chat: Conversation) -> None:
    @remember(format="anthropic.messages")
    def ask(messages: list[Json]) -> Json:
        content = [{"type": "text", "text": str(len(messages))}]
        return {"role": "assistant", "content": content}

    assert ask(chat, "Hi")["content"][0]["text"] == "1"
    assert ask(chat, "Hi")["content"][0]["text"] == "3"
    assert chat.turns().__iter__().__next__().format == "anthropic.messages"
