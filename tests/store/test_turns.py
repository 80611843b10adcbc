"""Pages of turns, backwards by cursor; and undoing, copying, measuring turns."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.store.talk import fill, numbered, pttl, raw, texts
from turnstore import ConflictError, Window

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.running import Server
    from turnstore import AsyncConversation, AsyncStore

pytestmark = pytest.mark.one_setup


async def all_pages(chat: AsyncConversation, limit: int) -> list[int]:
    numbers: list[int] = []
    page = await chat.turns(limit)
    while True:
        numbers = [turn.number for turn in page] + numbers
        if page.cursor is None:
            return numbers
        page = await chat.turns(limit, before=page.cursor)


@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7, 8, 100])
async def test_pages_are_every_turn_once(store: AsyncStore, limit: int) -> None:
    chat = store.conversation("c")
    await fill(chat, 7)
    assert await all_pages(chat, limit) == [1, 2, 3, 4, 5, 6, 7]


async def test_the_newest_page_comes_first(store: AsyncStore) -> None:
    """B6: an offset from the oldest hides what was said last."""
    chat = store.conversation("c")
    await fill(chat, 60)
    page = await chat.turns()
    assert [turn.number for turn in page] == list(range(11, 61))
    assert (page.cursor, page.revision) == (11, "60-t60")


async def test_a_page_of_nothing(store: AsyncStore) -> None:
    chat = store.conversation("c")
    page = await chat.turns()
    assert (page, page.cursor, page.revision) == ([], None, "0")
    await fill(chat, 2)
    page = await chat.turns(before=1)
    assert (page, page.cursor, page.revision) == ([], None, "2-t2")
    assert [turn.number for turn in await chat.turns(before=99)] == [1, 2]


async def test_appends_do_not_shift_the_pages(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 9)
    numbers: list[int] = []
    page = await chat.turns(2)
    while True:
        numbers = [turn.number for turn in page] + numbers
        if page.cursor is None:
            break
        await fill(chat, 2, start=10 + len(numbers))
        page = await chat.turns(2, before=page.cursor)
    assert numbers == list(range(1, 10))


async def test_a_trim_between_pages_only_ends_them_earlier(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 9)
    page = await chat.turns(3)
    assert page.cursor == 7
    await chat.trim(turns=5)
    page = await chat.turns(3, before=page.cursor)
    assert ([turn.number for turn in page], page.cursor) == ([5, 6], None)
    await chat.trim(turns=1)
    assert await chat.turns(3, before=5) == []


async def test_pages_under_writers(new_store: NewStore) -> None:
    chat = new_store(max_messages=30).conversation("c")
    await fill(chat, 20)

    async def write() -> None:
        for number in range(21, 61):
            await chat.append(f"{number}.1")

    async def read() -> None:
        for _ in range(5):
            numbers = await all_pages(chat, 4)
            assert numbers == sorted(set(numbers)), "no turn twice, none out of order"

    await asyncio.gather(write(), read(), read())
    assert await all_pages(chat, 7) == list(range(31, 61))


async def test_what_a_turn_says(new_store: NewStore) -> None:
    chat = new_store(count_tokens=lambda _: 2).conversation("c")
    await chat.append("a")
    await chat.append(["b", "c"], turn_id="two", meta={"model": "m"})
    (turn,) = await chat.turns(1)
    assert (turn.number, turn.id, turn.revision, turn.tokens) == (2, "two", "2-two", 4)
    assert (texts(turn.messages), turn.format, turn.meta) == (
        ["b", "c"],
        "openai.chat",
        {"model": "m"},
    )
    assert (await chat.read(Window(turns=1))).turns == [turn]


# Rewinding


async def test_the_last_turn_is_undone_and_given_back(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 3, size=2)
    (newest,) = await chat.turns(1)
    assert await chat.rewind() == [newest]
    assert texts(await chat.read()) == numbered(1, 2, size=2)
    assert (await chat.read()).revision == "2-t2"


async def test_several_turns_come_oldest_first(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 5)
    assert [turn.number for turn in await chat.rewind(3)] == [3, 4, 5]
    assert [turn.number for turn in await chat.rewind(9)] == [1, 2]
    assert await chat.rewind() == []
    assert (await chat.read()).revision == "0"


async def test_a_rewind_of_everything_leaves_no_key(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    await fill(chat, 2)
    await chat.rewind(2)
    assert not server.raw.exists(chat.key)


async def test_appends_go_on_after_a_rewind(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 3)
    await chat.rewind()
    answer = await chat.append("new", turn_id="n")
    assert (answer.revision, answer.turns) == ("3-n", 3)
    assert texts(await chat.read()) == ["1.1", "2.1", "new"]


async def test_totals_after_a_rewind(new_store: NewStore) -> None:
    chat = new_store(count_tokens=lambda _: 10, max_messages=4).conversation("c")
    await fill(chat, 6)
    await chat.rewind(2)
    stat = await chat.stat()
    assert (stat.turns, stat.messages, stat.tokens) == (2, 2, 20)
    assert [turn.tokens for turn in await chat.turns()] == [10, 10]
    assert (await chat.append("x")).tokens == 30


async def test_a_rewind_at_a_revision(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    await fill(chat, 3)
    before = raw(server, chat)
    for expected in ("2-t2", "0", "3-other"):
        with pytest.raises(ConflictError) as found:
            await chat.rewind(expected_revision=expected)
        assert (found.value.expected, found.value.actual) == (expected, "3-t3")
    assert raw(server, chat) == before
    assert len(await chat.rewind(expected_revision="3-t3")) == 1


async def test_a_rewind_does_not_renew_the_time_to_live(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    await fill(chat, 2)
    server.raw.pexpire(chat.key, 5_000)
    await chat.rewind()
    assert 0 < pttl(server, chat) <= 5_000


async def test_rewinds_at_once_undo_no_more_than_they_say(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 12)
    done = await asyncio.gather(*(chat.rewind() for _ in range(3)), return_exceptions=True)
    undone = {turn.number for answer in done if isinstance(answer, list) for turn in answer}
    # Two that saw the same newest turn both answer with it, like a command sent twice.
    assert undone == set(range(13 - len(undone), 13))
    assert len(await chat.turns()) == 12 - len(undone)


# Forking


async def test_a_fork_is_the_same_and_apart(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 3, size=2)
    copy = await chat.fork("d")
    assert await copy.turns() == await chat.turns()
    assert (await copy.read()).revision == (await chat.read()).revision
    await chat.append("here")
    await copy.append("there")
    assert texts(await chat.read()) == [*numbered(1, 2, 3, size=2), "here"]
    assert texts(await store.conversation("d").read()) == [*numbered(1, 2, 3, size=2), "there"]


@pytest.mark.parametrize("upto", [1, 2, 3, 4])
async def test_a_fork_up_to_a_turn(store: AsyncStore, upto: int) -> None:
    chat = store.conversation("c")
    await fill(chat, 4)
    copy = await chat.fork("d", upto=upto)
    assert texts(await copy.read()) == numbered(*range(1, upto + 1))
    assert len(await chat.read()) == 4


async def test_a_fork_up_to_a_turn_that_is_not_there_yet(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 4)
    with pytest.raises(ValueError, match="there is no turn 99 yet"):
        await chat.fork("d", upto=99)
    assert await store.conversation("d").read() == []


async def test_a_fork_twice_is_one(store: AsyncStore, server: Server) -> None:
    """D7: it may be sent again after a lost answer."""
    chat = store.conversation("c")
    await fill(chat, 3)
    copy = await chat.fork("d", upto=2)
    before = raw(server, copy)
    await chat.append("more")
    await chat.fork("d", upto=2)
    assert raw(server, copy) == before


@pytest.mark.parametrize("upto", [None, 1])
async def test_a_fork_onto_something_else_is_a_conflict(
    store: AsyncStore, server: Server, upto: int | None
) -> None:
    chat, other = store.conversation("c"), store.conversation("d")
    await fill(chat, 2)
    await other.append("mine", turn_id="o")
    before = raw(server, other)
    with pytest.raises(ConflictError) as found:
        await chat.fork("d", upto=upto)
    assert (found.value.expected, found.value.actual) == ("0", "1-o")
    assert raw(server, other) == before


async def test_a_fork_of_nothing_onto_something_is_a_conflict(store: AsyncStore) -> None:
    """Where the source has expired, the target is not what the caller takes it for."""
    await store.conversation("d").append("mine")
    with pytest.raises(ConflictError):
        await store.conversation("c").fork("d")


async def test_a_fork_of_nothing_is_empty(store: AsyncStore, server: Server) -> None:
    copy = await store.conversation("c").fork("d")
    assert await copy.read() == []
    assert not server.raw.exists(copy.key)


async def test_a_copy_that_went_on_is_something_else(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 2)
    copy = await chat.fork("d")
    await copy.append("more")
    with pytest.raises(ConflictError):
        await chat.fork("d")


async def test_a_fork_has_the_stores_time_to_live(new_store: NewStore, server: Server) -> None:
    chat = new_store(ttl=timedelta(hours=1)).conversation("c")
    await fill(chat, 1)
    await chat.expire(timedelta(seconds=5))
    copy = await chat.fork("d")
    assert 3_590_000 < pttl(server, copy) <= 3_600_000
    assert pttl(server, chat) <= 5_000


async def test_a_fork_after_a_trim_keeps_numbers_and_tokens(new_store: NewStore) -> None:
    chat = new_store(count_tokens=lambda _: 10).conversation("c")
    await fill(chat, 6)
    await chat.trim(turns=3)
    copy = await chat.fork("d", upto=5)
    assert [(turn.number, turn.tokens) for turn in await copy.turns()] == [(4, 10), (5, 10)]
    stat = await copy.stat()
    assert (stat.turns, stat.messages, stat.tokens) == (2, 2, 20)
    assert (await copy.append("again", turn_id="t5")).duplicate
    assert (await copy.append("x")).revision.startswith("6-")


async def test_a_large_fork_is_whole(new_store: NewStore) -> None:
    store = new_store(max_messages=None)
    chat = store.conversation("c")
    for start in range(0, 1100, 50):  # a client has 100 connections
        await asyncio.gather(*(chat.append(f"{n}") for n in range(start, start + 50)))
    copy = await chat.fork("d")
    assert await copy.read(Window()) == await chat.read(Window())


async def test_many_forks_reach_other_slots(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 1)
    copies = [await chat.fork(f"copy {n}") for n in range(12)]
    assert [texts(await copy.read()) for copy in copies] == [["1.1"]] * 12
