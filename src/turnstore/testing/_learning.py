"""The model in the model server, asked for facts: it draws what it would remember itself."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["facts_in"]

# The last lines of `turnstore.facts.EXTRACTION_PROMPT`, filled.
_PROMPT = re.compile(
    r"\nWhat is known:\n(.*)\n\nThe new turns:\n(.*)\n\nThe JSON object:\s*\Z", re.DOTALL
)
_KNOWN = re.compile(r"^(\d+)\. (.*) \(slot: ([^;]+);.*\)$", re.MULTILINE)
_TURN = re.compile(r"^Turn (\d+), .*:$")
_NEXT_SPEAKER = re.compile(r"^(user|assistant): ")


def facts_in(prompt: str, told: re.Pattern[str]) -> str | None:
    """Answer the default prompt of an extraction; None where it is none.

    Of each "My … is …" of the user it makes a fact with a slot. One that is known by the same
    slot is said again, or gives way.

    Args:
        prompt: What is asked.
        told: Finds what is said, and what it says of it.
    """
    asked = _PROMPT.search(prompt)
    if asked is None:
        return None
    known = {slot: (int(number), text) for number, text, slot in _KNOWN.findall(asked[1])}
    drawn: dict[str, dict[str, Any]] = {}
    turn, is_user = 0, False
    for line in asked[2].splitlines():
        if head := _TURN.match(line):
            turn, is_user = int(head[1]), False
            continue
        if speaker := _NEXT_SPEAKER.match(line):
            is_user = speaker[1] == "user"
        if is_user:
            for about, value in told.findall(line):
                drawn[about.lower()] = _fact(about.lower(), value.strip(), turn, known)
    return json.dumps({"facts": list(drawn.values())})


def _fact(about: str, value: str, turn: int, known: dict[str, tuple[int, str]]) -> dict[str, Any]:
    fact = {"text": f"The user's {about} is {value}.", "slot": about, "turns": [turn]}
    if about not in known:
        return {"verdict": "new", **fact}
    number, text = known[about]
    return {"verdict": "duplicate" if text == fact["text"] else "supersedes", "of": number, **fact}
