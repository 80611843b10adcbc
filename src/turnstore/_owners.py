"""What belongs to an owner: the list of conversations, their titles, and the end of it all.

An owner's keys lie in one slot, with all of the owner's conversations, so that each script
sees them at one moment. Whatever is going to write is given a number first (`begun`), and
each script that writes demands that nothing was erased at a later one: `lua/lib/owner.lua`.
So what began before an erasure cannot write after it, however late it comes.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, NamedTuple, TypeAlias

from . import _json
from ._calls import Call, Flow, Scan
from ._history import script_call
from ._keys import Keys, OwnerKeys
from .errors import ServerError, UnavailableError
from .results import ConversationInfo, ConversationPage, Erasure

__all__ = [
    "TITLE_LENGTH",
    "Eraser",
    "begin",
    "begun",
    "erase",
    "keep_closed",
    "listing_name",
    "page",
    "scan",
    "set_title",
    "title",
]

log = logging.getLogger("turnstore")

TITLE_LENGTH = 200
"""Characters that a title may have."""

Eraser: TypeAlias = Callable[[OwnerKeys, int], Flow[dict[str, int]]]
"""What else there is of an owner: a flow that deletes it, and counts what it deleted.

It is given the owner's keys and the number of the erasure. Meanwhile nothing else writes for
the owner, as long as `keep_closed` is yielded every few seconds.
"""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TRIES = 5
_LAPSED, _CLOSED, _ENDED = range(3)  # as erase_some answers
_HAS_ENDED, _IS_MORE = 1, 2  # as erase_end does
_SWEPT_AT_ONCE = 400
_STEPS_OF_A_SCAN = 50  # between two that keep the owner closed
_SPECIAL = re.compile(rb"[\\*?\[\]^-]")  # to SCAN


def begin(keys: Keys | OwnerKeys) -> Call:
    """Ask for the number of what begins now."""
    return script_call("owner_begin", keys, {}, int, writes=False, operation="begin")


def begun(keys: Keys | OwnerKeys) -> Flow[int]:
    """Begin; 0 without a call where the conversation has no owner."""
    if isinstance(keys, Keys) and keys.owner is None:
        return 0
    number: int = yield begin(keys)
    return number


def listing_name(identifier: str, title: str = "") -> bytes:
    """Write what an owner's list has for a conversation: its id, and its title."""
    parts = [identifier, title] if title else [identifier]
    return _json.dumps(parts)[1]


class _Row(NamedTuple):
    member: bytes
    number: int
    name: bytes


def page(keys: OwnerKeys, limit: int, before: int | None) -> Flow[ConversationPage]:
    """List an owner's conversations: two calls, more where some have ended."""
    shown: list[tuple[int, ConversationInfo]] = []
    number = before or 0
    while True:
        wanted = limit + 1 - len(shown)
        rows: list[_Row] = yield script_call(
            "owner_page",
            keys,
            {"before": number, "limit": wanted},
            _read_rows,
            writes=False,
            operation="list",
        )
        if rows:
            number = rows[-1].number
            counts: list[int] = yield script_call(
                "owner_counts",
                keys,
                {},
                list,
                writes=False,
                further=[row.member for row in rows],
                further_keys=[keys.conversation(row.member.decode()).turns for row in rows],
                operation="list",
            )
            for row, turns, messages in zip(rows, counts[::2], counts[1::2], strict=True):
                if turns:  # 0: it has ended
                    shown += [(row.number, info) for info in _info(row, turns, messages)]
        if len(shown) > limit or len(rows) < wanted:
            break
    cursor = shown[limit - 1][0] if len(shown) > limit else None
    return ConversationPage([info for _, info in shown[:limit]], cursor)


def _info(row: _Row, turns: int, messages: int) -> list[ConversationInfo]:
    if not row.name:
        log.warning("the id of conversation %s is lost; it is not listed", row.member.decode())
        return []
    identifier, *titles = _json.loads(row.name)
    return [
        ConversationInfo(
            id=identifier,
            title=titles[0] if titles else None,
            last_activity=_EPOCH + timedelta(microseconds=row.number),
            turns=turns if turns >= 0 else None,
            messages=messages if turns >= 0 else None,
        )
    ]


def title(keys: Keys) -> Flow[str | None]:
    """Read the title of a conversation: one call."""
    names = () if keys.owner is None else (keys.owner.names,)
    call = Call("title", names, "hget", (keys.member,), writes=False, read=_read_title)
    stored: str | None = yield call
    return stored


def set_title(keys: Keys, title: bytes) -> Flow[bool]:
    """Give a conversation another title: two calls."""
    began = yield from begun(keys)
    found: bool = yield script_call(
        "owner_title", keys, {"title": title}, bool, began=began, operation="title"
    )
    return found


def erase(keys: OwnerKeys, erasers: Sequence[Eraser], *, verify: bool) -> Flow[Erasure]:
    """Delete everything of an owner: two calls, and one for each 100 conversations.

    Raises:
        UnavailableError: It was held up, or overtaken, too often; a part may be left.
    """
    parts: dict[str, int] = {}
    again = overtaken = 0
    sweeps = verify
    for _ in range(_TRIES):
        begin = script_call("erase_begin", keys, {"again": again}, list, operation="erase")
        number, *members = yield begin
        again, state = 1, _CLOSED
        while members and state == _CLOSED:
            state, *members = yield _erase_some(keys, number, members)
        if state == _CLOSED:
            state = yield from _erase_others(keys, number, erasers, parts)
        if sweeps and state == _CLOSED:
            state = yield from _sweep(keys, number)
        if state == _ENDED and (sweeps or erasers):
            overtaken += 1  # another one need not have looked at all that this one has to
            continue
        if state != _LAPSED:
            ended, *counts = yield _erase_end(keys, number)
            if ended == _IS_MORE and not sweeps:
                sweeps = True  # no eraser of this process knows what it is
                continue
            if ended == _HAS_ENDED:
                conversations, turns, messages, removed = counts
                return Erasure(conversations, turns, messages, removed, verify, parts)
        log.info("an erasure of %s was held up, and is begun again", keys)
    why = "was held up for seconds, so that others may have written meanwhile"
    if overtaken:
        why = "was held up, or overtaken by another erasure, which need not look at all of it"
    msg = (
        f"erase of {keys}: each of {_TRIES} tries {why}. What began before it is refused; a part "
        "may be left, and after ten seconds at most the owner is open to writers again. Erase "
        "again when the server is less busy"
    )
    raise UnavailableError(msg, outcome_unknown=True)


def _erase_others(
    keys: OwnerKeys, number: int, erasers: Sequence[Eraser], parts: dict[str, int]
) -> Flow[int]:
    """Delete what erasers know of, and add what they count to the parts."""
    state = _CLOSED
    for eraser in erasers:
        if state == _CLOSED:
            for name, count in (yield from eraser(keys, number)).items():
                parts[name] = parts.get(name, 0) + count
            state, *_ = yield keep_closed(keys, number)
    return state


def _erase_end(keys: OwnerKeys, number: int) -> Call:
    return script_call(
        "erase_end",
        keys,
        {"number": number},
        list,
        further_keys=keys.signs,
        operation="erase",
    )


def keep_closed(keys: OwnerKeys, number: int) -> Call:
    """Keep writers out for some seconds more; answers 1 first where they were out till now."""
    return _erase_some(keys, number, [])


def _erase_some(
    keys: OwnerKeys, number: int, members: Sequence[bytes], found: Sequence[bytes] | None = None
) -> Call:
    """Delete conversations, or the keys that were found, of which each is a member's."""
    if found is None:
        found = [key for one in members for key in keys.conversation(one.decode())[:4]]
    return script_call(
        "erase_some",
        keys,
        {"number": number},
        list,
        further=members,
        further_keys=found,
        operation="erase",
    )


def _sweep(keys: OwnerKeys, number: int) -> Flow[int]:
    """Look at every key there is, and delete what is the owner's and no list knows."""
    before, brace, tag = keys.tag.partition(b":{")
    # Parts that are indexed by the server have a letter behind the version, as in `:1f:{`.
    pattern = _SPECIAL.sub(rb"\\\g<0>", before) + b"*" + brace + tag + b"*"
    ours = re.compile(re.escape(before) + b"[a-z]*" + re.escape(brace + tag))
    state: int = _CLOSED
    for _ in range(_TRIES):
        rest, at = set[bytes](), None
        for step in count(1):
            at, found = yield Scan("erase", keys.generation, pattern, at)
            rest.update(filter(ours.match, set(found).difference(keys)))
            if at is None or step % _STEPS_OF_A_SCAN == 0:
                state, *_ = yield keep_closed(keys, number)
                if at is None or state != _CLOSED:
                    break
        if not rest or state != _CLOSED:
            return state
        for start in range(0, len(rest), _SWEPT_AT_ONCE):
            some = sorted(rest)[start : start + _SWEPT_AT_ONCE]
            state, *_ = yield _erase_some(keys, number, [b"-"] * len(some), some)
            if state != _CLOSED:
                return state
    msg = f"erase of {keys}: keys of the owner come again and again; who writes them?"
    raise ServerError(msg)


def scan(operation: str, key: bytes, pattern: bytes) -> Flow[set[bytes]]:
    """Look at every key there is; see `Scan`."""
    keys, at = set[bytes](), None
    while True:
        at, found = yield Scan(operation, key, pattern, at)
        keys.update(found)
        if at is None:
            return keys


def _read_rows(reply: list[Any]) -> list[_Row]:
    return [_Row(*reply[place : place + 3]) for place in range(0, len(reply), 3)]


def _read_title(reply: bytes | None) -> str | None:
    titles = _json.loads(reply)[1:] if reply else []
    return titles[0] if titles else None
