"""What is measured: facts of turnstore on each engine, and what every other subject has to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import redis

from turnstore import Store
from turnstore.facts import Facts, NewFact
from turnstore.facts import Search as Index

from . import corpus

if TYPE_CHECKING:
    from collections.abc import Sequence

TOP = 3
NAME, EMBEDDER = "bench", "bench:1"


class Subject:
    """Keeps texts of owners, and finds the nearest three."""

    name: ClassVar[str]
    erases: ClassVar[bool] = True
    """Whether there is a way to delete what is one owner's and nothing else."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client: Any = redis.Redis.from_url(url)

    def fill(self, owner: str, texts: Sequence[str]) -> None:
        """Store texts of an owner."""
        raise NotImplementedError

    def search(self, owner: str, question: str) -> int:
        """Look for three of an owner, and say how many were found."""
        raise NotImplementedError

    def erase(self, owner: str) -> None:
        """Delete everything of an owner."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the server."""
        self.client.close()


class Ours(Subject):
    """Facts on one engine, with the default ranking."""

    key: ClassVar[str]
    engine: ClassVar[Any]

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.store = Store(self.client, name=NAME)
        self.facts = Facts(
            self.store,
            embed=corpus.embed,
            dimensions=corpus.DIMENSIONS,
            embedder=EMBEDDER,
            engine=self.engine,
        )

    def fill(self, owner: str, texts: Sequence[str]) -> None:
        """Store texts, twenty to a conversation."""
        self.facts.add_many(
            owner,
            [
                NewFact(text=text, conversation=f"c{number // 20}")
                for number, text in enumerate(texts)
            ],
        )

    def search(self, owner: str, question: str) -> int:
        """Search without a least similarity."""
        return len(self.facts.search(owner, question, top_k=TOP, min_score=None))

    def erase(self, owner: str) -> None:
        """Erase the owner, with the proof that nothing is left."""
        self.store.erase(owner)


class Plain(Ours):
    """In numpy."""

    name = "turnstore, plain"
    key = engine = "plain"


class VectorSet(Ours):
    """In vector sets."""

    name = "turnstore, vectorset"
    key = engine = "vectorset"


class Search(Ours):
    """In RediSearch, without a graph."""

    name = "turnstore, search"
    key = engine = "search"


class Graph(Ours):
    """In RediSearch, with HNSW."""

    name = "turnstore, search, HNSW"
    key = "hnsw"
    engine = Index(algorithm="hnsw")


OURS: tuple[type[Ours], ...] = (Plain, VectorSet, Search, Graph)
