"""An embedder that knows words alone: texts that share some have vectors that are near."""

from __future__ import annotations

import re
from zlib import crc32

__all__ = ["embed", "embedding"]

_DIMENSIONS = {"text-embedding-3-large": 3072, "gemini-embedding-001": 3072}
_OTHERS = 1536
_OURS = 256
_WORD = re.compile(r"\w+")


def embed(texts: list[str]) -> list[list[float]]:
    """Give texts vectors of 256 numbers, always the same: near where they share words.

    It stands for an embedder in tests and examples, and knows no meanings. Give the facts
    `dimensions=256`, and a name such as `embedder="words:1"`. To a question that shares words
    with it, a fact is about 0.5 near, which the default `min_score` of `Recall` leaves out:
    take `min_score=0.3`.

    Args:
        texts: The texts.

    Returns:
        A vector for each.

    Example:
        >>> from turnstore.testing import embed
        >>> one, same = embed(["My cat is Tom.", "my CAT is tom"])
        >>> len(one), one == same
        (256, True)
    """
    return [embedding(text, "", _OURS) for text in texts]


def embedding(text: str, model: str, dimensions: int | None) -> list[float]:
    """Make the vector of a text, always the same.

    Args:
        text: The text.
        model: The name of the embedder, which says how many numbers a vector has.
        dimensions: How many instead; None leaves it to the model.
    """
    wanted = dimensions or _DIMENSIONS.get(model.rpartition("/")[2], _OTHERS)
    vector = [0.01] * wanted  # so that no vector is zero
    for word in _WORD.findall(text.lower()):
        vector[crc32(word.encode()) % wanted] += 1
    return vector
