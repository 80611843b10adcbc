"""Every operation with every server, protocol and decoding; the other files look at rules."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.store.talk import assistant, fill, numbered, texts, user
from turnstore import ConflictError, FormatError, Window, WrongTypeError

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.running import Server
    from turnstore import AsyncStore

ODD = [{"role": "user", "content": "\x00\r\n*1\r\n$-1\r\n é 😀 \u2028", "n": 2**70, "s": "\ud800"}]


async def test_append_and_read(store: AsyncStore) -> None:
    chat = store.conversation("é{}\x00")
    answer = await chat.append(ODD, turn_id="one", meta={"odd": ODD})
    assert (answer.revision, answer.messages) == ("1-one", 1)
    assert (await chat.append(ODD, turn_id="one", expected_revision="0")).duplicate
    history = await chat.read()
    assert history == ODD
    assert history.revision == "1-one"
    assert history.turns[0].meta == {"odd": ODD}
    assert history.turns[0].time.tzinfo is UTC


async def test_a_window_and_its_pages(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 5)
    history = await chat.read(Window(turns=2))
    assert (texts(history), history.has_older) == (["4.1", "5.1"], True)
    page = await chat.turns(2)
    assert ([turn.number for turn in page], page.cursor, page.revision) == ([4, 5], 4, "5-t5")
    page = await chat.turns(5, before=page.cursor)
    assert ([turn.number for turn in page], page.cursor) == ([1, 2, 3], None)


async def test_trim_rewind_fork_and_clear(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 6, size=2)
    assert await chat.trim(10) == 1
    assert await chat.trim(turns=3) == 2
    (undone,) = await chat.rewind()
    assert (undone.id, texts(undone.messages)) == ("t6", ["6.1", "6.2"])
    copy = await chat.fork("d", upto=4)
    assert texts(await copy.read()) == numbered(4, size=2)
    await chat.fork("d", upto=4)
    assert await chat.clear() is True
    assert await chat.clear() is False
    assert await chat.trim(0) == 0
    assert await copy.trim(0) == 1


async def test_expire_and_stat(store: AsyncStore) -> None:
    chat = store.conversation("c")
    assert await chat.expire(timedelta(minutes=1)) is False
    empty = await chat.stat()
    assert (empty.turns, empty.bytes, empty.ttl, empty.revision) == (0, 0, None, "0")
    await chat.append("a", turn_id="one")
    assert await chat.expire(timedelta(minutes=1)) is True
    stat = await chat.stat()
    assert (stat.turns, stat.messages, stat.tokens, stat.revision) == (1, 1, 0, "1-one")
    assert stat.ttl is not None
    assert timedelta(0) < stat.ttl <= timedelta(minutes=1)
    assert stat.first_time == stat.last_time == (await chat.turns())[0].time


async def test_refusals(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    await fill(chat, 1)
    with pytest.raises(ConflictError, match="found revision 1-t1"):
        await chat.append("x", expected_revision="0")
    server.raw.lset(chat.key, 0, b"head 2 new layout")
    with pytest.raises(FormatError, match="stored in format 2"):
        await chat.append("x")
    server.raw.set(chat.key, "mine", px=60_000)
    for doing in (chat.append("x"), chat.read(), chat.turns(), chat.stat(), chat.clear()):
        with pytest.raises(WrongTypeError):
            await doing


async def test_a_turn(new_store: NewStore) -> None:
    chat = new_store(name="another").conversation("c")
    async with chat.turn([{"role": "system", "content": "s"}, user("q")]) as turn:
        assert texts(turn.messages) == ["s", "q"]
        turn.reply(assistant("a"))
    assert turn.saved is not None
    assert turn.saved.messages == 2
    async with chat.turn("q2", turn_id="two", on_conflict="reject") as turn:
        assert texts(turn.messages) == ["q", "a", "q2"]
        turn.reply("a2")
    assert texts(await chat.read()) == ["q", "a", "q2", "a2"]
    assert (await chat.read()).revision == "2-two"
