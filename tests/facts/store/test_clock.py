"""The server's clock was ahead for a while: facts of later do not age by it, and are found."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.meaning.kit import Kit, Model, embed, facts_in, new
from tests.failure.test_clock import clocked_server
from tests.servers.found import search_module
from turnstore.facts import NewFact, Ranking

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import NewStore, OwnServer
    from tests.failure.test_clock import Clocked

# The jemalloc of Debian's Redis 7.0 does not start under libfaketime.
pytestmark = pytest.mark.servers("redis-8", "valkey")

MONTH = timedelta(days=30)
SOON = timedelta(minutes=5)


@pytest.fixture
def clocked(own_server: OwnServer, tmp_path: Path, engine: str) -> Iterator[Clocked]:
    config = {"loadmodule": str(search_module())} if engine == "search" else {}
    with clocked_server(own_server, tmp_path, config) as server:
        yield server


@pytest.fixture
def kit(new_store: NewStore, clocked: Clocked, engine: str) -> Kit:
    """Keep facts for longer than the clock is ahead; a search looks at few."""
    store, ttl = new_store(at=clocked.server), timedelta(days=400)
    options: dict[str, Any] = {"engine": engine, "ttl": ttl, "ranking": Ranking(candidates=2)}
    return Kit(store, facts_in(store, embed=meaning, **options), Model())


def meaning(texts: list[str]) -> list[list[float]]:
    """Make vectors of which those of a ship are those of a boat, by another word."""
    return embed([text.replace("ship", "boat") for text in texts])


async def ahead(kit: Kit, clocked: Clocked) -> None:
    """Store one fact while the clock is a month ahead."""
    clocked.jump(MONTH)
    await kit.facts.add("ada", "Ada swims.")
    clocked.jump(timedelta(0))


async def test_facts_do_not_go_early(kit: Kit, clocked: Clocked) -> None:
    await kit.facts.add("ada", "Ada reads.")
    await ahead(kit, clocked)
    await kit.facts.add("ada", "Ada sails.")
    assert (await kit.facts.retain("ada", older_than=timedelta(days=10))).removed == {}
    assert (await kit.facts.retain(unused_for=timedelta(days=10), fresh=0.9)).removed == {}


async def test_what_is_stored_later_has_the_time_of_then(kit: Kit, clocked: Clocked) -> None:
    await ahead(kit, clocked)
    added = await kit.facts.add("ada", "Ada sails.")
    fact = await kit.facts.get("ada", added.id)
    now = datetime.now(UTC)
    assert fact
    for moment in (fact.created, fact.observed, fact.valid_from):
        assert abs(moment - now) < SOON
    newest, older = await kit.facts.list("ada")
    assert newest == fact
    assert older.created - now > MONTH - SOON, "its time says what the clock said"
    await kit.facts.end("ada", fact.id)
    ended = await kit.facts.get("ada", fact.id)
    assert ended
    assert ended.valid_to
    assert abs(ended.valid_to - now) < SOON


async def test_what_is_stored_later_is_found(kit: Kit, clocked: Clocked) -> None:
    """By the time of then, and without one; by an engine too, where it is asked for few."""
    await ahead(kit, clocked)
    await kit.facts.add_many("ada", [NewFact(text=f"boat boat boat x{n}.") for n in range(12)])
    soon = datetime.now(UTC) + SOON
    asked: list[dict[str, Any]] = [{}, {"as_of": soon}, {"as_of": soon, "known_at": soon}]
    for times in asked:
        hits = await kit.facts.search("ada", "ship", top_k=1, min_score=0.7, **times)
        assert [hit.fact.text[:4] for hit in hits] == ["boat"], times
    hits = await kit.facts.search("ada", "Ada swims.", top_k=1, min_score=0.9)
    assert [hit.fact.text for hit in hits] == ["Ada swims."], "what was just stored, is found"


async def test_what_is_drawn_later_has_the_time_of_then(kit: Kit, clocked: Clocked) -> None:
    await ahead(kit, clocked)
    await kit.say("I sail.")
    kit.model.answers = [[new("Ada sails.")]]
    await kit.extraction().extract(kit.chat)
    newest, _ = await kit.facts.list("ada")
    assert abs(newest.created - datetime.now(UTC)) < SOON


async def test_an_erasure_holds_all_the_same(kit: Kit, clocked: Clocked) -> None:
    await ahead(kit, clocked)
    await kit.facts.add("ada", "Ada sails.")
    assert (await kit.store.erase("ada", verify=True)).verified
    clocked.jump(-SOON)
    await kit.facts.add("ada", "Ada rows.")
    assert [fact.text for fact in await kit.facts.list("ada")] == ["Ada rows."]
