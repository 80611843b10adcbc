"""What is done when a turn was saved: once for each, whatever becomes of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.context.flows import Recorder
from tests.store.talk import assistant, user
from tests.turn.test_tools import asks, result
from turnstore import SaveError, TurnConflictError
from turnstore.context import Context, Query, SavedTurn

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import NewStore
    from tests.servers.running import Server
    from turnstore import AsyncStore

pytestmark = pytest.mark.one_setup


async def test_a_saved_turn_is_handed_over_once(store: AsyncStore) -> None:
    after = Recorder(None)
    context = Context(after=[after])
    chat = store.conversation("c", owner="ada")
    async with chat.turn("q", context=context, turn_id="t1") as turn:
        turn.reply("a")
        assert after.given == []
        await turn.save()
        await turn.save()
    (given,) = after.given
    assert given == SavedTurn(
        conversation="c",
        owner="ada",
        turn_id="t1",
        messages=[user("q"), assistant("a")],
        format="openai.chat",
        appended=given.appended,
        began=given.began,
    )
    assert given.began > 0
    assert given.appended == turn.saved
    assert given.appended.duplicate is False


async def test_a_turn_that_was_saved_before_is_handed_over_again(store: AsyncStore) -> None:
    """A process that died between the save and what comes after it is made up for."""
    after = Recorder(None)
    chat = store.conversation("c")
    for _ in range(2):
        async with chat.turn("q", context=Context(after=[after]), turn_id="t1") as turn:
            turn.reply("a")
    assert [given.appended.duplicate for given in after.given] == [False, True]
    assert [given.owner for given in after.given] == ["", ""]
    assert [given.began for given in after.given] == [0, 0]


async def test_of_a_turn_that_was_saved_before_it_is_the_stored_answer(store: AsyncStore) -> None:
    after = Recorder(None)
    chat, twin = store.conversation("c"), store.conversation("c")
    async with chat.turn("q", turn_id="t1") as turn:
        turn.reply("stored")
    async with chat.turn("q", context=Context(after=[after]), turn_id="t1") as turn:
        turn.reply("another")
    async with chat.turn("q", context=Context(after=[after]), turn_id="t2") as turn:
        async with twin.turn("q", turn_id="t2") as first:  # while the other's model answers
            first.reply("stored by its twin")
        turn.reply("another")
    said = [given.messages for given in after.given]
    assert said == [[user("q"), assistant("stored")], [user("q"), assistant("stored by its twin")]]


async def test_of_a_turn_that_was_saved_in_another_format_it_is_that_one(
    store: AsyncStore,
) -> None:
    after = Recorder(None)
    chat = store.conversation("c")
    async with chat.turn("q", turn_id="t1", format="anthropic.messages") as turn:
        turn.reply("stored")
    context = Context(after=[after])
    async with chat.turn("q", context=context, turn_id="t1", on_other_format="text") as turn:
        turn.reply("another")
    (given,) = after.given
    assert given.format == "anthropic.messages"
    assert "stored" in str(given.messages)
    assert "another" not in str(given.messages)


async def test_a_turn_that_is_not_saved_is_not_handed_over(store: AsyncStore) -> None:
    after = Recorder(None)
    context = Context(after=[after])
    chat = store.conversation("c")
    async with chat.turn("no reply", context=context):
        pass
    with pytest.raises(KeyError):  # noqa: PT012 - the block is what fails
        async with chat.turn("fails", context=context) as turn:
            turn.reply("a")
            raise KeyError
    async with chat.turn("first", context=context, on_conflict="reject") as late:
        async with chat.turn("second") as turn:
            turn.reply("a")
        late.reply("b")
        with pytest.raises(TurnConflictError):
            await late.save()
        late._replies.clear()  # so that the block ends
    assert after.given == []


async def test_a_save_that_succeeds_at_last_is_handed_over(
    store: AsyncStore, server: Server
) -> None:
    after = Recorder(None)
    chat = store.conversation("c")
    async with chat.turn("q", context=Context(after=[after])) as turn:
        turn.reply("a")
        server.raw.set(chat.key, "mine", px=60_000)
        with pytest.raises(SaveError):
            await turn.save()
        assert after.given == []
        server.raw.delete(chat.key)
    assert len(after.given) == 1


async def test_a_failure_leaves_the_turn_and_the_others_alone(
    store: AsyncStore, caplog: pytest.LogCaptureFixture
) -> None:
    broken, after = Recorder(RuntimeError("down")), Recorder(None)
    context = Context(after=[broken, after])
    async with store.conversation("c").turn("q", context=context) as turn:
        turn.reply("a")
    assert len(broken.given) == len(after.given) == 1
    assert turn.saved is not None
    assert context.counts == {"after": 1}
    assert "after failed (RuntimeError: down); the turn is saved" in caplog.text


async def test_each_piece_of_a_tool_loop_holds_what_came_before(store: AsyncStore) -> None:
    after = Recorder(None)
    context = Context(after=[after])
    chat = store.conversation("c")
    async with chat.turn("q", context=context) as turn:
        turn.reply(asks("1"))
    async with chat.turn([result("1")], context=context) as turn:
        turn.reply("a")
    first, second = after.given
    assert first.messages == [user("q"), asks("1")]
    assert second.messages == [user("q"), asks("1"), result("1"), assistant("a")]
    assert second.turn_id != first.turn_id


async def test_it_gets_what_was_stored(new_store: NewStore) -> None:
    after = Recorder(None)

    def redact(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [one | {"content": one["content"].replace("secret", "…")} for one in messages]

    store = new_store(redact=redact)
    async with store.conversation("c").turn("a secret", context=Context(after=[after])) as turn:
        turn.reply("that secret")
    (given,) = after.given
    assert [message["content"] for message in given.messages] == ["a …", "that …"]


async def test_what_it_does_with_the_messages_is_its_own_affair(store: AsyncStore) -> None:
    def spoil(turn: SavedTurn) -> None:
        turn.messages[0]["content"] = "spoilt"

    chat = store.conversation("c")
    async with chat.turn("q", context=Context(after=[spoil])) as turn:
        turn.reply("a")
    assert turn.new[0]["content"] == "q"


async def test_it_may_be_async_on_an_async_store(make_async_store: Callable[..., Any]) -> None:
    given: list[SavedTurn] = []

    async def after(turn: SavedTurn) -> None:
        await asyncio.sleep(0)
        given.append(turn)

    store = make_async_store()
    async with store.conversation("c").turn("q", context=Context(after=[after])) as turn:
        turn.reply("a")
    assert len(given) == 1


async def test_a_source_knows_whose_conversation_it_is(store: AsyncStore) -> None:
    source = Recorder(None)
    context = Context(sources=[source])
    for number in (1, 2):
        chat = store.conversation("c", owner="ada")
        async with chat.turn("q", context=context, turn_id=f"t{number}") as turn:
            turn.reply("a")
    async with store.conversation("d").turn("q", context=context) as turn:
        turn.reply("a")
    asked: list[Query] = source.given
    assert [(one.owner, one.conversation_id, one.turns) for one in asked] == [
        ("ada", "c", ()),
        ("ada", "c", ("t1",)),
        ("", "d", ()),
    ]


@pytest.mark.parametrize("after", [print, "print", ["print"], [None]])
def test_what_is_no_list_of_functions_is_refused(after: Any) -> None:
    with pytest.raises(TypeError, match="function"):
        Context(after=after)
