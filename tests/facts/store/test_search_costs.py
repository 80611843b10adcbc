"""What a search costs of an owner with more facts than there are candidates, counted."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.facts.meaning.kit import DIMENSIONS
from tests.servers.facade import inner
from turnstore.context import Context
from turnstore.facts import NewFact, Recall

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


async def test_recall_adds_to_a_turn_what_a_search_sends_and_one_embedding(
    new_store: NewStore, new_facts: NewFacts, proxy: Proxy
) -> None:
    """Also where the window has turns whose exchanges are left out."""
    asked: list[list[str]] = []

    def embed_once(texts: list[str]) -> list[list[float]]:
        asked.append(texts)
        return embed(texts)

    store = new_store(at=proxy)
    facts = new_facts(store, embed=embed_once)
    texts = [f"Ada has boat number {number}." for number in range(90)]
    await facts.add_many("ada", [NewFact(text=text) for text in texts])
    chat = store.conversation("chat", owner="ada")
    bare = Context()
    recalling = Context(sources=[Recall(inner(facts), min_score=None, deadline=30)])

    async def turn(context: Context) -> list[str]:
        proxy.clear()
        async with chat.turn("A boat?", context=context) as begun:
            begun.reply("Yes.")
        assert len(begun.recalled) == (3 if context is recalling else 0)
        seen = [command.upper() for command in proxy.seen]
        if context is bare:
            await facts.add_exchange("ada", "chat", begun.turn_id, "User: A boat?")
        return seen

    without: list[str] = []
    search: list[str] = []
    recalled: list[str] = []
    for _ in range(3):  # the first time, the server learns the scripts
        without = await turn(bare)
        search = await _searched(facts, proxy, "A boat?")
        asked.clear()
        recalled = await turn(recalling)
        assert asked == [["A boat?"]]
    *begin, save = without
    assert recalled == [*begin, *search, save]


async def _searched(facts: AsyncFacts, proxy: Proxy, text: str) -> list[str]:
    """Search, and give the commands; the first time, the server learns the scripts."""
    await facts.search("ada", text, min_score=None)
    proxy.clear()
    assert await facts.search("ada", text, min_score=None)
    return [command.upper() for command in proxy.seen]
