"""Read of a stored fact what a search compares, without making a `Fact` of it.

A search looks at a hundred facts and more, and shows three. The layout is that of `record`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from turnstore import _json

from .record import SOURCES_AT, decode

__all__ = ["Head", "head"]


class Head(NamedTuple):
    """What a search compares; all times are in milliseconds.

    Attributes:
        text: What the fact says.
        kind: As in `Fact`.
        digest: Of its conversation; `-` where there is none.
        pinned: Whether it does not fade.
        created: When it was stored.
        observed: When it was last heard.
        start: Since when it is true.
        to: Until when it is true.
        expired: When later news closed it.
        before: What `to` was until then.
        sources: The ids of the turns that say it.
        raw: The fact as it is stored.
    """

    text: str
    kind: str
    digest: str
    pinned: bool
    created: int
    observed: int
    start: int
    to: int
    expired: int
    before: int
    sources: Collection[str]
    raw: bytes

    def is_valid(self, as_of_ms: int, known_at_ms: int | None) -> bool:
        """Say the same as `Fact.is_valid`."""
        end = self.to
        if known_at_ms is not None:
            if self.created > known_at_ms:
                return False
            if self.expired > known_at_ms:
                end = self.before
        return self.start <= as_of_ms < end


def head(id: str, raw: bytes) -> Head:  # noqa: A002 - the name of the field
    """Read it.

    Raises:
        CorruptTurnError: It is no fact of ours.
        FormatError: A later version has written it.
    """
    line, _, body = raw.partition(b"\n")
    fields = line.decode("utf-8", "replace").split(" ")
    try:
        if fields[0] == "1":
            created, observed, start, to, expired, before = map(int, fields[2:8])
            return Head(
                _json.loads(body)["text"],
                fields[8],
                fields[12],
                fields[9] == "1",
                created,
                observed,
                start,
                to,
                expired,
                before,
                fields[SOURCES_AT:],
                raw,
            )
    except (ValueError, KeyError, TypeError, IndexError):
        pass
    record = decode(id, raw)  # it says what is wrong
    raise AssertionError(record)
