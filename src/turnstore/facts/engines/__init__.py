"""The engines: three ways to keep vectors, of which each finds the same."""

from __future__ import annotations

from ._engine import Engine
from ._index import counted
from ._index import drop as drop_index
from ._index import name_it as name_index
from ._index import of_owner as documents_of
from .plain import Plain
from .search import Search
from .vectorset import VectorSet

__all__ = [
    "AUTOMATIC",
    "ENGINES",
    "Engine",
    "Plain",
    "Search",
    "VectorSet",
    "counted",
    "documents_of",
    "drop_index",
    "engine_named",
    "keeping",
    "name_index",
]

ENGINES: tuple[Engine, ...] = (Search(), VectorSet(), Plain())
"""Each engine, with its default options."""

AUTOMATIC: tuple[Engine, ...] = (Search(), Plain())
"""What "auto" looks for, in this order; each server has the last one.

Vector sets are taken by name alone: their `VREM` brings servers down that are in use
(https://github.com/redis/redis/issues/15424, seen here with Redis 8.2.3).
"""


def keeping(name: str, dtype: str) -> Engine:
    """Give an engine that reads what one of this name and type has stored."""
    of: dict[str, type[Plain | Search | VectorSet]] = {
        one.name: one for one in (Plain, Search, VectorSet)
    }
    return of[name](dtype=dtype)


def engine_named(engine: str | Engine) -> Engine | None:
    """Give the engine of a name, with its default options; None for "auto".

    Raises:
        TypeError: It is neither a name nor an engine.
        ValueError: No engine has this name.
    """
    if isinstance(engine, Plain | Search | VectorSet):
        return engine
    if not isinstance(engine, str):
        msg = f"engine is a name, or an engine such as Search(), not {type(engine).__name__}"
        raise TypeError(msg)
    named = {one.name: one for one in ENGINES}
    if engine != "auto" and engine not in named:
        msg = f"engine {engine!r}: it is 'auto', {', '.join(map(repr, named))}, or an engine"
        raise ValueError(msg)
    return named.get(engine)
