"""Owners whose facts are in the earlier space, while the store's register names the later one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.begun import another, facts_of
from tests.facts.store.raw import look
from tests.facts.store.test_each_owner import damage, fill
from tests.facts.store.test_spaces import OTHER, turned
from tests.servers.facade import inner
from turnstore import CorruptTurnError, EngineMismatchError
from turnstore.facts import NewFact

if TYPE_CHECKING:
    from tests.facts.store.conftest import NewFacts
    from tests.servers.running import Server
    from turnstore.facts import AsyncFacts

pytestmark = pytest.mark.one_setup


async def serves(facts: AsyncFacts, owner: str) -> None:
    """Find a fact of an owner, and store one more."""
    hits = await facts.search(owner, f"{owner} has 1.", top_k=1, min_score=0.9)
    assert [hit.fact.text for hit in hits] == [f"{owner} has 1."]
    await facts.add(owner, f"{owner} reads.")


async def test_a_process_that_starts_while_one_goes_back_serves_all(
    new_facts: NewFacts, server: Server
) -> None:
    first, second, *_ = await fill(new_facts())
    await new_facts(**OTHER).migrate()
    await damage(server, new_facts(), first)
    with pytest.raises(CorruptTurnError):
        await new_facts().migrate()
    fresh = new_facts(**OTHER, previous=inner(new_facts()))
    await serves(fresh, second)
    assert (await fresh.health()).embedder == "turned:1"
    with pytest.raises(EngineMismatchError, match="words:1"):
        await new_facts(**OTHER).search(second, "has")
    look(server, fresh, second)


async def test_a_process_that_starts_after_a_move_serves_who_came_meanwhile(
    new_facts: NewFacts, server: Server, prefix: str, engine: str
) -> None:
    await new_facts().add_many("ada", [NewFact(text=f"ada has {n}.") for n in range(3)])
    with another(server, prefix) as store:
        behind = facts_of(store, engine)

        def meanwhile(texts: list[str]) -> list[list[float]]:  # it knows by now whom it moves
            behind.add_many("bob", [NewFact(text=f"bob has {n}.") for n in range(3)])
            return turned(texts)

        options: dict[str, Any] = {**OTHER, "embed": meanwhile}
        moved = await new_facts(**options).migrate()
    assert moved.facts == 3
    for owner in ("ada", "bob"):
        await serves(new_facts(**OTHER, previous=inner(new_facts())), owner)
    assert len(look(server, new_facts(), "bob").spaces) == 1
    with pytest.raises(EngineMismatchError):
        await new_facts().add("eve", "eve reads.")
