"""Windows: the newest whole turns that fit, and what is said of them."""

from __future__ import annotations

import copy
import json
import pickle
from typing import TYPE_CHECKING

import pytest

from tests.store.talk import fill, numbered, raw, texts, user
from turnstore import History, Window

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.running import Server
    from turnstore import AsyncStore

pytestmark = pytest.mark.one_setup


async def test_a_missing_conversation_is_empty(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    for window in (None, Window(), Window(turns=1), Window(messages=1)):
        history = await chat.read(window)
        assert history == []
        assert (history.revision, history.has_older, history.turns) == ("0", False, [])
    assert not server.raw.exists(chat.key)


async def test_a_window_of_turns(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 5, size=2)
    for turns in range(1, 8):
        history = await chat.read(Window(turns=turns))
        assert texts(history) == numbered(*range(max(1, 6 - turns), 6), size=2)
        assert history.has_older == (turns < 5)


async def test_a_window_of_messages_takes_whole_turns(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 4, size=3)
    for messages, turns in [(1, 1), (3, 1), (5, 1), (6, 2), (8, 2), (9, 3), (12, 4), (13, 4)]:
        history = await chat.read(Window(messages=messages))
        assert texts(history) == numbered(*range(5 - turns, 5), size=3)
        assert history.has_older == (turns < 4)


async def test_both_limits_hold(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 6, size=2)
    assert texts(await chat.read(Window(turns=2, messages=100))) == numbered(5, 6, size=2)
    assert texts(await chat.read(Window(turns=5, messages=4))) == numbered(5, 6, size=2)
    assert len(await chat.read(Window())) == 12


async def test_the_newest_turn_is_there_however_large(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 3)
    await chat.append([f"{n}" for n in range(300)])
    for window in (Window(messages=1), Window(turns=1), Window(messages=300), None):
        history = await chat.read(window)
        assert len(history) == 300
        assert history.has_older


async def test_a_turn_that_does_not_fit_ends_the_window(store: AsyncStore) -> None:
    """What is older than it is not taken instead: there are no holes."""
    chat = store.conversation("c")
    await chat.append("old")
    await chat.append(["big"] * 10)
    await chat.append("new")
    assert texts(await chat.read(Window(messages=5))) == ["new"]


async def test_the_default_is_a_hundred_messages(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 60, size=2)
    history = await chat.read()
    assert texts(history) == numbered(*range(11, 61), size=2)
    assert history.has_older


async def test_after_a_trim(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 10)
    await chat.trim(4)
    history = await chat.read()
    assert (texts(history), history.has_older) == (numbered(7, 8, 9, 10), False)
    assert texts(await chat.read(Window(turns=2))) == numbered(9, 10)


async def test_after_an_append_dropped_something(new_store: NewStore) -> None:
    chat = new_store(max_messages=4).conversation("c")
    await fill(chat, 10)
    history = await chat.read(Window(messages=4))
    assert (texts(history), history.has_older) == (numbered(7, 8, 9, 10), False)


async def test_reading_changes_nothing(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    await fill(chat, 3)
    server.raw.pexpire(chat.key, 5_000)
    before = raw(server, chat)
    for window in (None, Window(turns=1), Window()):
        (await chat.read(window)).clear()
    assert raw(server, chat) == before
    assert server.raw.pttl(chat.key) <= 5_000


async def test_what_a_read_gives_is_a_list_of_plain_dicts(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 2)
    history = await chat.read()
    assert isinstance(history, list)
    assert {type(message) for message in history} == {dict}
    assert json.loads(json.dumps(history)) == history
    assert history == [user("1.1"), user("2.1")]
    for again in (copy.copy(history), copy.deepcopy(history), pickle.loads(pickle.dumps(history))):  # noqa: S301 - our own bytes
        assert isinstance(again, History)
        assert (again, again.revision) == (history, "2-t2")


async def test_the_turns_of_a_history(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 4, size=2)
    history = await chat.read(Window(turns=3))
    assert [turn.number for turn in history.turns] == [2, 3, 4]
    assert [turn.id for turn in history.turns] == ["t2", "t3", "t4"]
    assert [turn.revision for turn in history.turns] == ["2-t2", "3-t3", "4-t4"]
    assert [message for turn in history.turns for message in turn.messages] == history
    assert history.turns == list(await chat.turns(3))


# The estimate of how many turns hold a window: exact whatever other conversations were like.

SIZES = [1, 30, 2, 100, 7, 1]


@pytest.mark.parametrize("sizes", [SIZES, SIZES[::-1], [100] * 3 + [1] * 3, [1] * 3 + [100] * 3])
async def test_short_turns_after_long_ones_and_the_reverse(
    new_store: NewStore, sizes: list[int]
) -> None:
    store = new_store(max_messages=None)
    for number, size in enumerate(sizes):
        chat = store.conversation(f"{number}")
        turns = max(2, 240 // size)
        await fill(chat, turns, size=size)
        for _ in range(2):
            history = await chat.read(Window(messages=100))
            kept = max(1, min(turns, 100 // size))
            assert texts(history) == numbered(*range(turns - kept + 1, turns + 1), size=size)
            assert history.has_older == (kept < turns)


async def test_long_and_short_turns_in_one_conversation(store: AsyncStore) -> None:
    chat = store.conversation("c")
    for number in range(1, 41):
        await fill(chat, 1, start=number, size=20 if number <= 20 else 1)
    assert len(await chat.read(Window(messages=100))) == 100
    assert len(await chat.read(Window(messages=119))) == 100
    assert len(await chat.read(Window(messages=120))) == 120
    assert len(await chat.read(Window())) == 420
