"""Move the facts of a store to another embedder or engine, owner by owner.

An owner's vectors lie in the old space and in the new one while they are moved, and searches go
by the old one until every fact has a vector in the new one and the counts agree. Then one step
makes the new one the first. So each owner is moved whole or not at all, and a migration that was
broken off goes on where it stopped.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from turnstore._calls import Call, Flow, Pause, in_steps
from turnstore.errors import ServerError

from .._owner import OwnerPlace, script_call
from ..engines import counted, drop_index, name_index
from .commit import Began, begin
from .owners import each, owners
from .reading import Row, all_ids, read_rows, words
from .record import Record, times_of

if TYPE_CHECKING:
    from .._embedding import Vector
    from .base import Backend, Base

__all__ = ["Migration", "migrate", "vectors_of"]

log = logging.getLogger("turnstore")

_AT_ONCE = 100
_PASSES = 20
_DROPPED_AT_ONCE = 400
_LOOKS, _LOOKED_EVERY = 3_000, 0.1  # at an index that the server is building; seconds


@dataclass(frozen=True, slots=True)
class Migration:
    """What a migration moved, or would have moved.

    Attributes:
        owners: Owners whose facts were in another space.
        facts: Their facts.
        embedded: Texts that the embedder was given.
        copied: Vectors that were taken over, as their embedder is the same.
        dropped: Vectors of other spaces that were dropped.
        dry_run: Whether nothing was moved.
    """

    owners: int
    facts: int
    embedded: int
    copied: int
    dropped: int
    dry_run: bool


@in_steps
def migrate(base: Base, *, drop: bool, dry_run: bool) -> Flow[Migration]:
    """Move all facts of the store to the space of these settings."""
    backend = (
        yield from base.wanted() if dry_run else base.prepare(moving=True, anew=True, claims=True)
    )
    count = Counter[str]()
    places = yield from owners(base.ground)

    def work(place: OwnerPlace) -> Flow[None]:
        mover = _Mover(base, backend, place, count)
        yield from mover.look() if dry_run else mover.move(drop=drop)

    passed = yield from each(places, work, "migrate")
    if not dry_run:
        yield from base.set_current(backend.space)
        if backend.engine.name == "search":
            index = base.ground.index(backend.space.digest)
            yield from name_index(base.ground.alias, index, anew=True)
        if drop and not passed:  # who is passed over may have facts there, should it break off
            yield from _drop_indexes(base, backend)
    return Migration(
        owners=count["owners"],
        facts=count["facts"],
        embedded=count["embedded"],
        copied=count["copied"],
        dropped=count["dropped"],
        dry_run=dry_run,
    )


class _Mover:
    """Moves one owner."""

    def __init__(
        self, base: Base, backend: Backend, place: OwnerPlace, count: Counter[str]
    ) -> None:
        self._base = base
        self._backend = backend
        self._place = place
        self._count = count

    def look(self) -> Flow[None]:
        """Count what there is to move."""
        spaces, _, facts = yield from self._state()
        if spaces and spaces[0] != self._backend.space.token:
            self._count["owners"] += 1
            self._count["facts"] += facts

    def move(self, *, drop: bool) -> Flow[None]:
        """Move the owner, unless that was done, and drop what other spaces have."""
        target = self._backend.space.token
        is_new = True
        for _ in range(_PASSES):
            spaces, changes, facts = yield from self._state()
            if not spaces or spaces[0] == target:
                break
            if is_new:
                self._count["owners"] += 1
                self._count["facts"] += facts
                is_new = False
            if (yield from self._pass(spaces, changes, facts)):
                break
        else:
            msg = (
                f"migrate: the facts of {self._place.keys} are changed all the time, so that they "
                "were not moved. Do it again"
            )
            raise ServerError(msg)
        if drop:
            yield from self._drop()

    def _pass(self, spaces: tuple[str, ...], changes: int, facts: int) -> Flow[bool]:
        """Put what is missing into the new space, and make it the first if nothing changed."""
        target = self._backend.space.token
        if target not in spaces:
            began = yield from begin(self._place, (), "migrate")
            yield self._said(began, spaces, -1, (*spaces, target))
            return False
        ids = yield from all_ids(self._place, "migrate")
        complete = True
        for start in range(0, len(ids), _AT_ONCE):
            part = ids[start : start + _AT_ONCE]
            complete = (yield from self._fill(part, spaces)) and complete
        if not complete:
            return False  # facts were changed, so that their new vectors are not put yet
        yield from self._check(facts, changes)
        began = yield from begin(self._place, (), "migrate")
        others = tuple(token for token in spaces if token != target)
        return bool((yield self._said(began, spaces, changes, (target, *others))))

    def _fill(self, ids: Sequence[str], spaces: tuple[str, ...]) -> Flow[bool]:
        """Put the vectors of some facts that are missing; False where one could not be put."""
        began = yield from begin(self._place, (), "migrate")
        rows = yield from self._read(ids, self._backend.space.token)
        missing = [row.record for row in rows.values() if not row.packed]
        if not missing:
            return True
        vectors = yield from self._vectors(missing, spaces)
        parts: list[bytes | str] = []
        for record, vector in zip(missing, vectors, strict=True):
            fact = record.fact
            packed = self._backend.engine.pack(vector, times_of(fact), fact.kind, record.digest)
            parts += [fact.id, record.revision, packed]
        token = self._backend.space.token
        put: int = yield script_call(
            "facts_put",
            self._place,
            {"began": began.number, "digest": self._place.digest, "space": token},
            int,
            more_keys=[self._place.vector(token, record.fact.id) for record in missing],
            more=parts,
            operation="migrate",
        )
        return put == len(missing)

    def _vectors(self, records: Sequence[Record], spaces: tuple[str, ...]) -> Flow[list[Vector]]:
        """Take the vectors over from another space of the same embedder, or make them anew."""
        known: dict[str, Vector] = {}
        for token in spaces:
            source = yield from self._base.source_of(token, self._backend)
            if source is not None:
                rows = yield from self._read([record.fact.id for record in records], token)
                for id_, row in rows.items():
                    if row.packed:
                        known[id_] = source.engine.unpack(row.packed, source.space)
        lacking = [record for record in records if record.fact.id not in known]
        made = yield from self._base.embed(self._backend, [one.fact.text for one in lacking])
        self._count["copied"] += len(known)
        self._count["embedded"] += len(lacking)
        known.update((one.fact.id, row) for one, row in zip(lacking, made, strict=True))
        return [known[record.fact.id] for record in records]

    def _read(self, ids: Sequence[str], token: str) -> Flow[dict[str, Row]]:
        return read_rows(self._place, ids, operation="migrate", token=token, vectors=len(ids))

    def _check(self, facts: int, changes: int) -> Flow[None]:
        """Compare how many vectors the new space has with how many facts there are.

        A server that is just building the index is waited for, some minutes.
        """
        backend, looks = self._backend, _LOOKS
        while True:
            state = yield from backend.engine.state(self._base.ground, backend.space)
            vectors = yield from vectors_of(self._place, backend.space.token)
            if vectors == facts or (yield from self._state())[1] != changes:
                return
            looks -= 1
            if not (state.indexing and looks):
                break
            yield Pause(_LOOKED_EVERY)
        msg = (
            f"migrate: the new space has {vectors} vectors for the {facts} facts of "
            f"{self._place.keys}{' as its index is still built' if state.indexing else ''}; the "
            "owner was not moved. health() says more"
        )
        raise ServerError(msg)

    def _drop(self) -> Flow[None]:
        """Drop the vectors of all spaces but the new one."""
        target = self._backend.space.token
        spaces, _, facts = yield from self._state()
        if not spaces or spaces[0] != target or len(spaces) == 1:
            return
        ids = yield from all_ids(self._place, "migrate")
        for token in spaces[1:]:
            keys = [] if token.startswith("search:") else [self._place.vectors(token)]
            if not keys:
                keys = [self._place.vector(token, id_) for id_ in ids]
            for start in range(0, len(keys), _DROPPED_AT_ONCE):
                began = yield from begin(self._place, (), "migrate")
                part = keys[start : start + _DROPPED_AT_ONCE]
                yield self._said(began, spaces, -1, spaces, part)
            self._count["dropped"] += facts
        began = yield from begin(self._place, (), "migrate")
        yield self._said(began, spaces, -1, (target,))

    def _state(self) -> Flow[tuple[tuple[str, ...], int, int]]:
        """Read in which spaces the owner is, how often facts were changed, and how many."""
        state: tuple[tuple[str, ...], int, int] = yield Call(
            "migrate",
            (self._place.keys.postings,),
            "hmget",
            ("#v", "#r", "#n"),
            writes=False,
            read=_read_state,
        )
        return state

    def _said(
        self,
        began: Began,
        spaces: tuple[str, ...],
        changes: int,
        places: tuple[str, ...],
        gone: Sequence[bytes] = (),
    ) -> Call:
        values = {
            "began": began.number,
            "spaces": " ".join(spaces),
            "changes": changes,
            "places": " ".join(places),
        }
        return script_call(
            "facts_move", self._place, values, int, more_keys=gone, operation="migrate"
        )


def vectors_of(place: OwnerPlace, token: str) -> Flow[int]:
    """Count the vectors of an owner in a space: one call."""
    if token.startswith("search:"):
        return (yield from counted(place.index(token), place.digest))
    command = "hlen" if token.startswith("plain:") else "vcard"
    found: int = yield Call("vectors", (place.vectors(token),), command, (), writes=False, read=int)
    return found


def _drop_indexes(base: Base, backend: Backend) -> Flow[None]:
    """Drop the indexes of all other spaces of the store, and take them out of its register."""
    register = yield from base.register()
    for token in register:
        if token in ("current", backend.space.token):
            continue
        if token.startswith("search:"):
            yield from drop_index(base.ground.index(token.split(":")[1]))
        yield Call("migrate", (base.ground.registry,), "hdel", (token,), writes=True, read=int)


def _read_state(reply: list[bytes | None]) -> tuple[tuple[str, ...], int, int]:
    spaces, changes, facts = reply
    return tuple(words(spaces)), int(changes or 0), int(facts or 0)
