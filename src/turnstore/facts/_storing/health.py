"""How the facts of a store are, or those of one owner: flows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from turnstore._calls import Call, Flow, pairs_of
from turnstore._keys import key_names

from .._model import Health
from .._owner import OwnerPlace
from .migration import vectors_of
from .retention import owners

if TYPE_CHECKING:
    from .base import Base

__all__ = ["health"]

_TURN = 3  # where the head of a conversation has the number of its newest turn


def health(base: Base, owner: str | None) -> Flow[Health]:
    """Look at the facts of an owner, or of all of them."""
    places: Sequence[OwnerPlace]
    if owner is None:
        backend = yield from base.prepare()
        places = yield from owners(base.ground)
    else:
        places = [base.ground.owner(owner)]
        backend = yield from base.prepare()
    state = yield from backend.engine.state(base.ground, backend.space)
    total: Counter[str] = Counter()
    for place in places:
        total.update((yield from _of_owner(base, place)))
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


def _of_owner(base: Base, place: OwnerPlace) -> Flow[dict[str, int]]:
    keys = place.keys
    facts: int = yield _number("hlen", keys.facts)
    spaces: list[str] = yield Call(
        "health", (keys.postings,), "hget", ("#v",), writes=False, read=_words
    )
    vectors = 0
    if spaces:
        vectors = yield from vectors_of(place, spaces[0])
    dead: int = yield _number("xlen", keys.dead)
    cursors: dict[bytes, bytes] = yield Call(
        "health", (keys.cursors,), "hgetall", (), writes=False, read=pairs_of
    )
    lag = 0
    for digest, cursor in cursors.items():
        lag += yield from _lag(base, place, digest.decode(), cursor)
    return {
        "owners": int(facts > 0),
        "facts": facts,
        "vectors": vectors,
        "dead_letters": dead,
        "lag": lag,
    }


def _lag(base: Base, place: OwnerPlace, digest: str, cursor: bytes) -> Flow[int]:
    """Count the turns of a conversation that stand behind its cursor."""
    owned = place.owner_keys.conversation(digest).turns
    newest: int = yield _newest(owned)
    if not newest:  # a conversation that has no owner of its own
        newest = yield _newest(key_names(base.ground.prefix, base.ground.store, digest).turns)
    return max(newest - int(cursor.split()[0]), 0)


def _newest(turns: bytes) -> Call:
    return Call("health", (turns,), "lindex", (0,), writes=False, read=_read_newest)


def _read_newest(head: bytes | None) -> int:
    return int(head.split(b" ")[_TURN]) if head else 0


def _number(command: str, key: bytes) -> Call:
    return Call("health", (key,), command, (), writes=False, read=int)


def _words(reply: bytes | None) -> list[str]:
    return reply.decode().split() if reply else []
