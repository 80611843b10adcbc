"""What a search costs of an owner with more facts than there are candidates, counted."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.facts.meaning.kit import DIMENSIONS
from turnstore.facts import NewFact

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.facts.store.conftest import NewFacts
    from tests.servers.proxy import Proxy
    from turnstore.facts import AsyncFacts

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis", "valkey")]

SCRIPT = "EVALSHA"
NEAREST = {"plain": "HGETALL", "vectorset": "VSIM", "search": "FT.SEARCH"}


def embed(texts: list[str]) -> list[list[float]]:
    """Make vectors of which no two are equally near to a third."""
    return [[random.Random(text + str(n)).gauss() for n in range(DIMENSIONS)] for text in texts]


async def test_the_nearest_are_a_fourth_trip_and_what_stands_around_a_fifth(
    new_store: NewStore, new_facts: NewFacts, proxy: Proxy, engine: str
) -> None:
    facts = new_facts(new_store(at=proxy), embed=embed)
    texts = [f"Ada has boat number {number}." for number in range(60)]
    await facts.add_many("ada", [NewFact(text=text) for text in texts])
    alone = [SCRIPT, NEAREST[engine], SCRIPT, SCRIPT]
    assert await _searched(facts, proxy, "A boat?") == alone
    for number, text in enumerate(texts):
        await facts.add_exchange("ada", "chat", f"turn-{number}", f"User: {text}\nAssistant: Yes.")
    assert await _searched(facts, proxy, "A boat?") == [*alone, SCRIPT]


async def _searched(facts: AsyncFacts, proxy: Proxy, text: str) -> list[str]:
    """Search, and give the commands; the first time, the server learns the scripts."""
    await facts.search("ada", text, min_score=None)
    proxy.clear()
    assert await facts.search("ada", text, min_score=None)
    return [command.upper() for command in proxy.seen]
