"""The smallest test of a store, and the pattern for all others; see tests/README.md."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.servers.proxy import Cut

if TYPE_CHECKING:
    from tests.conftest import NewStore, OwnServer
    from tests.servers.proxy import Proxy
    from turnstore import AsyncStore


async def test_what_was_appended_is_read(store: AsyncStore) -> None:
    chat = store.conversation("ada")
    await chat.append([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}])
    history = await chat.read()
    assert [message["content"] for message in history] == ["hi", "yes"]


async def test_writers_at_once_lose_nothing(store: AsyncStore) -> None:
    chat = store.conversation("many")
    await asyncio.gather(*(chat.append(f"message {n}") for n in range(32)))
    history = await chat.read()
    assert sorted(m["content"] for m in history) == sorted(f"message {n}" for n in range(32))


async def test_a_lost_reply_does_not_double_a_turn(new_store: NewStore, proxy: Proxy) -> None:
    chat = new_store(at=proxy).conversation("ada")
    await chat.append("first")
    proxy.next(Cut.REPLY_LOST, command="EVALSHA")
    await chat.append("second")
    assert [message["content"] for message in await chat.read()] == ["first", "second"]


async def test_a_crash_loses_nothing_acknowledged(
    new_store: NewStore, own_server: OwnServer
) -> None:
    server = own_server(appendonly=True)
    chat = new_store(at=server).conversation("ada")
    await chat.append("first")
    server.kill()
    server.restart()
    assert [message["content"] for message in await chat.read()] == ["first"]


@pytest.mark.keeps_keys
async def test_a_turn_is_saved_when_its_block_ends(new_store: NewStore) -> None:
    chat = new_store(ttl=None).conversation("ada")
    async with chat.turn("hi") as turn:
        turn.reply({"role": "assistant", "content": "yes"})
    assert [message["content"] for message in await chat.read()] == ["hi", "yes"]
