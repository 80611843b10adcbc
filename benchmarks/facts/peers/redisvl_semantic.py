"""redisvl: SemanticMessageHistory, one index for all owners, told apart by their session tag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from facts import corpus
from facts.subjects import TOP, Subject
from redisvl.extensions.message_history import SemanticMessageHistory
from redisvl.utils.vectorize import CustomTextVectorizer

if TYPE_CHECKING:
    from collections.abc import Sequence


def _one(text: str) -> list[float]:
    vector: list[float] = corpus.embed([text])[0].tolist()
    return vector


def _many(texts: list[str], **_: Any) -> list[list[float]]:
    vectors: list[list[float]] = corpus.embed(texts).tolist()
    return vectors


class Peer(Subject):
    """One history object for all; its `clear` and `delete` take everybody's."""

    name = "redisvl SemanticMessageHistory"
    erases = False

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.history = SemanticMessageHistory(
            name="bench",
            vectorizer=CustomTextVectorizer(embed=_one, embed_many=_many),
            distance_threshold=2.0,
            redis_client=self.client,
        )

    def fill(self, owner: str, texts: Sequence[str]) -> None:
        """Add messages."""
        self.history.add_messages(
            [{"role": "user", "content": text} for text in texts], session_tag=owner
        )

    def search(self, owner: str, question: str) -> int:
        """Ask for the relevant ones, whatever their distance."""
        found = self.history.get_relevant(question, top_k=TOP, session_tag=owner)
        return len(found)
