"""A user whose ACL lacks a command: refused before anything is written, never half-way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import redis

from tests.failure.helping import said
from tests.invariants.raw import look
from turnstore import DeniedError, SaveError

if TYPE_CHECKING:
    from tests.conftest import NewStore, OwnServer
    from turnstore import AsyncConversation, AsyncStore

COMMANDS = (
    *("evalsha", "eval", "lindex", "lrange", "llen", "rpush", "lset", "ltrim", "lpush"),
    *("pexpire", "persist", "del", "time", "exists", "pttl", "memory|usage", "getrange"),
)
# What only a conversation with an owner needs.
OWNED_COMMANDS = (
    *("get", "set", "zadd", "zscore", "zrem", "zrangebyscore", "hset", "hsetnx", "hdel", "pttl"),
)

Act = Callable[["AsyncConversation"], Awaitable[Any]]


async def _replace(chat: AsyncConversation) -> None:
    turn = chat.turn("new", replaces=(await chat.turns(1))[0])
    try:
        async with turn:
            turn.reply("answer")
    except SaveError as error:
        assert error.__cause__  # noqa: PT017
        raise error.__cause__ from None


WRITES: dict[str, Act] = {
    "append": lambda chat: chat.append("new", turn_id="new"),
    "replace": _replace,
    "trim": lambda chat: chat.trim(turns=1),
    "rewind": lambda chat: chat.rewind(),
    "rewind-all": lambda chat: chat.rewind(9),
    "fork": lambda chat: chat.fork("copy"),
    "expire": lambda chat: chat.expire(timedelta(minutes=1)),
    "expire-never": lambda chat: chat.expire(None),
    "clear": lambda chat: chat.clear(),
}


@pytest.mark.parametrize("max_messages", [1000, 3], ids=["keeps", "drops"])
async def test_what_is_not_allowed_changes_nothing(
    new_store: NewStore, own_server: OwnServer, max_messages: int
) -> None:
    server = own_server()
    with redis.Redis.from_url(server.url) as raw:
        for lacking in COMMANDS:
            user = f"without-{lacking.replace('|', '-')}"
            raw.execute_command(f"ACL SETUSER {user} on >pw ~* +@all -{lacking}")
            login = {"username": user, "password": "pw"}
            ours = new_store(at=server, max_messages=max_messages)
            theirs = new_store(at=server, redis=login, max_messages=max_messages)
            for name, act in WRITES.items():
                await _try(raw, ours, theirs, act, f"{name} without {lacking}")
            await ours.conversation("ada").clear()
            await _try_first(raw, ours, theirs)


async def _try(raw: redis.Redis, ours: AsyncStore, theirs: AsyncStore, act: Act, what: str) -> None:
    chat, copy = ours.conversation("ada"), ours.conversation("copy")
    await chat.clear()
    await copy.clear()
    for content in "abc":
        await chat.append(content)
    before = look(raw, chat.key)
    try:
        await act(theirs.conversation("ada"))
    except DeniedError as error:
        assert "nothing was written" in str(error)  # noqa: PT017
        after = look(raw, chat.key)
        assert (after.head, after.pieces) == (before.head, before.pieces), what
        assert not raw.exists(copy.key), what
    look(raw, chat.key)


async def test_what_is_not_allowed_changes_nothing_of_an_owner(
    new_store: NewStore, own_server: OwnServer
) -> None:
    """A conversation that is not listed would not be found by an erasure."""
    server = own_server()
    with redis.Redis.from_url(server.url) as raw:
        for lacking in (*COMMANDS, *OWNED_COMMANDS):
            user = f"without-{lacking.replace('|', '-')}"
            raw.execute_command(f"ACL SETUSER {user} reset on >pw ~* +@all -{lacking}")
            login = {"username": user, "password": "pw"}
            ours, theirs = new_store(at=server), new_store(at=server, redis=login)
            chat = ours.conversation("ada", owner="o")
            for name, act in WRITES.items():
                await ours.erase("o")
                await chat.append("a", turn_id="a")
                before = look(raw, chat.key)
                try:
                    await act(theirs.conversation("ada", owner="o"))
                except DeniedError:
                    if not name.startswith("expire"):
                        after = look(raw, chat.key)
                        assert (after.head, after.pieces) == (before.head, before.pieces), lacking
                listed = {info.id for info in await ours.conversations("o", 99)}
                held = {
                    id_
                    for id_ in ("ada", "copy")
                    if raw.exists(ours.conversation(id_, owner="o").key)
                }
                assert listed == held, f"{name} without {lacking}"


async def _try_first(raw: redis.Redis, ours: AsyncStore, theirs: AsyncStore) -> None:
    chat = ours.conversation("ada")
    try:
        await theirs.conversation("ada").append("first")
    except DeniedError:
        assert not raw.exists(chat.key)
    await chat.append("second")
    assert (await said(chat))[-1] == "second"


async def test_keys_of_another_prefix_are_denied(
    new_store: NewStore, own_server: OwnServer
) -> None:
    server = own_server()
    with redis.Redis.from_url(server.url) as raw:
        raw.execute_command("ACL SETUSER app on >pw +@all ~mine:*")
        login = {"username": "app", "password": "pw"}
        denied = new_store(at=server, redis=login).conversation("ada")
        for operation in (denied.read, denied.clear, denied.rewind, lambda: denied.append("hi")):
            with pytest.raises(DeniedError, match="nothing was"):
                await operation()
        assert raw.dbsize() == 0
        allowed = new_store(at=server, redis=login, prefix="mine").conversation("ada")
        await asyncio.gather(*(allowed.append("hi") for _ in range(3)))
        assert len(await allowed.read()) == 3


async def test_the_permissions_that_the_docs_name_suffice(
    new_store: NewStore, own_server: OwnServer
) -> None:
    server = own_server()
    with redis.Redis.from_url(server.url) as raw:
        categories = "+@list +@keyspace +@scripting +@string +time +@connection"
        raw.execute_command(f"ACL SETUSER app on >pw ~* {categories}")
    login = {"username": "app", "password": "pw"}
    store = new_store(at=server, redis=login, max_messages=3)
    chat = store.conversation("ada")
    for content in "abcd":
        await chat.append(content)
    for act in WRITES.values():
        await act(chat)
    async with chat.turn("hi") as turn:
        turn.reply("hello")
    assert await said(chat) == ["hi", "hello"]
    assert (await chat.stat()).turns == 1
    assert len(await chat.turns()) == 1


async def test_the_permissions_that_the_docs_name_for_owners_suffice(
    new_store: NewStore, own_server: OwnServer
) -> None:
    server = own_server()
    with redis.Redis.from_url(server.url) as raw:
        categories = "+@list +@keyspace +@scripting +@string +@sortedset +@hash +time +@connection"
        raw.execute_command(f"ACL SETUSER app on >pw ~* {categories}")
    store = new_store(at=server, redis={"username": "app", "password": "pw"})
    chat = store.conversation("ada", owner="o")
    for act in WRITES.values():
        await chat.append("hi")
        await act(chat)
    async with chat.turn("hi", on_conflict="serialize") as turn:
        turn.reply("hello")
    assert await chat.set_title("T")
    assert len(await store.conversations("o")) == 2
    assert (await store.erase("o", verify=True)).conversations == 2


@pytest.mark.parametrize("command", ["unlink", "zrem", "hdel", "set"])
async def test_an_erasure_that_may_not_run_a_command_loses_nothing(
    new_store: NewStore, own_server: OwnServer, command: str
) -> None:
    server = own_server()
    with redis.Redis.from_url(server.url) as raw:
        raw.execute_command(f"ACL SETUSER app on >pw ~* +@all -{command}")
    whole = new_store(at=server)
    denied = new_store(at=server, redis={"username": "app", "password": "pw"})
    for id_ in ("one", "two"):
        await whole.conversation(id_, owner="ada").append("q")
    with pytest.raises(DeniedError):
        await denied.erase("ada")
    assert [info.turns for info in await whole.conversations("ada")] == [1, 1]
    receipt = await whole.erase("ada")
    assert (receipt.conversations, receipt.turns) == (2, 2)
