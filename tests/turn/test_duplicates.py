"""A turn whose id was saved before: asked again and not stored, or an error with what is stored."""

from __future__ import annotations

import asyncio
import logging
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from tests.servers.proxy import Cut
from tests.store.talk import assistant, fill, texts, user
from turnstore import (
    AlreadySavedError,
    SaveError,
    TurnIdReusedError,
    UnavailableError,
    Window,
)

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from turnstore import AsyncConversation, AsyncStore

pytestmark = pytest.mark.one_setup


async def ask(chat: AsyncConversation, text: Any, answer: Any, **options: Any) -> None:
    """Take a turn with the id `job`."""
    async with chat.turn(text, turn_id="job", **options) as turn:
        turn.reply(answer)


async def refused(chat: AsyncConversation, **options: Any) -> AlreadySavedError:
    """Take it again, in a block that must not be entered."""
    with pytest.raises(AlreadySavedError) as caught:
        async with chat.turn("q", turn_id="job", on_duplicate="raise", **options):
            pytest.fail("the model would have been asked")
    return caught.value


async def test_what_is_stored_comes_in_place_of_a_second_answer(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await chat.append("before")
    await ask(chat, "q", "a", on_duplicate="raise", meta={"n": 1})
    await chat.append("after")
    before = await chat.turns()
    error = await refused(chat)
    assert error.saved == before[1]
    assert (error.saved.id, error.saved.messages) == ("job", [user("q"), assistant("a")])
    assert error.reply == [assistant("a")]
    assert "the model was not asked" in str(error)
    assert error.saved.revision in str(error)
    assert await chat.turns() == before
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (again.saved, again.reply) == (error.saved, error.reply)


async def test_by_default_it_is_asked_again_and_the_log_says_what_became_of_the_reply(
    store: AsyncStore, caplog: pytest.LogCaptureFixture
) -> None:
    chat = store.conversation("c")
    with caplog.at_level(logging.WARNING, "turnstore"):
        await ask(chat, "q", "a")
        assert not caplog.records
        await ask(chat, "q", "another")
    assert texts(await chat.read()) == ["q", "a"]
    assert "the reply was not stored" in caplog.text


async def test_other_ids_and_random_ones_go_on(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await ask(chat, "q", "a", on_duplicate="raise")
    for turn_id in ("other", None):
        async with chat.turn("q", turn_id=turn_id, on_duplicate="raise") as turn:
            turn.reply("a")
    assert len(await chat.turns()) == 3


async def test_an_undone_turn_is_taken_again(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await ask(chat, "q", "a", on_duplicate="raise")
    await chat.rewind()
    await ask(chat, "q", "a2", on_duplicate="raise")
    assert texts(await chat.read()) == ["q", "a2"]


@pytest.mark.parametrize("later", [5, 31])
async def test_it_is_found_among_the_newest_32_whatever_the_window_is(
    store: AsyncStore, later: int
) -> None:
    chat = store.conversation("c")
    await fill(chat, 3)
    await ask(chat, "q", "a")
    await fill(chat, later)
    error = await refused(chat, window=Window(turns=1))
    assert error.saved == (await chat.turns())[3]


async def test_beyond_32_a_wider_window_still_finds_it(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await ask(chat, "q", "a")
    await fill(chat, 40)
    assert (await refused(chat, window=Window(turns=60))).reply == [assistant("a")]
    await ask(chat, "q", "a2", on_duplicate="raise", window=Window(turns=5))
    assert len(await chat.turns()) == 42


async def test_one_that_was_trimmed_away_is_asked_again_and_not_stored(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await ask(chat, "q", "a")
    await fill(chat, 3)
    await chat.trim(turns=2)
    async with chat.turn("q", turn_id="job", on_duplicate="raise") as turn:
        turn.reply("a2")
    assert turn.saved is not None
    assert turn.saved.duplicate
    assert len(await chat.turns()) == 2


async def test_pieces_of_a_turn_are_told_apart(store: AsyncStore) -> None:
    chat = store.conversation("c")
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    calling = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "1", "content": "r"}
    await ask(chat, "q", calling)
    async with chat.turn([result], turn_id="job.2") as turn:
        turn.reply("done")
    assert len(await chat.turns()) == 1
    error = await refused(chat)
    assert error.saved.messages == [user("q"), calling]
    assert error.reply == [calling]
    with pytest.raises(AlreadySavedError) as caught:  # whose call is answered by now
        async with chat.turn([result], turn_id="job.2", on_duplicate="raise"):
            pytest.fail("the model would have been asked")
    assert caught.value.saved.messages == [result, assistant("done")]
    assert caught.value.reply == [assistant("done")]


async def test_the_stored_format_says_what_the_model_said(store: AsyncStore) -> None:
    chat = store.conversation("c")
    messages: list[dict[str, Any]] = [
        {"role": "user", "parts": [{"text": "q"}]},
        {"role": "model", "parts": [{"text": "a"}]},
    ]
    await chat.append(messages, format="google.contents", turn_id="job")
    assert (await refused(chat)).reply == messages[1:]


@pytest.mark.parametrize("on_load_error", ["raise", "continue"])
async def test_another_question_is_not_answered_with_what_is_stored(
    store: AsyncStore, on_load_error: Any
) -> None:
    chat = store.conversation("c")
    await ask(chat, "q", "a")
    before = await chat.turns()
    with pytest.raises(TurnIdReusedError, match="is not what is asked now") as caught:
        async with chat.turn(
            "another", turn_id="job", on_duplicate="raise", on_load_error=on_load_error
        ):
            pytest.fail("the model would have been asked")
    assert caught.value.saved == before[0]
    assert not isinstance(caught.value, AlreadySavedError)
    assert await chat.turns() == before
    # Nor is one that answers a tool, or says the same and more.
    result = {"role": "tool", "tool_call_id": "1", "content": "q"}
    for given in ([result], [user("q"), user("more")], [user("before"), user("another")]):
        with pytest.raises((TurnIdReusedError, ValueError)):
            async with chat.turn(given, turn_id="job", on_duplicate="raise"):
                pytest.fail("the model would have been asked")


async def test_the_question_may_come_with_what_came_before_it(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await ask(chat, [user("one"), user("two")], "a")
    for given in (
        [user("one"), user("two")],
        [{"role": "system", "content": "Now."}, user("zero"), user("one"), user("two")],
        [user("one"), {"role": "user", "content": [{"type": "text", "text": "two"}]}],
    ):
        with pytest.raises(AlreadySavedError):
            async with chat.turn(given, turn_id="job", on_duplicate="raise"):
                pytest.fail("the model would have been asked")
    with pytest.raises(TurnIdReusedError):
        async with chat.turn("two", turn_id="job", on_duplicate="raise"):
            pytest.fail("the model would have been asked")


async def test_a_question_is_known_as_it_was_redacted(new_store: NewStore) -> None:
    def redact(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [one | {"content": one["content"].replace("secret", "***")} for one in messages]

    chat = new_store(redact=redact).conversation("c")
    options: dict[str, Any] = {"turn_id": "job", "on_duplicate": "raise"}
    async with chat.turn("my secret", **options) as turn:
        turn.reply("a")
    with pytest.raises(AlreadySavedError):
        async with chat.turn("my secret", **options):
            pytest.fail("the model would have been asked")
    with pytest.raises(TurnIdReusedError):
        async with chat.turn("another secret", **options):
            pytest.fail("the model would have been asked")


async def test_redis_that_is_down_is_no_proof(new_store: NewStore, proxy: Proxy) -> None:
    chat = new_store(at=proxy).conversation("c")
    await ask(chat, "q", "a")
    assert (await refused(chat, on_load_error="continue")).reply == [assistant("a")]
    proxy.go_down()
    with pytest.raises(UnavailableError):
        await ask(chat, "q", "a2", on_duplicate="raise")
    async with chat.turn(
        "q", turn_id="job", on_duplicate="raise", on_load_error="continue"
    ) as turn:
        assert isinstance(turn.load_error, UnavailableError)
        proxy.come_up()
        turn.reply("a2")
    assert turn.saved is not None
    assert turn.saved.duplicate
    assert texts(await chat.read()) == ["q", "a"]


@pytest.mark.servers("redis", "valkey")  # a Cluster's client sends again by itself
async def test_a_save_without_an_answer_is_found_by_the_next_attempt(
    new_store: NewStore, proxy: Proxy
) -> None:
    chat = new_store(at=proxy, redis={"retry": None}).conversation("c")
    turn = chat.turn("q", on_duplicate="raise")  # its id is a random one
    proxy.next(Cut.REPLY_LOST, command="EVALSHA")
    with pytest.raises(SaveError):
        async with turn:
            turn.reply("a")
    with pytest.raises(AlreadySavedError) as caught:
        async with turn:
            pytest.fail("the model would have been asked")
    assert caught.value.saved.id == turn.turn_id
    assert texts(await chat.read()) == ["q", "a"]


async def test_turns_at_once_with_one_id_ask_once_where_they_wait(store: AsyncStore) -> None:
    chat = store.conversation("c")
    asked: list[str] = []

    async def attempt() -> str:
        try:
            async with chat.turn(
                "q", turn_id="job", on_duplicate="raise", on_conflict="serialize"
            ) as turn:
                asked.append("once")
                turn.reply("a")
        except AlreadySavedError as error:
            return str(error.reply[0]["content"])
        return "a"

    assert await asyncio.gather(*(attempt() for _ in range(4))) == ["a"] * 4
    assert asked == ["once"]
    async with chat.turn("next", on_conflict="serialize") as turn:  # nobody has kept the lease
        assert texts(turn.history) == ["q", "a"]


async def test_an_owners_turn(store: AsyncStore) -> None:
    chat = store.conversation("c", owner="ada")
    await ask(chat, "q", "a")
    assert (await refused(chat)).reply == [assistant("a")]
    assert texts(await chat.read()) == ["q", "a"]


def test_a_choice_that_there_is_not(store: AsyncStore) -> None:
    with pytest.raises(ValueError, match="on_duplicate is one of"):
        store.conversation("c").turn("q", on_duplicate="ignore")  # type: ignore[arg-type]
