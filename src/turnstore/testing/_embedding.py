"""The embedder in the model server: texts that share words have vectors that are near."""

from __future__ import annotations

import re
from zlib import crc32

__all__ = ["embedding"]

_DIMENSIONS = {"text-embedding-3-large": 3072, "gemini-embedding-001": 3072}
_OTHERS = 1536
_WORD = re.compile(r"\w+")


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
