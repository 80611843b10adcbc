"""Texts with the words of a language, and vectors of the size of MiniLM's: the same in each run."""

from __future__ import annotations

import random
from hashlib import blake2b
from typing import Any

import numpy as np

DIMENSIONS = 384
_WORDS = 5_000
_SEED = 20_261_130


def texts(owner: str, count: int) -> list[str]:
    """Facts of an owner: 12 to 24 words, frequent ones often."""
    source = random.Random(f"{_SEED} {owner}")
    return [f"{_sentence(source, source.randint(12, 24))} {number}" for number in range(count)]


def questions(owner: str, count: int) -> list[str]:
    """Questions to an owner: six words."""
    source = random.Random(f"{_SEED} ask {owner}")
    return [_sentence(source, 6) for _ in range(count)]


def embed(given: list[str]) -> Any:
    """Vectors of length 1; a text has always the same. What an embedder takes is not measured."""
    found = np.array([_vector(text) for text in given], dtype=np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def _vector(text: str) -> Any:
    seed = int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
    return np.random.default_rng(seed).standard_normal(DIMENSIONS)


def _sentence(source: random.Random, count: int) -> str:
    # Zipf's law: a word of rank r stands about as often as 1/r.
    ranks = (int(_WORDS ** source.random()) for _ in range(count))
    return " ".join(f"word{rank}" for rank in ranks)
