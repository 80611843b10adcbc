"""mem0: its vector store for Redis, a filter for each owner. Its memories need an LLM on top."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

from facts import corpus
from facts.subjects import TOP, Subject
from mem0.vector_stores.redis import RedisDB

if TYPE_CHECKING:
    from collections.abc import Sequence

_AT_ONCE = 500


class Peer(Subject):
    """One collection for all owners."""

    name = "mem0 RedisDB"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.store: Any = RedisDB(
            redis_url=url, collection_name="bench", embedding_model_dims=corpus.DIMENSIONS
        )

    def fill(self, owner: str, texts: Sequence[str]) -> None:
        """Insert vectors with their payloads."""
        for start in range(0, len(texts), _AT_ONCE):
            part = texts[start : start + _AT_ONCE]
            payloads = [
                {"data": text, "hash": uuid.uuid4().hex, "user_id": owner, "created_at": _now()}
                for text in part
            ]
            ids = [str(uuid.uuid4()) for _ in part]
            self.store.insert(corpus.embed(list(part)), payloads=payloads, ids=ids)

    def search(self, owner: str, question: str) -> int:
        """Search with a filter."""
        vector = corpus.embed([question])[0]
        filters = {"user_id": owner}
        return len(self.store.search(question, vector, top_k=TOP, filters=filters))

    def erase(self, owner: str) -> None:
        """List what is the owner's, and delete it one by one, as its `delete_all` does."""
        while found := self.store.list(filters={"user_id": owner}, top_k=1000)[0]:
            for one in found:
                self.store.delete(one.id)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
