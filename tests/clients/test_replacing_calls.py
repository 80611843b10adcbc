"""A wrapped client whose first call takes the place of a turn: answered anew, or edited."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import openai
import pytest

from tests.clients.talking import BROKEN, texts
from tests.clients.test_tools import answer_to, called
from turnstore import AlreadySavedError, SaveError, TurnConflictError, TurnGoneError
from turnstore.testing import Reply, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.conftest import Wrap
    from tests.clients.talking import Api
    from turnstore import AsyncConversation, Store
    from turnstore.testing import ModelServer

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]


@pytest.fixture
async def spoken(wrap: Wrap, chat: AsyncConversation, model: ModelServer, api: Api) -> list[str]:
    """Have three turns, and give the ids of them."""
    for number in range(1, 4):
        model.script(Reply(f"a{number}"))
        await api.say(wrap(chat), f"q{number}")
    return [turn.id for turn in await chat.turns()]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_replaces_once(  # noqa: PLR0913 - fixtures
    wrap: Wrap,
    chat: AsyncConversation,
    model: ModelServer,
    api: Api,
    spoken: list[str],
    *,
    stream: bool,
) -> None:
    again = wrap(chat, replaces=(await chat.turns())[-1])
    model.script(Reply("another"), Reply("next"))
    if stream:
        assert await api.read(await api.create(again, "q3", stream=True)) == "another"
    else:
        assert await api.say(again, "q3") == "another"
    before = ["q1", "a1", "q2", "a2"]
    assert "a3" not in str(model.requests[-1].messages)
    assert len(model.requests[-1].messages) == 5
    assert await texts(chat) == [*before, "q3", "another"]
    await api.say(again, "q4")  # the next call follows
    assert await texts(chat) == [*before, "q3", "another", "q4", "next"]
    with pytest.raises(TurnGoneError):
        await api.create(wrap(chat, replaces=spoken[2]), "q3")
    assert len(model.requests) == 5


@pytest.mark.parametrize(
    "reply",
    [
        Reply.error(400),
        Reply("Hello you", ending="cut"),
        Reply("Hello you", ending="truncated"),
        Reply(refusal="No."),
    ],
    ids=["error", "cut", "truncated", "refused"],
)
@pytest.mark.parametrize("policy", ["append", "serialize"])
async def test_what_fails_or_breaks_leaves_all_and_is_tried_again(  # noqa: PLR0913 - fixtures
    wrap: Wrap,
    chat: AsyncConversation,
    model: ModelServer,
    api: Api,
    spoken: list[str],
    *,
    reply: Reply,
    policy: Any,
) -> None:
    before = await chat.turns()
    again = wrap(chat, replaces=spoken[1], on_conflict=policy)
    model.script(reply, Reply("another"))
    with suppress(*BROKEN, openai.APIStatusError):
        await api.read(await api.create(again, "q2", stream=True))
    assert await chat.turns() == before
    assert await api.say(again, "q2") == "another"
    assert await texts(chat) == ["q1", "a1", "q2", "another"]


async def test_a_stream_that_is_left_replaces_nothing(
    wrap: Wrap, chat: AsyncConversation, api: Api, spoken: list[str]
) -> None:
    before = await chat.turns()
    stream: Any = await api.create(wrap(chat, replaces=spoken[0]), "q1", stream=True)
    async with stream:
        async for _ in stream:
            break
    assert await chat.turns() == before


async def test_a_tool_loop_replaces_with_its_first_call(
    wrap: Wrap, chat: AsyncConversation, model: ModelServer, api: Api, spoken: list[str]
) -> None:
    again = wrap(chat, replaces=spoken[1])
    model.script(Reply(tool_calls=[ToolCall(name="weather", arguments={"city": "Rome"})]))
    await api.create(again, "How warm is it?")
    assert len(await chat.turns()) == 2
    ids = [
        call.get("id") if api.field == "messages" else call["call_id"]
        for call in await called(chat)
    ]
    await api.create(again, [answer_to(api, str(one)) for one in ids])
    first, second = await chat.turns()
    assert first.id == spoken[0]
    assert len(second.ids) == 2
    # And such a turn goes whole.
    model.script(Reply("dry"))
    await api.say(wrap(chat, replaces=second.ids[0]), "How wet is it?")
    assert await texts(chat) == ["q1", "a1", "How wet is it?", "dry"]


async def test_another_turn_meanwhile_keeps_the_reply(
    wrap: Wrap, chat: AsyncConversation, model: ModelServer, api: Api, spoken: list[str]
) -> None:
    again = wrap(chat, replaces=spoken[2])
    model.script(Reply("another"))
    stream: Any = await api.create(again, "q3", stream=True)
    await chat.append("between", format=(await chat.turns())[0].format)
    with pytest.raises(TurnConflictError) as caught:
        await api.read(stream)
    assert isinstance(caught.value, SaveError)
    assert "another" in str(caught.value.reply)
    assert (await texts(chat))[-3:] == ["q3", "a3", "between"]


async def test_calls_at_once_replace_once(
    wrap: Wrap, chat: AsyncConversation, api: Api, spoken: list[str]
) -> None:
    again = wrap(chat, replaces=spoken[2])
    done = await asyncio.gather(*(api.say(again, "q3") for _ in range(4)), return_exceptions=True)
    said = [one for one in done if isinstance(one, str)]
    assert said
    assert all(isinstance(one, str | TurnConflictError | TurnGoneError) for one in done)
    turns = await chat.turns()
    assert [turn.id for turn in turns[:2]] == spoken[:2]
    assert len(turns) == 2 + len(said), "the first that is saved replaces, the others follow"
    assert "a3" not in await texts(chat)


async def test_a_job_that_runs_again_replaces_once(
    wrap: Wrap, chat: AsyncConversation, model: ModelServer, api: Api, spoken: list[str]
) -> None:
    options: dict[str, Any] = {"replaces": spoken[1], "turn_id": "job", "on_duplicate": "raise"}
    model.script(Reply("another"), Reply("more"))
    await api.say(wrap(chat, **options), "q2")
    again = wrap(chat, **options)
    with pytest.raises(AlreadySavedError) as caught:
        await api.create(again, "q2")
    assert "another" in str(caught.value.reply)
    assert await api.say(again, "and then?") == "more"
    assert await texts(chat) == ["q1", "a1", "q2", "another", "and then?", "more"]
    assert [turn.id for turn in await chat.turns()] == [spoken[0], "job", "job.2"]
    with pytest.raises(ValueError, match="the new one needs another"):
        wrap(chat, replaces="job", turn_id="job")


def test_a_function(make_store: Callable[..., Store]) -> None:
    chat = make_store().conversation("ada")

    def ask(messages: list[dict[str, Any]]) -> str:
        return f"I see {len(messages)}"

    chat.wrap(ask)([{"role": "user", "content": "Hi"}])
    (old,) = chat.turns()
    chat.wrap(ask, replaces=old)([{"role": "user", "content": "Hello"}])
    assert [message["content"] for message in chat.read()] == ["Hello", "I see 1"]
