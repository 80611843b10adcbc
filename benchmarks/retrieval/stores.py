"""The same questions to facts that are kept in Redis: one shared store, an owner a conversation."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import redis

from turnstore import Store
from turnstore.facts import Facts, NewFact, Ranking, Search

from .embedding import DIMENSIONS, NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .embedding import Embedder
    from .memory import Memory

ENGINES = ("plain", "vectorset", "search")
FLAT = "search, FLAT"


class Kept:
    """All conversations in one store, each as the facts of an owner."""

    def __init__(self, client: Any, engine: str, memories: list[Memory], embed: Embedder) -> None:
        self._memories = memories
        texts = [turn.said() for memory in memories for turn in memory.conversation.turns]
        questions = [one.text for memory in memories for one in memory.conversation.questions]
        self._embed = embed.known(list(dict.fromkeys((*texts, *questions))))
        self._store = Store(client, name="retrieval")
        indexes = {"search": Search(algorithm="hnsw"), FLAT: Search()}
        self._engine: Any = indexes.get(engine, engine)
        self._turns: dict[str, dict[str, tuple[str, ...]]] = {}
        self.foreign = 0
        """Rows of another owner among all that was found: there must be none."""
        facts = self.facts(Ranking())
        for memory in memories:
            self._turns[memory.conversation.name] = _fill(facts, memory)

    def facts(self, ranking: Ranking) -> Facts:
        """The facts of the store with a ranking."""
        return Facts(
            self._store,
            embed=self._embed,
            dimensions=DIMENSIONS,
            embedder=NAME,
            engine=self._engine,
            ranking=ranking,
            track_use=False,
        )

    def search(self, facts: Facts, memory: Memory, number: int, most: int) -> list[str]:
        """What a question finds, best first: ids of turns."""
        name = memory.conversation.name
        query = memory.conversation.questions[number].text
        turns = self._turns[name]
        found: list[str] = []
        for hit in facts.search(name, query, top_k=most, min_score=None):
            if hit.fact.id in turns:
                found += turns[hit.fact.id]
            else:
                self.foreign += 1
        return found


def _fill(facts: Facts, memory: Memory) -> dict[str, tuple[str, ...]]:
    conversation = memory.conversation
    added = facts.add_many(
        conversation.name,
        [
            NewFact(
                text=turn.said(),
                kind="turn",
                conversation=f"{conversation.name}.{turn.session}",
                observed=turn.time,
            )
            for turn in conversation.turns
        ],
    )
    turns: dict[str, tuple[str, ...]] = {}
    for turn, one in zip(conversation.turns, added, strict=True):
        # Two that say the same are one fact, which stands for both.
        turns[one.id] = (*turns.get(one.id, ()), turn.id)
    return turns


@contextmanager
def connected(url: str) -> Iterator[Any]:
    """A client of a server, closed at the end."""
    client = redis.Redis.from_url(url)
    try:
        yield client
    finally:
        client.close()
