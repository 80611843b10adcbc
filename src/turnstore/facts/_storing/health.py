"""How the facts of a store are, or those of one owner: flows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from turnstore._calls import Call, Flow, Together, pairs_of

from .._model import Health
from .._owner import OwnerPlace
from .migration import vectors_of
from .owners import owners
from .reading import words

if TYPE_CHECKING:
    from .base import Base

__all__ = ["health"]

_AT_ONCE = 500  # conversations
_TURN = 3  # where the head of a conversation has the number of its newest turn


def health(base: Base, owner: str | None) -> Flow[Health]:
    """Look at the facts of an owner, or of all of them."""
    places: Sequence[OwnerPlace]
    if owner is None:
        backend = yield from base.prepare()
        # Of some owners no facts were drawn yet, and turns wait.
        places = yield from owners(base.ground, "facts", "facts:cursors")
    else:
        places = [base.ground.owner(owner)]
        backend = yield from base.prepare()
    state = yield from backend.engine.state(base.ground, backend.space)
    total: Counter[str] = Counter()
    for place in places:
        total.update((yield from _of_owner(place)))
    return Health(
        engine=backend.engine.name,
        embedder=backend.embedder.name,
        dimensions=backend.embedder.dimensions,
        owners=total["owners"],
        facts=total["facts"],
        vectors=total["vectors"],
        indexing=state.indexing,
        indexing_failures=state.failures,
        lag=total["lag"],
        dead_letters=total["dead_letters"],
    )


def _of_owner(place: OwnerPlace) -> Flow[dict[str, int]]:
    keys = place.keys
    facts, spaces, dead, cursors = yield Together(
        (
            _look(keys.facts, "hlen", int),
            _look(keys.postings, "hget", words, "#v"),
            _look(keys.dead, "xlen", int),
            _look(keys.cursors, "hgetall", pairs_of),
        )
    )
    vectors = 0
    if spaces:
        vectors = yield from vectors_of(place, spaces[0])
    lag = yield from _lag(place, cursors)
    return {
        "owners": int(facts > 0),
        "facts": facts,
        "vectors": vectors,
        "dead_letters": dead,
        "lag": lag,
    }


def _lag(place: OwnerPlace, cursors: dict[bytes, bytes]) -> Flow[int]:
    """Count the turns of conversations that stand behind their cursors, 500 at once."""
    lag, digests = 0, list(cursors)
    for start in range(0, len(digests), _AT_ONCE):
        part = digests[start : start + _AT_ONCE]
        newest: list[int] = yield Together(
            tuple(
                _look(place.owner_keys.conversation(digest.decode()).turns, "lindex", _newest, 0)
                for digest in part
            )
        )
        lag += sum(
            max(turn - int(cursors[digest].split()[0]), 0)
            for turn, digest in zip(newest, part, strict=True)
        )
    return lag


def _look(key: bytes, command: str, read: Callable[[Any], Any], *arguments: int | str) -> Call:
    return Call("health", (key,), command, arguments, writes=False, read=read)


def _newest(head: bytes | None) -> int:
    return int(head.split(b" ")[_TURN]) if head else 0
