"""The same question gets the same answer on each engine: that of a search in plain Python."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.facts.store.model import Asked, search
from tests.facts.store.raw import look
from turnstore._calls import Call
from turnstore.facts import NewFact, Plain, Ranking, Search, VectorSet

if TYPE_CHECKING:
    from tests.facts.store.conftest import NewFacts
    from tests.servers.running import Server
    from turnstore.facts import AsyncFacts, Fact

DIMENSIONS = 64
WORDS = ("Ada", "Bob", "swims", "reads", "lives", "Paris", "Rome", "tea", "jam", "cat", "42")
NOW = datetime.now(UTC)
# The rule of tests/facts/store/model.py: what is around a fact does not count.
_NOTHING = ("neighbours", "sitting", "answers", "questions", "dates")
ALONE = {"alpha": 0.65, **dict.fromkeys(_NOTHING, 0.0)}


def embed(texts: list[str]) -> list[list[float]]:
    """Give each text a direction of its own, the same each time."""
    found = []
    for text in texts:
        seed = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
        found.append(np.random.default_rng(seed).normal(size=DIMENSIONS).tolist())
    return found


def options(candidates: int, **more: Any) -> dict[str, Any]:
    rules: dict[str, Any] = {"near_duplicate": None, **ALONE, **more}
    ranking = Ranking(candidates=candidates, **rules)
    return {"embed": embed, "dimensions": DIMENSIONS, "embedder": "random:1", "ranking": ranking}


async def fill(facts: AsyncFacts, rng: random.Random, count: int) -> list[Fact]:
    """Store random facts, of which some are of the past, of the future, or ended."""
    new = []
    for number in range(count):
        start = NOW + timedelta(days=rng.randint(-400, 30))
        end = start + timedelta(days=rng.randint(1, 300)) if rng.random() < 0.3 else None
        new.append(
            NewFact(
                text=" ".join([*rng.choices(WORDS, k=rng.randint(1, 8)), f"n{number}"]),
                kind=rng.choice(("fact", "wish", "exchange")),
                conversation=rng.choice(("", "c1", "c2")),
                sources=(f"t{rng.randint(0, 9)}",),
                valid_from=start,
                valid_to=end,
            )
        )
    added = await facts.add_many("ada", new)
    for one in rng.sample(added, count // 4):
        await facts.end("ada", one.id, valid_to=NOW - timedelta(days=rng.randint(-20, 300)))
    stored = list(await facts.list("ada", 1000, include_closed=True))
    assert len(stored) == count
    return stored


def ask(rng: random.Random, stored: list[Fact]) -> Asked:
    """Make a random question."""
    known_at = None
    if rng.random() < 0.4:
        known_at = rng.choice(stored).created + timedelta(milliseconds=rng.randint(-5, 5))
        closed = [fact.expired for fact in stored if fact.expired]
        if rng.random() < 0.5 and closed:
            known_at = rng.choice(closed) + timedelta(milliseconds=rng.randint(-2, 2))
    return Asked(
        text=" ".join(rng.choices(WORDS, k=rng.randint(1, 5))),
        top_k=rng.choice((1, 3, 10, 100)),
        as_of=NOW + timedelta(days=rng.randint(-400, 30)),
        known_at=known_at,
        kinds=rng.choice((None, ("fact",), ("wish", "exchange"))),
        conversation=rng.choice(("", "", "c1")),
        min_score=rng.choice((None, None, 0.0, 0.1)),
        exclude=frozenset(rng.choice(((), ("t1", "t2"), (rng.choice(stored).id,)))),
    )


async def found(facts: AsyncFacts, asked: Asked) -> list[tuple[str, float]]:
    hits = await facts.search(
        "ada",
        asked.text,
        top_k=asked.top_k,
        min_score=asked.min_score,
        kinds=asked.kinds,
        conversation=asked.conversation,
        as_of=asked.as_of,
        known_at=asked.known_at,
        exclude=asked.exclude,
    )
    return [(hit.fact.id, hit.score) for hit in hits]


def assert_alike(
    got: list[tuple[str, float]], wanted: list[tuple[str, float]], within: float
) -> None:
    assert [id_ for id_, _ in got] == [id_ for id_, _ in wanted]
    for (_, score), (_, other) in zip(got, wanted, strict=True):
        assert score == pytest.approx(other, abs=within)


@pytest.mark.one_setup
@pytest.mark.parametrize("candidates", [200, 7])
@pytest.mark.parametrize("seed", range(2))
async def test_the_answer_is_that_of_plain_python(
    new_facts: NewFacts, seed: int, candidates: int
) -> None:
    rng = random.Random(seed)
    facts = new_facts(**options(candidates))
    stored = await fill(facts, rng, 80)
    for _ in range(25):
        asked = ask(rng, stored)
        wanted = search(stored, asked, embed, candidates)
        assert_alike(await found(facts, asked), wanted, 1e-6)


@pytest.mark.one_setup
@pytest.mark.parametrize("count", [30, 70])
async def test_equals_at_the_edge_of_the_candidates_are_taken_by_their_ids(
    new_facts: NewFacts, count: int
) -> None:
    """Of many that are as near as one another, each engine takes the oldest ones."""

    def alike(texts: list[str]) -> list[list[float]]:
        # Two groups, of which each fact has a vector of its own that is as near as the others.
        return [_turned(int(text.split()[-1].strip("n?")), "far" in text) for text in texts]

    facts = new_facts(**{**options(10), "embed": alike})
    names = ["far" if n % 3 == 0 else "near" for n in range(count)]
    added = await facts.add_many(
        "ada", [NewFact(text=f"{one} n{n}") for n, one in enumerate(names)]
    )
    hits = await facts.search("ada", "? 0", top_k=5, min_score=None)
    near = [one.id for one, name in zip(added, names, strict=True) if name == "near"]
    assert [hit.fact.id for hit in hits] == near[:5]
    hits = await facts.search("ada", "? 0", top_k=count, min_score=None)
    assert [hit.fact.id for hit in hits] == near + sorted({one.id for one in added} - {*near})


@pytest.mark.one_setup
async def test_what_is_left_out_takes_the_place_of_nothing(new_facts: NewFacts) -> None:
    """Also where all of the nearest ones are left out, and more of them than hits are wanted."""
    facts = new_facts(
        **{**options(4), "embed": lambda texts: [_turned(1, is_far=False)] * len(texts)}
    )
    new = [NewFact(text=f"n{n}", sources=(f"t{n}",)) for n in range(90)]
    added = await facts.add_many("ada", new)
    left_out = {f"t{n}" for n in range(60)}
    hits = await facts.search("ada", "?", top_k=2, min_score=None, exclude=left_out)
    assert [hit.fact.id for hit in hits] == [one.id for one in added[60:62]]


def _turned(number: int, is_far: bool) -> list[float]:  # noqa: FBT001 - of two groups
    """Give vectors of which those of a group are as near as one another to that of number 0."""
    vector = [1.0] + [0.0] * (DIMENSIONS - 1)
    if number or is_far:
        vector[1 + number % (DIMENSIONS - 1)] = 2.0 if is_far else 1.0
    return vector


@pytest.mark.one_setup
@pytest.mark.servers("redis-8.2")
async def test_the_order_of_the_default_ranking_is_that_of_plain(new_facts: NewFacts) -> None:
    """Also where others have facts of the same words, and in conversations of the same name."""
    rng = random.Random(3)
    given: dict[str, Any] = {
        "embed": embed,
        "dimensions": DIMENSIONS,
        "embedder": "random:1",
    }
    facts = new_facts(**given)
    for owner in ("bob", "eve"):
        theirs = [" ".join((*rng.choices(WORDS, k=4), f"n{n}")) for n in range(100)]
        await facts.add_many(owner, [NewFact(text=text, conversation="c1") for text in theirs])
    stored = await fill(facts, rng, 200)
    questions = [ask(rng, stored) for _ in range(30)]
    answers = [[id_ for id_, _ in await found(facts, asked)] for asked in questions]
    plain = new_facts(**given, engine="plain")
    await plain.migrate()
    assert [[id_ for id_, _ in await found(plain, asked)] for asked in questions] == answers


HALF: dict[str, Any] = {
    "plain": Plain(dtype="float16"),
    "vectorset": VectorSet(dtype="int8", m=8, ef_construction=50),
    "search": Search(dtype="float16", algorithm="flat", block_size=64),
}
GRAPH: dict[str, Any] = {
    "plain": Plain(),
    "vectorset": VectorSet(exact=0, ef=300),
    "search": Search(algorithm="hnsw", exact=0, ef=300),
}


@pytest.mark.one_setup
async def test_shorter_numbers_are_a_little_less_exact(new_facts: NewFacts, engine: str) -> None:
    rng = random.Random(7)
    facts = new_facts(**options(200), engine=HALF[engine])
    stored = await fill(facts, rng, 40)
    for _ in range(10):
        asked = ask(rng, stored)
        wanted = dict(search(stored, asked, embed, 200))
        got = await found(facts, asked)
        both = [(id_, score) for id_, score in got if id_ in wanted]
        assert len(both) >= len(wanted) * 0.9
        for id_, score in both:
            assert score == pytest.approx(wanted[id_], abs=1e-2)


@pytest.mark.one_setup
async def test_a_graph_finds_the_same_where_it_looks_at_enough(
    new_facts: NewFacts, engine: str
) -> None:
    rng = random.Random(8)
    facts = new_facts(**options(20), engine=GRAPH[engine])
    stored = await fill(facts, rng, 200)
    alike = 0
    for _ in range(20):
        asked = ask(rng, stored)
        wanted = [id_ for id_, _ in search(stored, asked, embed, 20)]
        alike += [id_ for id_, _ in await found(facts, asked)] == wanted
    assert alike >= 19


EFFORTS: dict[str, list[tuple[Any, str]]] = {
    "vectorset": [
        (VectorSet(exact=0, ef=300), "EF 300 "),
        (VectorSet(exact=0), f"EF {5 * 21} "),
        (VectorSet(ef=300), "TRUTH"),
    ],
    "search": [
        (Search(algorithm="hnsw", exact=0, ef=300), "EF_RUNTIME 300 "),
        (Search(algorithm="hnsw", exact=0), f"EF_RUNTIME {2 * 21} "),
        (Search(algorithm="hnsw", ef=300), "HYBRID_POLICY ADHOC_BF"),
    ],
}


@pytest.mark.one_setup
@pytest.mark.servers("redis-8.2")
async def test_the_server_is_told_how_many_to_look_at(
    new_facts: NewFacts, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 20 candidates it has to find 21: whether one more is as near as the last one."""
    said: list[str] = []

    def noting(operation: str, keys: Any, command: str, arguments: Any, **more: Any) -> Call:
        if command in ("vsim", "ft.search"):
            said.append(" ".join(one for one in map(str, arguments)))
        return Call(operation, keys, command, arguments, **more)

    monkeypatch.setattr(f"turnstore.facts.engines.{engine}.Call", noting)
    for number, (with_options, wanted) in enumerate(EFFORTS[engine]):
        facts = new_facts(**options(20), engine=with_options)
        if not number:
            await facts.add_many("ada", [NewFact(text=f"n{n}") for n in range(80)])
        said.clear()
        assert len(await facts.search("ada", "x", min_score=None)) == 3
        assert len(said) == 1
        assert wanted in said[0]


@pytest.mark.one_setup
async def test_what_lies_there_is_consistent_after_all_that(
    new_facts: NewFacts, server: Server
) -> None:
    facts = new_facts()
    new = [NewFact(text=f"{a} {b}") for a in WORDS for b in WORDS if a < b]
    added = await facts.add_many("ada", new)
    rng = random.Random(9)
    for one in rng.sample(added, 40):
        await facts.end("ada", one.id)
    for one in rng.sample(added, 40):
        await facts.forget("ada", one.id)
    look(server, facts, "ada")
