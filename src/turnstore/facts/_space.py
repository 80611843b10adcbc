"""A space: whose vectors they are, and which engine keeps them how.

Vectors of different spaces are never compared. All of one owner's facts that a search finds are
in one space; while they are moved to another one, they are in both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

__all__ = ["Space"]

_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")


@dataclass(frozen=True)
class Space:
    """One space.

    Attributes:
        engine: The name of the engine.
        embedder: The name and version of the embedder.
        dimensions: How many numbers a vector has.
        dtype: How one is stored: "float32", or another of the engine's.
        options: How the engine keeps them, as text.
        hints: What the scripts that write vectors have to know, joined by colons.
    """

    engine: str
    embedder: str
    dimensions: int
    dtype: str
    options: str = ""
    hints: str = ""

    @cached_property
    def text(self) -> str:
        """All of it as text, for errors and for the store's register."""
        parts = (self.engine, self.embedder, str(self.dimensions), self.dtype, self.options)
        return " ".join(part for part in parts if part)

    @cached_property
    def token(self) -> str:
        """What stands for it among the owner's keys: the engine, a digest, and the hints."""
        number = blake2b(self.text.encode(), digest_size=4, person=b"turnstore.space").hexdigest()
        # Of letters alone: so an erasure tells the owner's documents from other keys.
        digest = number.translate(_LETTERS)
        return ":".join(part for part in (self.engine, digest, self.hints) if part)

    @property
    def digest(self) -> str:
        """The digest alone, as it stands in the names of keys."""
        return self.token.split(":")[1]

    @property
    def embedding(self) -> tuple[str, int]:
        """Whose vectors they are: those of an equal one can be taken over."""
        return self.embedder, self.dimensions
