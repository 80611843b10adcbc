"""Search in an index of RediSearch: Redis Stack 7.4, or Redis 8 with its query engine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from turnstore._calls import Call
from turnstore.errors import DeniedError, ServerError, UnavailableError, UnsupportedError
from turnstore.facts._space import Space
from turnstore.window import MOST

from ._engine import NOTHING_NEAR, Filter, IndexState, Near, Times, denied, table, with_equals
from ._index import (
    Found,
    Index,
    check,
    create,
    info,
    is_unknown,
    name_it,
    read_found,
    state_of,
)
from ._options import number, one_of

if TYPE_CHECKING:
    from turnstore._calls import Flow
    from turnstore.facts._embedding import Embedder, Vector, Vectors
    from turnstore.facts._owner import Ground, OwnerPlace

__all__ = ["Search"]

_DTYPES = {"float32": "<f4", "float16": "<f2"}
# The server takes any number, and ends where it finds no room for what one of them asks for. The
# most is far beyond what finds more.
_RANGES = {
    "m": (2, 512),
    "ef_construction": (1, 4096),
    "ef": (1, 1_000_000),
    "block_size": (1, 1_000_000),
    "exact": (0, MOST),
}
_NO_ALIAS = re.compile(r"(?i)alias")
_UNTIL = "[-inf {}]"
_AFTER = "[({} +inf]"


@dataclass(frozen=True, slots=True)
class Search:
    """Keep the vectors of all owners in one index of RediSearch.

    Each search looks only at the owner's facts: the owner is a condition, and no other one is
    ever compared. "flat" always looks at all of them. "hnsw" has a graph, which is searched where
    an owner has more facts than `exact`, and may miss a few.

    The graph has its price: to put a fact in or take one out holds up the server for a quarter of
    a millisecond to two, more in a larger index. To erase an owner of 10,000 facts took it 3 to 40
    seconds, and a fifth of a second without a graph. It is for owners of many more facts.

    Args:
        algorithm: "flat" or "hnsw".
        dtype: How numbers are stored: "float32", or "float16", which takes half the room.
        m: Of "hnsw": how many neighbours a node of the graph has; None is 16.
        ef_construction: Of "hnsw": how many nodes are looked at where a new one is put in; None
            is 200.
        ef: Of "hnsw": how many are looked at by a search through the graph; None is twice as
            many as it has to find.
        block_size: Of "flat": how many vectors the index makes room for at a time; None leaves
            it to the server.
        exact: Up to so many facts of an owner are all looked at.
        timeout: Seconds that the server may take for a search.

    Raises:
        TypeError: A number is none.
        ValueError: A number is out of range, an option is of the other algorithm, or there is no
            such algorithm or type.
    """

    algorithm: str = "flat"
    dtype: str = "float32"
    m: int | None = None
    ef_construction: int | None = None
    ef: int | None = None
    block_size: int | None = None
    exact: int = 10_000
    timeout: float = 2.0

    name: ClassVar[str] = "search"
    needs: ClassVar[str] = "RediSearch, and a single server: no Redis Cluster"
    commands: ClassVar[tuple[str, ...]] = (
        *("FT.ALIASADD", "FT.ALIASDEL", "FT.ALIASUPDATE"),
        *("FT.CREATE", "FT.DROPINDEX", "FT.INFO", "FT.SEARCH", "INFO"),
    )
    scored: ClassVar[bool] = True

    def __post_init__(self) -> None:
        one_of("Search", "algorithm", self.algorithm, ("flat", "hnsw"))
        one_of("Search", "dtype", self.dtype, tuple(_DTYPES))
        for name, (least, most) in _RANGES.items():
            number("Search", name, getattr(self, name), least, most)
        of_the_other = (
            ("block_size",) if self.algorithm == "hnsw" else ("m", "ef_construction", "ef")
        )
        for name in of_the_other:
            if getattr(self, name) is not None:
                other = "flat" if self.algorithm == "hnsw" else "hnsw"
                msg = f"Search({name}=…) is an option of {other}: Search(algorithm={other!r}, …)"
                raise ValueError(msg)
        if not isinstance(self.timeout, int | float) or isinstance(self.timeout, bool):
            msg = f"Search(timeout={self.timeout!r}): it is a number of seconds"
            raise TypeError(msg)
        if not self.timeout > 0:
            msg = f"Search(timeout={self.timeout}): it is above 0"
            raise ValueError(msg)

    def space(self, embedder: Embedder) -> Space:
        """Say in which space the vectors of an embedder are."""
        options = " ".join(f"{name}={value}" for name, value in self._parameters)
        return Space(
            self.name,
            embedder.name,
            embedder.dimensions,
            self.dtype,
            f"{self.algorithm} {options}".strip(),
        )

    @property
    def _parameters(self) -> tuple[tuple[str, int], ...]:
        if self.algorithm == "flat":
            return (("BLOCK_SIZE", self.block_size),) if self.block_size else ()
        return ("M", self.m or 16), ("EF_CONSTRUCTION", self.ef_construction or 200)

    def is_available(self, ground: Ground) -> Flow[bool]:
        """Ask for an alias that does not exist, and for a Cluster: two calls.

        Valkey's search module has no aliases, and no half floats: it does not count. An index
        on a node of a Cluster has only what lies on that node.
        """
        try:
            yield Call("search", (ground.probe,), "ft.aliasdel", (), writes=True, read=bool)
        except UnsupportedError:
            return False
        except DeniedError as error:  # a server that has no such command does not know it
            raise denied(self, error) from error
        except ServerError as error:
            if type(error) is not ServerError:
                raise
            if _NO_ALIAS.search(str(error.__cause__)) is None:
                return False
        return not (yield from _is_clustered(ground))

    def prepare(self, ground: Ground, space: Space) -> Flow[None]:
        """Make the index, or compare the one that is there: two calls to four."""
        if (yield from _is_clustered(ground)):
            msg = (
                "the engine search does not work on a Redis Cluster: an index on a node has only "
                'what lies on that node. Nothing was read or written; engine="vectorset" and '
                '"plain" work there'
            )
            raise UnsupportedError(msg)
        index = ground.index(space.digest)
        wanted = Index(
            prefix=ground.documents(space.digest),
            algorithm=self.algorithm.upper(),
            dtype=self.dtype.upper(),
            dimensions=space.dimensions,
            parameters=self._parameters,
        )
        found = yield from info(index)
        if found is None:
            yield from create(index, wanted)
            found = yield from info(index)
        if found is None:
            msg = f"the index {index.decode()} was made, and is gone; do it again"
            raise ServerError(msg)
        check(index, found, wanted)
        yield from name_it(ground.alias, index)

    def pack(self, vector: Vector, times: Times, kind: str, conversation: str) -> bytes:  # noqa: ARG002 - as others have it
        """Write a vector down; the script adds when the fact holds."""
        return vector.astype(_DTYPES[self.dtype]).tobytes()

    def unpack(self, raw: bytes, space: Space) -> Vector:
        """Read a vector."""
        vector: Vector = self.unpack_all([raw], space)[0]
        return vector

    def unpack_all(self, raws: Sequence[bytes], space: Space) -> Vectors:
        """Read several vectors."""
        return table(raws, _DTYPES[space.dtype], space)

    def nearest(  # noqa: PLR0913, PLR0917 - what a search is made of
        self, place: OwnerPlace, space: Space, vector: Vector, n: int, wanted: Filter, facts: int
    ) -> Flow[Near]:
        """Search the index: one call; two more at most for RESP2, which has no warnings.

        One more for each doubling of equals.
        """
        if not facts:
            return NOTHING_NEAR

        def ask(count: int) -> Flow[list[tuple[str, float, bytes]]]:
            rows = yield from self._nearest(place, space, vector, count, wanted, facts)
            whole = [(key, raw) for key, raw in rows.items() if raw is not None]
            cosines = self.unpack_all([raw for _, raw in whole], space) @ vector
            return [
                (key.decode().rpartition(":")[2], float(cosine), raw)
                for (key, raw), cosine in zip(whole, cosines, strict=True)
            ]

        return (yield from with_equals(ask, n, facts))

    def _nearest(  # noqa: PLR0913, PLR0917 - what a search is made of
        self, place: OwnerPlace, space: Space, vector: Vector, n: int, wanted: Filter, facts: int
    ) -> Flow[dict[bytes, bytes | None]]:
        """Give the nearest documents and their vectors, nearest first."""
        index = place.index(space.token)
        condition, values = _condition(place.digest, wanted)
        policy = "HYBRID_POLICY ADHOC_BF"
        if self.algorithm == "hnsw" and facts > self.exact:
            policy = f"EF_RUNTIME {self.ef or 2 * n}"
        query = f"({condition})=>[KNN {n} @emb $vector {policy} AS distance]"
        values = {**values, "vector": vector.astype(_DTYPES[self.dtype]).tobytes()}
        nearest = self._search(
            index, query, values, ("SORTBY", "distance", "RETURN", 1, "emb", "LIMIT", 0, n)
        )
        try:
            found: Found = yield nearest
        except ServerError as error:
            if not is_unknown(error):
                raise
            # It was dropped, or lost with a server that came back: it is made of the documents.
            yield from self.prepare(place.ground, space)
            found = yield nearest
        if not found.has_warnings and len(found.rows) < min(n, facts):
            there: Found = yield self._search(index, condition, values, ("LIMIT", 0, 0))
            least = min(n, there.total)
            if len(found.rows) < least:
                # Its time was up, or it has indexed more meanwhile: then it finds them now.
                found = yield nearest
            if len(found.rows) < least:
                if (yield from self.state(place.ground, space)).indexing:
                    return {}  # a part is nothing; who searches looks at all facts then
                found = found._replace(warnings=("it answered fewer than there are",))
        if found.warnings:
            msg = (
                f"search of {place.keys}: the server did not look at everything "
                f"({'; '.join(found.warnings)}); nothing is better than a part. Try again, or "
                "give it more time, as in Search(timeout=…)"
            )
            raise UnavailableError(msg)
        return found.rows

    def _search(
        self, index: bytes, query: str, values: dict[str, Any], rest: tuple[str | int, ...]
    ) -> Call:
        used = {name: value for name, value in values.items() if f"${name}" in query}
        parameters = [part for pair in used.items() for part in pair]
        return Call(
            "search",
            (index,),
            "ft.search",
            (
                query,
                *("PARAMS", len(parameters), *parameters),
                *rest,
                *("TIMEOUT", max(1, round(self.timeout * 1000)), "DIALECT", 2),
            ),
            writes=False,
            read=read_found,
        )

    def state(self, ground: Ground, space: Space) -> Flow[IndexState]:
        """Look at the index: one call."""
        found = yield from info(ground.index(space.digest))
        return IndexState() if found is None else state_of(found)


def _is_clustered(ground: Ground) -> Flow[bool]:
    """Ask whether the server is a node of a Cluster: one call; no, where it may not be asked."""
    try:
        found: bool = yield Call(
            "search", (ground.probe,), "INFO", ("cluster",), writes=False, read=_read_clustered
        )
    except (DeniedError, UnsupportedError):
        return False
    return found


def _read_clustered(reply: Any) -> bool:
    if isinstance(reply, dict):  # redis-py has read it
        return int(reply.get("cluster_enabled", 0)) == 1
    return b"cluster_enabled:1" in reply


def _condition(owner: str, wanted: Filter) -> tuple[str, dict[str, Any]]:
    """Say as a query which facts may be found, and the values in it.

    Each value is a parameter, so that nothing in it can be read as a part of the query.
    """
    values: dict[str, Any] = {"owner": owner, "as_of": wanted.as_of_ms}
    parts = ["@u:{$owner}", f"@from:{_UNTIL.format('$as_of')}"]
    after = _AFTER.format("$as_of")
    if wanted.known_at_ms is None:
        parts.append(f"@to:{after}")
    else:
        values["known_at"] = wanted.known_at_ms
        until, later = _UNTIL.format("$known_at"), _AFTER.format("$known_at")
        parts.append(f"@known:{until}")
        parts.append(f"((@expired:{until} @to:{after})|(@expired:{later} @before:{after}))")
    if wanted.since_ms:
        values["since"] = wanted.since_ms
        parts.append("@known:[$since +inf]")
    if wanted.kinds is not None:
        names = [f"kind{at}" for at in range(len(wanted.kinds))]
        values.update(zip(names, wanted.kinds, strict=True))
        parts.append("@k:{" + "|".join(f"${name}" for name in names) + "}")
    if wanted.conversation:
        values["conversation"] = wanted.conversation
        parts.append("@c:{$conversation}")
    return " ".join(parts), values
