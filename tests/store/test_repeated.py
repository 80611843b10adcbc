"""A turn id is an idempotency key: what is sent twice is stored once (PAINS D)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.store.talk import KNOWN, fill, numbered, pttl, raw, texts
from turnstore import ConflictError, Window

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.running import Server
    from turnstore import AsyncStore

# What a client's setup changes is how replies are framed, which test_setups.py looks at.
pytestmark = pytest.mark.one_setup


async def test_the_same_turn_twice(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    first = await chat.append("a", turn_id="one")
    before = raw(server, chat)
    again = await chat.append("a", turn_id="one")
    assert again == replace(first, duplicate=True)
    assert raw(server, chat) == before


async def test_the_first_one_counts(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await chat.append("a", turn_id="one")
    assert (await chat.append(["b", "c"], turn_id="one", meta={"x": 1})).duplicate
    assert texts(await chat.read()) == ["a"]


async def test_an_older_one_answers_its_own_revision_and_the_totals_of_now(
    store: AsyncStore,
) -> None:
    chat = store.conversation("c")
    await fill(chat, 3)
    again = await chat.append("1.1", turn_id="t1")
    assert (again.revision, again.turns, again.messages, again.duplicate) == ("1-t1", 3, 3, True)


async def test_it_is_known_for_so_many_appends(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, KNOWN)
    for number in (1, 2, KNOWN):
        again = await chat.append("again", turn_id=f"t{number}")
        assert (again.duplicate, again.revision) == (True, f"{number}-t{number}")
    await fill(chat, 1, start=KNOWN + 1)
    assert not (await chat.append("again", turn_id="t1")).duplicate
    assert (await chat.append("again", turn_id="t3")).duplicate


async def test_it_outlives_a_trim_of_the_turn(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 3)
    await chat.trim(turns=1)
    assert (await chat.append("1.1", turn_id="t1")).duplicate
    assert texts(await chat.read()) == ["3.1"]


async def test_it_outlives_a_drop_for_max_messages(new_store: NewStore) -> None:
    chat = new_store(max_messages=1).conversation("c")
    await fill(chat, 3)
    assert (await chat.append("1.1", turn_id="t1")).duplicate
    assert texts(await chat.read()) == ["3.1"]


async def test_a_rewound_turn_can_be_appended_again(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 3)
    await chat.rewind()
    assert not (await chat.append("another", turn_id="t3")).duplicate
    assert (await chat.append("2.1", turn_id="t2")).duplicate
    assert texts(await chat.read()) == ["1.1", "2.1", "another"]


async def test_a_long_rewind_forgets_nothing_older(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 3 * KNOWN)
    await chat.rewind(2 * KNOWN)
    for number in (1, KNOWN // 2, KNOWN):
        assert (await chat.append("again", turn_id=f"t{number}")).duplicate
    assert not (await chat.append("new", turn_id=f"t{KNOWN + 1}")).duplicate
    assert len(await chat.read(Window())) == KNOWN + 1


async def test_it_is_forgotten_with_the_conversation(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    await chat.append("a", turn_id="one")
    await chat.clear()
    assert not (await chat.append("a", turn_id="one")).duplicate
    server.raw.delete(chat.key)  # as expiry does
    assert not (await chat.append("a", turn_id="one")).duplicate


async def test_it_belongs_to_one_conversation(store: AsyncStore) -> None:
    assert not (await store.conversation("a").append("a", turn_id="one")).duplicate
    assert not (await store.conversation("b").append("a", turn_id="one")).duplicate


async def test_it_does_not_renew_the_time_to_live(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    await chat.append("a", turn_id="one")
    server.raw.pexpire(chat.key, 5000)
    await chat.append("a", turn_id="one")
    assert 0 < pttl(server, chat) <= 5000


async def test_a_part_of_an_id_is_another_id(store: AsyncStore) -> None:
    chat = store.conversation("c")
    for turn_id in ("abc", "ab", "bc", "b", "abcd", "abc-abc"):
        assert not (await chat.append(turn_id, turn_id=turn_id)).duplicate
    assert len(await chat.read()) == 6


async def test_at_once_it_is_stored_once(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await chat.append("first", turn_id="zero")
    done = await asyncio.gather(*(chat.append("a", turn_id="one") for _ in range(8)))
    assert sorted(answer.duplicate for answer in done) == [False, *[True] * 7]
    assert {answer.revision for answer in done} == {"2-one"}
    assert texts(await chat.read()) == ["first", "a"]


# The order of the checks: known before, then the revision, then whether there is anything.


async def test_known_comes_before_the_revision(store: AsyncStore) -> None:
    """A command sent again after a lost answer finds the revision that it made itself."""
    chat = store.conversation("c")
    await fill(chat, 1)
    await chat.append("b", turn_id="two", expected_revision="1-t1")
    again = await chat.append("b", turn_id="two", expected_revision="1-t1")
    assert again.duplicate
    await chat.append("b", turn_id="two", continues=True)
    assert texts(await chat.read()) == ["1.1", "b"]


async def test_the_revision_comes_before_nothing(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 2)
    with pytest.raises(ConflictError):
        await chat.append([], expected_revision="1-t1")
    assert (await chat.append([], expected_revision="2-t2")).revision == "2-t2"


async def test_the_arguments_come_before_all(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 1)
    with pytest.raises(TypeError, match="message 0"):
        await chat.append([None], turn_id="t1")  # type: ignore[list-item]  # what is tested


# Revisions


async def test_an_append_at_the_revision_that_was_read(store: AsyncStore) -> None:
    chat = store.conversation("c")
    revision = (await chat.read()).revision
    assert revision == "0"
    for number in range(3):
        revision = (await chat.append(f"{number}", expected_revision=revision)).revision
        assert revision == (await chat.read()).revision == (await chat.turns()).revision
        assert revision == (await chat.stat()).revision


@pytest.mark.parametrize("expected", ["0", "1-t1", "2-t1", "2-other", "3-t2", "9-t9"])
async def test_another_revision_is_a_conflict(
    store: AsyncStore, server: Server, expected: str
) -> None:
    chat = store.conversation("c")
    await fill(chat, 2)
    before = raw(server, chat)
    with pytest.raises(
        ConflictError, match=f"expected revision {expected}, found revision 2-t2"
    ) as found:
        await chat.append("x", expected_revision=expected)
    assert (found.value.expected, found.value.actual) == (expected, "2-t2")
    assert found.value.__cause__ is not None
    assert raw(server, chat) == before
    assert (await chat.append("x", expected_revision="2-t2")).turns == 3


async def test_a_conflict_with_an_empty_conversation(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    with pytest.raises(ConflictError) as found:
        await chat.append("x", expected_revision="1-t1")
    assert found.value.actual == "0"
    assert not server.raw.exists(chat.key)


async def test_the_revision_changes_when_a_turn_is_replaced(store: AsyncStore) -> None:
    """Undone and written anew, the number is the same and the conversation is not."""
    chat = store.conversation("c")
    await fill(chat, 2)
    revision = (await chat.read()).revision
    await chat.rewind()
    await chat.append("another")
    with pytest.raises(ConflictError):
        await chat.append("x", expected_revision=revision)


async def test_a_trim_does_not_change_the_revision(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 3)
    await chat.trim(1)
    assert (await chat.append("x", expected_revision="3-t3")).turns == 2


async def test_of_many_at_one_revision_one_wins(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 1)
    done = await asyncio.gather(
        *(chat.append(f"{n}", expected_revision="1-t1") for n in range(8)), return_exceptions=True
    )
    assert sum(isinstance(answer, ConflictError) for answer in done) == 7
    assert len(await chat.read()) == 2
    assert texts(await chat.read())[:1] == numbered(1)
