"""Facts of which a part is lost or damaged, when one of their conversations is erased."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.facts.store.raw import kinds_of, look, place_of
from turnstore import CorruptTurnError
from turnstore.facts import NewFact

if TYPE_CHECKING:
    from tests.facts.store.conftest import NewFacts
    from tests.servers.running import Server
    from turnstore import AsyncStore
    from turnstore.facts import AsyncFacts

pytestmark = pytest.mark.one_setup


async def fill(facts: AsyncFacts) -> None:
    for conversation in ("gone", "stays"):
        await facts.add_many(
            "ada",
            [NewFact(text=f"{conversation} {n}.", conversation=conversation) for n in range(20)],
        )


@pytest.fixture
async def facts(store: AsyncStore, new_facts: NewFacts) -> AsyncFacts:
    """Give facts of two conversations, in the store of the test."""
    facts = new_facts(store)
    await fill(facts)
    return facts


@pytest.mark.parametrize("part", ["facts", "order", "postings"])
@pytest.mark.parametrize("verify", [False, True])
async def test_what_is_lost_in_part_is_never_called_erased(
    store: AsyncStore, facts: AsyncFacts, server: Server, part: str, *, verify: bool
) -> None:
    server.raw.delete(getattr(place_of(facts, "ada").keys, part))
    chat = store.conversation("gone", owner="ada")
    await chat.append("Hello.")
    with pytest.raises(CorruptTurnError, match=r"a part of the owner's facts is lost"):
        await chat.erase(verify=verify)
    assert await chat.read() == []
    assert (await store.erase("ada", verify=True)).verified
    assert kinds_of(server, facts, "ada") <= {b"generation"}
    await fill(facts)
    assert (await chat.erase(verify=True)).parts == {"facts": 20}


async def test_an_owner_is_erased_with_all_vectors_whatever_is_lost(
    store: AsyncStore, facts: AsyncFacts, server: Server
) -> None:
    place = place_of(facts, "ada")
    server.raw.delete(place.keys.facts, place.keys.order, place.keys.postings)
    await store.erase("ada")
    assert kinds_of(server, facts, "ada") == {b"generation"}


async def test_facts_that_cannot_be_removed_are_not_called_none(
    facts: AsyncFacts, server: Server
) -> None:
    await facts.add("ada", "Ada rows.", conversation="gone", sources=["t1"])
    server.raw.delete(place_of(facts, "ada").keys.postings)
    with pytest.raises(CorruptTurnError, match=r"forget_conversation .* may be left"):
        await facts.forget_conversation("ada", "gone")
    with pytest.raises(CorruptTurnError, match=r"forget_turns .* may be left"):
        await facts.forget_turns("ada", "gone", ["t1"])


async def test_where_vectors_alone_are_left_it_says_so(
    store: AsyncStore, facts: AsyncFacts, server: Server, engine: str
) -> None:
    if engine == "search":
        pytest.skip("its documents are found by their conversation")
    server.raw.delete(*place_of(facts, "ada").keys[2:])
    with pytest.raises(CorruptTurnError, match="and 40 vectors"):
        await store.conversation("gone", owner="ada").erase(verify=True)


async def test_order_that_is_lost_hides_no_fact(
    store: AsyncStore, facts: AsyncFacts, server: Server
) -> None:
    place = place_of(facts, "ada")
    server.raw.delete(place.keys.order)
    with pytest.raises(CorruptTurnError):
        await store.conversation("gone", owner="ada").erase()
    texts = b"".join(server.raw.hvals(place.keys.facts))
    assert (texts.count(b"gone "), texts.count(b"stays ")) == (0, 20)


@pytest.mark.parametrize("damage", [b"damaged", b"2 of a later version", b""])
async def test_a_damaged_fact_of_another_conversation_is_in_nobodys_way(
    store: AsyncStore, facts: AsyncFacts, server: Server, damage: bytes
) -> None:
    place = place_of(facts, "ada")
    other = next(fact.id for fact in await facts.list("ada") if fact.conversation == "stays")
    whole = server.raw.hget(place.keys.facts, other)
    server.raw.hset(place.keys.facts, other, damage)
    assert (await store.conversation("gone", owner="ada").erase(verify=True)).verified
    assert await facts.forget_conversation("ada", "gone") == 0
    server.raw.hset(place.keys.facts, other, whole)
    assert len(look(server, facts, "ada").records) == 20


async def test_a_damaged_fact_of_its_own_is_said(
    store: AsyncStore, facts: AsyncFacts, server: Server
) -> None:
    place = place_of(facts, "ada")
    its = next(fact.id for fact in await facts.list("ada") if fact.conversation == "gone")
    line = server.raw.hget(place.keys.facts, its).partition(b"\n")[0]
    server.raw.hset(place.keys.facts, its, line + b"\n{")
    with pytest.raises(CorruptTurnError, match=its):
        await store.conversation("gone", owner="ada").erase()


async def test_a_damaged_log_and_letter_are_in_nobodys_way(
    store: AsyncStore, facts: AsyncFacts, server: Server
) -> None:
    place = place_of(facts, "ada")
    for key in (place.keys.ops, place.keys.dead):
        server.raw.xadd(key, {"note": "{", "letter": "{"})
        server.raw.pexpire(key, 60_000)
    assert (await store.conversation("gone", owner="ada").erase(verify=True)).verified
