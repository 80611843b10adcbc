"""The server is full: what is refused, what still works, and what is evicted."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import redis

from tests.invariants.raw import look
from turnstore import OutOfMemoryError, SaveError

if TYPE_CHECKING:
    from tests.conftest import NewStore, OwnServer
    from turnstore import AsyncConversation, AsyncStore

LARGE = "x" * 20_000


async def _fill(store: AsyncStore) -> AsyncConversation:
    chat = store.conversation("full")
    for number in range(1000):
        try:
            await chat.append([LARGE, LARGE], turn_id=f"t{number}")
        except OutOfMemoryError as error:
            assert "nothing was written" in str(error)  # noqa: PT017
            assert isinstance(error.__cause__, redis.RedisError)  # noqa: PT017
            return chat
    raise AssertionError("the server took it all")


async def test_a_full_server_takes_no_turn_and_everything_else_works(
    new_store: NewStore, own_server: OwnServer
) -> None:
    server = own_server(config={"maxmemory": "8mb", "maxmemory-policy": "noeviction"})
    store = new_store(at=server)
    chat = await _fill(store)
    with redis.Redis.from_url(server.url) as raw:
        held = len(look(raw, chat.key).pieces)
        assert held > 10
        assert len(await chat.read()) == min(100, 2 * held)
        assert (await chat.stat()).turns == held
        with pytest.raises(OutOfMemoryError):
            await store.conversation("new").append(LARGE)
        assert not raw.exists(store.conversation("new").key)
        with pytest.raises(SaveError) as caught:
            async with chat.turn("hi") as turn:
                turn.reply("an answer")
        assert caught.value.reply == "an answer"
        again = await chat.append([LARGE, LARGE], turn_id=f"t{held - 1}")
        assert again.duplicate, "what is stored is recognised without memory"
        assert await chat.expire(timedelta(hours=1))
        assert len(await chat.rewind(2)) == 2
        assert await chat.trim(turns=held // 2) > 0
        assert len(look(raw, chat.key).pieces) == held // 2
        assert await turn.save()
        assert look(raw, chat.key).contents[-1] == "an answer"
        assert await chat.clear()


async def test_a_fork_that_does_not_fit_writes_nothing(
    new_store: NewStore, own_server: OwnServer
) -> None:
    server = own_server(config={"maxmemory": "8mb", "maxmemory-policy": "noeviction"})
    store = new_store(at=server)
    chat = await _fill(store)
    with pytest.raises(OutOfMemoryError):
        await chat.fork("copy")
    with redis.Redis.from_url(server.url) as raw:
        assert not raw.exists(store.conversation("copy").key)
        assert look(raw, chat.key).pieces


async def test_eviction_takes_whole_conversations(
    new_store: NewStore, own_server: OwnServer
) -> None:
    server = own_server(config={"maxmemory": "8mb", "maxmemory-policy": "allkeys-lru"})
    store = new_store(at=server)
    chats = [store.conversation(str(number)) for number in range(40)]
    for _ in range(5):
        for chat in chats:
            await chat.append([LARGE, LARGE])
    with redis.Redis.from_url(server.url) as raw:
        raw.config_set("maxmemory", 0)  # looking at them takes memory, and must not evict more
        lists = [look(raw, chat.key) for chat in chats]  # whole, or not there at all
        assert any(not one.pieces for one in lists), "nothing was evicted"
        for chat, one in zip(chats, lists, strict=True):
            assert len(await chat.read()) == len(one.contents)
            if one.pieces:
                assert one.pieces[0].no == 1
