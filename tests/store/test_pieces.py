"""Appends that continue a turn: its pieces count as one turn for every cut."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.store.talk import assistant, texts, user
from turnstore import ConflictError, Window

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from turnstore import AsyncConversation, AsyncStore

pytestmark = pytest.mark.one_setup


async def append_pieces(chat: AsyncConversation, number: int, *sizes: int) -> None:
    for piece, size in enumerate(sizes):
        messages = [f"{number}.{piece}.{m}" for m in range(size)]
        await chat.append(messages, continues=piece > 0, turn_id=f"t{number}.{piece}")


async def test_pieces_are_one_turn(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await append_pieces(chat, 1, 2, 1, 3)
    answer = await chat.append("2", turn_id="two")
    assert (answer.turns, answer.messages, answer.revision) == (2, 7, "4-two")
    first, second = await chat.turns()
    assert (first.number, second.number) == (1, 2)
    assert (first.id, len(first.messages), first.revision) == ("t1.2", 6, "3-t1.2")
    assert (first.ids, second.ids) == (("t1.0", "t1.1", "t1.2"), ("two",))
    assert (await chat.stat()).turns == 2


async def test_a_turn_in_pieces_joins_its_meta_tokens_and_time(new_store: NewStore) -> None:
    chat = new_store(count_tokens=lambda _: 10).conversation("c")
    await chat.append("a", meta={"model": "m", "x": 1})
    await chat.append(["b", "c"], continues=True, meta={"x": 2}, format="other")
    (turn,) = await chat.turns()
    assert (turn.meta, turn.tokens, turn.format) == ({"model": "m", "x": 2}, 30, "other")
    assert (await chat.read()).turns == [turn]
    stat = await chat.stat()
    assert stat.first_time is not None
    assert stat.first_time <= turn.time == stat.last_time


async def test_nothing_to_continue_is_a_conflict(store: AsyncStore) -> None:
    chat = store.conversation("c")
    with pytest.raises(ConflictError, match="expected a turn to continue, found revision 0"):
        await chat.append("a", continues=True)
    assert await chat.read() == []


async def test_continuing_at_a_revision(store: AsyncStore) -> None:
    chat = store.conversation("c")
    revision = (await chat.append("a")).revision
    await chat.append("b", continues=True, expected_revision=revision)
    with pytest.raises(ConflictError):
        await chat.append("c", continues=True, expected_revision=revision)
    assert len(await chat.turns()) == 1


async def test_windows_keep_pieces_together(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await append_pieces(chat, 1, 1, 1)
    await append_pieces(chat, 2, 2, 2, 2)
    await append_pieces(chat, 3, 1)
    for window, turns in [
        (Window(turns=1), [3]),
        (Window(turns=2), [2, 3]),
        (Window(messages=1), [3]),
        (Window(messages=6), [3]),
        (Window(messages=7), [2, 3]),
        (Window(messages=8), [2, 3]),
        (Window(messages=9), [1, 2, 3]),
        (Window(turns=2, messages=4), [3]),
        (Window(), [1, 2, 3]),
    ]:
        history = await chat.read(window)
        assert [turn.number for turn in history.turns] == turns, window
        assert history.has_older == (1 not in turns)
        assert len(history) == sum({1: 2, 2: 6, 3: 1}[turn] for turn in turns)


async def test_the_newest_turn_keeps_all_its_pieces(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await chat.append("old")
    await append_pieces(chat, 1, *[1] * 30)
    for window in (
        Window(turns=1),
        Window(messages=1),
        Window(messages=5),
        Window(turns=1, messages=2),
    ):
        history = await chat.read(window)
        assert len(history) == 30
        assert history.has_older


async def test_a_tool_call_is_never_parted_from_its_result(new_store: NewStore) -> None:
    """A1-A9: a history that begins with a result is refused by the provider."""
    chat = new_store(max_messages=12).conversation("c")
    for number in range(12):
        call = {"role": "assistant", "content": None, "tool_calls": [{"id": f"{number}"}]}
        await chat.append([user("q"), call], turn_id=f"{number}.1")
        await chat.append(
            {"role": "tool", "tool_call_id": f"{number}", "content": ""}, continues=True
        )
        await chat.append(assistant("a"), continues=True)
        for window in [Window(messages=m) for m in range(1, 14)] + [Window(turns=2), Window()]:
            assert (await chat.read(window))[0] == user("q")
        assert (await chat.stat()).messages <= 12
    await chat.trim(5)
    assert (await chat.read(Window()))[0] == user("q")


@pytest.mark.parametrize(
    "limit, turns", [(1, [3]), (3, [3]), (4, [3]), (6, [3]), (7, [2, 3]), (9, [1, 2, 3])]
)
async def test_trims_keep_pieces_together(store: AsyncStore, limit: int, turns: list[int]) -> None:
    chat = store.conversation("c")
    await append_pieces(chat, 1, 1, 1)
    await append_pieces(chat, 2, 2, 1, 1)
    await append_pieces(chat, 3, 1, 1, 1)
    assert await chat.trim(limit) == 3 - len(turns)
    assert [turn.number for turn in await chat.turns()] == turns
    assert (await chat.stat()).messages == sum({1: 2, 2: 4, 3: 3}[turn] for turn in turns)


async def test_trims_by_turns_count_turns(store: AsyncStore) -> None:
    chat = store.conversation("c")
    for number in range(1, 5):
        await append_pieces(chat, number, 1, 2)
    assert await chat.trim(turns=2) == 2
    assert [turn.number for turn in await chat.turns()] == [3, 4]


async def test_a_turn_that_grows_beyond_the_limit_stays_whole(new_store: NewStore) -> None:
    chat = new_store(max_messages=3).conversation("c")
    await chat.append("old")
    await append_pieces(chat, 1, 2, 2, 2)
    assert [len(turn.messages) for turn in await chat.turns()] == [6]
    answer = await chat.append("new")
    assert (answer.turns, answer.messages, answer.dropped) == (1, 1, 1)


async def test_a_rewind_takes_all_pieces(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await append_pieces(chat, 1, 1, 1)
    await append_pieces(chat, 2, 1, 2, 1)
    (undone,) = await chat.rewind()
    assert (undone.number, texts(undone.messages)) == (2, ["2.0.0", "2.1.0", "2.1.1", "2.2.0"])
    assert (await chat.read()).revision == "2-t1.1"
    await chat.append("more", continues=True)
    assert len(await chat.turns()) == 1


async def test_pages_hold_whole_turns(store: AsyncStore) -> None:
    chat = store.conversation("c")
    for number in range(1, 6):
        await append_pieces(chat, number, 1, 1)
    page = await chat.turns(2)
    assert [turn.number for turn in page] == [4, 5]
    page = await chat.turns(2, before=page.cursor)
    assert [(turn.number, len(turn.messages)) for turn in page] == [(2, 2), (3, 2)]


async def test_a_fork_keeps_pieces(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await append_pieces(chat, 1, 1, 1)
    await append_pieces(chat, 2, 1, 1)
    copy = await chat.fork("d", upto=1)
    await copy.append("more", continues=True)
    assert [len(turn.messages) for turn in await copy.turns()] == [3]


async def test_pieces_at_once_stand_in_one_turn(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await chat.append("first")
    await asyncio.gather(*(chat.append(f"{n}", continues=True) for n in range(8)))
    (turn,) = await chat.turns()
    assert sorted(texts(turn.messages)) == sorted(["first", *map(str, range(8))])
