"""The index of RediSearch: it is made once, compared, and never overwritten."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.meaning.kit import DIMENSIONS
from tests.facts.store.raw import look, place_of
from tests.servers.facade import inner
from tests.waiting import wait_until_async
from turnstore import EngineMismatchError, ServerError
from turnstore.facts import NewFact, Ranking, Search
from turnstore.facts.engines import documents_of
from turnstore.facts.engines._engine import NOTHING_NEAR, IndexState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.facts.store.conftest import NewFacts
    from tests.servers.running import Server
    from turnstore.facts import AsyncFacts

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis-8.2-search")]


@pytest.fixture(autouse=True)
def no_index_stays(server: Server, prefix: str) -> Iterator[None]:
    """Drop the indexes of a test; they are no keys."""
    yield
    for name in server.raw.execute_command("FT._LIST"):
        if name.startswith(prefix.encode()):
            server.raw.execute_command("FT.DROPINDEX", name)


def index_of(facts: AsyncFacts) -> bytes:
    base = inner(facts)._base
    index: bytes = base.ground.index(base._backend.space.digest)
    return index


def told(server: Server, index: bytes) -> Any:
    reply = server.raw.execute_command("FT.INFO", index)
    return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=False))


async def test_it_is_made_once_and_has_a_second_name(new_facts: NewFacts, server: Server) -> None:
    facts = new_facts()
    await facts.add("ada", "Ada swims.")
    index = index_of(facts)
    assert told(server, index)[b"num_docs"] == 1
    await new_facts().add("ada", "Ada reads.")
    assert told(server, index)[b"num_docs"] == 2
    alias = inner(facts)._base.ground.alias
    assert told(server, alias)[b"index_name"] == index


async def test_an_index_of_another_make_is_left_as_it_is(
    new_facts: NewFacts, server: Server
) -> None:
    facts = new_facts()
    await facts.add("ada", "Ada swims.")
    index = index_of(facts)
    place = place_of(facts, "ada")
    server.raw.execute_command("FT.DROPINDEX", index)
    start = place.vector(look_spaces(server, facts)[0], "").rpartition(b"{")[0]
    schemas = [
        ("u", "TAG", "emb", "VECTOR", "FLAT", 6, *vector(DIMENSIONS)),
        ("u", "TAG", "SEPARATOR", "\x1f", "CASESENSITIVE", "emb", "VECTOR", "HNSW", 6, *vector(8)),
        ("u", "TEXT"),
    ]
    for schema in schemas:
        server.raw.execute_command(
            *("FT.CREATE", index, "ON", "HASH", "PREFIX", 1, start, "SCHEMA", *schema)
        )
        before = told(server, index)[b"attributes"]
        other = new_facts()
        for call in (
            other.search("ada", "x"),
            other.add("ada", "x"),
        ):
            with pytest.raises(EngineMismatchError, match="left as it is"):
                await call
        assert told(server, index)[b"attributes"] == before
        server.raw.execute_command("FT.DROPINDEX", index)


def vector(dimensions: int) -> tuple[Any, ...]:
    return ("TYPE", "FLOAT32", "DIM", dimensions, "DISTANCE_METRIC", "COSINE")


def look_spaces(server: Server, facts: AsyncFacts) -> list[str]:
    raw = server.raw.hget(place_of(facts, "ada").keys.postings, "#v")
    spaces: list[str] = raw.decode().split()
    return spaces


async def test_an_index_of_other_keys_is_refused(new_facts: NewFacts, server: Server) -> None:
    facts = new_facts()
    await facts.add("ada", "Ada swims.")
    index = index_of(facts)
    server.raw.execute_command("FT.DROPINDEX", index)
    tag = ("TAG", "SEPARATOR", "\x1f", "CASESENSITIVE")
    numbers = [
        part for name in ("known", "from", "to", "expired", "before") for part in (name, "NUMERIC")
    ]
    server.raw.execute_command(
        *("FT.CREATE", index, "ON", "HASH", "PREFIX", 1, "somebody:", "SCHEMA"),
        *("u", *tag, "c", *tag, "k", *tag, *numbers, "emb", "VECTOR", "FLAT", 6),
        *vector(DIMENSIONS),
    )
    with pytest.raises(EngineMismatchError, match="somebody:"):
        await new_facts().search("ada", "x")


GRAPH = Search(algorithm="hnsw")
OTHERS = [
    (GRAPH, replace(GRAPH, m=32)),
    (GRAPH, replace(GRAPH, ef_construction=100)),
    (Search(), GRAPH),
    (Search(), Search(block_size=64)),
    (Search(), Search(dtype="float16")),
]


@pytest.mark.parametrize("one, other", OTHERS, ids=str)
async def test_other_options_are_another_space(
    new_facts: NewFacts, one: Search, other: Search
) -> None:
    await new_facts(engine=one).add("ada", "Ada swims.")
    with pytest.raises(EngineMismatchError):
        await new_facts(engine=other).search("ada", "x")


async def test_options_of_a_search_alone_are_not(new_facts: NewFacts) -> None:
    await new_facts(engine=GRAPH).add("ada", "Ada swims.")
    facts = new_facts(engine=replace(GRAPH, ef=50, exact=0, timeout=0.5))
    assert len(await facts.search("ada", "swims", min_score=None)) == 1


async def test_an_index_that_is_gone_is_made_again(new_facts: NewFacts, server: Server) -> None:
    facts = new_facts()
    await facts.add_many("ada", [NewFact(text=f"Ada knows {n}.") for n in range(150)])
    server.raw.execute_command("FT.DROPINDEX", index_of(facts))
    again = new_facts()
    hits = await again.search("ada", "Ada knows 7.", top_k=1, min_score=0.9)
    assert [hit.fact.text for hit in hits] == ["Ada knows 7."]


async def test_an_index_that_is_still_built_hides_nothing(
    new_facts: NewFacts, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    facts = new_facts(ranking=Ranking(near_duplicate=None))
    await facts.add_many("ada", [NewFact(text=f"Ada knows {n}.") for n in range(150)])

    def nothing_yet(*_: object) -> Any:
        yield from ()
        return NOTHING_NEAR

    def building(*_: object) -> Any:
        yield from ()
        return IndexState(documents=3, indexing=True)

    monkeypatch.setattr(Search, "nearest", nothing_yet)
    monkeypatch.setattr(Search, "state", building)
    for times in (1, 2):
        hits = await facts.search("ada", "nothing of these words 7", top_k=60, min_score=None)
        assert len(hits) == 60
        assert facts.counts["indexing"] == times
    assert caplog.text.count("building its index") == 1
    health = await facts.health()
    assert (health.indexing, health.is_well) == (True, True)


async def test_an_index_that_was_built_during_a_search_hides_nothing(
    new_facts: NewFacts, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = new_facts(ranking=Ranking(near_duplicate=None))
    await facts.add_many("ada", [NewFact(text=f"Ada knows {n}.") for n in range(150)])
    await wait_until_async(lambda: told(server, index_of(facts))[b"indexing"] in (0, b"0"))
    whole, asked = Search.nearest, 0

    def half_built(*args: Any) -> Any:
        nonlocal asked
        asked += 1
        found = yield from whole(*args)
        return found._replace(ids=found.ids[:3]) if asked == 1 else found

    monkeypatch.setattr(Search, "nearest", half_built)
    hits = await facts.search("ada", "nothing of these words 7", top_k=60, min_score=None)
    assert (len(hits), asked) == (60, 2)


async def test_a_document_that_was_not_indexed_is_noticed(
    new_facts: NewFacts, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    facts = new_facts()
    added = await facts.add("ada", "Ada swims.")
    place = place_of(facts, "ada")
    key = place.vector(look_spaces(server, facts)[0], "x" * 12)
    server.raw.hset(key, mapping={"u": place.digest, "emb": b"\0" * 8})
    server.raw.pexpire(key, 100_000)
    health = await facts.health()
    # RediSearch may try it twice: when it is written, and when it is given its life.
    assert (health.indexing_failures in (1, 2), health.is_well) == (True, False)
    await facts.add("ada", "Ada reads.")
    assert facts.counts["indexing_failures"] in (1, 2)
    assert "could not take" in caplog.text
    assert len(await facts.search("ada", "swims reads", min_score=None)) == 2
    assert await facts.get("ada", added.id)


async def test_an_erasure_removes_what_only_the_index_knows(
    new_facts: NewFacts, server: Server
) -> None:
    facts = new_facts()
    await facts.add_many("bob", [NewFact(text="Bob swims.")])
    await facts.add("ada", "Ada swims.")
    place = place_of(facts, "ada")
    for number in range(500):
        key = place.vector(look_spaces(server, facts)[0], f"y{number:011}")
        server.raw.hset(key, mapping={"u": place.digest, "emb": b"\0" * 4 * DIMENSIONS})
    assert (await facts.erase("ada")).parts == {"facts": 1}
    left = [key for key in server.lives(facts_prefix(facts)) if place.digest.encode() in key]
    assert [key for key in left if not key.endswith(b":generation")] == []
    assert len(look(server, facts, "bob").records) == 1


async def test_an_index_that_still_counts_what_was_erased_is_an_error(
    new_facts: NewFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = new_facts()
    await facts.add("ada", "Ada swims.")

    def counting(*args: Any) -> Any:
        found = yield from documents_of(*args)
        return found._replace(total=1)

    monkeypatch.setattr("turnstore.facts._storing.erasing.documents_of", counting)
    with pytest.raises(ServerError, match="still counts 1 documents of the owner"):
        await facts.erase("ada")
    monkeypatch.undo()
    assert (await facts.erase("ada", verify=True)).verified


def facts_prefix(facts: AsyncFacts) -> str:
    prefix: str = inner(facts)._base.ground.prefix
    return prefix


async def test_facts_of_an_index_are_whole(new_facts: NewFacts, server: Server) -> None:
    facts = new_facts(engine=Search(algorithm="flat", block_size=16))
    await facts.add_many("ada", [NewFact(text=f"Ada knows {n}.") for n in range(120)])
    look(server, facts, "ada")
