"""What an erasure removes of facts: of an owner every key, and each document of an index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from turnstore import _history
from turnstore._calls import Call, Flow, Together
from turnstore._erasing import has_more
from turnstore._keys import Keys, OwnerKeys
from turnstore.errors import ServerError

from .._owner import Ground, OwnerPlace
from ..engines import documents_of
from .counting import check_whole, count_exchanges
from .forgetting import Entry, drop, forget_of
from .reading import texts, words

__all__ = ["Eraser"]

_KEYS_AT_ONCE = 400
_DOCUMENTS_AT_ONCE = 50  # to take one out of a graph holds up the server for half a millisecond
_TRIES = 4
_CLOSED = 1  # as erase_some answers


@dataclass(frozen=True, slots=True)
class Eraser:
    """Removes the facts of an owner, for `store.erase`, or those of a conversation.

    Attributes:
        ground: Where the facts of the store lie.
    """

    ground: Ground

    def everything(self, keys: OwnerKeys, number: int) -> Flow[dict[str, int]]:
        """Remove all of them, while nobody else writes for the owner.

        The documents go first, as the facts say which there are: an erasure that breaks off is
        done again. Then each index is asked, also where there are no facts any more: documents
        can outlive them.

        Args:
            keys: The owner's.
            number: Of the erasure.

        Returns:
            How many there were: `facts`; `exchanges`; blocks of the working `memory`; `cursors`
            up to which conversations were read; `dead_letters`; and `operations` of the log.

        Raises:
            ServerError: The index of a space still counts documents of the owner.
        """
        place = self.ground.owner_in(keys.generation)
        known = yield from self._known_spaces(keys)
        if known is None:
            return {}
        tokens, ids, memory, cursors, letters, operations = yield Together(
            (
                _look(place.keys.postings, "hget", words, "#v"),
                _look(place.keys.facts, "hkeys", texts),
                _look(place.keys.memory, "hlen", int),
                _look(place.keys.cursors, "hlen", int),
                _look(place.keys.dead, "xlen", int),
                _look(place.keys.ops, "xlen", int),
            )
        )
        exchanges = yield from count_exchanges(place)
        spaces = _spaces(tokens, known)
        indexed = _indexed(spaces)
        documents = [place.vector(token, id_) for token in indexed for id_ in ids]
        rest = [*map(place.vectors, spaces), *place.keys[2:]]
        for gone, at_once in ((documents, _DOCUMENTS_AT_ONCE), (rest, _KEYS_AT_ONCE)):
            for start in range(0, len(gone), at_once):
                state, *_ = yield _delete(keys, number, gone[start : start + at_once])
                if state != _CLOSED:
                    return {}  # nothing was deleted: it is begun anew, and counts what is left then
        for token in indexed:
            yield from _rest(place, token, keys, number)
        return {
            "facts": len(ids) - exchanges,
            "exchanges": exchanges,
            "memory": memory,
            "cursors": cursors,
            "dead_letters": letters,
            "operations": operations,
        }

    def of_conversation(self, keys: Keys) -> Flow[dict[str, int]]:
        """Remove what was drawn from a conversation, and what says that it was.

        Args:
            keys: Of the conversation, which was cleared just now.

        Returns:
            How many there were: `facts`; `exchanges`; `cursors`; `dead_letters`; `operations` of
            the log; and `documents` of an index that no fact knows of.

        Raises:
            ErasedError: Everything of the owner is being erased just now.
            CorruptTurnError: One of its facts cannot be read, or a part of the owner's facts is
                lost, so that some may be left.
        """
        place = self.ground.owner_in(keys.turns)
        known = yield from self._known_spaces(place.owner_keys)
        if known is None:
            return {}
        forgotten = yield from forget_of(place, keys.member, "erase")
        cursors: int = yield Call(
            "erase", (place.keys.cursors,), "hdel", (keys.member,), writes=True, read=int
        )
        operations = yield from _drop_operations(place, keys.member)
        tokens: list[str] = yield _look(place.keys.postings, "hget", words, "#v")
        documents = 0
        spaces = _spaces(tokens, known)
        for token in _indexed(spaces):
            documents += yield from _drop_documents(place, token, keys.member)
        yield from check_whole(place, spaces, "erase")
        return {
            **forgotten._asdict(),
            "cursors": cursors,
            "operations": operations,
            "documents": documents,
        }

    def _known_spaces(self, keys: OwnerKeys) -> Flow[list[str] | None]:
        """Give the spaces of all facts of the store; None where there is nothing of any facts."""
        known: list[str] = yield _look(self.ground.registry, "hkeys", texts)
        return known if known or (yield has_more(keys)) else None


def _spaces(tokens: list[str], known: list[str]) -> list[str]:
    """Give the spaces that vectors may lie in: the owner's, and all of the store's."""
    return [one for one in dict.fromkeys((*tokens, *known)) if ":" in one]  # not "current"


def _indexed(spaces: list[str]) -> list[str]:
    return [one for one in spaces if one.startswith("search:")]


def _drop_operations(place: OwnerPlace, conversation: str) -> Flow[int]:
    """Drop what the log has of extractions from a conversation, and of their undoing."""
    # Digests and ids are found in a note whatever else of it can be read.
    meant = {conversation.encode()}

    def is_its(entry: Entry) -> bool:
        note = entry.fields.get(b"note", b"")
        is_meant = any(one in note for one in meant)
        if is_meant:
            meant.add(b'"' + entry.id + b'"')
        return is_meant

    return len((yield from drop(place.keys.ops, is_its, "erase")))


def _drop_documents(place: OwnerPlace, token: str, conversation: str) -> Flow[int]:
    """Drop the documents of a conversation that outlived their facts, and count them."""
    index, owner = place.index(token), place.digest
    found = yield from documents_of(index, owner, 0, conversation)
    if not found.total:
        return 0
    found = yield from documents_of(index, owner, found.total, conversation)
    # Documents are seen before their facts are looked for: both are written in one step.
    keys, dropped = list(found.rows), 0
    for start in range(0, len(keys), _DOCUMENTS_AT_ONCE):
        some = keys[start : start + _DOCUMENTS_AT_ONCE]
        ids = [key.rpartition(b":")[2] for key in some]
        there = yield Together(tuple(_look(place.keys.facts, "hexists", bool, id_) for id_ in ids))
        gone = tuple(key for key, is_there in zip(some, there, strict=True) if not is_there)
        if gone:
            dropped += yield Call("erase", gone, "unlink", (), writes=True, read=int)
    return dropped


def _look(key: bytes, command: str, read: Callable[[Any], Any], *arguments: str | bytes) -> Call:
    return Call("erase", (key,), command, arguments, writes=False, read=read)


def _delete(keys: OwnerKeys, number: int, gone: list[bytes]) -> Call:
    return _history.script_call(
        "erase_some",
        keys,
        {"number": number},
        list,
        further=[b"-"] * len(gone),
        further_keys=gone,
        operation="erase",
    )


def _rest(place: OwnerPlace, token: str, keys: OwnerKeys, number: int) -> Flow[None]:
    """Ask the index of a space whether it has anything of the owner left, and delete that."""
    left, stalls = 0, 0
    while stalls < _TRIES:
        found = yield from documents_of(place.index(token), place.digest, _DOCUMENTS_AT_ONCE)
        if not found.total:
            return
        stalls = 0 if found.total < left else stalls + 1
        left = found.total
        state, *_ = yield _delete(keys, number, list(found.rows))
        if state != _CLOSED:
            return
    msg = (
        f"erase of {place.keys}: the index still counts {left} documents of the owner, though all "
        "that it names were deleted; do it again"
    )
    raise ServerError(msg)
