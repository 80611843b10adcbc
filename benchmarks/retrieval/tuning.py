"""How far the numbers of the ranking owe their place to the questions that they are measured on.

Each number is varied alone. For each conversation, the best setting on the others is taken, and
measured on this one: what comes out is the figure of somebody who had not seen it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from turnstore.facts._scoring.ranking import Ranking, rank

from .memory import FIRST_MS
from .metrics import AT, MAIN, score

if TYPE_CHECKING:
    from .memory import Memory

VARIED: dict[str, tuple[float, ...]] = {
    "alpha": (0.5, 0.55, 0.6, 0.65, 0.7, 0.75),
    "dates": (0.0, 0.1, 0.15, 0.2, 0.3),
    "neighbours": (0.0, 0.1, 0.2, 0.3),
    "sitting": (0.0, 0.1, 0.2, 0.3, 0.4),
    "answers": (0.0, 0.1, 0.2, 0.3),
    "questions": (0.0, 0.1, 0.2),
}
Setting = tuple[str, float]


def tune(memories: list[Memory]) -> dict[str, Any]:
    """Recall of each setting, and of those that were chosen without a conversation on it."""
    settings = [(name, value) for name, values in VARIED.items() for value in values]
    by_setting = _measure(memories, settings)
    names = [memory.conversation.name for memory in memories]
    return {
        "default": _mean([x for name in names for x in by_setting["alpha", 0.65][name]]),
        "varied": {
            name: {
                str(value): _mean([x for one in names for x in by_setting[name, value][one]])
                for value in values
            }
            for name, values in VARIED.items()
        },
        "held out": {
            name: _held_out(by_setting, [(name, value) for value in values], names)
            for name, values in VARIED.items()
        }
        | {"any one of them": _held_out(by_setting, settings, names)},
    }


def _measure(
    memories: list[Memory], settings: list[Setting]
) -> dict[Setting, dict[str, list[float]]]:
    found: dict[Setting, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for memory in memories:
        name = memory.conversation.name
        for number, question in enumerate(memory.conversation.questions):
            looked = memory.look(number, Ranking(), max(AT))
            for setting in settings:
                ranking = replace(Ranking(), **{setting[0]: setting[1]})
                ranked = rank(looked.candidates, ranking, FIRST_MS, MAIN, query=looked.query)
                hits = [one.id for one in ranked]
                found[setting][name].append(score(name, question, hits).recall[MAIN])
    return found


def _held_out(
    by_setting: dict[Setting, dict[str, list[float]]], settings: list[Setting], names: list[str]
) -> dict[str, Any]:
    values: list[float] = []
    chosen: dict[str, str] = {}
    for name in names:
        others = [one for one in names if one != name]
        best = max(settings, key=lambda s: _mean([x for one in others for x in by_setting[s][one]]))
        chosen[name] = f"{best[0]}={best[1]}"
        values += by_setting[best][name]
    return {"recall@10": _mean(values), "chosen": chosen}


def _mean(values: list[float]) -> float:
    return round(100 * sum(values) / len(values), 2)
