"""Store facts and exchanges, and change them: checks, and flows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import EllipsisType
from typing import TYPE_CHECKING, Any, NamedTuple

from turnstore import _json
from turnstore._calls import Flow
from turnstore._checks import check_turn_id, plain_meta
from turnstore.errors import LimitError

from .._model import Added, Fact, NewFact
from .._owner import OwnerPlace, is_id, new_ids
from .commit import Add, Began, Blocked, Close, Replace, again, batches
from .reading import read_records
from .record import exchange_norm, moment, norm_of, stamp

if TYPE_CHECKING:
    from .._embedding import Vector
    from .._space import Space
    from .base import Base, Writer

__all__ = [
    "KIND",
    "Checked",
    "add_exchange",
    "add_many",
    "check_id",
    "check_time",
    "checked_fact",
    "draft",
    "end",
    "update",
]

KIND = re.compile(r"[A-Za-z0-9_-]{1,32}")
_MOST_BYTES = 32_768
_SLOT_LENGTH = 200
_MOST_SOURCES = 64
_CHANGING, _MOST_CHANGING = ("spaces", "changed"), 50


class Checked(NamedTuple):
    """A new fact that can be stored.

    Attributes:
        new: The fact.
        norm: What tells whether it is there; empty makes it of the text.
    """

    new: NewFact
    norm: str = ""


def add_many(
    base: Base, owner: str, news: Iterable[NewFact], *, since: int = 0
) -> Flow[list[Added]]:
    """Store facts, as many at a time as one commit takes.

    Args:
        base: The facts.
        owner: Whose they are.
        news: The facts.
        since: The number with which it began, where that was earlier: what was erased since
            then does not come back. 0 begins now.
    """
    place = base.ground.owner(owner)
    writer = base.writer(place, "add", since)
    if not isinstance(news, Sequence):
        yield from writer.ahead()  # it may take its time, and read what is erased meanwhile
    checked = [Checked(checked_fact(new)) for new in _listed(news)]
    for one in checked:
        place.conversation(one.new.conversation)  # refuses what no key can stand for
    added: list[Added] = []
    for batch in batches(checked, lambda one: one.new.text):
        added += yield from _add(base, place, batch, "add", writer)
    return added


def add_exchange(  # noqa: PLR0913 - what an exchange is made of
    base: Base, owner: str, conversation: str, turn_id: str, new: NewFact, *, since: int = 0
) -> Flow[Added]:
    """Store an exchange, once for each turn; `since` as for `add_many`."""
    place = base.ground.owner(owner)
    check_turn_id(turn_id)
    norm = exchange_norm(base.ground.conversation(conversation), turn_id)
    checked = [Checked(checked_fact(new), norm)]
    writer = base.writer(place, "add_exchange", since)
    (added,) = yield from _add(base, place, checked, "add_exchange", writer)
    return added


def _add(
    base: Base, place: OwnerPlace, checked: Sequence[Checked], operation: str, writer: Writer
) -> Flow[list[Added]]:
    """Store what was checked.

    Args:
        base: The facts.
        place: The owner's.
        checked: What is stored.
        operation: What the caller asked for, in the words of an error.
        writer: Begins it, and whatever else is stored with it.
    """
    if base.settings.redact is not None:
        yield from writer.ahead()  # what is there already is asked for by what it says then
    news = []
    for one in checked:
        new = yield from base.redacted_fact(one.new)
        news.append(one.new if new == one.new else checked_fact(new))
    norms = [one.norm for one in checked]
    # What was there when it began may go before it is written; then it is added after all.
    known_to_go: set[int] = set()

    def work() -> Flow[list[Added]]:
        asked = [norm or _norm_of(new) for norm, new in zip(norms, news, strict=True)]
        began = yield from writer.begin(asked)
        ids = new_ids(began.number, len(news))
        facts = [draft(new, id_, began.now) for new, id_ in zip(news, ids, strict=True)]
        unknown = [at for at, id_ in enumerate(began.ids) if not id_ or at in known_to_go]
        backend = yield from base.backend_of(began.spaces)
        vectors = yield from base.embed(backend, [facts[at].text for at in unknown])
        of = dict(zip(unknown, vectors, strict=True))
        changes = [Add(fact, of.get(at), norms[at]) for at, fact in enumerate(facts)]
        answers = yield from base.commit(place, began, changes, operation=operation)
        gone = [at for at, answer in enumerate(answers) if answer == "0"]
        if gone:
            known_to_go.update(gone)
            raise Blocked("gone", str(len(gone)))
        return [
            Added(id_, duplicate=False) if answer == "1" else Added(answer, duplicate=True)
            for id_, answer in zip(ids, answers, strict=True)
        ]

    return (yield from again(work, ("spaces", "gone")))


def draft(new: NewFact, id: str, now: datetime) -> Fact:  # noqa: A002 - the name of the field
    """Make a fact of a new one: with an id, and the times that the caller left out.

    Args:
        new: What was checked.
        id: Of the fact.
        now: When its writing began.
    """
    observed = now if new.observed is None else new.observed
    start = observed if new.valid_from is None else new.valid_from
    if new.valid_from is None and new.valid_to is not None:
        start = min(start, new.valid_to)
    return Fact(
        id=id,
        text=new.text,
        kind=new.kind,
        slot=new.slot,
        conversation=new.conversation,
        sources=new.sources,
        created=now,
        observed=observed,
        valid_from=start,
        valid_to=new.valid_to,
        confidence=new.confidence,
        pinned=new.pinned,
        meta=new.meta,
    )


def update(  # noqa: PLR0913 - what can be changed, by name
    base: Base,
    owner: str,
    id: str,  # noqa: A002 - the name of the field
    *,
    text: str | None,
    valid_to: datetime | EllipsisType | None,
    pinned: bool | None,
    meta: dict[str, Any] | None,
) -> Flow[Fact | None]:
    """Change a fact in place."""
    place = base.ground.owner(owner)
    check_id(id)
    given = _checked_changes(text, valid_to, pinned, meta)
    writer = base.writer(place, "update")
    if text is not None and base.settings.redact is not None:
        yield from writer.ahead()  # as redacting takes its time
        given["text"] = _checked_text((yield from base.redacted(text)))
    vectors: dict[Space, Vector] = {}  # of the text: others may change the fact meanwhile

    def work() -> Flow[Fact | None]:
        began = yield from writer.begin()
        records = yield from read_records(place, [id])
        if id not in records:
            return None
        record = records[id]
        fact = replace(record.fact, **given)
        if fact.valid_to is not None:
            _check_order(fact.valid_from, fact.valid_to)
        vector = None
        if fact.text != record.fact.text:
            backend = yield from base.backend_of(began.spaces)
            if backend.space not in vectors:
                (vectors[backend.space],) = yield from base.embed(backend, [fact.text])
            vector = vectors[backend.space]
        change = Replace(record, fact, vector)
        yield from base.commit(place, began, [change], operation="update")
        return fact

    try:
        return (yield from again(work, _CHANGING, _MOST_CHANGING))
    except Blocked as blocked:
        if blocked.what != "taken":
            raise
        msg = f"update of {id}: another fact of this owner says just that; nothing was written"
        raise ValueError(msg) from None


def end(
    base: Base,
    owner: str,
    id: str,  # noqa: A002 - the name of the field
    valid_to: datetime | None,
    superseded_by: str,
) -> Flow[bool]:
    """Say that a fact is not true any more."""
    place = base.ground.owner(owner)
    check_id(id)
    if superseded_by:
        check_id(superseded_by)
    last = None if valid_to is None else check_time("valid_to", valid_to)
    writer = base.writer(place, "end")

    def work() -> Flow[bool]:
        began: Began = yield from writer.begin()
        change = Close(id, began.now if last is None else last, began.now, superseded_by)
        (answer,) = yield from base.commit(place, began, [change], operation="end")
        return answer == "1"

    return (yield from again(work, _CHANGING, _MOST_CHANGING))


# What callers hand in


def checked_fact(new: NewFact) -> NewFact:
    """Check a new fact, and bring its times to UTC.

    Raises:
        TypeError: A part has the wrong type.
        ValueError: A part is of no use.
        LimitError: The text, or meta, is too long.
    """
    if not isinstance(new, NewFact):
        msg = f"a new fact is a NewFact, not {type(new).__name__}"
        raise TypeError(msg)
    _checked_text(new.text)
    _checked_string("kind", new.kind)
    if not KIND.fullmatch(new.kind):
        msg = f"kind {new.kind[:80]!r}: use 1 to 32 letters, digits, _ and -"
        raise ValueError(msg)
    for name, most in (("slot", _SLOT_LENGTH), ("conversation", _MOST_BYTES)):
        if len(_checked_string(name, getattr(new, name))) > most:
            msg = f"{name} has {len(getattr(new, name))} characters; the most are {most}"
            raise LimitError(msg)
    if not isinstance(new.confidence, int | float) or isinstance(new.confidence, bool):
        msg = f"confidence={new.confidence!r}: it is a number"
        raise TypeError(msg)
    if not 0 <= new.confidence <= 1:
        msg = f"confidence={new.confidence}: it is from 0 to 1"
        raise ValueError(msg)
    _checked_flag("pinned", new.pinned)
    times: dict[str, Any] = {
        name: check_time(name, value)
        for name in ("observed", "valid_from", "valid_to")
        if (value := getattr(new, name)) is not None
    }
    if "valid_from" in times and "valid_to" in times:
        _check_order(times["valid_from"], times["valid_to"])
    if isinstance(new.sources, str) or not isinstance(new.sources, Sequence):
        msg = f"sources are the ids of turns, not {type(new.sources).__name__}"
        raise TypeError(msg)
    sources = tuple(dict.fromkeys(check_turn_id(one) for one in new.sources))
    return replace(new, sources=sources[-_MOST_SOURCES:], meta=_checked_meta(new.meta), **times)


def _checked_changes(
    text: str | None,
    valid_to: datetime | EllipsisType | None,
    pinned: bool | None,  # noqa: FBT001 - it is what is checked
    meta: dict[str, Any] | None,
) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if text is not None:
        given["text"] = _checked_text(text)
    if not isinstance(valid_to, EllipsisType):
        given["valid_to"] = None if valid_to is None else check_time("valid_to", valid_to)
    if pinned is not None:
        given["pinned"] = _checked_flag("pinned", pinned)
    if meta is not None:
        given["meta"] = _checked_meta(meta)
    return given


def check_id(id: str) -> str:  # noqa: A002 - the name of the field
    """Give back the id of a fact.

    Raises:
        TypeError: It is not text.
        ValueError: No fact has such an id.
    """
    _checked_string("id", id)
    if not is_id(id):
        msg = f"{id[:80]!r} is not the id of a fact; take it from add(), list() or search()"
        raise ValueError(msg)
    return id


def check_time(name: str, value: datetime) -> datetime:
    """Give back a time in UTC, in whole milliseconds.

    Raises:
        TypeError: It is no datetime.
        ValueError: It does not say in which time zone it is.
    """
    if not isinstance(value, datetime):
        msg = f"{name} is a datetime, not {type(value).__name__}"
        raise TypeError(msg)
    if value.utcoffset() is None:
        msg = f"{name}={value}: say in which time zone, as in datetime(…, tzinfo=UTC)"
        raise ValueError(msg)
    try:
        return moment(stamp(value.astimezone(UTC)))
    except OverflowError:
        msg = f"{name}={value}: it is outside of the years 1 to 9999 in UTC"
        raise ValueError(msg) from None


def _check_order(start: datetime, end: datetime) -> None:
    if end < start:
        msg = f"valid_to {end} is before valid_from {start}"
        raise ValueError(msg)


def _checked_text(text: str) -> str:
    _checked_string("text", text)
    if not text.strip():
        msg = "text is empty; a fact says something"
        raise ValueError(msg)
    size = len(text.encode())
    if size > _MOST_BYTES:
        msg = f"text has {size} bytes; the most are {_MOST_BYTES}. Nothing was written"
        raise LimitError(msg)
    return text


def _checked_meta(meta: dict[str, Any]) -> dict[str, Any]:
    plain = plain_meta(meta)
    size = len(_json.dumps(plain)[1])
    if size > _MOST_BYTES:
        msg = f"meta has {size} bytes as JSON; the most are {_MOST_BYTES}. Nothing was written"
        raise LimitError(msg)
    return plain


def _checked_string(name: str, value: str) -> str:
    if not isinstance(value, str):
        msg = f"{name} is text, not {type(value).__name__}"
        raise TypeError(msg)
    _json.utf8(name, value)
    return value


def _checked_flag(name: str, value: bool) -> bool:  # noqa: FBT001 - it is what is checked
    if not isinstance(value, bool):
        msg = f"{name} is True or False, not {type(value).__name__}"
        raise TypeError(msg)
    return value


def _listed(news: Iterable[NewFact]) -> list[NewFact]:
    if isinstance(news, NewFact):
        msg = "add_many takes several facts; add() takes one"
        raise TypeError(msg)
    return list(news)


def _norm_of(new: NewFact) -> str:
    # What the norm is made of does not depend on the times that are left out.
    return norm_of(draft(new, "", moment(0)))
