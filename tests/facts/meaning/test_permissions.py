"""A user whose ACL lacks a command: a change of facts is made as a whole, or not at all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import redis

from tests.facts.meaning.kit import Kit, Model, facts_in, news
from tests.servers.found import search_module
from turnstore import DeniedError
from turnstore.facts import Block

if TYPE_CHECKING:
    from tests.conftest import NewStore, OwnServer

# A Redis before 7 cannot be asked what an ACL allows.
pytestmark = [pytest.mark.servers("redis-7", "redis-8", "valkey")]

COMMANDS = (
    *("hget", "hset", "hsetnx", "hdel", "hexists", "hincrby", "hgetall", "zadd", "zrem", "xadd"),
    *("xdel", "exists", "del", "unlink", "pexpire", "persist"),
)
OF_VECTOR_SETS = ("vadd", "vrem", "vsetattr")

HUMAN = Block("human", "The user.")

Doing = Callable[[Kit, str], Awaitable[object]]


async def _extract(kit: Kit, _: str) -> object:
    kit.model.answers = [[news("supersedes", 0, "Ada sails.", slot="hobby")]]
    return await kit.extraction().extract(kit.chat)


async def _undo(kit: Kit, _: str) -> object:
    extraction = kit.extraction()
    (operation,) = await extraction.operations("ada")
    return await extraction.undo("ada", operation.id)


OPERATIONS: dict[str, Doing] = {
    "add": lambda kit, _: kit.facts.add("ada", "Ada dives."),
    "add again": lambda kit, _: kit.facts.add("ada", "Ada rows.", sources=["t9"]),
    "update": lambda kit, id_: kit.facts.update("ada", id_, pinned=True),
    "update of a text": lambda kit, id_: kit.facts.update("ada", id_, text="Ada swims."),
    "end": lambda kit, id_: kit.facts.end("ada", id_),
    "forget": lambda kit, id_: kit.facts.forget("ada", id_),
    "extract": _extract,
    "undo": _undo,
    "memory": lambda kit, _: kit.memory(HUMAN).append("ada", "human", "x"),
}

# What a change can do without, though another one needs it.
NEEDLESS = {
    "add": {"hdel", "zrem", "xadd", "xdel", "exists", "del", "unlink", "vrem", "vsetattr"},
    "add again": {"hdel", "zadd", "zrem", "xadd", "exists", "del", "vadd", "vrem", "vsetattr"},
    "update": {"zadd", "zrem", "xadd", "del", "vadd", "vrem", "hexists"},
    "end": {"zadd", "zrem", "xadd", "del", "vadd", "vrem", "hexists"},
    "forget": {"zadd", "xadd", "vadd", "vsetattr", "hexists"},
}


def dumped(raw: redis.Redis) -> dict[bytes, object]:
    """Give all that is stored of facts and conversations, but for what nobody reads."""
    return {
        key: raw.dump(key)
        for key in sorted(raw.scan_iter(count=1000))
        if not key.endswith((b":generation", b":lease", b":used", b":uses"))
    }


async def filled(kit: Kit, name: str) -> str:
    """Store what an operation is done with, and give the id of a fact."""
    await kit.say("I sail.")
    added = await kit.facts.add("ada", "Ada rows.", slot="hobby", conversation="c1")
    await kit.facts.add("ada", "Ada has a cat.", conversation="c2")
    await kit.memory(HUMAN).append("ada", "human", "Her name is Ada.")
    if name == "undo":
        await _extract(kit, "")
    return added.id


@pytest.mark.parametrize("lives", [None, timedelta(hours=1)], ids=["for ever", "for a time"])
@pytest.mark.parametrize("name", OPERATIONS)
async def test_what_is_not_allowed_changes_nothing(
    new_store: NewStore, own_server: OwnServer, engine: str, name: str, lives: timedelta | None
) -> None:
    config = {"loadmodule": str(search_module())} if engine == "search" else {}
    server = own_server(config=config)

    def kit(login: dict[str, str]) -> Kit:
        store = new_store(at=server, redis=login)
        return Kit(store, facts_in(store, engine=engine, ttl=lives), Model())

    ours = kit({})
    denied: set[str] = set()
    with redis.Redis.from_url(server.url) as raw:
        id_ = await filled(ours, name)
        for lacking in (*COMMANDS, *(OF_VECTOR_SETS if engine == "vectorset" else ())):
            raw.execute_command(f"ACL SETUSER u{lacking} on >pw ~* +@all -{lacking}")
            theirs = kit({"username": f"u{lacking}", "password": "pw"})
            before = dumped(raw)
            try:
                await OPERATIONS[name](theirs, id_)
            except DeniedError:
                denied.add(lacking)
                assert dumped(raw) == before, f"{name} without {lacking}"
            else:
                await ours.store.erase("ada")
                id_ = await filled(ours, name)
    assert denied, "some commands are needed"
    assert not denied & NEEDLESS.get(name, set()), "what it does not need is not asked for"
