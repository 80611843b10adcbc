"""Remove facts: one, those of a conversation, and what an erasure of their owner removes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from turnstore._calls import Call, Flow

from .._owner import OwnerPlace, script_call
from ..engines import Plain
from .adding import check_id
from .commit import Blocked, Commit, Remove, again, batches, begin, commit, renew
from .reading import read_records, walk
from .record import Record

if TYPE_CHECKING:
    from .base import Base

__all__ = ["forget", "forget_conversation", "remove"]


def forget(base: Base, owner: str, id: str) -> Flow[bool]:  # noqa: A002 - the name of the field
    """Remove a fact: three calls."""
    place = base.ground.owner(owner)
    check_id(id)
    records = yield from read_records(place, [id])
    ttl_ms = base.settings.ttl_ms
    removed = yield from remove(place, list(records.values()), "forget", ttl_ms=ttl_ms)
    return bool(removed)


def forget_conversation(base: Base, owner: str, conversation: str) -> Flow[int]:
    """Remove the facts of a conversation, and refuse what is being drawn from it just now."""
    place = base.ground.owner(owner)
    digest = base.ground.conversation(conversation)
    yield script_call(
        "facts_forget", place, {"conversation": digest}, int, operation="forget_conversation"
    )
    found = yield from walk(place, lambda record: record.digest == digest)
    ttl_ms = base.settings.ttl_ms
    removed = yield from remove(place, found, "forget_conversation", ttl_ms=ttl_ms)
    yield from _drop_dead_letters(place, digest)
    return len(removed)


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
            began = yield from begin(place, (), operation)
            if not began.spaces:
                return []
            changes = [Remove(record, unless_changed=unless_changed) for record in part]
            what = Commit(began, Plain(), began.spaces[0], ttl_ms)
            try:
                committed = yield from commit(place, changes, what, operation)
            except Blocked as blocked:
                if blocked.what == "changed":
                    del part[int(blocked.detail) - 1]
                raise
            if committed.is_short:
                yield from renew(place, began.spaces, ttl_ms)
            pairs = zip(part, committed.answers, strict=True)
            return [record.fact.id for record, answer in pairs if answer == "1"]

        removed += yield from again(work, ("spaces", "changed"), tries=len(part) + 5)
    return removed


def _drop_dead_letters(place: OwnerPlace, digest: str) -> Flow[None]:
    """Drop the answers of models that were drawn from a conversation, and could not be read."""
    letters: list[tuple[bytes, dict[bytes, bytes]]] = yield Call(
        "forget_conversation", (place.keys.dead,), "xrange", ("-", "+"), writes=False, read=_entries
    )
    its = [id_ for id_, letter in letters if letter.get(b"conversation") == digest.encode()]
    if its:
        yield Call(
            "forget_conversation", (place.keys.dead,), "xdel", tuple(its), writes=True, read=int
        )


def _entries(reply: Any) -> list[tuple[bytes, dict[bytes, bytes]]]:
    return [(id_, _fields(fields)) for id_, fields in reply]


def _fields(fields: Any) -> dict[bytes, bytes]:
    if isinstance(fields, dict):
        return fields
    return dict(zip(fields[::2], fields[1::2], strict=True))
