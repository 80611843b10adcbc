"""Keep track of the names, documents and terms that a conversation is about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from turnstore._calls import Ask
from turnstore.messages import Format, Message, format_named
from turnstore.results import Turn
from turnstore.window import limit

from ._common import Asking, check_deadline, check_function, failed, said

__all__ = ["Entities", "Extract", "simple_entities", "tracked"]

Extract: TypeAlias = Callable[[str], "Iterable[str] | Awaitable[Iterable[str]]"]
"""Finds entities in a text, in the order in which they are named."""

_META = "entities"

# Longer than any name; what an extractor returns beyond it is cut off.
_MOST_CHARACTERS = 100

# Of a text, as a guard against pasted documents.
_MOST_TEXT = 20_000

# Capitals that begin a sentence and name nothing, for the most part.
_COMMON = """
    a about after again all also an and any are as at be because before but by ca can
    compare could describe did do does explain find first for from get give go good great
    had has have he hello help her here hey hi his how however i if in is it its just keep
    last let list look make many maybe me more most my need next no not now of ok okay on
    one only open or other our please provide read remember same say see send set she should
    show since so some sorry still stop sum summarise summarize tell thank thanks that the
    their them then there these they this those to today tomorrow translate try two under
    use very was we well were what when where which while who whom whose why will with
    without wo would write yes yesterday yet you your
"""

_FILE = (
    r"(?<![\w./-])[\w-][\w./-]{0,120}\.(?:pdf|docx?|xlsx?|pptx?|csv|tsv|txt|md|json|ya?ml|xml|"
    r"html?|py|js|ts|sql|ipynb|png|jpe?g|zip)\b"
)
_ENDING = r"(?:n['\u2019]t|['\u2019](?:s|ll|re|ve|d|m)?)$"


@cache
def _common() -> frozenset[str]:
    return frozenset(_COMMON.split())


@cache
def _pattern() -> re.Pattern[str]:
    # Made when it is first used: it takes some milliseconds.
    # Latin, Greek, Cyrillic and Armenian; other scripts have no capitals.
    capital = "".join(letter for letter in map(chr, range(0x590)) if letter.isupper())
    word = rf"(?:[{capital}][\w\u2019'&-]*|[a-z]+[A-Z]\w*)"
    between = r"(?:(?:of|de|da|di|van|von|der|den|la|le)[ \t]+){0,2}"
    return re.compile(
        r"`(?P<code>[^`\n]{2,60})`"
        r"|[\"\u201c\u201e«「『](?P<quoted>[^\"\u201c-\u201e«»「」『』\n]{2,60})"
        r"[\"\u201c\u201d»」』]"
        rf"|(?P<file>{_FILE})"
        r"|(?P<number>\b[A-Z]{1,10}-?\d[\w-]*)"
        rf"|(?P<name>\b{word}(?:[ \t]+{between}{word}|[ \t]+\d+(?:\.\d+)*\b)*)"
    )


def simple_entities(text: str) -> list[str]:
    """Find what looks like a name: no model, no list of names, European scripts.

    Words with capitals that stand together, file names, identifiers such as `INV-2024`,
    and what stands in quotation marks or backticks. It misses names in lower case, and
    takes some words for names that are none.

    Returns:
        What was found, in the order of the text, each once.

    Example:
        >>> simple_entities("Did Ada Lovelace read the notes in report.pdf?")
        ['Ada Lovelace', 'report.pdf']
    """
    found: dict[str, str] = {}
    for match in _pattern().finditer(text[:_MOST_TEXT]):
        kind = str(match.lastgroup)
        words = _without_common(match[kind]) if kind == "name" else match[kind].strip()
        if len(words) > 1:
            found.setdefault(words.casefold(), words)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class Entities:
    """Keeps the names, documents and terms of a conversation, newest first.

    They are carried in the `meta` of its turns, and given to the sources of the context:
    what "her second book" is about stands in no question. The new message is looked
    through, and the reply before it.

    Args:
        extract: Finds them in a text, in the order of the text; on an async store it may
            be async. Where it fails, those found before are carried on.
        limit: How many are kept.
        deadline: Seconds that `extract` may take; None waits.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: The limit is below 1, or the deadline not above 0.
    """

    extract: Extract = simple_entities
    limit: int = 20
    deadline: float | None = None

    def __post_init__(self) -> None:
        check_function("Entities(extract)", self.extract)
        if limit("Entities(limit={})", self.limit) is None:
            msg = "Entities(limit=None): say how many are kept"
            raise TypeError(msg)
        check_deadline("Entities", self.deadline)


def tracked(
    entities: Entities,
    turns: Sequence[Turn],
    new: Sequence[Message],
    rules: Format,
    counts: Counter[str],
) -> Asking[list[str]]:
    """Find out what a conversation is about now.

    Args:
        entities: How.
        turns: The turns before, oldest first; the newest one that has entities in its
            meta carries all of them.
        new: The new messages.
        rules: Their format.
        counts: Where a failure is counted, as `entities`.

    Returns:
        The entities, newest first, each once, no more than the limit.
    """
    carried = next((turn.meta[_META] for turn in reversed(turns) if _META in turn.meta), None)
    # Meta is the user's as well, who may keep something else under this name.
    known = [name for name in carried if isinstance(name, str)] if type(carried) is list else []
    reply = ""
    if turns:
        reply = said(turns[-1].messages, format_named(turns[-1].format), by_model=True)
    text = "\n\n".join(part for part in (reply, said(new, rules)) if part)
    found: list[str] = []
    if text:
        try:
            answer = yield Ask(entities.extract, (text,), entities.deadline)
            found = [_checked(name) for name in answer]
        except Exception as error:  # noqa: BLE001 - whatever it is, those before remain
            failed(counts, "entities", error, "those found before are carried on")
            found = []
    newest: dict[str, str] = {}
    for name in [*reversed(found), *known]:
        if name:
            newest.setdefault(name.casefold(), name)
    return list(newest.values())[: entities.limit]


def _checked(name: object) -> str:
    if not isinstance(name, str):
        msg = f"an entity is text, not {type(name).__name__}"
        raise TypeError(msg)
    return " ".join(name.split())[:_MOST_CHARACTERS]


def _without_common(name: str) -> str:
    """Leave out words around a name that are capital for another reason."""
    words = name.split()
    while words and re.sub(_ENDING, "", words[0]).casefold() in _common():
        del words[0]
    while words and words[-1].casefold() in _common():
        del words[-1]
    return re.sub(_ENDING, "", " ".join(words))
