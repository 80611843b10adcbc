"""Search in a vector set of each owner: Redis 8 and later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from turnstore._calls import Call, pairs_of
from turnstore.errors import DeniedError, UnsupportedError, WrongTypeError
from turnstore.facts._space import Space
from turnstore.window import MOST

from ._engine import NOTHING_NEAR, Filter, IndexState, Near, Times, denied, table, with_equals
from ._options import number, one_of

if TYPE_CHECKING:
    from turnstore._calls import Flow
    from turnstore.facts._embedding import Embedder, Vector, Vectors
    from turnstore.facts._owner import Ground, OwnerPlace

__all__ = ["VectorSet"]

# What the server takes.
_RANGES = {
    "m": (4, 4096),
    "ef_construction": (1, 1_000_000),
    "ef": (1, 1_000_000),
    "exact": (0, MOST),
}
# What the server calls a type, and how it sends a number of it.
_QUANTS = {"float32": ("NOQUANT", "<f4"), "int8": ("Q8", "i1")}


@dataclass(frozen=True, slots=True)
class VectorSet:
    """Keep the vectors of each owner in a vector set.

    An owner's facts are in a set of their own, so that other owners make no search slower. Up to
    `exact` facts of an owner, each search looks at all of them, in the server; beyond that, it
    goes through a graph (HNSW), which may miss a few.

    `engine="auto"` passes it over: Redis 8.2.3 was seen to crash in its own `VREM`, where vectors
    had been put into one set and taken out again (https://github.com/redis/redis/issues/15424
    reports the same of 8.4.0, and that the replicas crash too).

    Args:
        dtype: How numbers are stored: "float32", or "int8", which takes a quarter of the room
            and makes similarities differ in the third digit.
        m: How many neighbours a node of the graph has.
        ef_construction: How many nodes are looked at where a new one is put in.
        ef: How many are looked at by a search through the graph; None is five times as many
            as it has to find.
        exact: Up to so many facts of an owner are all looked at.

    Raises:
        TypeError: A number is none.
        ValueError: A number is out of range, or there is no such type.
    """

    dtype: str = "float32"
    m: int = 16
    ef_construction: int = 200
    ef: int | None = None
    exact: int = 10_000

    name: ClassVar[str] = "vectorset"
    needs: ClassVar[str] = "vector sets, as in Redis 8"
    commands: ClassVar[tuple[str, ...]] = ("VADD", "VCARD", "VEMB", "VREM", "VSETATTR", "VSIM")
    scored: ClassVar[bool] = True

    def __post_init__(self) -> None:
        one_of("VectorSet", "dtype", self.dtype, tuple(_QUANTS))
        for name, (least, most) in _RANGES.items():
            number("VectorSet", name, getattr(self, name), least, most)

    def space(self, embedder: Embedder) -> Space:
        """Say in which space the vectors of an embedder are."""
        quant, _ = _QUANTS[self.dtype]
        return Space(
            self.name,
            embedder.name,
            embedder.dimensions,
            self.dtype,
            f"M={self.m} EF_CONSTRUCTION={self.ef_construction}",
            f"{quant}:{self.m}:{self.ef_construction}",
        )

    def is_available(self, ground: Ground) -> Flow[bool]:
        """Ask for the size of a set that does not exist: one call."""
        try:
            yield Call("search", (ground.probe,), "vcard", (), writes=False, read=int)
        except UnsupportedError:
            return False
        except DeniedError as error:
            raise denied(self, error) from error
        except WrongTypeError:
            return True
        return True

    def prepare(self, ground: Ground, space: Space) -> Flow[None]:  # noqa: ARG002 - as others have it
        """Do nothing: a set is made with its first vector."""
        yield from ()

    def pack(self, vector: Vector, times: Times, kind: str, conversation: str) -> bytes:  # noqa: ARG002 - as above
        """Write a vector down; the script adds when the fact holds."""
        return vector.astype("<f4").tobytes()

    def unpack(self, raw: bytes, space: Space) -> Vector:
        """Read a vector."""
        vector: Vector = self.unpack_all([raw], space)[0]
        return vector

    def unpack_all(self, raws: Sequence[bytes], space: Space) -> Vectors:
        """Read several vectors."""
        vectors = table(raws, _QUANTS[space.dtype][1], space)
        units: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return units

    def nearest(  # noqa: PLR0913, PLR0917 - what a search is made of
        self, place: OwnerPlace, space: Space, vector: Vector, n: int, wanted: Filter, facts: int
    ) -> Flow[Near]:
        """Search the owner's set: one call, and one more for each doubling of equals."""
        if not facts:
            return NOTHING_NEAR

        def ask(count: int) -> Flow[list[tuple[str, float, bytes]]]:
            # It searches on until so many are found that may be shown.
            effort = ("EF", self.ef or min(5 * count, 1_000_000), "FILTER-EF", facts)
            found: list[tuple[str, float, bytes]] = yield Call(
                "search",
                (place.vectors(space.token),),
                "vsim",
                (
                    *("FP32", vector.astype("<f4").tobytes(), "COUNT", count, "WITHSCORES"),
                    *(("TRUTH",) if facts <= self.exact else effort),
                    *("FILTER", _condition(wanted)),
                ),
                writes=False,
                read=_scored,
            )
            return found

        return (yield from with_equals(ask, n, facts))

    def state(self, ground: Ground, space: Space) -> Flow[IndexState]:  # noqa: ARG002 - as above
        """Say nothing: there is no index but the sets of owners."""
        yield from ()
        return IndexState()


def _scored(reply: Any) -> list[tuple[str, float, bytes]]:
    # It answers half of one more than the cosine.
    return [(id_.decode(), 2 * float(score) - 1, b"") for id_, score in pairs_of(reply).items()]


def _condition(wanted: Filter) -> str:
    """Say as a filter expression which facts may be found.

    Numbers and words of ours stand in it, and nothing that a user has written.
    """
    as_of, known_at = wanted.as_of_ms, wanted.known_at_ms
    parts = [f".f <= {as_of}"]
    if known_at is None:
        parts.append(f".t > {as_of}")
    else:
        parts.append(f".n <= {known_at}")
        parts.append(f"((.x <= {known_at} and .t > {as_of}) or (.x > {known_at} and .b > {as_of}))")
    if wanted.kinds is not None:
        parts.append("(" + " or ".join(f'.k == "{kind}"' for kind in wanted.kinds) + ")")
    if wanted.conversation:
        parts.append(f'.c == "{wanted.conversation}"')
    return " and ".join(parts)
