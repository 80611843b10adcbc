"""The guide's code that keeps what was seen of a stream, and its twin for AsyncStore."""

from __future__ import annotations

import asyncio
import re
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from turnstore.testing import ModelServer, Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from turnstore import AsyncConversation, AsyncStore, Conversation, Store

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]

PAGE = Path(__file__).parents[2] / "docs/guides/wrap-a-client.md"
CODE = re.compile(r"^def stream_and_keep.*?(?=^\S)", re.MULTILINE | re.DOTALL)

HALF = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
WHOLE = [HALF[0], {"role": "assistant", "content": "Hello you"}]


@pytest.fixture
def chat(make_store: Callable[..., Store]) -> Conversation:
    return make_store().conversation("ada")


@pytest.fixture
def stream(model: ModelServer) -> Iterator[Callable[[Conversation, str], Any]]:
    found = CODE.search(PAGE.read_text())
    assert found is not None
    with OpenAI(base_url=model.base_url, api_key="none", max_retries=0) as client:
        names: dict[str, Any] = {"openai": client}
        exec(found.group(), names)  # noqa: S102 - the guide's own
        yield names["stream_and_keep"]


def kept(chat: Conversation) -> list[tuple[Any, Any]]:
    return [(turn.meta.get("interrupted"), turn.messages) for turn in chat.turns()]


def test_one_that_is_read_to_its_end(chat: Conversation, stream: Any, model: ModelServer) -> None:
    model.script(Reply("Hello you"))
    assert "".join(stream(chat, "Hi")) == "Hello you"
    assert kept(chat) == [(False, WHOLE)]


def test_one_that_is_closed_early(chat: Conversation, stream: Any, model: ModelServer) -> None:
    hold = threading.Event()
    model.script(Reply("Hello you", hold=hold))
    with closing(stream(chat, "Hi")) as pieces:
        assert next(pieces) == "Hello"
    hold.set()
    assert kept(chat) == [(True, HALF)]
    # A later call is sent it like any other answer.
    list(stream(chat, "And now?"))
    assert model.requests[-1].messages[:2] == HALF


@pytest.mark.parametrize(
    "reply",
    [Reply("Hello you", finish="length"), Reply("Hello you", ending="truncated")],
    ids=["length", "without a mark"],
)
def test_one_that_is_cut_short(
    chat: Conversation, stream: Any, model: ModelServer, reply: Reply
) -> None:
    model.script(reply)
    list(stream(chat, "Hi"))
    assert kept(chat) == [(True, WHOLE)]


def test_a_connection_that_is_lost(chat: Conversation, stream: Any, model: ModelServer) -> None:
    model.script(Reply("Hello you", ending="cut"))
    with pytest.raises(openai.APIConnectionError):
        list(stream(chat, "Hi"))
    ((interrupted, messages),) = kept(chat)
    assert interrupted is True
    assert messages[0] == HALF[0]
    assert messages[1]["content"]
    assert WHOLE[1]["content"].startswith(messages[1]["content"])


@pytest.mark.parametrize(
    "reply",
    [
        Reply("Wel", finish="content_filter"),
        Reply(refusal="No."),
        Reply.tool_call("weather", city="Rome"),
        Reply.error(400),
    ],
    ids=["filtered", "refused", "tool call", "error"],
)
def test_what_is_no_text_to_keep(
    chat: Conversation, stream: Any, model: ModelServer, reply: Reply
) -> None:
    model.script(reply)
    if reply.status == 200:
        list(stream(chat, "Hi"))
    else:
        with pytest.raises(openai.BadRequestError):
            list(stream(chat, "Hi"))
    assert kept(chat) == []


async def async_stream(
    client: AsyncOpenAI, chat: AsyncConversation, text: str
) -> AsyncIterator[str]:
    """What the guide's last sentence says."""
    said, finish = "", None
    async with chat.turn(text) as turn:
        asked: Any = {"model": "m", "messages": turn.messages, "stream": True}
        async with await client.chat.completions.create(**asked) as stream:
            try:
                async for chunk in turn.follow(stream):
                    for choice in chunk.choices:
                        finish = choice.finish_reason or finish
                        if piece := choice.delta.content:
                            said += piece
                            yield piece
            finally:
                if said and finish in (None, "stop", "length"):
                    turn.meta["interrupted"] = finish != "stop"
                    turn.reply(said)
                    await turn.save()


async def test_a_task_that_is_cancelled(
    make_async_store: Callable[..., AsyncStore], model: ModelServer
) -> None:
    chat = make_async_store().conversation("ada")
    hold, begun = threading.Event(), asyncio.Event()
    model.script(Reply("Hello you", hold=hold))

    async def talk(client: AsyncOpenAI) -> None:
        async for _ in async_stream(client, chat, "Hi"):
            begun.set()

    async with AsyncOpenAI(base_url=model.base_url, api_key="none", max_retries=0) as client:
        task = asyncio.create_task(talk(client))
        await asyncio.wait_for(begun.wait(), 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        hold.set()
    (turn,) = await chat.turns()
    assert (turn.meta, turn.messages) == ({"interrupted": True}, HALF)
