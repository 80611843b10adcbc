"""Documents of a search index that outlive their facts, as these expired before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.facts.store.raw import keys_of, place_of
from turnstore.facts import NewFact, Ranking

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.facts.store.conftest import NewFacts
    from tests.servers.running import Server
    from turnstore.facts import AsyncFacts

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis-8.2-search")]

MANY = 60


async def outlived(facts: AsyncFacts, server: Server) -> None:
    """Store facts of Ada and let all of them expire, but the documents."""
    await facts.add_many("ada", [NewFact(text=f"Ada swims {n}.") for n in range(MANY)])
    place = place_of(facts, "ada")
    server.raw.delete(*place.keys[2:])
    assert len(documents(server, facts)) == MANY


def documents(server: Server, facts: AsyncFacts) -> list[bytes]:
    return [key for key in keys_of(server, facts, "ada") if b":1f" in key]


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("writes_again", [False, True])
async def test_they_are_erased(
    new_store: NewStore,
    new_facts: NewFacts,
    server: Server,
    *,
    verify: bool,
    writes_again: bool,
) -> None:
    store = new_store()
    facts = new_facts(store)
    await outlived(facts, server)
    if writes_again:
        await facts.add("ada", "Ada reads.")
    receipt = await store.erase("ada", verify=verify)
    assert receipt.parts == ({"facts": 1} if writes_again else {})
    assert documents(server, facts) == []


async def test_those_of_a_conversation_are_erased_with_it(
    new_store: NewStore, new_facts: NewFacts, server: Server
) -> None:
    store = new_store()
    facts = new_facts(store)
    for id_ in ("gone", "stays"):
        await facts.add_exchange("ada", id_, "t", f"user: {id_}")
    place = place_of(facts, "ada")
    server.raw.delete(*place.keys[2:])
    await facts.add("ada", "Ada rows.", conversation="stays")
    assert len(documents(server, facts)) == 3
    receipt = await store.conversation("gone", owner="ada").erase(verify=True)
    assert (receipt.parts, receipt.verified) == ({"documents": 1}, True)
    assert len(documents(server, facts)) == 2
    assert len(await facts.list("ada")) == 1


async def test_many_of_a_conversation_are_erased_and_counted_and_living_ones_are_not(
    new_store: NewStore, new_facts: NewFacts, server: Server
) -> None:
    store = new_store()
    facts = new_facts(store)
    await facts.add_many(
        "ada", [NewFact(text=f"Old {n}.", conversation="gone") for n in range(MANY)]
    )
    server.raw.delete(*place_of(facts, "ada").keys[2:])
    await facts.add("ada", "New.", conversation="stays")
    receipt = await store.conversation("gone", owner="ada").erase()
    assert receipt.parts == {"documents": MANY}
    assert len(documents(server, facts)) == 1
    again = await store.conversation("gone", owner="ada").erase(verify=True)
    assert (again.parts, again.verified) == ({}, True)


async def test_they_take_no_places_of_a_search(new_facts: NewFacts, server: Server) -> None:
    facts = new_facts(ranking=Ranking(candidates=20))
    await outlived(facts, server)
    added = await facts.add("ada", "Ada dives and swims.")
    hits = await facts.search("ada", "swims", min_score=None)
    assert [hit.fact.id for hit in hits] == [added.id]
    far = await facts.add("ada", "omega")
    hits = await facts.search("ada", "swim Ada swims", min_score=None, top_k=5)
    assert {hit.fact.id for hit in hits} == {added.id, far.id}
