"""Tests of applications may use fakeredis: facts do on it what they do without a module."""

from __future__ import annotations

import asyncio

import fakeredis

from tests.facts.meaning.kit import DIMENSIONS, embed
from turnstore import AsyncStore, Store
from turnstore.facts import AsyncFacts, Facts


def test_facts_are_kept_on_fakeredis() -> None:
    store = Store(fakeredis.FakeRedis(), name="test")
    facts = Facts(store, embed=embed, dimensions=DIMENSIONS, embedder="words:1")
    added = facts.add("ada", "Ada lives in Paris.")
    facts.add("ada", "Ada plays chess.")
    assert facts.engine == "plain"
    assert facts.add("ada", "ada lives in paris.").id == added.id
    hits = facts.search("ada", "Who plays chess?", top_k=1, min_score=None)
    assert [hit.fact.text for hit in hits] == ["Ada plays chess."]
    assert facts.update("ada", added.id, text="Ada lives in Lyon.")
    assert facts.end("ada", added.id)
    assert facts.forget("ada", added.id)
    assert facts.retain(most=5).facts == 1
    assert facts.health().is_well
    assert facts.erase("ada").parts == {"facts": 1}
    assert facts.list("ada", include_closed=True) == []


def test_facts_are_kept_on_fakeredis_with_asyncio() -> None:
    async def do() -> None:
        client = fakeredis.FakeAsyncRedis(protocol=3, decode_responses=True)
        facts = AsyncFacts(
            AsyncStore(client, name="test"), embed=embed, dimensions=DIMENSIONS, embedder="words:1"
        )
        await facts.add_exchange("ada", "c1", "t1", "Ada plays chess.")
        hits = await facts.search("ada", "chess", min_score=None)
        assert [hit.fact.kind for hit in hits] == ["exchange"]
        assert (await facts.erase("ada")).parts == {"exchanges": 1}
        await client.aclose()

    asyncio.run(do())
