"""Conversations of pydantic-ai, in its own model: a log of entries, and a record that moves.

Each save appends one turn to a conversation of the store: the record as it is from then on,
and the new entries. So record and entries come together or not at all, the newest record is
the valid one, and a branch that was left stays where it is.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai import conversation_store as theirs
from pydantic_ai.conversation_store import ConversationConflict, ConversationEntry
from pydantic_ai.conversation_store import ConversationRecord as Record

from turnstore.aio import AsyncConversation, AsyncStore
from turnstore.errors import ConflictError
from turnstore.results import History
from turnstore.window import Window

__all__ = ["ConversationStore"]

_FORMAT = "pydantic_ai.log"
_INDEX = "pydantic_ai.index"
_RECORD = TypeAdapter(Record)
_ENTRY = TypeAdapter(ConversationEntry)
_NEWEST = Window(turns=1)
_ALL = Window()
_AT_ONCE = 20


class _Entry(str):
    """The id of an entry that knows in which conversation it lies."""

    __slots__ = ("conversation",)
    conversation: str


def _at(identifier: str, conversation: str) -> _Entry:
    entry = _Entry(identifier)
    entry.conversation = conversation
    return entry


class ConversationStore(theirs.ConversationStore):
    """Keep the conversations of pydantic-ai: revisions, branches, forks and a listing.

    Args:
        store: Where they are kept, with its limits and its time to live. They have keys of
            their own, whatever else the store holds.

    A fork copies the history that it keeps, so that it does not depend on the life of the
    conversation that it comes from. What the limits of the store dropped is not loaded:
    a history then begins with the oldest entry that is held. Deleting a conversation deletes
    its messages, in its branches too; forks keep theirs.

    A listing comes from an index of the newest saves, one for each scope and one for all,
    as long and living as long as the store's limits say (by default 1000 saves, a day
    after the last one). A conversation that was not saved within these is not listed,
    though it can be loaded.

    Cost:
        Round trips: two to load, three to save, four to delete, seven to fork. A listing
        takes two, in which it reads a record for each conversation.

    Example:
        >>> from pydantic_ai import Agent
        >>> conversations = ConversationStore(store)
        >>> result = await Agent("test").run("My name is Ada.")
        >>> entries = await conversations.save(result, scope="ada")
        >>> [record.scope for record in await conversations.list_conversations(scope="ada")]
        ['ada']
    """

    def __init__(self, store: AsyncStore) -> None:
        if not isinstance(store, AsyncStore):
            msg = f"ConversationStore needs an AsyncStore, not {type(store).__name__}"
            raise TypeError(msg)
        self._store = store

    def _log(self, conversation_id: str) -> AsyncConversation:
        return self._store.conversation(f"{_FORMAT}:{conversation_id}")

    def _indexes(self, scope: str | None) -> list[AsyncConversation]:
        names = [f"{_INDEX}:all"] + ([] if scope is None else [f"{_INDEX}:scope:{scope}"])
        return [self._store.conversation(name) for name in names]

    async def read_record(self, conversation_id: str) -> Record | None:
        """Read the newest record; one round trip."""
        return _record(await self._log(conversation_id).read(_NEWEST), conversation_id)

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[Record]:
        """Read the records that the index names, newest first."""
        saves = await self._indexes(scope)[-1].read(_ALL)
        names = list(dict.fromkeys(str(save["conversation_id"]) for save in reversed(saves)))
        records: list[Record] = []
        while names and (limit is None or len(records) < limit):
            # Each takes a connection of its own, of which a client may have few.
            wanted = _AT_ONCE if limit is None else min(limit - len(records), _AT_ONCE)
            found = await gather(*map(self.read_record, names[:wanted]))
            del names[:wanted]
            records += [one for one in found if one and (scope is None or one.scope == scope)]
        return sorted(records, key=lambda record: record.updated_at, reverse=True)

    async def write_record(
        self,
        record: Record,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Append the record and the entries in one step, if the revision is the expected one."""
        target = record.conversation_id
        log = self._log(target)
        saved = {"conversation_id": target}
        # The index first: what is listed and not there is left out by reading.
        listing = [index.append(saved, format=_INDEX) for index in self._indexes(record.scope)]
        listed = gather(*listing)
        try:
            revision = (await self._expected(target, expected_revision)).revision
        finally:
            await listed
        source = getattr(record.head_id, "conversation", target)
        try:
            if source != target:
                revision = await self._copy(source, str(record.head_id), target)
            await log.append(
                [
                    {"kind": "record", "record": _RECORD.dump_python(record, mode="json")},
                    *(_ENTRY.dump_python(entry, mode="json") for entry in new_entries),
                ],
                turn_id=record.revision,
                expected_revision=revision,
                format=_FORMAT,
            )
        except ConflictError as error:
            raise ConversationConflict(target) from error

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete record and entries in one step; the index forgets it by reading."""
        newest = await self._expected(conversation_id, expected_revision)
        everything = newest.turns[-1].number
        try:
            await self._log(conversation_id).rewind(everything, expected_revision=newest.revision)
        except ConflictError as error:
            raise ConversationConflict(conversation_id) from error

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Read one entry, by an id that a record or an entry of this store holds."""
        return (await self.read_history(entry_id, limit=1))[-1]

    async def read_history(
        self, head_id: str | None, *, limit: int | None = None
    ) -> list[ConversationEntry]:
        """Read the entries up to one: one round trip, seldom a second one with a limit."""
        if head_id is None or limit == 0:
            return []
        conversation_id = getattr(head_id, "conversation", None)
        if conversation_id is None:
            msg = (
                f"turnstore finds an entry by its conversation, which {head_id!r} does not name; "
                "take it from load_entries"
            )
            raise LookupError(msg)
        log = self._log(conversation_id)
        # Most histories are the newest entries, with a record before each few of them.
        history = await log.read(_ALL if limit is None else Window(messages=2 * limit + 1))
        path = _path(history, head_id, limit)
        if history.has_older and (limit is None or len(path) < limit):
            path = _path(await log.read(_ALL), head_id, limit)
        if not path:
            msg = f"entry {head_id!r} is not held any more"
            raise LookupError(msg)
        return [_entry(one, conversation_id) for one in path]

    async def _expected(self, conversation_id: str, expected: str | None) -> History:
        """Read what has their revision, for ours; or say that it has another one by now."""
        newest = await self._log(conversation_id).read(_NEWEST)
        record = _record(newest, conversation_id)
        if (None if record is None else record.revision) != expected:
            raise ConversationConflict(conversation_id)
        return newest

    async def _copy(self, source: str, head_id: str, target: str) -> str:
        """Copy the log up to an entry; a copy without a record of its own is no conversation."""
        log = self._log(source)
        turns = (await log.read(_ALL)).turns
        held = [t.number for t in turns if any(one.get("id") == head_id for one in t.messages)]
        if not held:
            raise ConversationConflict(target)
        copy = await log.fork(f"{_FORMAT}:{target}", upto=held[-1])
        return (await copy.stat()).revision


def _record(newest: History, conversation_id: str) -> Record | None:
    for message in newest:
        if message["kind"] == "record":
            record = _RECORD.validate_python(message["record"])
            if record.conversation_id != conversation_id:
                return None  # of a fork that was not finished
            if record.head_id is not None:
                record.head_id = _at(record.head_id, conversation_id)
            record.branches = [_at(tip, conversation_id) for tip in record.branches]
            return record
    return None


def _path(history: History, head_id: str, limit: int | None) -> list[dict[str, Any]]:
    """Follow the entries back from one, as far as they are held."""
    entries = {message["id"]: message for message in history if message["kind"] == "message"}
    path: list[dict[str, Any]] = []
    entry = entries.get(str(head_id))
    while entry is not None and (limit is None or len(path) < limit):
        path.append(entry)
        entry = entries.get(entry["parent_id"] or "")
    return path[::-1]


def _entry(message: dict[str, Any], conversation_id: str) -> ConversationEntry:
    entry = _ENTRY.validate_python(message)
    object.__setattr__(entry, "id", _at(entry.id, conversation_id))  # a frozen dataclass
    return entry
