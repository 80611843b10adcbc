"""A fact as it is stored: a line of what scripts have to know, and JSON behind it.

``1 <revision> <created> <observed> <from> <to> <expired> <before> <kind> <pinned> <by> <norm>
<conversation> <terms> <length> <source> …``, a line break, and a JSON object. Times are
milliseconds since 1970, and 9000000000000000 where there is no end.

- `1` is the format number of this layout; `revision` counts the changes of the fact.
- `from` and `to` are when it is true, `expired` when later news closed it, `before` what `to`
  was until then (the same as `to` where none has), `by` the id of the fact in its place.
- `norm` is the digest of what it says: of facts that hold, there is one for each.
- `conversation` is the digest of the conversation's id; `-` stands for nothing.
- `terms` are the different terms of the text, `length` all of them: what the index has to lose
  when the fact goes.
- The object has `text`, and `slot`, `conversation`, `confidence` and `meta` where they are not
  the default.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any

from turnstore import _json
from turnstore.errors import CorruptTurnError, FormatError

from .._model import Fact
from .._scoring.text import norm, pack, terms
from ..engines._engine import Times

__all__ = [
    "NOTHING",
    "OPEN",
    "SOURCES_AT",
    "Record",
    "conversation_in",
    "decode",
    "encode",
    "exchange_norm",
    "moment",
    "norm_of",
    "posted",
    "stamp",
    "term_list",
    "times_of",
]

OPEN = 9_000_000_000_000_000
"""Stands for an end that is not known; `lua/lib/facts_record.lua` has the same."""

NOTHING = "-"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
SOURCES_AT = 15  # the place of the first source, behind the length
_DIGEST_AT = 12
_DIGEST_BYTES = 12


@dataclass(frozen=True, slots=True)
class Record:
    """A fact as it was read.

    Attributes:
        fact: The fact.
        revision: Of the fact, as text: to be demanded by who changes it.
        norm: The digest of what it says.
        digest: Of the conversation; `-` where there is none.
    """

    fact: Fact
    revision: str
    norm: str
    digest: str


def stamp(moment: datetime | None) -> int:
    """Give a time in milliseconds; OPEN for None."""
    return OPEN if moment is None else (moment - _EPOCH) // _MILLISECOND


def moment(ms: int) -> datetime:
    """Give the time of milliseconds."""
    return _EPOCH + ms * _MILLISECOND


def norm_of(fact: Fact) -> str:
    """Digest what a fact says, and until when: of what nothing has closed, each is stored once."""
    end = fact.valid_to if fact.expired is None else fact.valid_to_before
    parts = [fact.kind, norm(fact.text)]
    if end is not None:
        parts.append(str(stamp(end)))
    return _digest(*parts)


def exchange_norm(conversation: str, turn_id: str) -> str:
    """Digest which turn an exchange is of: each is stored once."""
    return _digest("exchange", conversation, turn_id)


def encode(fact: Fact, *, digest: str, norm: str, revision: int = 1) -> bytes:
    """Write a fact down.

    Args:
        fact: What is to be stored.
        digest: Of its conversation; empty where it has none.
        norm: As from `norm_of` or `exchange_norm`.
        revision: One more than that of the fact that it replaces.
    """
    counted, times = terms(fact.text), times_of(fact)
    line = [
        1,
        revision,
        times.created,
        stamp(fact.observed),
        *times[1:],
        fact.kind,
        int(fact.pinned),
        fact.superseded_by or NOTHING,
        norm,
        digest or NOTHING,
        len(counted),
        counted.total(),
        *fact.sources,
    ]
    body: dict[str, Any] = {"text": fact.text}
    for name, default in (("slot", ""), ("conversation", ""), ("confidence", 1.0), ("meta", {})):
        value = getattr(fact, name)
        if value != default:
            body[name] = value
    codec, data = _json.dumps(body)
    return " ".join(map(str, line)).encode() + b"\n" + codec.encode() + data


def decode(id: str, raw: bytes) -> Record:  # noqa: A002 - the name of the field
    """Read a fact.

    Raises:
        CorruptTurnError: It is none of ours.
        FormatError: A later version has written it.
    """
    line, _, body = raw.partition(b"\n")
    fields = line.decode("utf-8", "replace").split(" ")
    if fields[0] != "1" and fields[0].isdigit():
        msg = f"fact {id}: stored in format {fields[0]}, and this version reads 1"
        raise FormatError(msg)
    try:
        return _read(id, fields, _json.loads(body))
    except (ValueError, KeyError, TypeError, IndexError, OverflowError) as error:
        msg = (
            f"fact {id}: what is stored is not one of ours; it was left as it is. facts.forget() "
            "removes it"
        )
        raise CorruptTurnError(msg) from error


def _read(id: str, fields: list[str], body: Mapping[str, Any]) -> Record:  # noqa: A002 - the name of the field
    _, revision, *numbers = fields[:8]
    created, observed, valid_from, to, expired, before = map(int, numbers)
    kind, pinned, by, norm, digest = fields[8:13]
    fact = Fact(
        id=id,
        text=body["text"],
        kind=kind,
        slot=body.get("slot", ""),
        conversation=body.get("conversation", ""),
        sources=tuple(fields[SOURCES_AT:]),
        created=moment(created),
        observed=moment(observed),
        valid_from=moment(valid_from),
        valid_to=_end(to),
        expired=_end(expired),
        valid_to_before=None if expired == OPEN else _end(before),
        superseded_by="" if by == NOTHING else by,
        confidence=body.get("confidence", 1.0),
        pinned=pinned == "1",
        meta=body.get("meta", {}),
    )
    return Record(fact, revision, norm, digest)


def conversation_in(raw: bytes) -> str:
    """Give the digest of the conversation of what is stored, whatever else of it can be read."""
    fields = raw.partition(b"\n")[0].split(b" ")
    return fields[_DIGEST_AT].decode("utf-8", "replace") if len(fields) > _DIGEST_AT else ""


def times_of(fact: Fact) -> Times:
    """Say when a fact holds, in the numbers that are stored."""
    end = stamp(fact.valid_to)
    return Times(
        created=stamp(fact.created),
        start=stamp(fact.valid_from),
        to=end,
        expired=stamp(fact.expired),
        before=end if fact.expired is None else stamp(fact.valid_to_before),
    )


def posted(id: str, counted: Counter[str]) -> bytes:  # noqa: A002 - the name of the field
    """Pack the terms of a fact and its postings, for the script that writes them."""
    length = counted.total()
    return b"".join(
        _sized(term) + pack(id, frequency, length) for term, frequency in counted.items()
    )


def term_list(counted: Counter[str]) -> bytes:
    """Pack the terms of a fact, for the script that takes it out of the index."""
    return b"".join(map(_sized, counted))


def _sized(term: str) -> bytes:
    data = term.encode("utf-8", "surrogatepass")
    return len(data).to_bytes(2, "big") + data


def _end(ms: int) -> datetime | None:
    return None if ms == OPEN else moment(ms)


def _digest(*parts: str) -> str:
    data = "\n".join(parts).encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=_DIGEST_BYTES, person=b"turnstore.fact").hexdigest()
