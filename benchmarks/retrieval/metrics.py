"""What is counted: the share of the evidence among the first hits, and where it stands there."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .data import ADVERSARIAL, CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .data import Question

AT = (5, 10, 25, 50)
MAIN = 10


@dataclass(frozen=True)
class Score:
    """How one question was answered."""

    conversation: str
    category: int
    recall: dict[int, float]
    all_found: bool
    ndcg: float


def score(conversation: str, question: Question, found: Sequence[str]) -> Score:
    """Compare what was found, best first, with the evidence."""
    evidence = question.evidence
    recall = {at: len(evidence.intersection(found[:at])) / len(evidence) for at in AT}
    return Score(conversation, question.category, recall, recall[MAIN] == 1, ndcg(found, evidence))


def ndcg(found: Sequence[str], evidence: frozenset[str], at: int = MAIN) -> float:
    """Normalised discounted cumulative gain, where a turn is evidence or is not."""
    gain = sum(1 / math.log2(place + 2) for place, id_ in enumerate(found[:at]) if id_ in evidence)
    best = sum(1 / math.log2(place + 2) for place in range(min(at, len(evidence))))
    return gain / best


def summary(scores: Sequence[Score]) -> dict[str, Any]:
    """The averages over questions, in per cent: of all, and by category and conversation."""
    return {
        **_averages(scores),
        f"recall@{MAIN} without adversarial": _mean(
            one.recall[MAIN] for one in scores if one.category != ADVERSARIAL
        ),
        "categories": _split(scores, lambda one: CATEGORIES[one.category]),
        "conversations": _split(scores, lambda one: one.conversation),
    }


def _averages(scores: Sequence[Score]) -> dict[str, Any]:
    return {
        "questions": len(scores),
        **{f"recall@{at}": _mean(one.recall[at] for one in scores) for at in AT},
        f"ndcg@{MAIN}": _mean(one.ndcg for one in scores),
        f"all@{MAIN}": _mean(float(one.all_found) for one in scores),
    }


def _split(scores: Iterable[Score], key: Callable[[Score], str]) -> dict[str, dict[str, Any]]:
    parts: dict[str, list[Score]] = defaultdict(list)
    for one in scores:
        parts[key(one)].append(one)
    return {name: _averages(part) for name, part in sorted(parts.items())}


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return round(100 * sum(found) / len(found), 2) if found else 0.0
