"""What an erasure of an owner removes of facts: every key, and each document of an index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from turnstore import _history
from turnstore._calls import Call, Flow, Together
from turnstore._keys import OwnerKeys
from turnstore.errors import ServerError

from .._owner import Ground, OwnerPlace
from ..engines import documents_of

__all__ = ["Eraser"]

_AT_ONCE = 400
_TRIES = 4
_CLOSED = 1  # as erase_some answers
_COUNTED = ("facts", "memory", "dead_letters", "operations")


@dataclass(frozen=True, slots=True)
class Eraser:
    """Removes the facts of an owner, for `store.erase`; equal for all `Facts` of a store.

    Attributes:
        ground: Where the facts of the store lie.
    """

    ground: Ground

    def __call__(self, keys: OwnerKeys, number: int) -> Flow[dict[str, int]]:
        """Remove them, while nobody else writes for the owner.

        The documents go first, as the facts say which there are: an erasure that breaks off is
        done again. Then each index is asked, also where there are no facts any more: documents
        can outlive them.

        Args:
            keys: The owner's.
            number: Of the erasure.

        Returns:
            How many there were of what there was: `facts`, exchanges among them; blocks of the
            working `memory`; `dead_letters`; and `operations` of the log.

        Raises:
            ServerError: The index of a space still counts documents of the owner.
        """
        place = self.ground.owner_in(keys.generation)
        tokens, ids, *counted = yield Together(
            (
                _look(place.keys.postings, "hget", _words, "#v"),
                _look(place.keys.facts, "hkeys", _texts),
                _look(place.keys.memory, "hlen", int),
                _look(place.keys.dead, "xlen", int),
                _look(place.keys.ops, "xlen", int),
            )
        )
        counts: dict[str, int] = dict(zip(_COUNTED, (len(ids), *counted), strict=True))
        known: list[str] = yield _look(self.ground.registry, "hkeys", _texts)
        indexed = [one for one in dict.fromkeys((*tokens, *known)) if one.startswith("search:")]
        gone = [place.vector(token, id_) for token in indexed for id_ in ids]
        gone += [*map(place.vectors, tokens), *place.keys[2:]]
        for start in range(0, len(gone), _AT_ONCE):
            state, *_ = yield _delete(keys, number, gone[start : start + _AT_ONCE])
            if state != _CLOSED:
                return {}  # nothing was deleted: it is begun anew, and counts what is left then
        for token in indexed:
            yield from _rest(place, token, keys, number)
        return {name: count for name, count in counts.items() if count}


def _look(key: bytes, command: str, read: Callable[[Any], Any], *arguments: str) -> Call:
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
        found = yield from documents_of(place.index(token), place.digest, _AT_ONCE)
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


def _texts(reply: Any) -> list[str]:
    return [one.decode() for one in reply]


def _words(reply: bytes | None) -> list[str]:
    return reply.decode().split() if reply else []
