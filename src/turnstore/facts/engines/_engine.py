"""What an engine has to do: keep vectors, and find the nearest among those that may be shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

import numpy as np

from turnstore.errors import CorruptTurnError, DeniedError

if TYPE_CHECKING:
    from turnstore._calls import Flow
    from turnstore.facts._embedding import Embedder, Vector, Vectors
    from turnstore.facts._owner import Ground, OwnerPlace
    from turnstore.facts._space import Space

__all__ = [
    "AS_NEAR",
    "NOTHING_NEAR",
    "Engine",
    "Filter",
    "IndexState",
    "Near",
    "Times",
    "denied",
    "table",
    "with_equals",
]

AS_NEAR = 1e-6
"""Similarities that differ by less are the same: engines compute and round them differently."""


class Times(NamedTuple):
    """When a fact holds, in milliseconds; the scripts have the same names."""

    created: int
    start: int
    to: int
    expired: int
    before: int


@dataclass(frozen=True, slots=True)
class Filter:
    """Which facts a search may find.

    Attributes:
        as_of_ms: They are true at this time.
        known_at_ms: By what was known at this time; None is now.
        kinds: They are of one of these kinds; None is any.
        conversation: The digest of theirs; empty is any.
        since_ms: None is older: documents of an index can outlive their facts, and must not
            take the places of others.
    """

    as_of_ms: int
    known_at_ms: int | None = None
    kinds: tuple[str, ...] | None = None
    conversation: str = ""
    since_ms: int = 0


class Near(NamedTuple):
    """What an engine found.

    Attributes:
        ids: Of the facts.
        packed: The vectors that the server sent along, by their facts, whether found or not.
    """

    ids: Sequence[str]
    packed: Mapping[str, bytes]


NOTHING_NEAR = Near((), {})


@dataclass(frozen=True, slots=True)
class IndexState:
    """How the index of an engine is, where the server has one.

    Attributes:
        documents: In the index.
        indexing: Whether the server is still building it.
        failures: Documents that it could not take.
    """

    documents: int = 0
    indexing: bool = False
    failures: int = 0


def with_equals(
    ask: Callable[[int], Flow[Sequence[tuple[str, float, bytes]]]], n: int, facts: int
) -> Flow[Near]:
    """Ask a server for the nearest facts until none is left out that is as near as the last one.

    A server answers so many as it is asked for; which of several equals these are, is chance.

    Args:
        ask: Asks for so many: their ids, similarities and packed vectors, nearest first.
        n: How many are wanted.
        facts: How many the owner has.
    """
    count = n + 1
    while True:
        found = yield from ask(count)
        is_whole = len(found) < count or count >= facts
        if is_whole or found[n - 1][1] - found[-1][1] > AS_NEAR:
            packed = {id_: raw for id_, _, raw in found if raw}
            return Near([id_ for id_, *_ in found], packed)
        count *= 2


def table(raws: Sequence[bytes], dtype: str, space: Space) -> Vectors:
    """Read vectors of numbers of a type, one in each row.

    Raises:
        CorruptTurnError: One has not as many as the space.
    """
    data = b"".join(raws)
    size = np.dtype(dtype).itemsize * space.dimensions
    if {*map(len, raws)} - {size}:
        msg = f"a vector of the space {space.text} is not one of ours; it was left as it is"
        raise CorruptTurnError(msg)
    numbers = np.frombuffer(data, dtype=dtype).reshape(-1, space.dimensions)
    return numbers.astype(np.float32, copy=False)


def denied(engine: Engine, error: DeniedError) -> DeniedError:
    """Give the error of a user who may not use an engine that the server has."""
    msg = (
        f"{error}. The engine {engine.name} runs {', '.join(engine.commands)}: let the ACL allow "
        'them, or name another engine, such as engine="plain"'
    )
    return DeniedError(msg)


class Engine(Protocol):
    """Keeps vectors in one of several ways; all of them find the same.

    An engine is a value: it holds the options of a caller, and no connection.
    """

    name: ClassVar[str]
    """What scripts and errors call it."""

    needs: ClassVar[str]
    """What the server has to have, in the words of an error."""

    commands: ClassVar[tuple[str, ...]]
    """What an ACL has to allow for it, beside what facts need with every engine."""

    scored: ClassVar[bool]
    """Whether it answers similarities, so that a search can demand one."""

    def space(self, embedder: Embedder) -> Space:
        """Say in which space the vectors of an embedder are."""
        ...

    def is_available(self, ground: Ground) -> Flow[bool]:
        """Find out whether the server can do it.

        Raises:
            DeniedError: It can, but an ACL does not let this user.
        """
        ...

    def prepare(self, ground: Ground, space: Space) -> Flow[None]:
        """Make what the space needs, unless it is there; never change what is there.

        Raises:
            EngineMismatchError: What is there is not what this engine would make.
        """
        ...

    def pack(self, vector: Vector, times: Times, kind: str, conversation: str) -> bytes:
        """Write a vector down for the script that stores it."""
        ...

    def unpack(self, raw: bytes, space: Space) -> Vector:
        """Read a vector as the script that reads it gives it."""
        ...

    def unpack_all(self, raws: Sequence[bytes], space: Space) -> Vectors:
        """Read several vectors, one in each row.

        Raises:
            CorruptTurnError: One is not of this space.
        """
        ...

    def nearest(  # noqa: PLR0913, PLR0917 - what a search is made of
        self, place: OwnerPlace, space: Space, vector: Vector, n: int, wanted: Filter, facts: int
    ) -> Flow[Near]:
        """Find the facts of an owner that are nearest to a vector.

        Args:
            place: The owner's.
            space: Where the vectors lie.
            vector: Of length 1.
            n: So many, and all that are as near as the last one of them, within `AS_NEAR`.
            wanted: Which of them.
            facts: How many the owner has.
        """
        ...

    def state(self, ground: Ground, space: Space) -> Flow[IndexState]:
        """Say how the index is; it is empty where there is none."""
        ...
