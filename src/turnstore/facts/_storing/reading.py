"""Read facts by their ids, or page by page: one script each, and what they answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple

from turnstore._calls import Call, Flow

from .._owner import OwnerPlace, script_call
from .heads import Head, head
from .record import Record, decode

__all__ = [
    "Row",
    "Seen",
    "all_ids",
    "page",
    "read_records",
    "read_rows",
    "read_seen",
    "texts",
    "words",
]


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


class Seen(NamedTuple):
    """What a search compares of a fact; otherwise as a `Row`."""

    head: Head
    used_ms: int | None
    packed: bytes
    before: str
    after: str


def read_rows(
    place: OwnerPlace, ids: Sequence[str], *, operation: str, token: str = "", vectors: int = 0
) -> Flow[dict[str, Row]]:
    """Read facts by their ids; those that are gone are left out: one call.

    Args:
        place: The owner's.
        ids: Of the facts; 2000 at most.
        operation: What the caller asked for, in the words of an error.
        token: The space of the vectors.
        vectors: The first so many are read with their vectors.
    """

    def read(reply: list[list[Any]]) -> dict[str, Row]:
        return {id_: Row(decode(id_, raw), *rest) for id_, raw, rest in _there(ids, reply)}

    rows: dict[str, Row] = yield _call(place, ids, read, operation, token, vectors)
    return rows


def read_seen(  # noqa: PLR0913 - what is read, by name
    place: OwnerPlace,
    ids: Sequence[str],
    *,
    token: str,
    vectors: int,
    used: bool,
    around: bool,
) -> Flow[dict[str, Seen]]:
    """Read what a search compares of facts: one call.

    Args:
        place: The owner's.
        ids: Of the facts; 2000 at most.
        token: The space of the vectors.
        vectors: The first so many are read with their vectors.
        used: Whether they are read with when they were last found.
        around: Whether they are read with the ids of their neighbours.
    """

    def read(reply: list[list[Any]]) -> dict[str, Seen]:
        return {id_: Seen(head(id_, raw), *rest) for id_, raw, rest in _there(ids, reply)}

    seen: dict[str, Seen] = yield _call(
        place, ids, read, "search", token, vectors, used=used, around=around
    )
    return seen


def read_records(place: OwnerPlace, ids: Sequence[str]) -> Flow[dict[str, Record]]:
    """Read facts by their ids, and nothing else: one call."""
    rows = yield from read_rows(place, ids, operation="read")
    return {id_: row.record for id_, row in rows.items()}


def all_ids(place: OwnerPlace, operation: str) -> Flow[list[str]]:
    """Read the ids of all facts, oldest first: one call."""
    ids: list[str] = yield Call(
        operation, (place.keys.order,), "zrange", (0, -1), writes=False, read=texts
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


def _call(  # noqa: PLR0913, PLR0917 - what is read
    place: OwnerPlace,
    ids: Sequence[str],
    read: Callable[[list[list[Any]]], Any],
    operation: str,
    token: str,
    vectors: int,
    *,
    used: bool = True,
    around: bool = False,
) -> Call:
    keys: list[bytes] = []
    if vectors:
        start = place.vector(token, "")
        each = token.startswith("search")
        keys = [start + id_.encode() for id_ in ids[:vectors]] if each else [start]
    return script_call(
        "facts_read",
        place,
        {"space": token, "vectors": vectors, "times": int(used), "around": int(around)},
        read,
        writes=False,
        more_keys=keys,
        more=ids,
        operation=operation,
    )


def _there(
    ids: Sequence[str], reply: list[list[Any]]
) -> Iterator[tuple[str, bytes, tuple[int | None, bytes, str, str]]]:
    """Give what is stored, id by id; without those that are gone."""
    records, vectors, used, around = reply
    beside = [one.decode() for one in around] or [""] * (2 * len(ids))
    rows = zip(
        ids,
        records,
        used or repeat(None),
        chain(vectors, repeat(None)),
        beside[::2],
        beside[1::2],
        strict=False,
    )
    for id_, raw, when, packed, before, after in rows:
        if raw is not None:
            yield id_, raw, (int(float(when)) if when else None, packed or b"", before, after)


def _read_page(reply: list[bytes]) -> list[Record]:
    pairs = zip(reply[::2], reply[1::2], strict=True)
    return [decode(id_.decode(), raw) for id_, raw in pairs if raw is not None]


def texts(reply: Iterable[bytes]) -> list[str]:
    """Read a list of ids."""
    return [one.decode() for one in reply]


def words(reply: bytes | None) -> list[str]:
    """Read a text of words; of a field that is missing there are none."""
    return reply.decode().split() if reply else []
