"""One element of a conversation's list: a header line that scripts read, and a payload.

::

    1 <no> <turn> <messages> <tokens> <time_ms> <count> <codec> <format> <turn_id>\n<payload>

- `1` is the format number of this layout.
- `no`: the ordinal of this element in its conversation, from 1, contiguous.
- `turn`: the ordinal of the turn it belongs to; the pieces of one turn share it.
- `messages`, `tokens`: running totals up to and including this element.
- `time_ms`: the server's clock at the append, in milliseconds since 1970.
- `count`: the messages in this element.
- `codec`: how the payload is read; see `_json`.
- `format`: whose JSON the messages are, such as `openai.chat`.
- `turn_id`: the idempotency key of the append.

The payload is a JSON array of messages, and where something is known of the turn a line
feed and a JSON object of it. Neither JSON writer puts a line feed into its text.

The first element of the list is the head, which only scripts read: see `lua/README.md`.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import orjson

from . import _json
from .errors import CorruptTurnError, FormatError

__all__ = [
    "Element",
    "Payload",
    "encode",
    "head_tokens_before",
    "is_head",
    "messages_of",
    "meta_of",
    "parse",
]

_HEADER = re.compile(
    rb"1 (\d+) (\d+) (\d+) (\d+) (\d+) (\d+) ([a-z]) ([!-~]+) ([!-~]+)\n", re.ASCII
)
_LATER = re.compile(rb"(\d+) ", re.ASCII)
_HEAD_PREFIX = b"head "


class Element(NamedTuple):
    """The header of one element, and the element itself for its payload."""

    no: int
    turn: int
    messages: int
    tokens: int
    time_ms: int
    count: int
    codec: str
    format: str
    turn_id: str
    raw: bytes
    payload_at: int

    @property
    def revision(self) -> str:
        """The revision of a conversation whose newest element this is."""
        return f"{self.no}-{self.turn_id}"


class Payload(NamedTuple):
    """The payload of one element, ready to be stored."""

    codec: str
    data: bytes


def is_head(raw: bytes) -> bool:
    """Tell whether an element of the list is its head."""
    return raw.startswith(_HEAD_PREFIX)


def parse(raw: bytes) -> Element:
    """Read the header of an element.

    Raises:
        FormatError: It was written by a later version.
        CorruptTurnError: It was not written by turnstore, or was damaged.
    """
    match = _HEADER.match(raw)
    if match is None:
        later = _LATER.match(raw)
        if later is not None and later[1] != b"1":
            msg = f"an element has format number {later[1].decode()}; this version reads 1"
            raise FormatError(msg)
        msg = f"an element does not begin with a header of ours: {raw[:40]!r}"
        raise CorruptTurnError(msg)
    no, turn, messages, tokens, time_ms, count, codec, format_name, turn_id = match.groups()
    return Element(
        int(no),
        int(turn),
        int(messages),
        int(tokens),
        int(time_ms),
        int(count),
        codec.decode(),
        format_name.decode(),
        turn_id.decode(),
        raw,
        match.end(),
    )


def encode(messages: list[dict[str, Any]], meta: dict[str, Any]) -> Payload:
    """Write plain messages, and what is known of their turn, as a payload."""
    codec, data = _json.dumps(messages)
    if meta:
        meta_codec, meta_data = _json.dumps(meta)
        codec, data = max(codec, meta_codec), data + b"\n" + meta_data  # "w" reads "j" too
    return Payload(codec, data)


def messages_of(raw: bytes) -> list[dict[str, Any]]:
    """Read the messages of an element.

    Raises:
        FormatError: It was written by a later version.
        CorruptTurnError: They cannot be read, or are not as many as the header says.
    """
    match = _HEADER.match(raw)
    if match is not None and match[7] == b"j" and raw.endswith(b"]"):
        # Nearly every element, and the one hot loop of a read.
        try:
            messages = orjson.loads(raw[match.end() :])
        except ValueError:
            pass  # the slow way says what is wrong
        else:
            if type(messages) is list and len(messages) == int(match[6]):
                return messages
    element = parse(raw)
    return _read(element, raw[element.payload_at :].partition(b"\n")[0], list)


def meta_of(element: Element) -> dict[str, Any]:
    """Read what is known of an element's turn; nothing known is an empty dict."""
    _, line_feed, data = element.raw[element.payload_at :].partition(b"\n")
    return _read(element, data, dict) if line_feed else {}


def head_tokens_before(raw: bytes) -> int:
    """Read from the head how many tokens came before the oldest element that is held."""
    fields = raw.split(b" ", 10)
    if fields[1] != b"1":
        msg = f"a head has format number {fields[1].decode(errors='replace')}; this version reads 1"
        raise FormatError(msg)
    return int(fields[9])


def _read(element: Element, data: bytes, kind: type) -> Any:
    try:
        value = _json.loads(element.codec, data)
    except ValueError as error:
        msg = f"the payload of element {element.no} ({element.turn_id}) cannot be read: {error}"
        raise CorruptTurnError(msg) from error
    if type(value) is not kind or (kind is list and len(value) != element.count):
        msg = (
            f"the payload of element {element.no} ({element.turn_id}) is not what its header "
            f"says: {element.count} messages"
        )
        raise CorruptTurnError(msg)
    return value
