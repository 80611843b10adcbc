"""The model in the model server, asked by a memory: it draws facts that it would know itself."""

from __future__ import annotations

import json
import re
from typing import Any, Final, Literal, TypeAlias

__all__ = ["KINDS", "Kind", "facts_in", "kind_of"]

Kind: TypeAlias = Literal["chat", "extraction", "summary", "embedding"]
"""What a request is about: `chat` is all that is none of the others."""

KINDS: Final[tuple[Kind, ...]] = ("chat", "extraction", "summary", "embedding")

# The last lines of `turnstore.facts.EXTRACTION_PROMPT`, filled, and what is added to it after an
# answer that could not be used.
_PROMPT = re.compile(
    r"\nWhat is known:\n(.*)\n\nThe new turns:\n(.*)\n\nThe JSON object:\s*"
    r"(?:Your last answer could not be used: .*)?\Z",
    re.DOTALL,
)
# The same of `turnstore.context.SUMMARY_PROMPT`.
_SUMMARY = re.compile(
    r"\nThe summary so far:\n.*\n\nThe messages since:\n.*\n\nThe new summary:\s*\Z", re.DOTALL
)
_KNOWN = re.compile(r"^(\d+)\. (.*) \(slot: ([^;]+);.*\)$", re.MULTILINE)
_TURN = re.compile(r"^Turn (\d+), .*:$")
_NEXT_SPEAKER = re.compile(r"^(user|assistant): ")


def kind_of(prompt: str) -> Kind:
    """Tell what is asked for, by the default prompts of an extraction and of a summary."""
    if _PROMPT.search(prompt):
        return "extraction"
    return "summary" if _SUMMARY.search(prompt) else "chat"


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
