"""What a model answers when facts are drawn from a conversation: read, mended, checked.

An answer is taken whole or not at all. It has to be JSON; what stands around the JSON, and
commas too many, are taken off once, and nothing else is guessed. Then each item has to be of
the right shape, and to point at facts and turns that were shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

__all__ = ["AnswerError", "Item", "Verdict", "parse"]

Verdict: TypeAlias = Literal["new", "duplicate", "supersedes", "retracts"]
"""How a fact stands to those that are known."""

_VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
_TAKE_BACK = ("supersedes", "retracts")
_MOST_LETTERS = 200_000  # of an answer
_MOST_ITEMS = 50
_LONGEST_TEXT, _LONGEST_SLOT, _LONGEST_DATE = 1000, 64, 40

# A text of JSON, to be stepped over; or a comma with nothing after it.
_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[\]}])', re.DOTALL)


class AnswerError(ValueError):
    """An answer cannot be used; the text says why, in a few words for the model."""


class Item(NamedTuple):
    """One fact that a model drew from some turns.

    Attributes:
        verdict: How it stands to the known facts.
        text: What it says; may be empty for a duplicate.
        of: Which of the known facts it speaks of, by the number that was shown; -1 for none.
        turns: The turns that say it, by the numbers that were shown; at least one.
        slot: What it is about; empty where nothing was said.
        stated_from: Since when, as the model put it; empty where nothing was said.
        stated_to: Until when, likewise.
        never: Whether the known fact was wrong from the beginning.
    """

    verdict: Verdict
    text: str
    of: int
    turns: tuple[int, ...]
    slot: str = ""
    stated_from: str = ""
    stated_to: str = ""
    never: bool = False


def parse(answer: str, *, facts: int, turns: int, changes: int = _MOST_ITEMS) -> list[Item]:
    """Read the answer of a model.

    Args:
        answer: What it said.
        facts: How many known facts it was shown, numbered from 0.
        turns: How many turns, numbered from 1.
        changes: How many known facts it may supersede or retract.

    Raises:
        AnswerError: It is not JSON, not of the shape that was asked for, points at a fact
            or turn that was not shown, or takes back too much.
    """
    if len(answer) > _MOST_LETTERS:
        msg = f"it has {len(answer)} letters, and {_MOST_LETTERS} are the most"
        raise AnswerError(msg)
    data = _json_in(answer)
    items = data.get("facts") if isinstance(data, dict) else data
    if not isinstance(items, list):
        msg = 'it is no object with a list of "facts"'
        raise AnswerError(msg)
    if len(items) > _MOST_ITEMS:
        msg = f"it has {len(items)} facts, and {_MOST_ITEMS} are the most"
        raise AnswerError(msg)
    read: list[Item] = []
    for number, item in enumerate(items):
        try:
            read.append(_item(item, facts, turns))
        except AnswerError as error:
            msg = f"item {number} of its facts: {error}"
            raise AnswerError(msg) from None
    taken = sum(item.verdict in _TAKE_BACK for item in read)
    if taken > changes:
        msg = f"it supersedes or retracts {taken} known facts, and {changes} are the most"
        raise AnswerError(msg)
    return read


def _json_in(answer: str) -> Any:
    try:
        return _loads(answer)
    except AnswerError:
        raise
    except ValueError as error:
        mended = _mended(answer)
        if mended is None:
            msg = f"it is not JSON ({error})"
            raise AnswerError(msg) from None
    try:
        return _loads(mended)
    except AnswerError:
        raise
    except ValueError as error:
        msg = f"it is not JSON ({error})"
        raise AnswerError(msg) from None


def _mended(answer: str) -> str | None:
    """Take off what stands around the JSON, and commas with nothing after them; only once."""
    listed, braced = answer.find("["), answer.find("{")
    is_object = '"facts"' in answer or -1 < braced < listed
    start, stop = (braced, answer.rfind("}")) if is_object else (listed, answer.rfind("]"))
    if start < 0 or stop < start:
        return None
    return _COMMA.sub(lambda found: "" if found[0] == "," else found[0], answer[start : stop + 1])


def _loads(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except RecursionError:
        msg = "it is nested too deeply"
        raise AnswerError(msg) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) != len(pairs):
        msg = "a name is given twice in one object"
        raise AnswerError(msg)
    return read


def _no_constant(name: str) -> Any:
    msg = f"{name} is not JSON"
    raise AnswerError(msg)


def _item(item: Any, facts: int, turns: int) -> Item:
    if not isinstance(item, dict):
        msg = "it is no object"
        raise AnswerError(msg)
    verdict = _verdict(item)
    text = _text(item, "text", _LONGEST_TEXT)
    if not text and verdict != "duplicate":
        msg = '"text" is missing'
        raise AnswerError(msg)
    return Item(
        verdict=verdict,
        text=text,
        of=_of(item, verdict, facts),
        turns=_turns(item, turns),
        slot=_text(item, "slot", _LONGEST_SLOT),
        stated_from=_text(item, "from", _LONGEST_DATE),
        stated_to=_text(item, "to", _LONGEST_DATE),
        never=_flag(item, "never"),
    )


def _verdict(item: Mapping[str, Any]) -> Verdict:
    for verdict in _VERDICTS:
        if item.get("verdict") == verdict:
            return verdict
    msg = f'"verdict" is one of {", ".join(_VERDICTS)}'
    raise AnswerError(msg)


def _text(item: Mapping[str, Any], name: str, longest: int) -> str:
    value = item.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        msg = f'"{name}" is no text'
        raise AnswerError(msg)
    value = " ".join(value.split())
    if len(value) > longest:
        msg = f'"{name}" has {len(value)} letters, and {longest} are the most'
        raise AnswerError(msg)
    try:
        value.encode()
    except UnicodeEncodeError:
        msg = f'"{name}" has half a letter in it'
        raise AnswerError(msg) from None
    return value


def _of(item: Mapping[str, Any], verdict: str, facts: int) -> int:
    of = item.get("of")
    if verdict == "new":
        return -1  # whatever it says: nothing known is spoken of
    if not isinstance(of, int) or isinstance(of, bool) or not 0 <= of < facts:
        shown = f"a number from 0 to {facts - 1}" if facts else "of no use: no facts are known"
        msg = f'"of" of a "{verdict}" is {shown}'
        raise AnswerError(msg)
    return of


def _turns(item: Mapping[str, Any], turns: int) -> tuple[int, ...]:
    named = item.get("turns")
    if named is None and turns == 1:
        return (1,)
    if (
        not isinstance(named, list)
        or not named
        or not all(type(turn) is int and 1 <= turn <= turns for turn in named)
    ):
        msg = f'"turns" is a list of numbers from 1 to {turns}'
        raise AnswerError(msg)
    return tuple(sorted(set(named)))


def _flag(item: Mapping[str, Any], name: str) -> bool:
    value = item.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        msg = f'"{name}" is true or false'
        raise AnswerError(msg)
    return value
