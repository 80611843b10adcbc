"""What the memory tools do when a model calls them, as flows.

A call never raises what a model could mend: what is wrong with it, and that the memory cannot be
reached, is said to the model as text.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, NamedTuple

from turnstore._calls import Flow
from turnstore._counting import count
from turnstore.errors import ErasedError, ServerError

from .._finding.searching import Question, search
from .._learning.times import Interval, period
from .._learning.wording import dated, fact_line, shortened
from .._model import NewFact
from .._storing.adding import add_many
from .._storing.commit import begin
from . import turns as _turns
from .blocks import Block, EditError, append_to, change, replace_in
from .definitions import FEW_RESULTS, MOST_RESULTS, Definition, definitions

if TYPE_CHECKING:
    from turnstore._pending import Pending
    from turnstore._place import Place

    from .._storing.base import Base

__all__ = ["ToolError", "Toolbox"]

log = logging.getLogger("turnstore")

_LONGEST_CONTENT = 2000
_MILLISECOND = timedelta(milliseconds=1)  # turns have no finer times
_LATEST = datetime.max.replace(tzinfo=UTC) - _MILLISECOND
_LONGEST_SAID = 600
_SEARCHES = ("archival_memory_search", "conversation_search")
_ERASED = "The memory was erased meanwhile. Nothing is kept; go on without it."
_UNAVAILABLE = "The memory cannot be reached just now. Nothing was changed; go on without it."


class ToolError(ValueError):
    """A call that the model can mend; the text says how."""


class Answer(NamedTuple):
    """What a model is answered.

    Attributes:
        text: What it reads.
        failed: Whether the call did nothing.
    """

    text: str
    failed: bool


class Toolbox:
    """The tools of one owner, without a connection.

    Args:
        base: The facts.
        owner: Whose memory it is.
        place: The conversation's, where it can be searched.
        blocks: The blocks of the working memory by their labels.
        zone: Where the user's dates hold.
        turn: In which the model calls them, where that is known.

    Attributes:
        definitions: The tools, by their names.
        counts: How often each tool failed; "unknown" are those that there are not.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what the two kinds share
        self,
        base: Base,
        owner: str,
        place: Place | None,
        blocks: Mapping[str, Block],
        zone: tzinfo,
        turn: Pending | None,
    ) -> None:
        self._base = base
        self._turn = turn
        self._began = 0
        self._owner = owner
        self._owner_place = base.ground.owner(owner)
        self._place = place
        self._conversation: str = "" if place is None else json.loads(place.keys.name)[0]
        self._blocks = blocks
        self._zone = zone
        labels = [(block.label, block.about) for block in blocks.values()]
        defined = definitions(labels, has_conversation=place is not None)
        self.definitions: dict[str, Definition] = {tool.name: tool for tool in defined}
        self.counts: Counter[str] = Counter()
        self._tools: dict[str, Callable[[dict[str, Any]], Flow[str]]] = {
            "core_memory_append": self._append,
            "core_memory_replace": self._replace,
            "archival_memory_insert": self._insert,
            "archival_memory_search": self._search,
            "conversation_search": self._search_conversation,
        }

    def answer(self, name: str, arguments: object) -> Flow[Answer]:
        """Do what a call asks for, and say what came of it."""
        if not isinstance(name, str):
            name = repr(name)  # names no tool, which is said to the model
        known = name if name in self.definitions else "unknown"  # a model may invent any number
        try:
            given = checked(self._named(name), arguments)
            yield from self._begin(writes=name not in _SEARCHES)
            text = yield from self._tools[name](given)
        except (ToolError, EditError) as error:
            count(self.counts, known)
            return Answer(f"Error: {error}.", failed=True)
        except ErasedError as error:
            count(self.counts, known)
            log.warning("the memory tool %s changed nothing: %s", name, error)
            return Answer(_ERASED, failed=True)
        except Exception as error:  # noqa: BLE001 - the model goes on without a memory
            count(self.counts, known)
            log.warning("the memory tool %s failed: %s: %s", name, type(error).__name__, error)
            return Answer(_UNAVAILABLE, failed=True)
        return Answer(text, failed=False)

    def _begin(self, *, writes: bool) -> Flow[None]:
        """Begin with the first call, where there is no turn that has begun before."""
        if self._turn is None and not self._began:
            try:
                began = yield from begin(self._owner_place)
            except ServerError:
                if writes:
                    raise
                return  # the server is full, or a replica: it can be searched
            self._began = self._began or began.number  # of two first calls, one is the first

    def _since(self) -> int:
        """Give the number with which the turn, or the first call, began.

        Raises:
            RuntimeError: The turn has not begun, or goes on without memory.
        """
        turn: Any = self._turn
        began: int = self._began if turn is None else turn._began  # noqa: SLF001 - of the same house
        if not began:
            msg = "the turn of the tools has not begun, or goes on without memory"
            raise RuntimeError(msg)
        return began

    def _named(self, name: str) -> Definition:
        if name not in self.definitions:
            msg = f"there is no tool {name[:80]!r}; the memory has {', '.join(self.definitions)}"
            raise ToolError(msg)
        return self.definitions[name]

    def _append(self, given: dict[str, Any]) -> Flow[str]:
        return self._change(given["label"], append_to(given["content"]))

    def _replace(self, given: dict[str, Any]) -> Flow[str]:
        edit = replace_in(given["label"], given["old"], given["new"])
        return self._change(given["label"], edit)

    def _change(self, label: str, edit: Callable[[str], str]) -> Flow[str]:
        block = self._blocks[label]
        ttl_ms = self._base.settings.ttl_ms
        text = yield from change(
            self._owner_place, block, edit, self._base.redacted, ttl_ms, since=self._since()
        )
        return f"{label} now says ({len(text)} of {block.limit} characters):\n{text}"

    def _insert(self, given: dict[str, Any]) -> Flow[str]:
        content = given["content"].strip()
        if not content:
            msg = '"content" is empty'
            raise ToolError(msg)
        if len(content) > _LONGEST_CONTENT:
            msg = f'"content" has {len(content)} characters, and {_LONGEST_CONTENT} are the most'
            raise ToolError(msg)
        new = NewFact(text=content, conversation=self._conversation)
        since = self._since()
        (added,) = yield from add_many(self._base, self._owner, [new], since=since)
        return "It was kept already." if added.duplicate else "It is kept."

    def _search(self, given: dict[str, Any]) -> Flow[str]:
        as_of = self._period(given, "as_of")
        question = Question(
            given["query"],
            given["limit"],
            None,
            ("fact",),
            "",
            None if as_of is None else as_of.start,
            None,
            frozenset(),
        )
        hits = yield from search(self._base, self._owner, question)
        lines = [f"- {fact_line(hit.fact, self._zone)}" for hit in hits]
        return "\n".join(lines) or "Nothing was found."

    def _search_conversation(self, given: dict[str, Any]) -> Flow[str]:
        start, end = self._period(given, "start_date"), self._period(given, "end_date")
        wanted = _turns.Wanted(
            given["query"],
            given.get("role", ""),
            None if start is None else start.start,
            None if end is None else _after(end),
            given["limit"],
        )
        assert self._place is not None  # noqa: S101 - the tool is not defined without one
        found = yield from _turns.search(self._place, wanted)
        lines = [
            f"- {dated(said.time, self._zone)} {said.speaker}: "
            f"{shortened(said.text, _LONGEST_SAID)}"
            for said in found
        ]
        return "\n".join(lines) or "Nothing was found."

    def _period(self, given: dict[str, Any], name: str) -> Interval | None:
        text = given.get(name, "")
        if not text:
            return None
        found = period(text, self._zone)
        if found is None:
            msg = f'"{name}" is a date, as in 2024-05-03; not {text[:40]!r}'
            raise ToolError(msg)
        return found


def checked(tool: Definition, arguments: object) -> dict[str, Any]:
    """Check the arguments of a call, and fill in what may be left out.

    Raises:
        ToolError: The model has to give others.
    """
    given = _read(arguments)
    unknown = given.keys() - tool.properties.keys()
    if unknown:
        names = ", ".join(sorted(repr(name)[:40] for name in unknown))
        msg = f"{tool.name} takes {', '.join(tool.properties)}, and not {names}"
        raise ToolError(msg)
    kept = {name: value for name, value in given.items() if value is not None}
    for name in tool.required:
        if name not in kept:
            msg = f'"{name}" is missing'
            raise ToolError(msg)
    for name, value in kept.items():
        _check(name, value, tool.properties[name])
    if "limit" in tool.properties:
        kept.setdefault("limit", FEW_RESULTS)
        kept["limit"] = min(kept["limit"], MOST_RESULTS)
    return kept


def _read(arguments: object) -> dict[str, Any]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            msg = "the arguments are no JSON; call the tool again with a JSON object"
            raise ToolError(msg) from None
    if not isinstance(arguments, Mapping):
        msg = "the arguments are no JSON object"
        raise ToolError(msg)
    return dict(arguments)


def _check(name: str, value: object, schema: Mapping[str, Any]) -> None:
    if schema["type"] == "integer":
        if not isinstance(value, int) or isinstance(value, bool) or value < schema["minimum"]:
            msg = f'"{name}" is a whole number, and {schema["minimum"]} the least'
            raise ToolError(msg)
        return
    if not isinstance(value, str):
        msg = f'"{name}" is no text'
        raise ToolError(msg)
    try:
        value.encode()
    except UnicodeEncodeError:
        msg = f'"{name}" has half a letter in it'
        raise ToolError(msg) from None
    if name == "query" and not value.strip():
        msg = '"query" is empty'
        raise ToolError(msg)
    if "enum" in schema and value not in schema["enum"]:
        msg = f'"{name}" is one of {", ".join(schema["enum"])}; not {value[:40]!r}'
        raise ToolError(msg)


def _after(interval: Interval) -> datetime:
    """Give the first moment that is not in it; of a time of day, the next millisecond."""
    end = interval.start if interval.end is None else interval.end
    return end if end > interval.start else min(end, _LATEST) + _MILLISECOND
