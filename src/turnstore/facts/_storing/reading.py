"""Read facts by their ids, or page by page: one script each, and what they answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from turnstore._calls import Call, Flow

from .._owner import OwnerPlace, script_call
from .record import Record, decode

__all__ = ["Row", "all_ids", "page", "read_records", "read_rows", "walk"]

_PARTS = 5  # of a row
_READ_AT_ONCE = 500


class Row(NamedTuple):
    """A fact, and what belongs to it.

    Attributes:
        record: The fact.
        used_ms: When it was last found; None if never.
        packed: Its vector, as its engine keeps it; empty where it was not asked for.
        before: The id of the fact that was stored before it, where that was asked for.
        after: The id of the one that was stored after it, likewise.
    """

    record: Record
    used_ms: int | None
    packed: bytes
    before: str
    after: str


def read_rows(  # noqa: PLR0913 - what is read, by name
    place: OwnerPlace,
    ids: Sequence[str],
    *,
    operation: str,
    token: str = "",
    vectors: int = 0,
    around: bool = False,
) -> Flow[dict[str, Row]]:
    """Read facts by their ids; those that are gone are left out: one call.

    Args:
        place: The owner's.
        ids: Of the facts.
        operation: What the caller asked for, in the words of an error.
        token: The space of the vectors.
        vectors: The first so many are read with their vectors.
        around: Whether they are read with the ids of their neighbours.
    """
    rows: dict[str, Row] = yield script_call(
        "facts_read",
        place,
        {"space": token, "around": int(around)},
        partial(_read_rows, ids),
        writes=False,
        more_keys=[place.vector(token, id_) for id_ in ids[:vectors]],
        more=ids,
        operation=operation,
    )
    return rows


def read_records(place: OwnerPlace, ids: Sequence[str]) -> Flow[dict[str, Record]]:
    """Read facts by their ids, and nothing else: one call."""
    rows = yield from read_rows(place, ids, operation="read")
    return {id_: row.record for id_, row in rows.items()}


def all_ids(place: OwnerPlace, operation: str) -> Flow[list[str]]:
    """Read the ids of all facts, oldest first: one call."""
    ids: list[str] = yield Call(
        operation, (place.keys.order,), "zrange", (0, -1), writes=False, read=_texts
    )
    return ids


def page(place: OwnerPlace, limit: int, before: str) -> Flow[list[Record]]:
    """Read the newest facts before one: one call."""
    found: list[Record] = yield script_call(
        "facts_page",
        place,
        {"before": before, "limit": limit},
        _read_page,
        writes=False,
        operation="list",
    )
    return found


def walk(place: OwnerPlace, is_wanted: Callable[[Record], bool]) -> Flow[list[Record]]:
    """Look at all facts of an owner, newest first, and give those that are wanted."""
    found: list[Record] = []
    before = ""
    while True:
        records = yield from page(place, _READ_AT_ONCE, before)
        found += filter(is_wanted, records)
        if len(records) < _READ_AT_ONCE:
            return found
        before = records[-1].fact.id


def _read_rows(ids: Sequence[str], reply: list[bytes]) -> dict[str, Row]:
    parts = (reply[start::_PARTS] for start in range(_PARTS))
    return {
        id_: Row(
            decode(id_, raw),
            int(float(used)) if used else None,
            packed,
            before.decode(),
            after.decode(),
        )
        for id_, raw, used, packed, before, after in zip(ids, *parts, strict=True)
        if raw
    }


def _read_page(reply: list[bytes]) -> list[Record]:
    pairs = zip(reply[::2], reply[1::2], strict=True)
    return [decode(id_.decode(), raw) for id_, raw in pairs if raw]


def _texts(reply: list[bytes]) -> list[str]:
    return [one.decode() for one in reply]
