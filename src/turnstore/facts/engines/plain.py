"""Exact search without a module: the vectors of an owner are read, and compared here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from turnstore._calls import Call, pairs_of
from turnstore.errors import CorruptTurnError
from turnstore.facts._space import Space

from ._engine import AS_NEAR, NOTHING_NEAR, Filter, IndexState, Near, Times
from ._options import one_of

if TYPE_CHECKING:
    from turnstore._calls import Flow
    from turnstore.facts._embedding import Embedder, Vector, Vectors
    from turnstore.facts._owner import Ground, OwnerPlace

__all__ = ["Plain"]

# What is added to a time so that none is negative; `lua/lib/facts_vectors.lua` has the same.
_SHIFT = 1 << 46
_DTYPES = {"float32": "<f4", "float16": "<f2"}
_TIMES = len(Times._fields)
_MOST_KEPT = 1_000


@dataclass(frozen=True, slots=True)
class Plain:
    """Keep vectors in a hash of each owner, and compare all of them with each query.

    It is exact, needs no module, and reads all vectors of the owner for each search: some
    500 KB for 300 facts of 384 dimensions. What it takes grows with the facts of an owner, and
    not with the number of owners.

    Args:
        dtype: How numbers are stored: "float32", or "float16", which takes half the room.

    Raises:
        ValueError: There is no such type.
    """

    dtype: str = "float32"

    name: ClassVar[str] = "plain"
    needs: ClassVar[str] = "any server"
    commands: ClassVar[tuple[str, ...]] = ()
    scored: ClassVar[bool] = True

    def __post_init__(self) -> None:
        one_of("Plain", "dtype", self.dtype, tuple(_DTYPES))

    def space(self, embedder: Embedder) -> Space:
        """Say in which space the vectors of an embedder are."""
        return Space(self.name, embedder.name, embedder.dimensions, self.dtype)

    def is_available(self, ground: Ground) -> Flow[bool]:  # noqa: ARG002 - as others have it
        """Say yes: every server can."""
        yield from ()
        return True

    def prepare(self, ground: Ground, space: Space) -> Flow[None]:  # noqa: ARG002 - as others have it
        """Do nothing."""
        yield from ()

    def pack(self, vector: Vector, times: Times, kind: str, conversation: str) -> bytes:
        """Write down when a fact holds, what it is, and its vector."""
        shifted = np.array([time + _SHIFT for time in times], dtype=">u8")
        digests = np.array([_number(kind), _number(conversation)], dtype=">u8")
        numbers = vector.astype(_DTYPES[self.dtype])
        return shifted.tobytes() + digests.tobytes() + numbers.tobytes()

    def unpack(self, raw: bytes, space: Space) -> Vector:
        """Read a vector."""
        vector: Vector = self.unpack_all([raw], space)[0]
        return vector

    def unpack_all(self, raws: Sequence[bytes], space: Space) -> Vectors:
        """Read several vectors."""
        return np.asarray(_rows(raws, space)["vector"], dtype=np.float32)

    def nearest(  # noqa: PLR0913, PLR0917 - what a search is made of
        self, place: OwnerPlace, space: Space, vector: Vector, n: int, wanted: Filter, facts: int
    ) -> Flow[Near]:
        """Compare all vectors of the owner: one call."""
        if not facts:
            return NOTHING_NEAR
        found: dict[bytes, bytes] = yield Call(
            "search", (place.vectors(space.token),), "hgetall", (), writes=False, read=pairs_of
        )
        if not found:
            return NOTHING_NEAR
        ids, raws = list(found), list(found.values())
        rows = _rows(raws, space)
        cosines = rows["vector"].astype(np.float32, copy=False) @ vector
        shown = np.flatnonzero(_shown(rows, wanted))
        if len(shown) > n:
            cosines = cosines[shown]
            least = np.partition(cosines, len(cosines) - n)[len(cosines) - n]
            shown = shown[cosines >= least - AS_NEAR]
        # What is found by its words need not be read again, unless they are so many that it is
        # quicker to read those few.
        kept = range(len(ids)) if len(ids) <= _MOST_KEPT else shown
        return Near([ids[at].decode() for at in shown], {ids[at].decode(): raws[at] for at in kept})

    def state(self, ground: Ground, space: Space) -> Flow[IndexState]:  # noqa: ARG002 - as above
        """Say nothing: there is no index."""
        yield from ()
        return IndexState()


def _rows(raws: Sequence[bytes], space: Space) -> Any:
    """Read many values at once, as an array of named fields."""
    layout = np.dtype(
        [
            ("times", ">u8", (_TIMES,)),
            ("kind", ">u8"),
            ("conversation", ">u8"),
            ("vector", _DTYPES[space.dtype], (space.dimensions,)),
        ]
    )
    data = b"".join(raws)
    if {*map(len, raws)} - {layout.itemsize}:
        msg = f"a vector of the space {space.text} is not one of ours; it was left as it is"
        raise CorruptTurnError(msg)
    return np.frombuffer(data, dtype=layout)


def _shown(rows: Any, wanted: Filter) -> Any:
    """Say for each row whether it may be found."""
    times = rows["times"].astype(np.int64) - _SHIFT
    created, start, to, expired, before = (times[:, at] for at in range(_TIMES))
    end = to
    if wanted.known_at_ms is not None:
        end = np.where(expired <= wanted.known_at_ms, to, before)
    shown = (start <= wanted.as_of_ms) & (wanted.as_of_ms < end)
    if wanted.known_at_ms is not None:
        shown &= created <= wanted.known_at_ms
    if wanted.kinds is not None:
        kinds = np.array([_number(kind) for kind in wanted.kinds], dtype=np.uint64)
        shown &= np.isin(rows["kind"].astype(np.uint64), kinds)
    if wanted.conversation:
        shown &= rows["conversation"] == _number(wanted.conversation)
    return shown


@lru_cache(maxsize=1024)
def _number(text: str) -> int:
    """Make a number of a kind or a digest; what is found is looked at once more."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
