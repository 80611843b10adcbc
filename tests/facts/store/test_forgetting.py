"""One fact is forgotten, with a receipt that says that nothing of it is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.store.raw import keys_of, look, place_of
from tests.facts.store.test_spaces import OTHER
from tests.servers.facade import inner
from tests.servers.proxy import Cut
from turnstore.errors import CorruptTurnError, FormatError, ServerError, UnavailableError
from turnstore.facts import NewFact

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import NewStore
    from tests.facts.store.conftest import NewFacts
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore.facts import AsyncFacts

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis", "valkey")]

TEXTS = [NewFact(text=f"Ada owns boat number {number}.") for number in range(5)]


def holding(server: Server, facts: AsyncFacts, id_: str) -> list[bytes]:
    """Give the keys of Ada's that have an id in their name or in anything that they hold."""
    raw: Any = server.raw
    reading: dict[bytes, Callable[[bytes], object]] = {
        b"hash": raw.hgetall,
        b"zset": lambda key: raw.zrange(key, 0, -1),
        b"stream": raw.xrange,
        b"string": raw.get,
        b"vectorset": lambda key: raw.execute_command("VLINKS", key, id_),
    }
    return [
        key
        for key in keys_of(server, facts, "ada")
        if id_.encode() in key or id_ in repr(reading[raw.type(key)](key))
    ]


async def test_nothing_of_it_is_left(facts: AsyncFacts, server: Server) -> None:
    added = await facts.add_many("ada", TEXTS)
    said = await facts.add_exchange("ada", "c1", "t1", "User: I sold it.")
    await facts.search("ada", "boat number 2", min_score=None)  # when it was found, is noted
    its = added[2].id
    assert len(holding(server, facts, its)) > 3
    receipt = await facts.forget("ada", its, verify=True)
    assert (receipt.parts, receipt.verified, bool(receipt)) == ({"facts": 1}, True, True)
    assert holding(server, facts, its) == []
    exchange = await facts.forget("ada", said.id, verify=True)
    assert (exchange.parts, exchange.verified) == ({"exchanges": 1}, True)
    again = await facts.forget("ada", its, verify=True)
    assert (again.parts, again.verified, bool(again)) == ({}, True, False)
    assert len(look(server, facts, "ada").records) == len(TEXTS) - 1


async def test_without_a_look_the_receipt_says_so(facts: AsyncFacts) -> None:
    added = await facts.add("ada", "Ada sails.")
    receipt = await facts.forget("ada", added.id)
    assert (receipt.parts, receipt.verified) == ({"facts": 1}, False)


async def test_what_it_left_in_a_space_is_dropped_and_counted(
    new_facts: NewFacts, server: Server
) -> None:
    """As a migration can that was killed, or another version that knows fewer spaces."""
    old = new_facts()
    added = await old.add_many("ada", TEXTS)
    new = new_facts(**OTHER, previous=inner(old))
    await new.migrate()
    its, spaces = added[1].id, look(server, new, "ada").spaces
    assert len(spaces) == 2
    keys = [place_of(new, "ada").vector(token, its) for token in spaces]
    kept = [server.raw.dump(key) for key in keys]
    await new.forget("ada", its)
    for key, dump in zip(keys, kept, strict=True):
        server.raw.restore(key, 60_000, dump, replace=True)
    receipt = await new.forget("ada", its, verify=True)
    assert (receipt.parts, receipt.verified) == ({"vectors": 2}, True)
    raw = look(server, new, "ada")
    assert (len(raw.spaces), len(raw.records)) == (2, len(TEXTS) - 1)


@pytest.mark.servers("redis-8.2-search")
async def test_a_document_of_an_index_that_no_register_knows_is_found(
    facts: AsyncFacts, server: Server
) -> None:
    added = await facts.add_many("ada", TEXTS)
    place = place_of(facts, "ada")
    strays = [place.vector(f"search:{digest}", added[at].id) for at, digest in ((0, "x"), (1, "y"))]
    for key in strays:
        server.raw.hset(key, "emb", b"1234")
        server.raw.pexpire(key, 60_000)
    receipt = await facts.forget("ada", added[0].id, verify=True)
    assert receipt.parts == {"facts": 1, "vectors": 1}
    assert [server.raw.exists(key) for key in strays] == [0, 1]


async def test_without_a_register_it_is_found_all_the_same(
    facts: AsyncFacts, server: Server
) -> None:
    added = await facts.add_many("ada", TEXTS)
    place, its = place_of(facts, "ada"), added[1].id
    (space,) = look(server, facts, "ada").spaces
    kept = server.raw.dump(place.vector(space, its))
    await facts.forget("ada", its)
    server.raw.restore(place.vector(space, its), 60_000, kept, replace=True)
    server.raw.delete(place.ground.registry)
    receipt = await facts.forget("ada", its, verify=True)
    assert (receipt.parts, receipt.verified) == ({"vectors": 1}, True)
    assert holding(server, facts, its) == []
    assert len(await facts.list("ada")) == len(TEXTS) - 1


async def test_a_space_of_a_later_version_is_an_error_before_anything_is_removed(
    facts: AsyncFacts, server: Server
) -> None:
    added = await facts.add("ada", "Ada sails.")
    place = place_of(facts, "ada")
    for name in ("other:abcdefgh", b"\xff\xfe"):
        server.raw.hset(place.ground.registry, name, "")
        with pytest.raises(FormatError, match=r"does not know.*Nothing was removed"):
            await facts.forget("ada", added.id, verify=True)
        server.raw.hdel(place.ground.registry, name)
    assert await facts.get("ada", added.id)


async def test_a_server_without_indexes_has_nothing_in_one(
    new_store: NewStore, new_facts: NewFacts, server: Server
) -> None:
    """Facts were searched by RediSearch, and are on a server that lacks it."""
    store = new_store()
    facts = new_facts(store)
    added = await facts.add_many("ada", [*TEXTS, NewFact(text="Ada rows.", conversation="c")])
    server.raw.hset(place_of(facts, "ada").ground.registry, "search:abcdefgh", "")
    assert (await facts.forget("ada", added[0].id, verify=True)).verified
    assert (await store.conversation("c", owner="ada").erase(verify=True)).verified
    assert (await store.erase("ada", verify=True)).verified


@pytest.mark.parametrize("raw_norm", [b"-", b"0" * 24])
async def test_what_says_the_same_is_let_go_where_it_cannot_be_told(
    facts: AsyncFacts, server: Server, raw_norm: bytes
) -> None:
    added = await facts.add_many("ada", TEXTS)
    keys, its = place_of(facts, "ada").keys, added[3].id
    words = server.raw.hget(keys.facts, its).split(b" ", 12)
    server.raw.hset(keys.facts, its, b" ".join([*words[:11], raw_norm, *words[12:]]))
    receipt = await facts.forget("ada", its, verify=True)
    assert (receipt.parts, receipt.verified) == ({"facts": 1}, True)
    assert holding(server, facts, its) == []


async def test_an_empty_record_is_one_that_cannot_be_read(
    facts: AsyncFacts, server: Server
) -> None:
    added = await facts.add("ada", "Ada sails.")
    server.raw.hset(place_of(facts, "ada").keys.facts, added.id, "")
    with pytest.raises(CorruptTurnError, match=r"forget\(\) removes it"):
        await facts.get("ada", added.id)
    receipt = await facts.forget("ada", added.id, verify=True)
    assert (receipt.parts, receipt.verified) == ({"facts": 1}, True)
    assert holding(server, facts, added.id) == []


@pytest.mark.parametrize("lost", ["facts", "order", "postings"])
async def test_where_a_part_is_lost_nothing_is_promised(
    facts: AsyncFacts, server: Server, lost: str
) -> None:
    """A server that evicts takes one key, and what the others have stays."""
    added = await facts.add_many("ada", TEXTS)
    server.raw.delete(getattr(place_of(facts, "ada").keys, lost))
    if lost == "order":  # which nothing is known by
        assert (await facts.forget("ada", added[0].id, verify=True)).verified
        assert holding(server, facts, added[0].id) == []
        return
    with pytest.raises(CorruptTurnError, match="lost, as by eviction"):
        await facts.forget("ada", added[0].id, verify=True)
    assert (await facts.erase("ada", verify=True)).verified


async def test_a_fact_that_comes_again_and_again_is_an_error(
    new_store: NewStore, new_facts: NewFacts, proxy: Proxy, server: Server
) -> None:
    facts = new_facts(new_store(at=proxy))
    added = await facts.add("ada", "Ada sails.")
    was = {key: server.raw.dump(key) for key in keys_of(server, facts, "ada")}

    def restore() -> None:
        for key, dump in was.items():
            server.raw.restore(key, 60_000, dump, replace=True)

    proxy.next(Cut.NEVER, command="SCAN", times=5, then=restore)
    with pytest.raises(ServerError, match="again and again"):
        await facts.forget("ada", added.id, verify=True)
    assert await facts.get("ada", added.id)
    proxy.next(Cut.NEVER, command="SCAN", then=restore)
    receipt = await facts.forget("ada", added.id, verify=True)
    assert (receipt.parts, receipt.verified) == ({"facts": 2}, True)
    assert await facts.get("ada", added.id) is None


async def test_a_look_that_fails_is_an_error_that_says_what_was_done(
    new_store: NewStore, new_facts: NewFacts, proxy: Proxy
) -> None:
    facts = new_facts(new_store(at=proxy, redis={"retry": None}))
    added = await facts.add("ada", "Ada sails.")
    proxy.next(Cut.BEFORE, command="SCAN")
    with pytest.raises(UnavailableError, match="A part of what was asked for was done"):
        await facts.forget("ada", added.id, verify=True)
    receipt = await facts.forget("ada", added.id, verify=True)
    assert (receipt.parts, receipt.verified) == ({}, True)
