"""Remove facts: those of turns or of a conversation, and whichever are given."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from turnstore._calls import Call, Flow, in_steps, pairs_of
from turnstore._checks import check_turn_id
from turnstore.results import Turn

from .._owner import OwnerPlace, script_call
from ..engines import Plain
from .commit import (
    Blocked,
    Change,
    Commit,
    Remove,
    Unseen,
    again,
    batches,
    begin,
    commit,
    renew,
)
from .counting import check_whole, records_of
from .reading import read_records
from .record import Record, exchange_norm

if TYPE_CHECKING:
    from .base import Base

__all__ = [
    "Entry",
    "Forgotten",
    "drop",
    "forget_conversation",
    "forget_of",
    "forget_turns",
    "make_changes",
    "remove",
]


class Forgotten(NamedTuple):
    """What was removed of a conversation."""

    facts: int
    exchanges: int
    dead_letters: int


class Entry(NamedTuple):
    """An entry of a stream."""

    id: bytes
    fields: dict[bytes, bytes]


@in_steps
def forget_conversation(base: Base, owner: str, conversation: str) -> Flow[int]:
    """Remove the facts of a conversation, and refuse what is being drawn from it just now."""
    place = base.ground.owner(owner)
    digest = base.ground.conversation(conversation)
    ttl_ms = base.settings.ttl_ms
    gone = yield from forget_of(place, digest, "forget_conversation", ttl_ms=ttl_ms)
    return gone.facts + gone.exchanges


@in_steps
def forget_turns(
    base: Base, owner: str, conversation: str, turns: Iterable[Turn | str]
) -> Flow[int]:
    """Remove what only these turns say, and refuse exchanges of them that wait to be stored."""
    operation = "forget_turns"
    place = base.ground.owner(owner)
    digest = base.ground.conversation(conversation)
    ids = _ids_of(turns)
    if not ids:
        return 0
    norms = [exchange_norm(digest, id_) for id_ in ids]
    yield script_call("facts_forget", place, {}, int, more=norms, operation=operation)
    its = yield from records_of(place, digest, operation)
    found = [record for record in its if _without(record, ids) is not None]
    removed = 0
    for part in batches(found, lambda record: record.fact.text):

        def work(part: list[Record] = part) -> Flow[int]:
            now = yield from read_records(place, [record.fact.id for record in part])
            changes = [
                change for record in now.values() if (change := _without(record, ids)) is not None
            ]
            answers = yield from make_changes(place, changes, operation, base.settings.ttl_ms)
            pairs = zip(changes, answers, strict=True)
            return sum(isinstance(change, Remove) and answer == "1" for change, answer in pairs)

        removed += yield from again(work, ("spaces", "changed"), tries=len(part) + 5)
    return removed


def _ids_of(turns: Iterable[Turn | str]) -> set[str]:
    """Give the ids of turns, and of all their pieces.

    Raises:
        TypeError, ValueError: There is something else among them.
    """
    if isinstance(turns, str | Turn):
        msg = "forget_turns takes several turns, or their ids: put the one into a list"
        raise TypeError(msg)
    return {
        id_
        for turn in turns
        for id_ in (turn.ids if isinstance(turn, Turn) else (check_turn_id(turn),))
    }


def _without(record: Record, turn_ids: Collection[str]) -> Change | None:
    """Give what makes a fact one that these turns have not said; None leaves it."""
    fact = record.fact
    gone = tuple(source for source in fact.sources if source in turn_ids)
    if fact.pinned or not gone:
        return None
    if len(gone) == len(fact.sources):
        return Remove(record, unless_changed=True)
    return Unseen(fact.id, gone, fact.observed, record.revision)


def forget_of(
    place: OwnerPlace, digest: str, operation: str, *, ttl_ms: int = -1
) -> Flow[Forgotten]:
    """Remove the facts of the conversation of a digest, exchanges among them, and dead letters.

    Args:
        place: The owner's.
        digest: Of the conversation.
        operation: What the caller asked for, in the words of an error.
        ttl_ms: The time to live of what is left, as for a `Commit`.
    """
    yield script_call("facts_forget", place, {}, int, more=[digest], operation=operation)
    found = yield from records_of(place, digest, operation)
    removed = set((yield from remove(place, found, operation, ttl_ms=ttl_ms)))
    exchanges = {record.fact.id for record in found if record.fact.kind == "exchange"}
    letters = yield from drop(
        place.keys.dead,
        lambda letter: letter.fields.get(b"conversation") == digest.encode(),
        operation,
    )
    return Forgotten(len(removed - exchanges), len(removed & exchanges), len(letters))


def remove(
    place: OwnerPlace,
    records: Sequence[Record],
    operation: str,
    *,
    ttl_ms: int = -1,
    unless_changed: bool = False,
) -> Flow[list[str]]:
    """Remove facts, in commits of some at a time. It needs no embedder.

    Args:
        place: The owner's.
        records: The facts as they were read.
        operation: What the caller asked for, in the words of an error.
        ttl_ms: The time to live of what is left, as for a `Commit`.
        unless_changed: Whether those stay that were changed since.

    Returns:
        The ids of those that were removed.
    """
    removed: list[str] = []
    for part in batches(records, lambda record: record.fact.text):

        def work(part: list[Record] = part) -> Flow[list[str]]:
            changes = [Remove(record, unless_changed=unless_changed) for record in part]
            try:
                answers = yield from make_changes(place, changes, operation, ttl_ms)
            except Blocked as blocked:
                if blocked.what == "changed":
                    del part[int(blocked.detail) - 1]
                raise
            pairs = zip(part, answers, strict=True)
            return [record.fact.id for record, answer in pairs if answer == "1"]

        removed += yield from again(work, ("spaces", "changed"), tries=len(part) + 5)
    return removed


def make_changes(
    place: OwnerPlace, changes: Sequence[Change], operation: str, ttl_ms: int
) -> Flow[Sequence[str]]:
    """Make changes that need no vector, and say what became of each: two calls."""
    began = yield from begin(place, (), operation, takes_away=True)
    if not began.spaces:  # all of it went since it was read, or what says where vectors lie
        yield from check_whole(place, (), operation)
        return ["0"] * len(changes)
    what = Commit(began, Plain(), began.spaces[0], ttl_ms)
    committed = yield from commit(place, changes, what, operation)
    if committed.is_short:
        yield from renew(place, began.spaces, ttl_ms)
    return committed.answers


def drop(key: bytes, is_meant: Callable[[Entry], bool], operation: str) -> Flow[list[bytes]]:
    """Remove some of the entries of a stream, and give their ids: a call, and one if there are."""
    entries: list[Entry] = yield Call(
        operation, (key,), "xrange", ("-", "+"), writes=False, read=_entries
    )
    meant = [entry.id for entry in entries if is_meant(entry)]
    if meant:
        yield Call(operation, (key,), "xdel", tuple(meant), writes=True, read=int)
    return meant


def _entries(reply: Any) -> list[Entry]:
    return [Entry(id_, pairs_of(fields)) for id_, fields in reply]
