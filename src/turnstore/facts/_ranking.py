"""How candidates of a search are put in order: one rule for all engines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Candidate", "Decay", "Ranked", "Ranking", "rank"]

Vector = npt.NDArray[Any]

_DIGITS = 9  # of a score: engines compute the same to about seven
_BY_USE, _BY_AGE = 0.6, 0.4


@dataclass(frozen=True, slots=True)
class Decay:
    """How much less a fact counts the older it is, and the longer it was not used.

    Its freshness is 1 for a fact that was made and used now, and halves with each
    half-life; a pinned fact stays fresh. The score becomes
    `(1 - weight) * score + weight * freshness`.

    Args:
        weight: The share of freshness in the score, above 0 and at most 1.
        half_life: By the time since the fact was made; it has 2/5 of the freshness.
        half_life_of_use: By the time since it was last found; it has the other 3/5.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: The weight is not above 0 and at most 1, or a half-life not above 0.
    """

    weight: float = 0.1
    half_life: timedelta = timedelta(days=30)
    half_life_of_use: timedelta = timedelta(days=30)

    def __post_init__(self) -> None:
        _check_share("Decay", "weight", self.weight)
        if self.weight == 0:
            msg = "Decay(weight=0) weighs nothing; leave the decay out instead"
            raise ValueError(msg)
        for name in ("half_life", "half_life_of_use"):
            value = getattr(self, name)
            if not isinstance(value, timedelta):
                msg = f"Decay({name}={value!r}): a half-life is a timedelta"
                raise TypeError(msg)
            if value <= timedelta(0):
                msg = f"Decay({name}={value}): a half-life is above 0"
                raise ValueError(msg)

    def freshness(self, created_ms: int, used_ms: int | None, now_ms: int) -> float:
        """Say how fresh a fact is, from 0 to 1."""
        used = created_ms if used_ms is None else used_ms
        return _BY_USE * _halved(now_ms - used, self.half_life_of_use) + _BY_AGE * _halved(
            now_ms - created_ms, self.half_life
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """How the facts that a search found are put in order.

    The score of a fact is `alpha` times its cosine similarity, and the rest times its
    BM25 score as a share of the best one.

    Args:
        alpha: The share of the similarity, from 0 (words only) to 1 (vectors only).
        candidates: So many are looked at, of the nearest vectors and of the best by words.
        decay: Lets facts fade with time; None does not.
        near_duplicate: Of facts that are at least so similar to one another, only the
            best is kept; None keeps all.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: A share is not from 0 to 1, or there are no candidates.
    """

    alpha: float = 0.65
    candidates: int = 200
    decay: Decay | None = None
    near_duplicate: float | None = 0.97

    def __post_init__(self) -> None:
        _check_share("Ranking", "alpha", self.alpha)
        if self.near_duplicate is not None:
            _check_share("Ranking", "near_duplicate", self.near_duplicate)
        if not isinstance(self.candidates, int) or isinstance(self.candidates, bool):
            msg = f"Ranking(candidates={self.candidates!r}): it is a number of facts"
            raise TypeError(msg)
        if self.candidates < 1:
            msg = f"Ranking(candidates={self.candidates}): at least 1 is needed"
            raise ValueError(msg)
        if self.decay is not None and not isinstance(self.decay, Decay):
            msg = f"Ranking(decay={self.decay!r}): it is a Decay, or None"
            raise TypeError(msg)


class Candidate(NamedTuple):
    """What the ranking has to know of a fact.

    Attributes:
        id: Of the fact; the order among equals.
        cosine: Its similarity with the query, exact also where it was found by words.
        lexical: Its BM25 score; 0 where it has no word of the query.
        created_ms: When it was made.
        used_ms: When it was last found; None if never.
        pinned: Whether it does not fade.
        conversation: Where it comes from.
        vector: Its vector, to find near-duplicates; None takes it for unlike all others.
    """

    id: str
    cosine: float
    lexical: float
    created_ms: int
    used_ms: int | None = None
    pinned: bool = False
    conversation: str = ""
    vector: Vector | None = None


class Ranked(NamedTuple):
    """A fact in its place.

    Attributes:
        id: Of the fact.
        score: What it was ordered by, from -1 to 1.
        cosine: Its similarity with the query.
        lexical: Its BM25 score as a share of the best candidate's, from 0 to 1.
    """

    id: str
    score: float
    cosine: float
    lexical: float


def rank(
    candidates: Iterable[Candidate],
    ranking: Ranking,
    now_ms: int,
    top_k: int,
    min_score: float | None = None,
) -> list[Ranked]:
    """Put candidates in order: the best first, at most `top_k`.

    Args:
        candidates: Without those that may not be shown.
        ranking: The rule.
        now_ms: The time by which facts fade.
        top_k: At most so many.
        min_score: The least cosine similarity of a fact that is kept; None keeps all.
    """
    pool = list(candidates)
    best = max((one.lexical for one in pool), default=0.0)
    scored: list[tuple[float, str, Ranked, Candidate]] = []
    for one in pool:
        if min_score is not None and one.cosine < min_score:
            continue
        lexical = one.lexical / best if best > 0 else 0.0
        score = ranking.alpha * one.cosine + (1 - ranking.alpha) * lexical
        if ranking.decay is not None:
            decay = ranking.decay
            fresh = 1.0 if one.pinned else decay.freshness(one.created_ms, one.used_ms, now_ms)
            score += decay.weight * (fresh - score)
        ranked = Ranked(one.id, score, one.cosine, lexical)
        scored.append((-round(score, _DIGITS), one.id, ranked, one))
    scored.sort(key=lambda entry: entry[:2])
    return _distinct(scored, ranking.near_duplicate, top_k)


def _distinct(
    scored: Sequence[tuple[float, str, Ranked, Candidate]], most: float | None, top_k: int
) -> list[Ranked]:
    """Take the first ones, and none that says what one before it says."""
    kept: list[Ranked] = []
    vectors: list[Vector] = []
    for _, _, ranked, one in scored:
        if len(kept) >= top_k:
            break
        if most is not None and one.vector is not None:
            unit = _unit(one.vector)
            if any(float(unit @ other) >= most for other in vectors):
                continue
            vectors.append(unit)
        kept.append(ranked)
    return kept


def _unit(vector: Vector) -> Vector:
    exact = np.asarray(vector, dtype=np.float64)
    length = float(np.linalg.norm(exact))
    return exact / length if length else exact


def _halved(age_ms: int, half_life: timedelta) -> float:
    return math.exp2(-max(age_ms, 0) / (half_life / timedelta(milliseconds=1)))


def _check_share(owner: str, name: str, value: float) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        msg = f"{owner}({name}={value!r}): it is a number"
        raise TypeError(msg)
    if not 0 <= value <= 1:
        msg = f"{owner}({name}={value}): it is from 0 to 1"
        raise ValueError(msg)
