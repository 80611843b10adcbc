"""langgraph: RedisStore with a vector index, a namespace for each owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from facts import corpus
from facts.subjects import TOP, Subject
from langgraph.store.base import PutOp
from langgraph.store.redis import RedisStore

if TYPE_CHECKING:
    from collections.abc import Sequence

_AT_ONCE = 100


def _embed(texts: Sequence[str]) -> list[list[float]]:
    vectors: list[list[float]] = corpus.embed(list(texts)).tolist()
    return vectors


class Peer(Subject):
    """One store; what is an owner's is listed and deleted one by one."""

    name = "langgraph RedisStore"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        index: Any = {"dims": corpus.DIMENSIONS, "embed": _embed, "fields": ["text"]}
        self.store = RedisStore(self.client, index=index)
        self.store.setup()

    def fill(self, owner: str, texts: Sequence[str]) -> None:
        """Put items, a hundred at a time."""
        puts = [PutOp(("facts", owner), str(n), {"text": text}) for n, text in enumerate(texts)]
        for start in range(0, len(puts), _AT_ONCE):
            self.store.batch(puts[start : start + _AT_ONCE])

    def search(self, owner: str, question: str) -> int:
        """Search a namespace."""
        return len(self.store.search(("facts", owner), query=question, limit=TOP))

    def erase(self, owner: str) -> None:
        """Delete item by item, until none is listed."""
        while found := self.store.search(("facts", owner), limit=_AT_ONCE):
            for item in found:
                self.store.delete(item.namespace, item.key)
