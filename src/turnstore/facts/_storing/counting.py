"""Count and find the facts of an owner by what surely has them, whatever else is lost of them.

All of an owner's facts lie in several keys, which change together. A server that evicts may take
any of them alone: what is left then must not be mistaken for all there is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from turnstore._calls import Call, Flow, pairs_of
from turnstore.errors import CorruptTurnError

from .._owner import OwnerPlace, script_call
from .record import Record, conversation_in, decode

__all__ = ["check_whole", "count_exchanges", "records_of"]

_LOOKED_AT_ONCE = 5_000
_READ_AT_ONCE = 500


class Tally(NamedTuple):
    """How many facts of an owner each of the keys has that have all of them."""

    facts: int
    listed: int
    posted: int
    vectors: int


def check_whole(place: OwnerPlace, known: Iterable[str], operation: str) -> Flow[None]:
    """Make sure that no part of the owner's facts is lost: one call.

    Args:
        place: The owner's.
        known: The tokens of the spaces that vectors may lie in.
        operation: What the caller asked for, in the words of an error.

    Raises:
        CorruptTurnError: A part is.
    """
    apart = [token for token in known if token.startswith(("plain:", "vectorset:"))]
    tally: Tally = yield script_call(
        "facts_tally",
        place,
        {},
        lambda reply: Tally(*reply),
        writes=False,
        more_keys=[*map(place.vectors, apart)],
        operation=operation,
    )
    if tally.facts == tally.listed == tally.posted and tally.vectors <= tally.facts:
        return
    msg = (
        f"{operation} of {place.keys}: a part of the owner's facts is lost, as by eviction: there "
        f"are {tally.facts}, {tally.listed} in their order, {tally.posted} in the index of words, "
        f"and {tally.vectors} vectors. Some that were to be removed may be left; "
        "store.erase(owner) removes all of it"
    )
    raise CorruptTurnError(msg)


def count_exchanges(place: OwnerPlace) -> Flow[int]:
    """Count the exchanges among the facts: a call for each 5,000 facts."""
    before, count = "", 0
    while True:
        found: int
        found, before = yield script_call(
            "facts_exchanges",
            place,
            {"before": before, "limit": _LOOKED_AT_ONCE},
            lambda reply: (reply[0], reply[1].decode()),
            writes=False,
            operation="count",
        )
        count += found
        if not before:
            return count


def records_of(place: OwnerPlace, digest: str, operation: str) -> Flow[list[Record]]:
    """Find the facts of a conversation, oldest first: some calls, by a scan of all facts.

    Facts of other conversations need not be readable.

    Args:
        place: The owner's.
        digest: Of the conversation.
        operation: What the caller asked for, in the words of an error.

    Raises:
        CorruptTurnError, FormatError: One of its facts cannot be read.
    """
    its, cursor = dict[str, Record](), b"0"
    while True:
        arguments = (cursor, "COUNT", _READ_AT_ONCE)
        rows: dict[bytes, bytes]
        cursor, rows = yield Call(
            operation, (place.keys.facts,), "hscan", arguments, writes=False, read=_read_scan
        )
        for raw_id, raw in rows.items():
            if conversation_in(raw) == digest:
                id_ = raw_id.decode()
                its[id_] = decode(id_, raw)
        if cursor == b"0":
            return [its[id_] for id_ in sorted(its)]


def _read_scan(reply: Any) -> tuple[bytes, dict[bytes, bytes]]:
    cursor, rows = reply
    return b"%d" % int(cursor), pairs_of(rows)
