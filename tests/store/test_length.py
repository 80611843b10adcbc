"""What an append and a read cost does not grow with the conversation, nor with its writers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import redis

from tests.store.talk import texts
from turnstore import Window

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.conftest import NewStore, OwnServer
    from turnstore import AsyncConversation
    from turnstore.server import EmbeddedServer

pytestmark = pytest.mark.one_setup

SHORT, LONG = 60, 3000
TEXT = "x" * 200


async def _spent(server: EmbeddedServer, doing: Callable[[], Awaitable[Any]]) -> tuple[Any, int]:
    """Give the commands that the server ran, those of scripts too, and the bytes that passed."""
    with redis.Redis.from_url(server.url) as raw:
        raw.config_resetstat()
        await doing()
        commands: dict[str, Any] = raw.info("commandstats")
        network: dict[str, Any] = raw.info("stats")
    unwanted = ("cmdstat_info", "cmdstat_config|resetstat", "cmdstat_client|setinfo")
    calls = {name: one["calls"] for name, one in commands.items() if name not in unwanted}
    return calls, network["total_net_input_bytes"] + network["total_net_output_bytes"]


async def test_a_turn_of_a_long_conversation_costs_what_one_of_a_short_costs(
    new_store: NewStore, own_server: OwnServer
) -> None:
    """E8, H4: the whole was written anew with each message, or read for each."""
    server = own_server()
    store = new_store(at=server, max_messages=None)
    spent: dict[int, list[tuple[Any, int]]] = {}
    for turns in (SHORT, LONG):
        chat = store.conversation(f"of {turns}")
        for start in range(0, turns, 60):
            await asyncio.gather(*(chat.append([TEXT, TEXT]) for _ in range(start, start + 60)))
        window = Window(messages=100)
        await chat.read(window)  # it has learnt how large turns are, and the server the script

        def append(chat: AsyncConversation = chat) -> Awaitable[Any]:
            return chat.append([TEXT, TEXT])

        def read(chat: AsyncConversation = chat, window: Window = window) -> Awaitable[Any]:
            return chat.read(window)

        spent[turns] = [await _spent(server, append), await _spent(server, read)]
        assert (await chat.stat()).turns == turns + 1
    for (few, small), (many, large) in zip(spent[SHORT], spent[LONG], strict=True):
        assert many == few
        # Numbers in a header have a few digits more; a turn alone has over 400 bytes.
        assert small <= large < small + 1000


async def test_many_writers_send_each_turn_once(new_store: NewStore, own_server: OwnServer) -> None:
    """E8: what 40 write at once is 40 commands; nobody loads a document to write it back."""
    server = own_server()
    chat = new_store(at=server, max_messages=None).conversation("c")
    await chat.append("first")
    calls, _ = await _spent(
        server, lambda: asyncio.gather(*(chat.append(f"{n}") for n in range(40)))
    )
    assert calls["cmdstat_evalsha"] == 40
    assert calls["cmdstat_rpush"] <= 80
    assert "cmdstat_lrange" not in calls
    assert sorted(texts(await chat.read())[1:], key=int) == [f"{n}" for n in range(40)]


async def test_a_large_turn_is_sent_and_held_once(
    new_store: NewStore, own_server: OwnServer
) -> None:
    """H5: one body was kept in three places, and a snapshot took as much again."""
    server = own_server()
    chat = new_store(at=server).conversation("c", owner="ada")
    await chat.append("first")
    picture = "A" * 1_000_000
    _, passed = await _spent(server, lambda: chat.append(picture, turn_id="t"))
    assert passed < 1.1 * len(picture)
    await chat.append(picture, turn_id="t")
    with redis.Redis.from_url(server.url) as raw:
        held = sum(raw.memory_usage(key, samples=0) or 0 for key in raw.scan_iter())
    assert len(picture) < held < 1.3 * len(picture)
