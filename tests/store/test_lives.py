"""Time to live, trims, clearing, measuring (PAINS C). Expiry is read off PTTL."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.store.talk import fill, numbered, pttl, raw, texts
from turnstore import Stat, Window

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.conftest import NewStore
    from tests.servers.running import Server
    from turnstore import AsyncConversation, AsyncStore

pytestmark = pytest.mark.one_setup

DAY_MS = 24 * 3600 * 1000


async def test_a_conversation_lives_a_day_by_default(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    await chat.append("a")
    assert DAY_MS - 10_000 < pttl(server, chat) <= DAY_MS


async def test_every_append_begins_the_time_to_live_anew(store: AsyncStore, server: Server) -> None:
    """C8: the whole of a conversation lives as long as its newest turn."""
    chat = store.conversation("c")
    await fill(chat, 2)
    for continues in (False, True):
        server.raw.pexpire(chat.key, 5_000)
        await chat.append("a", continues=continues)
        assert pttl(server, chat) > DAY_MS - 10_000


UNRELATED: dict[str, Callable[[AsyncConversation], Awaitable[Any]]] = {
    "read": lambda chat: chat.read(),
    "read of all": lambda chat: chat.read(Window()),
    "turns": lambda chat: chat.turns(),
    "stat": lambda chat: chat.stat(),
    "append of nothing": lambda chat: chat.append([]),
    "append again": lambda chat: chat.append("x", turn_id="t3"),
    "trim": lambda chat: chat.trim(1),
    "trim of nothing": lambda chat: chat.trim(100),
    "rewind": lambda chat: chat.rewind(),
    "fork": lambda chat: chat.fork("d"),
}


@pytest.mark.parametrize("name", UNRELATED)
async def test_nothing_else_does(store: AsyncStore, server: Server, name: str) -> None:
    """C4: a read that renews keeps what nobody writes to alive for ever."""
    chat = store.conversation("c")
    await fill(chat, 3)
    server.raw.pexpire(chat.key, 5_000)
    await UNRELATED[name](chat)
    assert 0 < pttl(server, chat) <= 5_000


@pytest.mark.keeps_keys
async def test_none_keeps_for_ever(new_store: NewStore, server: Server) -> None:
    chat = new_store(ttl=None).conversation("c")
    await fill(chat, 2)
    copy = await chat.fork("d")
    assert pttl(server, chat) == pttl(server, copy) == -1
    assert (await chat.stat()).ttl is None
    await chat.expire(timedelta(seconds=5))
    await chat.append("a")
    assert pttl(server, chat) == -1


async def test_every_key_has_a_time_to_live(store: AsyncStore, server: Server, prefix: str) -> None:
    """C1, C2: keys beside the main one, or a path that forgets it, are a leak."""
    for number in range(3):
        chat = store.conversation(f"{number}")
        await fill(chat, 3)
        await chat.trim(2)
        await chat.rewind()
        await chat.fork(f"copy {number}")
    lives = server.lives(prefix)
    assert len(lives) == 6, "one key for each conversation"
    assert all(0 < life <= DAY_MS for life in lives.values())


@pytest.mark.parametrize(
    "ttl, ms",
    [
        (timedelta(milliseconds=1), 1),
        (timedelta(milliseconds=1, microseconds=999), 1),
        (timedelta(seconds=90), 90_000),
        (timedelta(days=36_500), 36_500 * DAY_MS),
        (timedelta.max, timedelta.max // timedelta(milliseconds=1)),
    ],
)
async def test_whole_milliseconds(
    new_store: NewStore, server: Server, ttl: timedelta, ms: int
) -> None:
    chat = new_store(ttl=ttl).conversation("c")
    await chat.append("a")
    left = pttl(server, chat)
    assert left == -2 or abs(ms - left) < 10_000
    longest = await chat.stat()
    assert longest.ttl is None or longest.ttl <= timedelta.max


async def test_expire_sets_a_remaining_life_until_the_next_append(
    store: AsyncStore, server: Server
) -> None:
    chat = store.conversation("c")
    assert await chat.expire(timedelta(hours=1)) is False
    assert not server.raw.exists(chat.key)
    await chat.append("a")
    assert await chat.expire(timedelta(hours=1)) is True
    assert 3_590_000 < pttl(server, chat) <= 3_600_000
    await chat.append("b")
    assert pttl(server, chat) > DAY_MS - 10_000


async def test_expire_to_for_ever_and_back(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    await chat.append("a")
    assert await chat.expire(None) is True
    assert pttl(server, chat) == -1
    await chat.append("b")
    assert pttl(server, chat) > 0


# Trims


@pytest.mark.parametrize("keep", [1, 2, 5, 9, 10, 11, 1000])
async def test_a_trim_keeps_the_newest_turns_that_fit(store: AsyncStore, keep: int) -> None:
    chat = store.conversation("c")
    await fill(chat, 5, size=2)
    kept = max(1, min(5, keep // 2))
    assert await chat.trim(keep) == 5 - kept
    assert texts(await chat.read()) == numbered(*range(6 - kept, 6), size=2)
    assert await chat.trim(keep) == 0


async def test_a_trim_by_turns_and_by_both(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 6, size=2)
    assert await chat.trim(turns=4) == 2
    assert await chat.trim(messages=100, turns=3) == 1
    assert await chat.trim(messages=4, turns=3) == 1
    assert texts(await chat.read()) == numbered(5, 6, size=2)


async def test_a_trim_to_nothing_deletes(store: AsyncStore, server: Server) -> None:
    """C9: a limit of nothing that keeps everything, or the wrong end."""
    chat = store.conversation("c")
    for arguments in ({"messages": 0}, {"turns": 0}, {"messages": 0, "turns": 5}):
        await fill(chat, 3)
        assert await chat.trim(**arguments) == 3
        assert not server.raw.exists(chat.key)
        assert await chat.trim(**arguments) == 0


async def test_a_trim_of_nothing(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    assert await chat.trim(5) == 0
    assert not server.raw.exists(chat.key)
    await fill(chat, 3)
    before = raw(server, chat)
    assert await chat.trim(3) == 0
    assert raw(server, chat) == before


async def test_a_trim_by_hand_and_appends_together(new_store: NewStore) -> None:
    chat = new_store(max_messages=6, count_tokens=lambda _: 1).conversation("c")
    for number in range(1, 30):
        await fill(chat, 1, start=number)
        if number % 4 == 0:
            await chat.trim(turns=3)
        stat = await chat.stat()
        turns = await chat.turns()
        assert stat.turns == stat.messages == stat.tokens == len(turns) == len(await chat.read())
        assert [turn.number for turn in turns] == list(range(number - len(turns) + 1, number + 1))


# Clearing


async def test_clear_deletes_one_conversation(
    store: AsyncStore, server: Server, prefix: str
) -> None:
    """L6: what is deleted for one is not deleted for others."""
    chats = [store.conversation(f"{n}") for n in range(3)]
    for chat in chats:
        await chat.append("a")
    assert await chats[1].clear() is True
    assert await chats[1].clear() is False
    assert [len(await chat.read()) for chat in chats] == [1, 0, 1]
    assert len(server.lives(prefix)) == 2


async def test_after_a_clear_it_begins_anew(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 3)
    await chat.clear()
    assert (await chat.append("a", turn_id="t1")).revision == "1-t1"


@pytest.mark.parametrize("content", [[b"hello"], [b"head 2 x", b"y"], [b"head 1 broken"]])
async def test_what_cannot_be_read_can_be_cleared(
    store: AsyncStore, server: Server, content: list[bytes]
) -> None:
    chat = store.conversation("c")
    server.raw.rpush(chat.key, *content)
    assert await chat.clear() is True
    assert await chat.read() == []


# Measures


async def test_the_measures_of_nothing(store: AsyncStore) -> None:
    assert await store.conversation("c").stat() == Stat(
        turns=0,
        messages=0,
        tokens=0,
        bytes=0,
        ttl=None,
        first_time=None,
        last_time=None,
        revision="0",
    )


async def test_the_measures(new_store: NewStore, server: Server) -> None:
    chat = new_store(count_tokens=lambda _: 3).conversation("c")
    await fill(chat, 4, size=2)
    await chat.trim(turns=3)
    stat, turns = await chat.stat(), await chat.turns()
    assert (stat.turns, stat.messages, stat.tokens, stat.revision) == (3, 6, 18, "4-t4")
    assert (stat.first_time, stat.last_time) == (turns[0].time, turns[-1].time)
    assert stat.ttl is not None
    assert timedelta(hours=23) < stat.ttl <= timedelta(days=1)
    payload = sum(map(len, raw(server, chat)))
    assert stat.bytes is None or stat.bytes > payload


async def test_memory_grows_with_what_is_held(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await chat.append("x")
    small = (await chat.stat()).bytes
    await chat.append("x" * 100_000)
    large = (await chat.stat()).bytes
    if small is None:  # fakeredis does not say
        assert large is None
    else:
        assert large is not None
        assert large > small + 90_000
