"""Looks at what lies in Redis of an owner's facts, and checks that its parts agree."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.facts.meaning.kit import DIMENSIONS, embed
from tests.facts.postings import unpack
from tests.servers.facade import inner
from turnstore.facts._scoring.text import terms
from turnstore.facts._storing.record import Record, decode, stamp, times_of
from turnstore.facts.engines._index import read_found
from turnstore.facts.engines.plain import _SHIFT

if TYPE_CHECKING:
    from tests.servers.running import Server
    from turnstore.facts import AsyncFacts
    from turnstore.facts._owner import OwnerPlace


@dataclass(frozen=True)
class Raw:
    """What was found.

    Attributes:
        records: The facts by their ids.
        spaces: Where their vectors lie.
        keys: All keys of the owner, with their PTTL.
    """

    records: dict[str, Record]
    spaces: list[str]
    keys: dict[bytes, int]


def place_of(facts: AsyncFacts, owner: str) -> OwnerPlace:
    """Give where an owner's facts lie."""
    place: OwnerPlace = inner(facts)._base.ground.owner(owner)
    return place


def keys_of(server: Server, facts: AsyncFacts, owner: str) -> dict[bytes, int]:
    """Give every key of an owner, found by a look at all keys."""
    ground = inner(facts)._base.ground
    tag = f"{{{ground.store}:{place_of(facts, owner).digest}}}".encode()
    return {key: ttl for key, ttl in server.lives(ground.prefix).items() if tag in key}


def kinds_of(server: Server, facts: AsyncFacts, owner: str) -> set[bytes]:
    """Give the last part of every key of an owner, which says of which kind it is."""
    return {key.rpartition(b":")[2] for key in keys_of(server, facts, owner)}


def backdate(
    server: Server, facts: AsyncFacts, id_: str, age: timedelta, unused: timedelta | None = None
) -> None:
    """Make a fact of Ada's as old as if it had been stored so long ago; its vector stays as it is.

    Args:
        server: Where it lies.
        facts: The facts.
        id_: Of the fact.
        age: How long ago it was stored, and heard, and became true.
        unused: How long ago it was last found; None is never.
    """
    keys, raw, now = place_of(facts, "ada").keys, server.raw, datetime.now(UTC)
    line, between, body = raw.hget(keys.facts, id_).partition(b"\n")
    fields = line.split(b" ")
    fields[2:5] = [b"%d" % stamp(now - age)] * 3
    raw.hset(keys.facts, id_, b" ".join(fields) + between + body)
    raw.zrem(keys.used, id_)
    if unused is not None:
        raw.zadd(keys.used, {id_: stamp(now - unused)})
        raw.pexpire(keys.used, 60_000)


def look(server: Server, facts: AsyncFacts, owner: str) -> Raw:
    """Read everything of an owner, and fail where two parts of it do not agree."""
    place, raw = place_of(facts, owner), server.raw
    names = place.keys
    stored = raw.hgetall(names.facts)
    records = {id_.decode(): decode(id_.decode(), text) for id_, text in stored.items()}
    order = [id_.decode() for id_ in raw.zrange(names.order, 0, -1)]
    assert order == sorted(records), "the order has all facts and no others"
    _check_words(raw, place, records)
    _check_norms(raw, place, records)
    for key, ids in (
        (names.used, raw.zrange(names.used, 0, -1)),
        (names.uses, raw.hkeys(names.uses)),
    ):
        assert {id_.decode() for id_ in ids} <= records.keys(), key
    spaces = (raw.hget(names.postings, "#v") or b"").decode().split()
    for at, space in enumerate(spaces):
        ids = _check_vectors(server, place, space, records)
        assert ids <= records.keys(), f"{space} has vectors of facts that are gone"
        assert at or ids == records.keys(), f"{space} lacks vectors"
    if not spaces:
        assert not records
    return Raw(records, spaces, keys_of(server, facts, owner))


def _check_words(raw: Any, place: OwnerPlace, records: dict[str, Record]) -> None:
    found: dict[tuple[str, str], tuple[int, int]] = {}
    numbers: dict[str, int] = {}
    for field, value in raw.hgetall(place.keys.postings).items():
        term = field.decode("utf-8", "surrogatepass")
        if term.startswith("#"):
            if term in ("#n", "#l"):
                numbers[term] = int(value)
            continue
        assert value, f"the term {term} has no facts"
        for id_, frequency, length in unpack(value):
            assert (term, id_) not in found, f"{id_} stands twice at {term}"
            found[term, id_] = frequency, length
    expected: dict[tuple[str, str], tuple[int, int]] = {}
    total = 0
    for id_, record in records.items():
        counted = terms(record.fact.text)
        total += counted.total()
        for term, frequency in counted.items():
            expected[term, id_] = min(frequency, 255), min(counted.total(), 65535)
    assert found == expected
    assert numbers.get("#n", 0) == len(records)
    assert numbers.get("#l", 0) == total


def _check_norms(raw: Any, place: OwnerPlace, records: dict[str, Record]) -> None:
    norms = {norm.decode(): id_.decode() for norm, id_ in raw.hgetall(place.keys.norms).items()}
    for norm, id_ in norms.items():
        assert id_ in records, f"a norm of {id_}, which is gone"
        assert records[id_].norm == norm
    for record in records.values():
        if record.fact.expired is None:
            assert record.norm in norms, f"nobody knows that {record.fact.text!r} is stored"


def _check_vectors(
    server: Server, place: OwnerPlace, space: str, records: dict[str, Record]
) -> set[str]:
    engine = space.split(":", maxsplit=1)[0]
    read = {"plain": _plain, "vectorset": _vector_set, "search": _search}[engine]
    vectors = read(server, place, space, records)
    for id_, vector in vectors.items():
        if id_ in records and vector is not None and len(vector) == DIMENSIONS:
            (wanted,) = np.array(embed([records[id_].fact.text]))
            assert np.allclose(vector, wanted / np.linalg.norm(wanted), atol=2e-3), id_
    return set(vectors)


def _plain(server: Server, place: OwnerPlace, space: str, records: dict[str, Record]) -> Any:
    vectors = {}
    for raw_id, value in server.raw.hgetall(place.vectors(space)).items():
        id_ = raw_id.decode()
        if id_ in records:
            times = np.frombuffer(value[:40], dtype=">u8").astype(np.int64) - _SHIFT
            assert tuple(times.tolist()) == tuple(times_of(records[id_].fact)), id_
        numbers = value[56:]
        dtype = "<f4" if len(numbers) != 2 * DIMENSIONS else "<f2"
        vectors[id_] = np.frombuffer(numbers, dtype=dtype)
    return vectors


def _vector_set(server: Server, place: OwnerPlace, space: str, records: dict[str, Record]) -> Any:
    raw, key = server.raw, place.vectors(space)
    if not raw.exists(key):
        return {}
    count = raw.execute_command("VCARD", key)
    vectors: dict[str, Any] = {}
    for raw_id in raw.execute_command("VRANDMEMBER", key, count + 10):
        id_ = raw_id.decode()
        vectors[id_] = None
        if ":NOQUANT:" in space:
            reply = raw.execute_command("VEMB", key, id_, "RAW", NEVER_DECODE=True)
            vectors[id_] = np.frombuffer(reply[1], dtype="<f4")
        if id_ not in records:
            continue
        said = json.loads(raw.execute_command("VGETATTR", key, id_, NEVER_DECODE=True))
        times = times_of(records[id_].fact)
        assert [said[name] for name in "nftxb"] == list(times), id_
        assert (said["k"], said["c"]) == (records[id_].fact.kind, records[id_].digest)
    assert len(vectors) == count
    return vectors


def _search(server: Server, place: OwnerPlace, space: str, records: dict[str, Record]) -> Any:
    start = place.vector(space, "")
    vectors = {}
    for key in server.raw.scan_iter(match=start + b"*", count=1000):
        id_ = key.decode().rpartition(":")[2]
        document = server.raw.hgetall(key)
        vectors[id_] = np.frombuffer(document[b"emb"], dtype="<f4")
        if len(document[b"emb"]) == 2 * DIMENSIONS:
            vectors[id_] = np.frombuffer(document[b"emb"], dtype="<f2")
        if id_ in records:
            fields = (b"known", b"from", b"to", b"expired", b"before")
            times = [int(document[field]) for field in fields]
            assert times == list(times_of(records[id_].fact)), id_
            assert document[b"u"].decode() == place.digest
            assert document[b"k"].decode() == records[id_].fact.kind
            assert document[b"c"].decode() == records[id_].digest
    reply = server.raw.execute_command(
        *("FT.SEARCH", place.index(space), "@u:{$u}", "PARAMS", 2, "u", place.digest),
        *("LIMIT", 0, 0, "DIALECT", 2),
    )
    assert read_found(reply).total == len(vectors), "the index counts as many as there are"
    return vectors
