"""Indexes of RediSearch: how one is made, compared and dropped, and how replies are read.

Replies come as lists (RESP2) or as maps (RESP3), whatever the client was told about texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from turnstore._calls import Call, pairs_of
from turnstore.errors import EngineMismatchError, ServerError, UnsupportedError

from ._engine import IndexState

if TYPE_CHECKING:
    from turnstore._calls import Flow

__all__ = [
    "Found",
    "Index",
    "check",
    "counted",
    "create",
    "drop",
    "info",
    "is_unknown",
    "name_it",
    "of_owner",
    "read_found",
    "state_of",
]

_TAGS = ("u", "c", "k")
_NUMBERS = ("known", "from", "to", "expired", "before")
_SEPARATOR = "\x1f"
_UNKNOWN = re.compile(r"(?i)unknown index|no such index|index.{0,40}not found|not found.{0,9}index")
_EXISTS = re.compile(r"(?i)already exists")
_FLAGS = {"CASESENSITIVE", "INDEXEMPTY", "INDEXMISSING", "NOINDEX", "SORTABLE", "UNF"}


@dataclass(frozen=True, slots=True)
class Index:
    """An index as it should be.

    Attributes:
        prefix: What the keys of its documents begin with.
        algorithm: "HNSW" or "FLAT".
        dtype: "FLOAT32" or "FLOAT16".
        dimensions: Of a vector.
        parameters: Of the algorithm, by the server's names.
    """

    prefix: bytes
    algorithm: str
    dtype: str
    dimensions: int
    parameters: tuple[tuple[str, int], ...]


class Found(NamedTuple):
    """What a search answered.

    Attributes:
        total: How many it counts.
        rows: The keys of documents and their vectors, nearest first.
        has_warnings: Whether it would say that it has left something out.
        warnings: What it says.
    """

    total: int
    rows: dict[bytes, bytes | None]
    has_warnings: bool
    warnings: tuple[str, ...] = ()


def info(index: bytes) -> Flow[dict[str, Any] | None]:
    """Ask for an index: one call; None where there is none."""
    try:
        found: dict[str, Any] = yield Call(
            "index", (index,), "ft.info", (), writes=False, read=_named
        )
    except ServerError as error:
        if is_unknown(error):
            return None
        raise
    return found


def create(index: bytes, wanted: Index) -> Flow[None]:
    """Make an index, unless another process has made it just now: one call."""
    vector: list[str | int] = [
        *("TYPE", wanted.dtype, "DIM", wanted.dimensions, "DISTANCE_METRIC", "COSINE"),
        *(part for pair in wanted.parameters for part in pair),
    ]
    arguments: tuple[bytes | str | int, ...] = (
        *("ON", "HASH", "PREFIX", 1, wanted.prefix),
        *("NOOFFSETS", "NOHL", "NOFIELDS", "NOFREQS", "STOPWORDS", 0, "SCHEMA"),
        *(part for tag in _TAGS for part in (tag, "TAG", "SEPARATOR", _SEPARATOR, "CASESENSITIVE")),
        *(part for name in _NUMBERS for part in (name, "NUMERIC")),
        *("emb", "VECTOR", wanted.algorithm, len(vector), *vector),
    )
    try:
        yield Call("index", (index,), "ft.create", arguments, writes=True, read=bool)
    except ServerError as error:
        if not (type(error) is ServerError and _EXISTS.search(str(error.__cause__))):
            raise


def drop(index: bytes) -> Flow[None]:
    """Drop an index and leave its documents: one call; a server without indexes has none."""
    try:
        yield Call("index", (index,), "ft.dropindex", (), writes=True, read=bool)
    except ServerError as error:
        if not _is_missing(error):
            raise


def name_it(alias: bytes, index: bytes, *, anew: bool = False) -> Flow[None]:
    """Give an index an alias that no other has: one call.

    Args:
        alias: The name.
        index: The index.
        anew: Whether it is taken from the index that has it.
    """
    command = "ft.aliasupdate" if anew else "ft.aliasadd"
    try:
        yield Call("index", (alias,), command, (index,), writes=True, read=bool)
    except ServerError as error:
        if not (type(error) is ServerError and _EXISTS.search(str(error.__cause__))):
            raise


def check(index: bytes, found: dict[str, Any], wanted: Index) -> None:
    """Compare an index with what it should be; what the server does not tell is not compared.

    Raises:
        EngineMismatchError: They differ.
    """
    differing = list(_differing(found, wanted))
    if differing:
        msg = (
            f"the index {index.decode()} is not the one that these settings make: "
            f"{'; '.join(differing)}. It was left as it is: use its settings, or move the facts "
            "with migrate()"
        )
        raise EngineMismatchError(msg)


def state_of(found: dict[str, Any]) -> IndexState:
    """Read how an index is."""
    return IndexState(
        documents=int(found.get("num_docs", 0)),
        indexing=int(float(found.get("indexing", 0))) != 0,
        failures=int(found.get("hash_indexing_failures", 0)),
    )


def of_owner(
    index: bytes, owner: str, limit: int, conversation: str = "", *, key: bytes = b""
) -> Flow[Found]:
    """Find documents of an owner, whatever is in them; none where there is no index: one call.

    Args:
        index: Its name.
        owner: The digest of the owner.
        limit: How many are named; all are counted.
        conversation: The digest of the conversation that they are of; empty finds all.
        key: The one document that is looked for; empty finds all.
    """
    condition = "@u:{$owner}"
    values = ["owner", owner]
    if conversation:
        condition += " @c:{$conversation}"
        values += ["conversation", conversation]
    only = ("INKEYS", 1, key) if key else ()
    head = (condition, "NOCONTENT", *only, "PARAMS", len(values), *values)
    arguments = (*head, "LIMIT", 0, limit, "DIALECT", 2)
    try:
        found: Found = yield Call(
            "index", (index,), "ft.search", arguments, writes=False, read=read_found
        )
    except ServerError as error:
        if _is_missing(error):
            return Found(0, {}, has_warnings=True)
        raise
    return found


def counted(index: bytes, owner: str) -> Flow[int]:
    """Count the documents of an owner; none where there is no index: one call."""
    found = yield from of_owner(index, owner, 0)
    return found.total


def read_found(reply: Any) -> Found:
    """Read what a search answered."""
    if isinstance(reply, dict):
        by_name = _named(reply)
        results = by_name.get("results", [])
        rows = {row[b"id"]: _vector(row.get(b"extra_attributes")) for row in results}
        warnings = tuple(_text(one) for one in by_name.get("warning", []))
        return Found(int(by_name["total_results"]), rows, has_warnings=True, warnings=warnings)
    total, *rest = reply
    if rest and isinstance(rest[-1], bytes):  # keys alone
        return Found(total, dict.fromkeys(rest), has_warnings=False)
    pairs = zip(rest[::2], rest[1::2], strict=True)
    return Found(total, {key: _vector(fields) for key, fields in pairs}, has_warnings=False)


def _vector(fields: Any) -> bytes | None:
    """Take the vector out of the fields of a document; there are none where it is gone."""
    found: bytes | None = pairs_of(fields or {}).get(b"emb")
    return found


def is_unknown(error: ServerError) -> bool:
    """Tell whether the server says that it has no such index."""
    return type(error) is ServerError and _UNKNOWN.search(str(error.__cause__)) is not None


def _is_missing(error: ServerError) -> bool:
    """Tell whether there is no such index: also on a server without any, to which facts moved."""
    return isinstance(error, UnsupportedError) or is_unknown(error)


def _differing(found: dict[str, Any], wanted: Index) -> Iterator[str]:
    definition = _named(found.get("index_definition", {}))
    if _text(definition.get("key_type", "HASH")) != "HASH":
        yield "it indexes no hashes"
    prefixes = [bytes(one) for one in definition.get("prefixes", [])]
    if prefixes != [wanted.prefix]:
        yield f"it indexes the keys {prefixes}, not {[wanted.prefix]}"
    fields = {_text(field["identifier"]): field for field in map(_field, found["attributes"])}
    for name in (*_TAGS, *_NUMBERS, "emb"):
        expected = {"type": "VECTOR" if name == "emb" else "NUMERIC"}
        if name in _TAGS:
            expected = {"type": "TAG", "SEPARATOR": _SEPARATOR, "CASESENSITIVE": "yes"}
        elif name == "emb":
            expected |= {
                "algorithm": wanted.algorithm,
                "data_type": wanted.dtype,
                "dim": str(wanted.dimensions),
                "distance_metric": "COSINE",
                **{key: str(value) for key, value in wanted.parameters},
            }
        yield from _differing_field(name, fields.get(name), expected)


def _differing_field(
    name: str, field: dict[str, Any] | None, expected: dict[str, str]
) -> Iterator[str]:
    if field is None:
        yield f"it has no field {name}"
        return
    there = {key.lower(): _text(value) for key, value in field.items()}
    told = {"type", "casesensitive", "algorithm", "data_type", "dim", "distance_metric"}
    for key, value in expected.items():
        actual = there.get(key.lower())
        if actual != value and (actual is not None or key.lower() in told):
            yield f"{key} of {name} is {actual}, not {value}"


def _field(raw: Any) -> dict[str, Any]:
    """Read how a field is indexed; its flags have the value "yes"."""
    if isinstance(raw, dict):
        field = _named(raw)
        return field | {_text(flag): "yes" for flag in field.get("flags", [])}
    field, parts = {}, iter(raw)
    for part in parts:
        name = _text(part)
        field[name] = "yes" if name in _FLAGS else next(parts)
    return field


def _named(reply: Any) -> dict[str, Any]:
    return {_text(name): value for name, value in pairs_of(reply).items()}


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
