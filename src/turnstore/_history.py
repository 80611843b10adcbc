"""What can be done with a conversation, as flows of calls on its list.

The one place for the rules of the store; it knows neither a Redis client nor a thread
or task. Every function takes the key and answers a flow that `_io` runs.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from os import urandom
from typing import Any, NamedTuple, TypeVar

from . import _element, _scripts
from ._calls import Call, Flow, Together
from ._element import Element, Row
from ._keys import Keys, OwnerKeys
from ._replacing import Search
from ._windowing import Counter, Density, start_of
from .errors import ConflictError, CorruptTurnError, FormatError, UnavailableError
from .results import EMPTY, Appended, Cut, History, Stat, Turn, TurnPage, time_of, turns_of
from .window import Window

__all__ = [
    "IDS_KEPT",
    "Cleared",
    "Draft",
    "Found",
    "append",
    "clear",
    "expire",
    "fork",
    "new_turn_id",
    "page",
    "page_call",
    "read",
    "rewind",
    "script_call",
    "stat",
    "trim",
]

IDS_KEPT = 32
"""How many of the newest turn ids the head knows; `lua/lib/head.lua` has the same."""

R = TypeVar("R")
T = TypeVar("T")

_REWIND_TRIES = 5
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_LONGEST_MS = timedelta.max // timedelta(milliseconds=1)


class Draft(NamedTuple):
    """A turn that is ready to be appended: checked, counted and serialised."""

    turn_id: str
    format: str
    message_count: int
    tokens: int
    counter: str
    payload: _element.Payload


def new_turn_id() -> str:
    """Make a random turn id of 11 characters; it has to differ from 31 others only."""
    return b2a_base64(urandom(8), newline=False)[:11].translate(_URL_SAFE).decode()


def append(  # noqa: PLR0913 - what one append is made of; all but two by name
    keys: Keys,
    draft: Draft,
    *,
    ttl_ms: int,
    max_messages: int,
    expected: str | None = None,
    continues: bool = False,
    lease: str = "",
    began: int = 0,
    cut: Cut | None = None,
) -> Flow[Appended]:
    """Add a turn, in the place of others where something is cut off: one call."""
    values = {
        "turn_id": draft.turn_id,
        "ttl_ms": ttl_ms,
        "max_messages": max_messages,
        "expected": expected or "",
        "continues": int(continues),
        "count": draft.message_count,
        "tokens": draft.tokens,
        "counter": draft.counter,
        "codec": draft.payload.codec,
        "format": draft.format,
        "payload": draft.payload.data,
        "lease": lease,
    }
    script: str = "append"
    read: Callable[[Any], Appended] = _read_appended if draft.message_count else _read_unchanged
    if cut is not None:
        read = partial(_read_replaced, cut)
        if cut.first:  # else it was done before, which an append of the same id finds
            script, values["replaced"] = "replace", cut.first
    try:
        appended: Appended = yield script_call(
            script, keys, values, read, expected=expected, began=began
        )
    except UnavailableError as error:
        error.turn_id = draft.turn_id  # so that it can be repeated as the same turn
        raise
    return appended


def read(  # noqa: PLR0913 - what goes along with a read
    keys: Keys,
    window: Window,
    density: Density,
    counter: Counter | None = None,
    *,
    begin: Call | None = None,
    beside: Call | None = None,
    search: Search | None = None,
) -> Flow[History]:
    """Read the newest turns that fit a window: one call, seldom a second one.

    With `begin`, that is done just before, and with `beside` just after, where that takes no
    round trip more; the history says with what result. With `search`, the window ends before
    the turn that is looked for.

    The list is read by position, so how many elements hold the window has to be known
    before: `density` estimates it from what was read before, and where the estimate was
    short, twice as many are read. Scripts would know, but a payload that passes through
    Lua costs twice the time of one that does not.
    """
    wanted = density.elements(window)
    if search is not None and wanted:
        wanted += 1  # most look for the newest turn
    began, known = 0, None
    raws: list[bytes]
    if begin is None and beside is None:
        raws = yield _lrange(keys, wanted)
    else:
        began, raws, known = yield from _with_others(begin, _lrange(keys, wanted), beside)
    while True:
        head = raws.pop(0) if raws and _element.is_head(raws[0]) else None
        # The head comes first in the list: where it was read, nothing is missing.
        if head is None and raws and (len(raws) < wanted or not wanted):
            msg = f"{keys}: the list does not begin with a head of ours; it was left as it is"
            raise CorruptTurnError(msg)
        rows = _parse(keys, raws)
        tokens_before = None
        if head is not None:
            tokens_before = _named(keys, _element.head_tokens_before, head)
        kept = rows if search is None else search.kept(rows, tokens_before)
        start = start_of(kept, tokens_before, window, counter)
        if head is not None or start > 0 or not rows:
            break
        wanted *= 2
        raws = yield _lrange(keys, wanted)
    density.learn(kept, start)
    if start > 0:
        tokens_before = Element(*kept[start - 1]).total_tokens
    history = History(kept[start:], tokens_before or 0, has_older=start > 0)
    if began:
        history.began = began
    history.beside = known
    return history


def _with_others(
    begin: Call | None, read: Call, beside: Call | None
) -> Flow[tuple[int, list[bytes], Any]]:
    replies = yield Together((read,) if begin is None else (begin, read), beside)
    known = None if beside is None else replies.pop()
    raws = replies.pop()
    return (0 if begin is None else replies.pop()), raws, known


def page(keys: Keys, limit: int, before: int | None) -> Flow[TurnPage]:
    """Read a page of whole turns, backwards: one call."""
    found: Found = yield page_call(keys, before or 0, limit, "turns")
    has_older = found.previous != EMPTY
    return TurnPage(
        turns_of(found.elements, found.tokens_before), found.revision, has_older=has_older
    )


def trim(keys: Keys, max_messages: int, max_turns: int) -> Flow[int]:
    """Drop the oldest turns: one call."""
    values = {"max_messages": max_messages, "max_turns": max_turns}
    dropped: int = yield script_call("trim", keys, values, int)
    return dropped


class Cleared(NamedTuple):
    """What was deleted of a conversation."""

    turns: int
    messages: int
    summaries: int
    keys: int


def clear(keys: Keys, operation: str = "clear") -> Flow[Cleared]:
    """Delete the conversation: one call."""
    call = script_call("clear", keys, {}, lambda reply: Cleared(*reply), operation=operation)
    cleared: Cleared = yield call
    return cleared


def expire(keys: Keys, ttl_ms: int) -> Flow[bool]:
    """Set the remaining life: one call."""
    found: bool = yield script_call("expire", keys, {"ttl_ms": ttl_ms}, bool)
    return found


def stat(keys: Keys) -> Flow[Stat]:
    """Measure the conversation: one call."""
    measured: Stat = yield script_call("stat", keys, {}, _read_stat, writes=False)
    return measured


def rewind(keys: Keys, turns: int, expected: str | None) -> Flow[list[Turn]]:
    """Undo the newest turns: two calls.

    First they are read, then the list is cut back from the revision read to the one
    before them. The second call names both ends, so that sending it twice (redis-py
    does, after a lost answer) undoes nothing more.
    """
    for attempt in range(_REWIND_TRIES):
        found: Found = yield page_call(keys, 0, turns, "rewind")
        if expected is not None and found.revision != expected:
            msg = (
                f"rewind of {keys}: expected revision {expected}, "
                f"found {found.revision}; nothing was undone"
            )
            raise ConflictError(msg, expected=expected, actual=found.revision)
        if not found.elements:
            return []
        values = {"expected": found.revision, "target": found.previous}
        try:
            yield script_call("rewind", keys, values, int, expected=found.revision)
        except ConflictError:
            # Somebody appended between the two calls. Without an expected revision
            # the newest turns are meant, whichever they are now.
            if expected is not None or attempt == _REWIND_TRIES - 1:
                raise
        else:
            return turns_of(found.elements, found.tokens_before)
    raise AssertionError  # the loop returns or raises


def fork(source: Keys, target: Keys, upto: int | None, ttl_ms: int, *, began: int = 0) -> Flow[int]:
    """Copy a conversation, up to a turn, into an empty one: two calls."""
    found: Found = yield page_call(source, 0 if upto is None else upto + 1, 0, "fork")
    elements = found.elements
    if not elements and found.revision != EMPTY:
        if upto is None:
            msg = f"fork of {source}: its head counts no turns; nothing was written"
            raise CorruptTurnError(msg)
        msg = f"fork of {source}: turn {upto} is not held any more; nothing was written"
        raise ValueError(msg)
    if upto is not None and elements and elements[-1].turn != upto:
        msg = f"fork of {source}: there is no turn {upto} yet; nothing was written"
        raise ValueError(msg)
    if not elements:
        # Nothing to write, but the caller is to get what was asked for: a copy of nothing.
        there: Found = yield page_call(target, 0, 1, "fork to")
        if there.revision != EMPTY:
            msg = (
                f"fork to {target}: the source holds nothing to copy, and the target is at "
                f"revision {there.revision}; nothing was written"
            )
            raise ConflictError(msg, expected=EMPTY, actual=there.revision)
        return 0
    first, last = elements[0], elements[-1]
    totals = (last.no, last.turn, last.total_messages, last.total_tokens)
    messages_before = first.total_messages - first.message_count
    before = (first.no, first.turn, messages_before, found.tokens_before)
    ids = [element.turn_id for element in elements[-IDS_KEPT:]]
    head = " ".join(["head 1", *map(str, (*totals, *before, len(ids))), *ids])
    owned = {} if target.owner is None else {"source": source.member}
    yield script_call(
        "seed",
        target,
        {"ttl_ms": ttl_ms, **owned},
        int,
        expected=EMPTY,
        began=began,
        further=(head.encode(), *found.raws),
        operation="fork to",
    )
    return last.turn - first.turn + 1


class Found(NamedTuple):
    """Elements of a conversation, and what stands before them."""

    revision: str
    previous: str
    tokens_before: int
    elements: list[Element]
    raws: list[bytes]


def _parse(keys: Keys, raws: list[bytes]) -> list[Row]:
    return _named(keys, _element.parse, raws)


def _named(keys: Keys, read: Callable[[T], R], raw: T) -> R:
    """Read what is stored; an error says which conversation it is."""
    try:
        return read(raw)
    except (CorruptTurnError, FormatError) as error:
        msg = f"{keys}: {error}; it was left as it is"
        raise type(error)(msg) from error


def script_call(  # noqa: PLR0913 - a call has these parts; all but two go by name
    name: str,
    keys: Keys | OwnerKeys,
    values: dict[str, Any],
    read: Callable[[Any], Any],
    *,
    writes: bool = True,
    expected: str | None = None,
    began: int = 0,
    further: Sequence[bytes] = (),
    further_keys: Sequence[bytes] = (),
    operation: str | None = None,
) -> Call:
    """Call a script: its header says the order of the arguments, and which keys it touches.

    Args:
        name: The script's.
        keys: Of the conversation, or of the owner.
        values: The arguments by their names, but for those of an owned conversation.
        read: Makes the result out of the reply.
        writes: Whether it can change something.
        expected: The revision that is demanded.
        began: When what is done here began, where the conversation has an owner.
        further: Arguments after those that have names.
        further_keys: Keys after those that have names.
        operation: What it is called in an error.
    """
    script = _scripts.load(name)
    if isinstance(keys, OwnerKeys) or keys.owner is None:
        arguments = script.order(values)
        touched = tuple([getattr(keys, key) for key in script.keys])
    else:
        known = {"began": began, "member": keys.member, "name": keys.name}
        known = {one: known[one] for one in script.owned_arguments if one in known}
        arguments = script.order({**known, **values}, owned=True)
        both = {**keys._asdict(), **keys.owner._asdict()}
        touched = tuple([both[key] for key in script.owned_keys])
    return Call(
        operation or name,
        (*touched, *further_keys),
        script,
        (*arguments, *further),
        writes,
        read,
        expected,
    )


def page_call(keys: Keys, before: int, max_turns: int, operation: str) -> Call:
    """Read the elements of the newest turns before one; `before` 0 is the end."""
    values = {"before": before, "max_turns": max_turns}
    read = partial(_read_found, keys)
    return script_call("page", keys, values, read, writes=False, operation=operation)


def _lrange(keys: Keys, wanted: int) -> Call:
    # Small letters keep redis-py's client-side cache out of it, which knows commands by
    # capital ones: a history that lacks the turn saved just now is worse than none.
    return Call("read", (keys.turns,), "lrange", (-wanted, -1), writes=False, read=list)


def _read_appended(reply: list[Any]) -> Appended:
    added, revision, turns, messages, tokens, dropped = reply
    return Appended(revision.decode(), not added, turns, messages, tokens, dropped)


def _read_replaced(cut: Cut, reply: list[Any]) -> Appended:
    gone = reply[6] if cut.first else not reply[0]
    return replace(_read_appended(reply[:6]), replaced_ids=cut.ids if gone else ())


def _read_unchanged(reply: list[Any]) -> Appended:
    return replace(_read_appended(reply), duplicate=False)


def _read_found(keys: Keys, reply: list[Any]) -> Found:
    revision, previous, tokens_before, *raws = reply
    elements = [Element(*row) for row in _parse(keys, raws)]
    return Found(revision.decode(), previous.decode(), tokens_before, elements, raws)


def _read_stat(reply: list[Any]) -> Stat:
    revision, turns, messages, tokens, memory, ttl_ms, first_ms, last_ms = reply
    return Stat(
        turns=turns,
        messages=messages,
        tokens=tokens,
        bytes=memory if memory >= 0 else None,
        ttl=timedelta(milliseconds=min(ttl_ms, _LONGEST_MS)) if ttl_ms >= 0 else None,
        first_time=time_of(first_ms) if turns else None,
        last_time=time_of(last_ms) if turns else None,
        revision=revision.decode(),
    )
