"""What each operation costs: commands, counted where they pass."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.failure.helping import load_scripts
from tests.store.talk import fill
from turnstore import Window

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore import AsyncConversation

# One server of each kind: how many commands are sent does not depend on who answers.
pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis", "cluster")]

Doing = Callable[["AsyncConversation"], Awaitable[Any]]

OPERATIONS: dict[str, tuple[Doing, list[str]]] = {
    "append": (lambda chat: chat.append("a"), ["EVALSHA"]),
    "append again": (lambda chat: chat.append("a", turn_id="t19"), ["EVALSHA"]),
    "append of nothing": (lambda chat: chat.append([]), ["EVALSHA"]),
    "append that drops": (lambda chat: chat.append(["a"] * 15), ["EVALSHA"]),
    "read": (lambda chat: chat.read(), ["LRANGE"]),
    "read of all": (lambda chat: chat.read(Window()), ["LRANGE"]),
    "read of few": (lambda chat: chat.read(Window(turns=3)), ["LRANGE"]),
    "read of nothing": (lambda chat: chat.read(Window(messages=1)), ["LRANGE"]),
    "turns": (lambda chat: chat.turns(10), ["EVALSHA"]),
    "older turns": (lambda chat: chat.turns(10, before=15), ["EVALSHA"]),
    "trim": (lambda chat: chat.trim(5), ["EVALSHA"]),
    "expire": (lambda chat: chat.expire(timedelta(hours=1)), ["EVALSHA"]),
    "stat": (lambda chat: chat.stat(), ["EVALSHA"]),
    "clear": (lambda chat: chat.clear(), ["EVALSHA"]),
    "rewind": (lambda chat: chat.rewind(), ["EVALSHA", "EVALSHA"]),
    "fork": (lambda chat: chat.fork("d"), ["EVALSHA", "EVALSHA"]),
}


@pytest.mark.parametrize("name", OPERATIONS)
async def test_the_commands_of_an_operation(name: str, new_store: NewStore, proxy: Proxy) -> None:
    doing, commands = OPERATIONS[name]
    chat = new_store(at=proxy, max_messages=20).conversation("c")
    await fill(chat, 20)
    await doing(chat)  # the server learns the script
    await chat.clear()
    await fill(chat, 20)
    await store_forgets(chat)
    proxy.clear()
    await doing(chat)
    assert proxy.seen == commands


async def store_forgets(chat: AsyncConversation) -> None:
    """Delete what a fork has made before, so that the second one is like the first."""
    other = await chat.fork("e")
    await other.clear()


async def test_a_turn_costs_one_to_begin_and_one_to_end(new_store: NewStore, proxy: Proxy) -> None:
    chat = new_store(at=proxy).conversation("c")
    await fill(chat, 5)
    proxy.clear()
    async with chat.turn("q") as turn:
        assert proxy.seen == ["LRANGE"]
        turn.reply("a")
    assert proxy.seen == ["LRANGE", "EVALSHA"]


@pytest.mark.parametrize("first", ["t20", "t15"])
async def test_a_turn_that_replaces_others_costs_no_more_and_the_summary(
    new_store: NewStore, proxy: Proxy, server: Server, first: str
) -> None:
    """All of it is read together, but from a Cluster."""
    chat = new_store(at=proxy).conversation("c")
    await fill(chat, 20)
    load_scripts(server, chat.key)
    proxy.clear()
    async with chat.turn("q", window=Window(turns=15), replaces=first) as turn:
        wider = ["LRANGE"] if first == "t15" else []  # more go than are looked for at first
        assert sorted(proxy.seen) == ["GET", "LRANGE", *wider]
        turn.reply("a")
        proxy.clear()
        await turn.save()
        assert proxy.seen == ["EVALSHA"]


async def test_handles_cost_nothing(new_store: NewStore, proxy: Proxy) -> None:
    """K4: a connection for each request exhausts the server."""
    store = new_store(at=proxy)
    await store.conversation("c").read()
    proxy.clear()
    for number in range(1000):
        chat = store.conversation(f"{number}")
        chat.turn("q")
        assert chat.key
    assert proxy.seen == []


async def test_a_read_after_other_conversations_costs_few(
    new_store: NewStore, proxy: Proxy
) -> None:
    store = new_store(at=proxy, max_messages=None)
    long, short = store.conversation("long"), store.conversation("short")
    await fill(long, 10, size=20)
    await fill(short, 120)
    for _ in range(5):
        await long.read()
    proxy.clear()
    assert len(await short.read()) == 100
    assert 1 <= proxy.count("LRANGE") <= 6
    proxy.clear()
    assert len(await short.read()) == 100
    assert proxy.count("LRANGE") == 1, "it has learnt"
