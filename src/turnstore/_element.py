"""One element of a conversation's list: a JSON array of a header and the messages.

::

    [1,<no>,<turn>,<messages>,<tokens>,<time_ms>,<count>,"<format>","<turn_id>","<counter>",[…],{…}]

- `1` is the format number of this layout.
- `no`: the ordinal of this element in its conversation, from 1, contiguous.
- `turn`: the ordinal of the turn it belongs to; the pieces of one turn share it.
- `messages`, `tokens`: running totals up to and including this element.
- `time_ms`: the server's clock at the append, in milliseconds since 1970.
- `count`: the messages in this element.
- `format`: whose JSON the messages are, such as `openai.chat`.
- `turn_id`: the idempotency key of the append.
- `counter`: the name of what counted the tokens; empty where nothing did.
- The messages, and where something is known of the turn an object of it.

Scripts write the header and read nothing behind it. Since each element is JSON, a whole
window is parsed in one call, headers and all. A `w` before the bracket marks JSON that
only the standard library reads without loss (see `_json`); it makes that call fail, and
the elements are then read one by one.

The first element of the list is the head, which only scripts read: see `lua/README.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any, NamedTuple, TypeAlias

import orjson

from . import _json
from .errors import CorruptTurnError, FormatError

__all__ = [
    "Element",
    "Payload",
    "Row",
    "encode",
    "head_tokens_before",
    "is_head",
    "messages_of",
    "named",
    "parse",
]

_FORMAT_NUMBER = re.compile(rb"w?\[(\d+),", re.ASCII)
_HEAD_PREFIX = b"head "
_HEAD = re.compile(rb"head (\d{1,20}) (?:(?:\d+ ){7}(\d{1,20}) [!-~])?", re.ASCII)


class Element(NamedTuple):
    """One element as it was read: its header, messages and meta."""

    format_number: int
    no: int
    turn: int
    total_messages: int
    total_tokens: int
    time_ms: int
    message_count: int
    format: str
    turn_id: str
    counter: str
    messages: list[dict[str, Any]]
    meta: dict[str, Any] = {}  # noqa: RUF012 - never changed; a turn gets a copy

    @property
    def revision(self) -> str:
        """The revision of a conversation whose newest element this is."""
        return f"{self.no}-{self.turn_id}"


_NO, _TOTAL_MESSAGES, _COUNT, _MESSAGES = map(
    Element._fields.index, ("no", "total_messages", "message_count", "messages")
)

# What each field is made of; the meta may be missing.
_TYPES = (int, int, int, int, int, int, int, str, str, str, list, dict)


Row: TypeAlias = list[Any]
"""An element as JSON reads it. `Element(*row)` gives its fields names, where they are asked
for: a read of fifty turns asks for few."""


class Payload(NamedTuple):
    """The messages and the meta of an element, ready to be stored."""

    codec: str
    data: bytes


def named(row: Row) -> Element:
    """Give the fields of an element their names, and a meta of its own where it has none."""
    whole: Row = row if len(row) == len(Element._fields) else [*row, {}]
    return Element(*whole)


def encode(messages: list[dict[str, Any]], meta: dict[str, Any]) -> Payload:
    """Write plain messages, and what is known of their turn, as a payload."""
    codec, data = _json.dumps(messages)
    if meta:
        meta_codec, meta_data = _json.dumps(meta)
        codec, data = codec or meta_codec, data + b"," + meta_data
    return Payload(codec, data)


def is_head(raw: bytes) -> bool:
    """Tell whether an element of the list is its head."""
    return raw.startswith(_HEAD_PREFIX)


def head_tokens_before(raw: bytes) -> int:
    """Read from the head how many tokens came before the oldest element that is held.

    Raises:
        FormatError: It was written by a later version.
        CorruptTurnError: It was not written by turnstore, or was damaged.
    """
    match = _HEAD.match(raw)
    if match is None:
        msg = f"the head of the list cannot be read; it begins with {raw[:80]!r}"
        raise CorruptTurnError(msg)
    if match[1] != b"1":
        msg = f"a head has format number {match[1].decode()}; this version reads 1"
        raise FormatError(msg)
    if match[2] is None:
        msg = f"the head of the list cannot be read; it begins with {raw[:80]!r}"
        raise CorruptTurnError(msg)
    return int(match[2])


def parse(raws: list[bytes]) -> list[Row]:
    """Read elements, oldest first.

    Raises:
        FormatError: One was written by a later version.
        CorruptTurnError: One was not written by turnstore, was damaged, or is missing.
    """
    try:
        rows: list[Row] = orjson.loads(b"[%b]" % b",".join(raws))
        if len(rows) == len(raws) and _agree(rows):
            return rows
    except (ValueError, TypeError, IndexError, KeyError):
        pass  # one by one, to find the element and what is wrong with it
    rows = [_parse_one(raw) for raw in raws]
    for before, after in pairwise(rows):
        if after[_NO] != before[_NO] + 1:
            msg = f"element {before[_NO]} is followed by element {after[_NO]}"
            raise CorruptTurnError(msg)
    return rows


def messages_of(rows: list[Row]) -> Iterator[dict[str, Any]]:
    """Give the messages of elements, one after the other."""
    return chain.from_iterable([row[_MESSAGES] for row in rows])


def _agree(rows: list[Row]) -> bool:
    """Check what was read: the format numbers, and that the totals add up."""
    if not rows:
        return True
    total = rows[0][_TOTAL_MESSAGES] - rows[0][_COUNT]
    for row in rows:
        messages = row[_MESSAGES]
        total += len(messages)
        if (
            row[0] != 1
            or row[_TOTAL_MESSAGES] != total
            or type(messages) is not list
            or len(row) > len(_TYPES)
        ):
            return False
    return True


def _parse_one(raw: bytes) -> Row:
    number = _FORMAT_NUMBER.match(raw)
    if number is not None and number[1] != b"1":
        msg = f"an element has format number {number[1].decode()}; this version reads 1"
        raise FormatError(msg)
    try:
        row = _json.loads(raw)
    except ValueError as error:
        msg = f"an element cannot be read ({error}); it begins with {raw[:80]!r}"
        raise CorruptTurnError(msg) from error
    fields = row if isinstance(row, list) else []
    if not len(_TYPES) - 1 <= len(fields) <= len(_TYPES) or not all(
        type(field) is kind for field, kind in zip(fields, _TYPES, strict=False)
    ):
        msg = f"an element is not one of ours; it begins with {raw[:80]!r}"
        raise CorruptTurnError(msg)
    element = Element(*fields)
    if len(element.messages) != element.message_count:
        msg = (
            f"element {element.no} ({element.turn_id}) holds {len(element.messages)} messages, "
            f"and its header says {element.message_count}"
        )
        raise CorruptTurnError(msg)
    return fields
