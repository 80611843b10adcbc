"""The end of what there is of an owner, or of one conversation; and that nothing comes back.

Whatever is going to write for an owner is given a number first, and is refused where something
was erased at a later one (`_owners.begun`). So what began before an erasure cannot write after
it, however late it comes.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Protocol

from . import _history
from ._calls import Call, Flow, Scan, in_steps
from ._history import script_call
from ._keys import Keys, OwnerKeys, literal
from .errors import ServerError, UnavailableError, UnsupportedError
from .results import Erasure

__all__ = [
    "ERASERS",
    "Eraser",
    "erase",
    "erase_conversation",
    "has_more",
    "keep_closed",
    "keys_of",
    "scan",
]

log = logging.getLogger("turnstore")

_TRIES = 5
_LAPSED, _CLOSED, _ENDED = range(3)  # as erase_some answers
_HAS_ENDED, _IS_MORE = 1, 2  # as erase_end does
_SWEPT_AT_ONCE = 400
_STEPS_OF_A_SCAN = 50  # between two that keep the owner closed


class Eraser(Protocol):
    """Deletes what else there is of an owner, and counts what it deleted by its own names."""

    def everything(self, keys: OwnerKeys, number: int) -> Flow[dict[str, int]]:
        """Delete all of it in the erasure of this number.

        Meanwhile nothing else writes for the owner, as long as `keep_closed` is yielded every
        few seconds.
        """
        ...

    def of_conversation(self, keys: Keys) -> Flow[dict[str, int]]:
        """Delete what is there of a conversation that was cleared just now.

        What it counts is 0 where it found nothing.
        """
        ...


ERASERS: list[Callable[[Any], Eraser]] = []
"""Make an eraser for the `Home` of a store. What keeps more of owners than conversations adds
its own when it is imported."""


@in_steps
def erase(keys: OwnerKeys, erasers: Sequence[Eraser], *, verify: bool) -> Flow[Erasure]:
    """Delete everything of an owner: two calls, and one for each 100 conversations.

    Raises:
        UnavailableError: It was held up, or overtaken, too often; a part may be left.
    """
    parts = Counter[str]()
    again = overtaken = 0
    sweeps = verify
    for _ in range(_TRIES):
        begin = script_call("erase_begin", keys, {"again": again}, list, operation="erase")
        number, *members = yield begin
        again, state = 1, _CLOSED
        while members and state == _CLOSED:
            state, summaries, *members = yield _erase_some(keys, number, members)
            parts["summaries"] += summaries
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
                return Erasure(conversations, turns, messages, removed, verify, dict(+parts))
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
    keys: OwnerKeys, number: int, erasers: Sequence[Eraser], parts: Counter[str]
) -> Flow[int]:
    """Delete what erasers know of, and add what they count to the parts."""
    state = _CLOSED
    for eraser in erasers:
        if state == _CLOSED:
            parts.update((yield from eraser.everything(keys, number)))
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
    pattern, ours = _all_of(keys)
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
        gone = sorted(rest)
        for start in range(0, len(gone), _SWEPT_AT_ONCE):
            some = gone[start : start + _SWEPT_AT_ONCE]
            state, *_ = yield _erase_some(keys, number, [b"-"] * len(some), some)
            if state != _CLOSED:
                return state
    msg = f"erase of {keys}: keys of the owner come again and again; who writes them?"
    raise ServerError(msg)


def _all_of(keys: OwnerKeys) -> tuple[bytes, re.Pattern[bytes]]:
    """Give what all keys of an owner are like: for a SCAN, which finds more, and exactly."""
    before, brace, tag = keys.tag.partition(b":{")
    # Parts that are indexed by the server have a letter behind the version, as in `:1f:{`.
    pattern = literal(before) + b"*" + brace + tag + b"*"
    return pattern, re.compile(re.escape(before) + b"[a-z]*" + re.escape(brace + tag))


def keys_of(operation: str, keys: OwnerKeys) -> Flow[list[bytes]]:
    """Look at every key there is, for those of an owner."""
    pattern, ours = _all_of(keys)
    found = yield from scan(operation, keys.generation, pattern)
    return [key for key in found if ours.match(key)]


@in_steps
def erase_conversation(keys: Keys, erasers: Sequence[Eraser], *, verify: bool) -> Flow[Erasure]:
    """Delete a conversation of an owner, and what was remembered of it.

    From the first call on, what began before is refused: of the conversation, and of whatever
    is drawn from it. With `verify` it is done until nothing is found any more.

    Raises:
        UnsupportedError: There are facts of the owner, and no eraser knows which are its.
        ServerError: Something of it is written again and again.
    """
    assert keys.owner is not None  # noqa: S101 - its `Place` looks at that
    if not erasers:
        yield from _check_alone(keys, keys.owner, "Nothing was deleted")
    turns = messages = removed = 0
    parts = Counter[str]()
    for tried in range(_TRIES):
        cleared = yield from _history.clear(keys, "erase")
        found = Counter(summaries=cleared.summaries)
        for eraser in erasers:
            found.update((yield from eraser.of_conversation(keys)))
        swept = (yield from _sweep_conversation(keys)) if verify else 0
        if not erasers:  # what began before it was cleared may have stored the first facts
            yield from _check_alone(keys, keys.owner, "Its turns were deleted")
        turns, messages = turns + cleared.turns, messages + cleared.messages
        removed += cleared.keys + swept
        parts.update(found)
        is_empty = not (cleared.keys or swept or found.total())
        if not verify or (tried and is_empty):
            return Erasure(int(turns > 0), turns, messages, removed, verify, dict(+parts))
    msg = f"erase of {keys}: something of it comes again and again; who writes it?"
    raise ServerError(msg)


def _sweep_conversation(keys: Keys) -> Flow[int]:
    """Look at every key there is, and delete what is the conversation's; count that."""
    tag = keys.turns.removesuffix(b"turns")
    found = yield from scan("erase", keys.turns, literal(tag) + b"*")
    if not found:
        return 0
    deleted: int = yield Call("erase", tuple(found), "unlink", (), writes=True, read=int)
    return deleted


def _check_alone(keys: Keys, owner: OwnerKeys, state: str) -> Flow[None]:
    """Make sure that the owner has nothing but conversations."""
    if (yield has_more(owner)):
        msg = (
            f"erase of {keys}: the owner has long-term facts, and this process has not imported "
            f"turnstore.facts, which knows those of one conversation. {state}: "
            "`import turnstore.facts`, which needs numpy, and do it again"
        )
        raise UnsupportedError(msg)


def has_more(owner: OwnerKeys) -> Call:
    """Ask whether an owner has more than conversations."""
    return Call("erase", owner.signs, "exists", (), writes=False, read=bool)


def scan(operation: str, key: bytes, pattern: bytes) -> Flow[set[bytes]]:
    """Look at every key there is; see `Scan`."""
    keys, at = set[bytes](), None
    while True:
        at, found = yield Scan(operation, key, pattern, at)
        keys.update(found)
        if at is None:
            return keys
