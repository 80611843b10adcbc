"""The log of extractions, and how one is undone.

The commit of an extraction writes into the log what it takes to undo it: which facts it stored,
which it closed and what was believed of them before, and which it heard again. What was changed
since then stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from turnstore import _json
from turnstore._calls import Call, Flow, pairs_of

from .._finding.searching import read_records
from .._owner import OwnerPlace
from .._storing.commit import STAYS, Began, Change, Close, CursorMove, Remove, Unseen, again
from .._storing.record import NOTHING, OPEN, Record, moment, stamp

if TYPE_CHECKING:
    from .._storing.base import Base

__all__ = [
    "UNDO",
    "Entry",
    "Operation",
    "Undone",
    "entries",
    "entry_named",
    "inverse",
    "listed",
    "undo",
    "undo_named",
]

UNDO = "undo"
"""What an undo is called in the log."""

_KEPT = 200
_PASSING = ("spaces", "changed")


@dataclass(frozen=True, slots=True)
class Operation:
    """One extraction as it stands in the log, or the undo of one.

    Attributes:
        id: Of the operation.
        name: "extract" or "undo".
        time: When it was done.
        new: The ids of the facts that it stored.
        seen: The ids of those that were heard again.
        closed: The ids of those that it closed.
        undone: Whether it was undone.
    """

    id: str
    name: str
    time: datetime
    new: tuple[str, ...]
    seen: tuple[str, ...]
    closed: tuple[str, ...]
    undone: bool


@dataclass(frozen=True, slots=True)
class Undone:
    """What an undo did.

    Attributes:
        changes: Changes that were undone.
        kept: Changes that stay, as the facts were changed or removed since.
    """

    changes: int
    kept: int


class Entry(NamedTuple):
    """An entry of the log as it was read.

    Attributes:
        id: Of the entry.
        name: Of the operation.
        note: What the operation said of itself.
        changes: What undoes it, a line for each change: what was done, the fact, and what
            was there before.
    """

    id: str
    name: str
    note: dict[str, Any]
    changes: tuple[tuple[str, ...], ...]

    @property
    def time(self) -> datetime:
        """When it was done."""
        return moment(int(self.id.partition("-")[0]))

    def ids(self, what: str) -> tuple[str, ...]:
        """Give the facts that it did something with."""
        return tuple(change[1] for change in self.changes if change[0] == what)


def entries(place: OwnerPlace) -> Flow[list[Entry]]:
    """Read the log of an owner, newest first: one call."""
    found: list[Entry] = yield Call(
        "operations",
        (place.keys.ops,),
        "xrevrange",
        ("+", "-", "COUNT", 2 * _KEPT),
        writes=False,
        read=_read,
    )
    return found


def listed(log: Sequence[Entry]) -> list[Operation]:
    """Give the log as users see it."""
    undone = {entry.note.get("of") for entry in log if entry.name == UNDO}
    return [
        Operation(
            id=entry.id,
            name=entry.name,
            time=entry.time,
            new=entry.ids("added"),
            seen=entry.ids("seen"),
            closed=entry.ids("closed"),
            undone=entry.id in undone,
        )
        for entry in log
    ]


def entry_named(log: Sequence[Entry], identifier: str) -> Entry:
    """Find an entry.

    Raises:
        TypeError: The id is not text.
        LookupError: There is none.
        ValueError: It was undone already, or is an undo itself.
    """
    if not isinstance(identifier, str):
        msg = f"the id of an operation is text, not {type(identifier).__name__}"
        raise TypeError(msg)
    entry = next((entry for entry in log if entry.id == identifier), None)
    if entry is None:
        msg = f"the log has no operation {identifier[:40]!r}; it keeps the newest {_KEPT}"
        raise LookupError(msg)
    if entry.name == UNDO or any(one.note.get("of") == identifier for one in log):
        msg = f"operation {identifier} is an undo, or was undone; nothing was changed"
        raise ValueError(msg)
    return entry


def touched(log: Sequence[Entry], entry: Entry) -> dict[str, set[str]]:
    """Give what later operations did to facts: for each fact the kinds of changes."""
    later: dict[str, set[str]] = {}
    for other in log[: log.index(entry)]:
        for kind, fact, *_ in other.changes:
            later.setdefault(fact, set()).add(kind)
    return later


def inverse(
    entry: Entry, records: Mapping[str, Record], later: Mapping[str, Collection[str]]
) -> list[Change]:
    """Give the changes that undo an operation, as far as that can be done.

    Args:
        entry: The operation.
        records: Its facts as they are now.
        later: What was done to them since.
    """
    sources = tuple(entry.note.get("sources", ()))
    changes: list[Change] = []
    for kind, id_, *before in reversed(entry.changes):
        record = records.get(id_)
        since = later.get(id_, ())
        if record is None:
            continue
        if kind == "added" and not record.fact.pinned:
            if set(record.fact.sources) <= set(sources):
                changes.append(Remove(record, unless_changed=True))
            else:  # other turns say it, too
                changes.append(Unseen(id_, sources, record.fact.observed, record.revision))
        elif kind == "closed" and _is_as_closed(record, entry):
            to, expired, by, believed = before
            changes.append(
                Close(
                    id_,
                    _time(to),
                    _time(expired),
                    "" if by == NOTHING else by,
                    None if expired == str(OPEN) else _time(believed),
                )
            )
        elif kind == "seen":
            observed, *added = before
            is_last = "seen" not in since
            when = moment(int(observed)) if is_last else record.fact.observed
            changes.append(Unseen(id_, tuple(added), when, record.revision))
    return changes


def undo_named(base: Base, place: OwnerPlace, identifier: str) -> Flow[Undone]:
    """Undo an operation by its id, as far as nothing was changed since: four calls.

    Raises:
        TypeError, LookupError, ValueError: As from `entry_named`; nothing was written.
    """
    writer = base.writer(place, UNDO)

    def work() -> Flow[Undone]:
        began = yield from writer.begin()  # before the log is read
        log = yield from entries(place)
        entry = entry_named(log, identifier)
        stays = CursorMove(entry.note.get("conversation", ""), STAYS, STAYS)
        return (yield from _undo(base, place, log, entry, began, stays))

    return (yield from again(work, _PASSING))


def undo(  # noqa: PLR0913 - what one undo is made of
    base: Base,
    place: OwnerPlace,
    log: Sequence[Entry],
    entry: Entry,
    *,
    since: int,
    cursor: CursorMove,
    fence: str,
) -> Flow[Undone]:
    """Undo an operation, as far as nothing was changed since: three calls.

    Args:
        base: The facts.
        place: The owner's.
        log: All entries, newest first.
        entry: The one that is undone.
        since: The number with which it began, before the log was read.
        cursor: The cursor that moves along.
        fence: The lease that it demands.
    """
    writer = base.writer(place, UNDO, since)

    def work() -> Flow[Undone]:
        began = yield from writer.begin()
        return (yield from _undo(base, place, log, entry, began, cursor, fence))

    return (yield from again(work, _PASSING))


def _undo(  # noqa: PLR0913, PLR0917 - what one undo is made of
    base: Base,
    place: OwnerPlace,
    log: Sequence[Entry],
    entry: Entry,
    began: Began,
    cursor: CursorMove,
    fence: str = "",
) -> Flow[Undone]:
    records = yield from read_records(place, sorted({one[1] for one in entry.changes}))
    changes = inverse(entry, records, touched(log, entry))
    yield from base.commit(
        place,
        began,
        changes,
        operation=UNDO,
        logged=UNDO,
        note={"of": entry.id},
        cursor=cursor,
        fence=fence,
    )
    return Undone(len(changes), len(entry.changes) - len(changes))


def _is_as_closed(record: Record, entry: Entry) -> bool:
    """Tell whether nobody has changed since when a fact ended."""
    expired = record.fact.expired
    return expired is not None and stamp(expired) == entry.note.get("now")


def _time(ms: str) -> datetime | None:
    return None if int(ms) == OPEN else moment(int(ms))


def _read(reply: Any) -> list[Entry]:
    found: list[Entry] = []
    for raw_id, raw in reply:
        fields = pairs_of(raw)
        lines = fields[b"undo"].decode().split("\n")
        found.append(
            Entry(
                raw_id.decode(),
                fields[b"operation"].decode(),
                _json.loads(fields[b"note"]) if fields[b"note"] else {},
                tuple(tuple(line.split()) for line in lines if line),
            )
        )
    return found
