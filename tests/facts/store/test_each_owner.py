"""What is done for all owners: what fails for one of them keeps it from no other."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.store.raw import look, place_of
from tests.facts.store.test_spaces import OTHER, turned
from tests.servers.facade import inner
from turnstore import CorruptTurnError, ErasedError
from turnstore.facts import NewFact

if TYPE_CHECKING:
    from tests.facts.store.conftest import NewFacts
    from tests.servers.running import Server
    from turnstore.facts import AsyncFacts

pytestmark = pytest.mark.one_setup

OWNERS = ("ada", "bob", "eve", "kim")
FACTS = 4


async def fill(facts: AsyncFacts) -> list[str]:
    """Store facts of all owners, and give these in the order in which all are gone through."""
    for owner in OWNERS:
        await facts.add_many(owner, [NewFact(text=f"{owner} has {n}.") for n in range(FACTS)])
    return sorted(OWNERS, key=lambda owner: place_of(facts, owner).digest)


async def damage(server: Server, facts: AsyncFacts, owner: str) -> str:
    id_ = (await facts.list(owner))[1].id
    server.raw.hset(place_of(facts, owner).keys.facts, id_, b"rubbish")
    return id_


def close(server: Server, facts: AsyncFacts, owner: str) -> None:
    """Do what an erasure begins with; it dies then."""
    key = place_of(facts, owner).keys.generation
    parts = server.raw.get(key).split()
    parts[5] = b"%d" % (time.time() * 1000 + 60_000)
    server.raw.set(key, b" ".join(parts), keepttl=True)


def spaces(server: Server, facts: AsyncFacts, owner: str) -> int:
    return len(server.raw.hget(place_of(facts, owner).keys.postings, "#v").split())


async def test_facts_of_others_are_tidied_where_one_is_damaged(
    new_facts: NewFacts, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    facts = new_facts()
    first, *others = await fill(facts)
    id_ = await damage(server, facts, first)
    with pytest.raises(CorruptTurnError, match=rf"{id_}.*failed for 1 of 4 owners") as caught:
        await facts.retain(most=1)
    keys = place_of(facts, first).keys
    assert str(keys) in str(caught.value)
    assert str(keys) in caplog.text
    assert server.raw.hlen(keys.facts) == FACTS
    for owner in others:
        assert len(await facts.list(owner)) == 1
    with pytest.raises(CorruptTurnError):
        await facts.retain(first, most=1)


async def test_facts_of_others_are_moved_where_one_is_damaged(
    new_facts: NewFacts, server: Server
) -> None:
    old = new_facts()
    first, second, *others = await fill(old)
    for owner in (first, second):
        await damage(server, old, owner)
    new = new_facts(**OTHER, previous=inner(old))
    with pytest.raises(CorruptTurnError, match="failed for 2 of 4 owners"):
        await new.migrate(drop=True)
    for owner in others:
        assert spaces(server, old, owner) == 1, "what these had before is dropped"
        hits = await new.search(owner, f"{owner} has 1.", top_k=1, min_score=0.9)
        assert [hit.fact.text for hit in hits] == [f"{owner} has 1."]
        look(server, new, owner)
    with pytest.raises(CorruptTurnError):
        await new.search(first, "1", min_score=None)
    for owner in (first, second):
        await old.erase(owner)
    assert (await new.migrate(drop=True)).owners == 0
    assert (await new_facts(**OTHER).health()).is_well


async def test_facts_of_others_are_moved_where_the_embedder_fails_for_one(
    new_facts: NewFacts, server: Server
) -> None:
    old = new_facts()
    first, *others = await fill(old)

    def picky(texts: list[str]) -> list[list[float]]:
        if texts[0].startswith(first):
            raise OverflowError(texts[0])
        return turned(texts)

    options: dict[str, Any] = {**OTHER, "embed": picky}
    with pytest.raises(OverflowError) as caught:
        await new_facts(**options).migrate()
    assert "failed for 1 of 4 owners" in "".join(caught.value.__notes__)
    new = new_facts(**OTHER, previous=inner(old))
    assert (await new.migrate(dry_run=True)).owners == 1
    for owner in others:
        look(server, new, owner)


@pytest.mark.parametrize("does", ["retain", "migrate"])
async def test_who_is_being_erased_is_passed_over(
    new_facts: NewFacts, server: Server, does: str
) -> None:
    facts = new_facts()
    first, *others = await fill(facts)
    close(server, facts, first)
    if does == "retain":
        done: Any = await facts.retain(most=1)
        assert done.removed == {"most": 3 * (FACTS - 1)}
        with pytest.raises(ErasedError) as caught:
            await facts.retain(first, most=1)
        assert caught.value.reason == "closed"
    else:
        done = await new_facts(**OTHER).migrate(drop=True)
        assert done.embedded == 3 * FACTS
        for owner in others:
            look(server, facts, owner)
    assert server.raw.hlen(place_of(facts, first).keys.facts) == FACTS
    if does == "migrate":  # the erasure that died has left all of it
        server.raw.delete(place_of(facts, first).keys.generation)
        both = new_facts(**OTHER, previous=inner(facts))
        hits = await both.search(first, f"{first} has 1.", top_k=1, min_score=0.9)
        assert [hit.fact.text for hit in hits] == [f"{first} has 1."]
        assert (await both.migrate(drop=True)).owners == 1
        look(server, both, first)
