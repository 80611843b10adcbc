"""How candidates of a search are put in order: one rule for all engines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .dates import named
from .repetition import is_repetition

__all__ = ["DIGITS", "Candidate", "Decay", "Ranked", "Ranking", "neighbours_wanted", "rank"]

Vector = npt.NDArray[Any]

DIGITS = 6
"""Of a score that count: engines keep vectors, and so compute the same, to about seven."""

_BY_USE, _BY_AGE = 0.6, 0.4
_SITTING_MS = 6 * 3600 * 1000
_LOOKED_AROUND = 20


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

    A fact has a score of its own: `alpha` times its cosine similarity, and the rest times its
    BM25 score as a share of the best one; `dates` on top where it is of a time that the
    question names. Then what was said around it lends it a part of theirs: an answer is
    rarely worded like the question, but stands next to what is. Only facts with a
    conversation have such neighbours.

    Args:
        alpha: The share of the similarity, from 0 (words only) to 1 (vectors only).
        candidates: So many are looked at, of the nearest vectors and of the best by words;
            where more hits are wanted than half of that, twice as many as these.
        dates: What a fact gains that was said, or became true, when the question says.
        neighbours: What it gains of the better one of the two that were stored before and
            after it in its sitting.
        sitting: What it gains of the best of its sitting: what was said in its conversation
            with no more than six hours between.
        answers: What it gains of the one before it, where that one asks something.
        questions: What it loses of its own where it asks something itself.
        decay: Lets facts fade with time; None does not.
        near_duplicate: Of facts that are at least so similar to one another, and have the same
            words in the same order, only the best is kept; None keeps all.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: A share is not from 0 to 1, or there are no candidates.
    """

    alpha: float = 0.65
    candidates: int = 50
    dates: float = 0.15
    neighbours: float = 0.2
    sitting: float = 0.3
    answers: float = 0.2
    questions: float = 0.1
    decay: Decay | None = None
    near_duplicate: float | None = 0.97

    def __post_init__(self) -> None:
        for name in ("alpha", "dates", "neighbours", "sitting", "answers", "questions"):
            _check_share("Ranking", name, getattr(self, name))
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

    def reach(self, top_k: int) -> int:
        """Say how many candidates of each kind are looked at for so many hits."""
        return max(self.candidates, 2 * top_k)


class Candidate(NamedTuple):
    """What the ranking has to know of a fact.

    Attributes:
        id: Of the fact; the order among equals.
        cosine: Its similarity with the query, exact also where it was found by words.
        lexical: Its BM25 score; 0 where it has no word of the query.
        created_ms: When it was stored.
        used_ms: When it was last found; None if never.
        pinned: Whether it does not fade.
        conversation: Where it comes from; empty where from none.
        vector: Its vector, to find near-duplicates; None takes it for unlike all others.
        text: What it says, likewise.
        observed_ms: When it was heard; None is when it was stored.
        from_ms: Since when it is true; None is when it was heard.
        asks: Whether it ends with a question.
        before: The id of the fact that was stored before it; empty where there is none.
        after: The id of the one that was stored after it.
        least: The least similarity with which it is kept; None keeps it. Its neighbours
            gain of it all the same.
    """

    id: str
    cosine: float
    lexical: float
    created_ms: int
    used_ms: int | None = None
    pinned: bool = False
    conversation: str = ""
    vector: Vector | None = None
    text: str = ""
    observed_ms: int | None = None
    from_ms: int | None = None
    asks: bool = False
    before: str = ""
    after: str = ""
    least: float | None = None

    @property
    def heard_ms(self) -> int:
        """When it was heard."""
        return self.created_ms if self.observed_ms is None else self.observed_ms


class Ranked(NamedTuple):
    """A fact in its place.

    Attributes:
        id: Of the fact.
        score: What it was ordered by: from -1 to 1, and above where its date or its
            neighbours speak for it.
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
    query: str = "",
) -> list[Ranked]:
    """Put candidates in order: the best first, at most `top_k`.

    Args:
        candidates: Without those that may not be shown.
        ranking: The rule.
        now_ms: The time by which facts fade, and "yesterday" is told.
        top_k: At most so many.
        query: The question, for the dates in it.
    """
    pool = {one.id: one for one in candidates}
    own = _own(pool, ranking, now_ms, query)
    final = _in_context(pool, own, ranking)
    best = _best_lexical(pool)
    scored = sorted(
        (-round(final[id_], DIGITS), id_)
        for id_, one in pool.items()
        if one.least is None or one.cosine >= one.least
    )
    ordered = (pool[id_] for _, id_ in scored)
    return [
        Ranked(one.id, final[one.id], one.cosine, one.lexical / best)
        for one in _distinct(ordered, ranking.near_duplicate, top_k)
    ]


def neighbours_wanted(
    candidates: Iterable[Candidate], ranking: Ranking, now_ms: int, top_k: int, query: str = ""
) -> list[str]:
    """List the neighbours of the best candidates that are not among the candidates.

    With them among the candidates, `rank` orders those that an index would not have found.
    """
    if not (ranking.neighbours or ranking.answers):
        return []
    pool = {one.id: one for one in candidates}
    own = _own(pool, ranking, now_ms, query)
    best = sorted((-round(score, DIGITS), id_) for id_, score in own.items())
    wanted: dict[str, None] = {}
    for _, id_ in best[: max(top_k, _LOOKED_AROUND)]:
        one = pool[id_]
        if one.conversation:
            wanted.update(dict.fromkeys((one.before, one.after)))
    return [id_ for id_ in wanted if id_ and id_ not in pool]


def _own(
    pool: Mapping[str, Candidate], ranking: Ranking, now_ms: int, query: str
) -> dict[str, float]:
    """Score each candidate by itself."""
    dates = named(query, now_ms) if ranking.dates else []
    best = _best_lexical(pool)
    own: dict[str, float] = {}
    for id_, one in pool.items():
        score = ranking.alpha * one.cosine + (1 - ranking.alpha) * one.lexical / best
        if dates:
            times = (one.heard_ms, one.heard_ms if one.from_ms is None else one.from_ms)
            score += ranking.dates * max(date.closeness(time) for date in dates for time in times)
        if ranking.decay is not None:
            decay = ranking.decay
            fresh = 1.0 if one.pinned else decay.freshness(one.created_ms, one.used_ms, now_ms)
            score += decay.weight * (fresh - score)
        own[id_] = score
    return own


def _in_context(
    pool: Mapping[str, Candidate], own: Mapping[str, float], ranking: Ranking
) -> dict[str, float]:
    """Add to each score what those around lend it."""
    sittings = _sittings(pool.values())
    tops: dict[int, float] = {}
    for id_, sitting in sittings.items():
        tops[sitting] = max(tops.get(sitting, -1.0), own[id_])
    final: dict[str, float] = {}
    for id_, one in pool.items():
        alone, sitting = own[id_], sittings[id_]
        before = own[one.before] if sittings.get(one.before) == sitting else 0.0
        after = own[one.after] if sittings.get(one.after) == sitting else 0.0
        score = alone + ranking.sitting * tops[sitting]
        score += ranking.neighbours * max(before, after, 0.0)
        if before > 0 and pool[one.before].asks:
            score += ranking.answers * before
        if one.asks:
            score -= ranking.questions * max(alone, 0.0)
        final[id_] = score / (1 + ranking.sitting)  # alone in its sitting, it is as it was
    return final


def _sittings(candidates: Iterable[Candidate]) -> dict[str, int]:
    """Number the sittings, and say which one each candidate is of."""
    ordered = sorted((one.conversation, one.heard_ms, one.id) for one in candidates)
    sittings: dict[str, int] = {}
    number, last, last_ms = 0, "", 0
    for conversation, heard_ms, id_ in ordered:
        if not conversation or conversation != last or heard_ms - last_ms > _SITTING_MS:
            number += 1
        last, last_ms = conversation, heard_ms
        sittings[id_] = number
    return sittings


def _best_lexical(pool: Mapping[str, Candidate]) -> float:
    return max((one.lexical for one in pool.values()), default=0.0) or 1.0


def _distinct(ordered: Iterable[Candidate], most: float | None, top_k: int) -> list[Candidate]:
    """Take the first ones, and none that says what one before it says."""
    kept: list[Candidate] = []
    said: list[tuple[Vector, str]] = []
    for one in ordered:
        if len(kept) >= top_k:
            break
        if most is not None and one.vector is not None:
            unit = _unit(one.vector)
            if any(
                float(unit @ other) >= most and is_repetition(one.text, text)
                for other, text in said
            ):
                continue
            said.append((unit, one.text))
        kept.append(one)
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
