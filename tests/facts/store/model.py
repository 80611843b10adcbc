"""A search in plain Python: what every engine has to find, written down a second time.

It knows the facts as they were stored, compares all of them with the question, and has no index.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from turnstore.facts import Fact
from turnstore.facts._scoring.text import _B as B
from turnstore.facts._scoring.text import _K1 as K1
from turnstore.facts._scoring.text import terms

ALPHA = 0.65


@dataclass(frozen=True)
class Asked:
    """What is searched for."""

    text: str
    top_k: int
    as_of: datetime
    known_at: datetime | None = None
    kinds: tuple[str, ...] | None = None
    conversation: str = ""
    min_score: float | None = None
    exclude: frozenset[str] = frozenset()


def search(
    facts: Sequence[Fact],
    asked: Asked,
    embed: Callable[[list[str]], list[list[float]]],
    candidates: int,
) -> list[tuple[str, float]]:
    """Give the ids of the best facts, and their scores."""
    shown = [fact for fact in facts if _is_shown(fact, asked)]
    (question,) = embed([asked.text])
    cosines = {fact.id: _cosine(question, embed([fact.text])[0]) for fact in shown}
    words = _bm25(facts, asked.text)
    most = max(candidates, 2 * asked.top_k)
    for fact in shown:
        if fact.id in asked.exclude or asked.exclude & set(fact.sources):
            del cosines[fact.id]
    near = sorted(cosines, key=lambda id_: (-round(cosines[id_], 6), id_))[:most]
    having = sorted((id_ for id_ in words if id_ in cosines), key=lambda id_: (-words[id_], id_))[
        :most
    ]
    pool = {*near, *having}
    best = max((words.get(id_, 0.0) for id_ in pool), default=0.0) or 1.0
    scores = {
        id_: ALPHA * cosines[id_] + (1 - ALPHA) * words.get(id_, 0.0) / best
        for id_ in pool
        if asked.min_score is None or cosines[id_] >= asked.min_score
    }
    order = sorted(scores, key=lambda id_: (-round(scores[id_], 6), id_))
    return [(id_, scores[id_]) for id_ in order[: asked.top_k]]


def _is_shown(fact: Fact, asked: Asked) -> bool:
    if asked.known_at is not None and fact.created > asked.known_at:
        return False
    known_closed = fact.expired is not None and (
        asked.known_at is None or fact.expired <= asked.known_at
    )
    end = fact.valid_to if known_closed or fact.expired is None else fact.valid_to_before
    return (
        fact.valid_from <= asked.as_of
        and (end is None or asked.as_of < end)
        and (asked.kinds is None or fact.kind in asked.kinds)
        and (not asked.conversation or fact.conversation == asked.conversation)
    )


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    product = sum(a * b for a, b in zip(one, other, strict=True))
    return product / math.sqrt(sum(a * a for a in one)) / math.sqrt(sum(b * b for b in other))


def _bm25(facts: Sequence[Fact], question: str) -> dict[str, float]:
    """Score the facts by words; those that may not be shown count for how rare a word is."""
    counted = {fact.id: terms(fact.text) for fact in facts}
    average = max(sum(one.total() for one in counted.values()) / max(len(facts), 1), 1.0)
    scores: dict[str, float] = {}
    for term, times in sorted(terms(question).items()):  # sums of floats depend on the order
        having = [id_ for id_, one in counted.items() if term in one]
        rarity = math.log1p((len(facts) - len(having) + 0.5) / (len(having) + 0.5))
        for id_ in having:
            tf, length = min(counted[id_][term], 255), counted[id_].total()
            part = rarity * times * (K1 + 1) * tf / (tf + K1 * (1 - B + B * length / average))
            scores[id_] = scores.get(id_, 0.0) + part
    return scores
