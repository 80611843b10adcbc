"""A conversation goes with all that was remembered of it; what others say of its owner stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.meaning.kit import new
from tests.facts.meaning.test_erased import HUMAN, exchanges_in, fill
from tests.facts.store.raw import keys_of, look, place_of
from turnstore.context import Context

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.facts.meaning.kit import Kit
    from tests.servers.running import Server

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis-7", "redis-8", "valkey")]


async def other(kit: Kit) -> None:
    """Let Ada have another conversation, of which an exchange, a fact and the log know."""
    chat = kit.store.conversation("other", owner="ada")
    async with chat.turn("I row.", context=Context(after=[exchanges_in(kit)])) as turn:
        turn.reply("I see.")
    kit.model.answers = [[new("Ada rows.")]]
    assert len((await kit.extraction().extract(chat)).new) == 1


def told(server: Server, kit: Kit, what: bytes) -> set[str]:
    """Give the ends of Ada's keys in which something is told, whatever their type."""
    raw: Any = server.raw
    read: dict[bytes, Callable[[bytes], Any]] = {
        b"string": raw.get,
        b"hash": raw.hgetall,
        b"list": lambda key: raw.lrange(key, 0, -1),
        b"zset": lambda key: raw.zrange(key, 0, -1),
        b"stream": raw.xrange,
        b"vectorset": lambda key: raw.execute_command("VRANDMEMBER", key, 100),
    }
    found = set()
    for key in keys_of(server, kit.facts, "ada"):
        text = repr(read[raw.type(key)](key)).encode()
        if what in text or what in key:
            found.add(key.rpartition(b":")[2].decode())
    return found


@pytest.mark.parametrize("verify", [False, True])
async def test_nothing_is_left_of_it_in_any_key(kit: Kit, server: Server, *, verify: bool) -> None:
    await other(kit)
    await fill(kit)
    digest = place_of(kit.facts, "ada").conversation("c1").encode()
    assert told(server, kit, digest).issuperset({"conversations", "lives", "names", "facts"})
    assert told(server, kit, digest).issuperset({"cursors", "ops", "dead"})
    receipt = await kit.chat.erase(verify=verify)
    assert (receipt.conversations, receipt.turns, receipt.verified) == (1, 4, verify)
    assert receipt.parts == {
        "summaries": 1,
        "facts": 1,
        "exchanges": 3,
        "cursors": 1,
        "dead_letters": 1,
        "operations": 1,
    }
    assert told(server, kit, digest) == {"cleared", "forgotten"}, "the notes that it was erased"
    assert told(server, kit, b"ecret") == {"memory"}, "which is the owner's"
    raw = look(server, kit.facts, "ada")
    assert {record.fact.conversation for record in raw.records.values()} == {"other"}
    assert await kit.texts() == ["Ada rows.", "User: I row.\nAssistant: I see."]
    assert [chat.id for chat in await kit.store.conversations("ada")] == ["other"]
    assert len(await kit.extraction().operations("ada")) == 1
    assert (await kit.memory(HUMAN).read("ada")).keys() == {"human"}
    health = await kit.facts.health("ada")
    assert (health.facts, health.vectors, health.lag, health.dead_letters) == (2, 2, 0, 0)
    again = await kit.chat.erase(verify=verify)
    assert (again.conversations, again.keys, again.parts) == (0, 0, {})


async def test_an_undo_goes_with_what_it_undid(kit: Kit) -> None:
    await other(kit)
    await kit.say("I sail.")
    kit.model.answers = [[new("Ada sails.")]]
    await kit.extraction().extract(kit.chat)
    (operation, _) = await kit.extraction().operations("ada")
    await kit.extraction().undo("ada", operation.id)
    assert len(await kit.extraction().operations("ada")) == 3
    assert (await kit.chat.erase()).parts == {"cursors": 1, "operations": 2}
    assert len(await kit.extraction().operations("ada")) == 1
