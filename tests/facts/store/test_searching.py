"""What a search shows, and when; and what it asks of the embedder."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.facts.meaning.kit import DIMENSIONS, embed, leaning
from tests.facts.store.raw import backdate
from tests.servers.facade import inner
from turnstore.facts import Decay, NewFact, Ranking

if TYPE_CHECKING:
    from tests.facts.store.conftest import NewFacts
    from tests.servers.running import Server
    from turnstore.facts import AsyncFacts

NOON = datetime(2024, 5, 3, 12, tzinfo=UTC)
DAY = timedelta(days=1)


async def texts(facts: AsyncFacts, query: str, **options: Any) -> list[str]:
    hits = await facts.search("ada", query, **{"min_score": None, "top_k": 10, **options})
    return [hit.fact.text for hit in hits]


async def test_the_nearest_and_those_with_the_words_are_found(facts: AsyncFacts) -> None:
    for text in ("Ada lives in Paris.", "Ada plays chess.", "Bob likes jam.", "The sun shines."):
        await facts.add("ada", text)
    found = await texts(facts, "Who plays chess?", top_k=2)
    assert found[0] == "Ada plays chess."
    hit = (await facts.search("ada", "plays chess", top_k=1, min_score=0.5))[0]
    assert hit.fact.text == "Ada plays chess."
    assert 0.5 < hit.similarity <= 1.0000001
    assert hit.lexical == 1
    assert await facts.search("ada", "plays chess", min_score=0.999) == []
    assert await facts.search("bob", "plays chess", min_score=None) == []


@pytest.mark.one_setup
@pytest.mark.servers("redis", "valkey", first=True)
async def test_three_are_found_whose_similarity_is_0_7_by_default(new_facts: NewFacts) -> None:
    facts = new_facts(embed=leaning)
    await facts.add_many("ada", [NewFact(text=f"Ada {n}") for n in (69, 71, 80, 90, 95)])
    hits = await facts.search("ada", "?")
    assert [hit.fact.text for hit in hits] == ["Ada 95", "Ada 90", "Ada 80"]
    hits = await facts.search("ada", "?", top_k=10)
    assert [hit.fact.text for hit in hits] == ["Ada 95", "Ada 90", "Ada 80", "Ada 71"]


@pytest.mark.one_setup
@pytest.mark.servers("redis-7", "redis-8.2")
async def test_a_least_similarity_is_ignored_where_an_engine_answers_ranks(
    new_facts: NewFacts, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = new_facts(), new_facts()
    await one.add("ada", "Ada swims.")
    assert await one.search("ada", "The moon", min_score=0.9) == []
    monkeypatch.setattr(type(inner(one)._base._backend.engine), "scored", False)
    for facts, warnings in ((one, 1), (one, 1), (other, 2)):
        assert len(await facts.search("ada", "The moon", min_score=0.9)) == 1
        assert caplog.text.count("min_score is ignored") == warnings, "one for each instance"


@pytest.mark.one_setup
async def test_what_is_old_and_unused_fades_unless_it_is_pinned(
    new_facts: NewFacts, server: Server
) -> None:
    facts = new_facts(ranking=Ranking(decay=Decay()))
    pinned = await facts.add("ada", "Ada swims in May.", pinned=True)
    old = await facts.add("ada", "Ada swims in June.")
    used = await facts.add("ada", "Ada swims in July.")
    await facts.add("ada", "Ada swims in August.")
    backdate(server, facts, pinned.id, 90 * DAY)
    backdate(server, facts, old.id, 90 * DAY)
    backdate(server, facts, used.id, 90 * DAY, unused=timedelta(0))
    found = [text.split()[-1] for text in await texts(facts, "Ada swims")]
    assert found == ["May.", "August.", "July.", "June."]
    unlike = new_facts(ranking=Ranking())
    found = [text.split()[-1] for text in await texts(unlike, "Ada swims")]
    assert found == ["May.", "June.", "July.", "August."], "all are as near"


@pytest.mark.one_setup
async def test_an_empty_question_is_no_error(facts: AsyncFacts) -> None:
    await facts.add("ada", "Ada swims.")
    assert await texts(facts, "the") == ["Ada swims."]


@pytest.mark.one_setup
async def test_a_search_of_an_owner_without_facts_asks_nobody(new_facts: NewFacts) -> None:
    def refuse(texts: list[str]) -> Any:
        raise AssertionError(texts)

    assert await new_facts(embed=refuse).search("ada", "x") == []


@pytest.mark.one_setup
async def test_time_in_the_world_and_time_of_the_knowledge(facts: AsyncFacts) -> None:
    """Paris from noon on; learnt later that it ended ten days after; both questions asked."""
    paris = await facts.add("ada", "Ada lives in Paris.", valid_from=NOON)
    stored = await facts.get("ada", paris.id)
    assert stored
    lyon = await facts.add("ada", "Ada lives in Lyon.", valid_from=NOON + 10 * DAY)
    both = {"Ada lives in Paris.", "Ada lives in Lyon."}
    assert set(await texts(facts, "Ada lives")) == both
    await facts.end("ada", paris.id, valid_to=NOON + 10 * DAY, superseded_by=lyon.id)
    ended = await facts.get("ada", paris.id)
    assert ended
    assert ended.expired
    before_all = stored.created - timedelta(milliseconds=1)
    at_first, later = stored.created, ended.expired
    between = later - timedelta(milliseconds=1)
    table: list[tuple[datetime | None, datetime | None, set[str]]] = [
        (None, None, {"Lyon"}),
        (NOON - DAY, None, set()),
        (NOON, None, {"Paris"}),
        (NOON + 10 * DAY - timedelta(milliseconds=1), None, {"Paris"}),
        (NOON + 10 * DAY, None, {"Lyon"}),
        (NOON + 20 * DAY, None, {"Lyon"}),
        (NOON, before_all, set()),
        (NOON, at_first, {"Paris"}),
        (NOON + 20 * DAY, between, {"Paris", "Lyon"}),
        (NOON + 20 * DAY, later, {"Lyon"}),
        (None, between, {"Paris", "Lyon"}),
        (None, later, {"Lyon"}),
    ]
    if between < at_first:  # too fast for a look between
        table = [row for row in table if row[1] != between]
    for as_of, known_at, wanted in table:
        found = await texts(facts, "Ada lives", as_of=as_of, known_at=known_at)
        assert {text.split()[-1].strip(".") for text in found} == wanted, (as_of, known_at)
        for fact in (stored, ended):
            if known_at is None and as_of and fact is ended:
                assert fact.is_valid(as_of) == (fact.text in found)


@pytest.mark.one_setup
async def test_what_becomes_true_later_is_shown_then(facts: AsyncFacts) -> None:
    soon = datetime.now(UTC) + 30 * DAY
    paris = await facts.add("ada", "Ada lives in Paris.")
    await facts.add("ada", "Ada lives in Rome.", valid_from=soon)
    await facts.end("ada", paris.id, valid_to=soon)
    assert await texts(facts, "Ada lives") == ["Ada lives in Paris."]
    assert await texts(facts, "Ada lives", as_of=soon) == ["Ada lives in Rome."]


@pytest.mark.one_setup
async def test_what_was_never_true_is_shown_only_as_it_was_known(facts: AsyncFacts) -> None:
    added = await facts.add("ada", "Ada lives in Paris.")
    stored = await facts.get("ada", added.id)
    assert stored
    await facts.end("ada", added.id, valid_to=stored.valid_from)
    assert await texts(facts, "Ada lives", as_of=stored.valid_from) == []
    ended = await facts.get("ada", added.id)
    assert ended
    assert ended.expired
    if ended.expired > stored.created:
        known = {"as_of": stored.valid_from, "known_at": stored.created}
        assert await texts(facts, "Ada lives", **known) == ["Ada lives in Paris."]


@pytest.mark.one_setup
async def test_kinds_conversations_and_exceptions(facts: AsyncFacts) -> None:
    one = await facts.add("ada", "Ada swims a lot.", conversation="c1", sources=["t1"])
    await facts.add("ada", "Ada swims at noon.", kind="wish", conversation="c2", sources=["t2"])
    await facts.add_exchange("ada", "c1", "t3", "user: I swim\nassistant: Fine")
    everything = {"Ada swims a lot.", "Ada swims at noon.", "user: I swim\nassistant: Fine"}
    assert set(await texts(facts, "swims")) == everything
    assert await texts(facts, "swims", kinds=["wish"]) == ["Ada swims at noon."]
    assert len(await texts(facts, "swims", kinds=("fact", "exchange"))) == 2
    assert len(await texts(facts, "swims", conversation="c1")) == 2
    assert await texts(facts, "swims", conversation="C1") == []
    assert len(await texts(facts, "swims", exclude=[one.id])) == 2
    assert await texts(facts, "swims", exclude={"t1", "t3"}) == ["Ada swims at noon."]
    assert len(await texts(facts, "swims", exclude=["t9"])) == 3


@pytest.mark.one_setup
async def test_ones_that_say_the_same_are_shown_once(new_facts: NewFacts) -> None:
    facts = new_facts()
    await facts.add("ada", "Ada swims a lot.")
    await facts.add("ada", "Ada swims a lot!")
    assert len(await texts(facts, "swims")) == 1
    await facts.add("ada", "A lot swims Ada.")  # its vector is the same
    assert len(await texts(facts, "swims")) == 2
    assert len(await texts(new_facts(ranking=Ranking(near_duplicate=None)), "swims")) == 3


@pytest.mark.one_setup
async def test_which_were_found_is_noted(new_facts: NewFacts, server: Any) -> None:
    facts = new_facts()
    one = await facts.add("ada", "Ada swims a lot.")
    other = await facts.add("ada", "Bob reads.")
    await texts(facts, "swims", top_k=1)
    await texts(facts, "swims", top_k=1)
    from tests.facts.store.raw import place_of  # noqa: PLC0415 - one test needs it

    keys = place_of(facts, "ada").keys
    assert server.raw.hgetall(keys.uses) == {one.id.encode(): b"2"}
    assert server.raw.zscore(keys.used, one.id) > 1.7e12
    assert 0 < server.raw.pttl(keys.used) <= server.raw.pttl(keys.facts) + 1000
    await texts(new_facts(track_use=False), "Bob", top_k=1)
    assert server.raw.hget(keys.uses, other.id) is None


QUESTIONS: list[tuple[type[Exception], dict[str, Any]]] = [
    (TypeError, {"query": None}),
    (TypeError, {"query": b"x"}),
    (ValueError, {"top_k": 0}),
    (ValueError, {"top_k": 1001}),
    (TypeError, {"top_k": 1.5}),
    (TypeError, {"min_score": "0.7"}),
    (ValueError, {"min_score": 1.5}),
    (ValueError, {"min_score": float("nan")}),
    (ValueError, {"kinds": []}),
    (TypeError, {"kinds": "fact"}),
    (ValueError, {"kinds": ['x" or .k == "fact']}),
    (TypeError, {"kinds": [1]}),
    (TypeError, {"exclude": "t1"}),
    (TypeError, {"exclude": [1]}),
    (ValueError, {"as_of": datetime(2024, 1, 1)}),  # noqa: DTZ001 - it is the point
    (TypeError, {"known_at": 5}),
]


@pytest.mark.one_setup
@pytest.mark.parametrize("error, options", QUESTIONS, ids=[str(one) for _, one in QUESTIONS])
async def test_what_is_no_question_is_refused(
    facts: AsyncFacts, error: type[Exception], options: dict[str, Any]
) -> None:
    await facts.add("ada", "Ada swims.")
    with pytest.raises(error):
        await facts.search("ada", **{"query": "x", **options})


# The embedder


class Tensor:
    """Like an array of another library."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self._rows, dtype=dtype)


SHAPES: dict[str, Any] = {
    "lists": lambda rows: rows,
    "tuples": lambda rows: tuple(map(tuple, rows)),
    "array": np.array,
    "float32": lambda rows: np.array(rows, dtype=np.float32),
    "arrays": lambda rows: [np.array(row) for row in rows],
    "integers": lambda rows: [[round(1000 * number) for number in row] for row in rows],
    "generator": lambda rows: (row for row in rows),
    "tensor": Tensor,
}


@pytest.mark.one_setup
@pytest.mark.parametrize("shape", SHAPES)
async def test_vectors_may_come_in_any_shape(new_facts: NewFacts, shape: str) -> None:
    facts = new_facts(embed=lambda texts: SHAPES[shape](embed(texts)))
    await facts.add("ada", "Ada swims.")
    hits = await facts.search("ada", "Ada swims.")
    assert [hit.fact.text for hit in hits] == ["Ada swims."]
    assert hits[0].similarity == pytest.approx(1, abs=1e-3)


WRONG: dict[str, tuple[type[Exception], Any]] = {
    "none": (TypeError, lambda _: None),
    "text": (TypeError, lambda _: "vector"),
    "a dict": (TypeError, lambda _: {"data": []}),
    "words": (ValueError, lambda _: [["a"] * DIMENSIONS]),
    "too few": (ValueError, lambda _: []),
    "too many": (ValueError, lambda _: [[1.0] * DIMENSIONS] * 2),
    "too long": (ValueError, lambda _: [[1.0] * (DIMENSIONS + 1)]),
    "too short": (ValueError, lambda _: [[1.0] * (DIMENSIONS - 1)]),
    "empty": (ValueError, lambda _: [[]]),
    "flat": (ValueError, lambda _: [1.0]),
    "NaN": (ValueError, lambda _: [[float("nan")] * DIMENSIONS]),
    "complex": (TypeError, lambda texts: np.array(embed(texts)) * 1j),
    "some complex": (TypeError, lambda texts: [[1j, *row[1:]] for row in embed(texts)]),
    "infinity": (ValueError, lambda _: [[float("inf")] * DIMENSIONS]),
    "zero": (ValueError, lambda _: [[0.0] * DIMENSIONS]),
}


@pytest.mark.one_setup
@pytest.mark.parametrize("wrong", WRONG)
async def test_what_is_no_vector_is_refused(new_facts: NewFacts, raw: Any, wrong: str) -> None:
    error, answer = WRONG[wrong]
    facts = new_facts()
    await facts.add("ada", "Ada swims.")
    before = raw().records
    other = new_facts(embed=answer)
    with pytest.raises(error):
        await other.add("ada", "Ada reads.")
    with pytest.raises(error):
        await other.search("ada", "Ada")
    with pytest.raises(error):
        await other.update("ada", next(iter(before)), text="Ada dives.")
    assert raw().records == before


@pytest.mark.one_setup
async def test_numbers_of_any_size_have_a_direction(new_facts: NewFacts, raw: Any) -> None:
    for size in (1e-300, 1e300):
        facts = new_facts(embed=lambda texts, size=size: np.array(embed(texts)) * size)
        await facts.add("ada", f"Ada swims {size}.")
    raw()


@pytest.mark.one_setup
async def test_texts_are_embedded_in_batches(new_facts: NewFacts) -> None:
    sizes: list[int] = []

    def counting(texts: list[str]) -> list[list[float]]:
        sizes.append(len(texts))
        return embed(texts)

    facts = new_facts(embed=counting, batch=10)
    await facts.add_many("ada", [NewFact(text=f"Fact {number}.") for number in range(25)])
    assert sizes == [10, 10, 5]


@pytest.mark.one_setup
async def test_an_embedder_that_is_too_late_is_an_error(new_facts: NewFacts, raw: Any) -> None:
    go_on = threading.Event()

    def slow(texts: list[str]) -> list[list[float]]:
        assert go_on.wait(60)
        return embed(texts)

    facts = new_facts(embed=slow, deadline=0.02)
    with pytest.raises(TimeoutError, match=r"slow gave no answer within 0\.02 seconds"):
        await facts.add("ada", "Ada swims.")
    go_on.set()
    assert raw().records == {}


@pytest.mark.one_setup
async def test_an_error_of_the_embedder_passes(new_facts: NewFacts, raw: Any) -> None:
    def fail(texts: list[str]) -> Any:
        raise ConnectionError(texts)

    with pytest.raises(ConnectionError):
        await new_facts(embed=fail).add("ada", "Ada swims.")
    assert raw().records == {}


@pytest.mark.one_setup
async def test_async_embedders_are_awaited(new_facts: NewFacts, setup: Any) -> None:
    async def slowly(texts: list[str]) -> list[list[float]]:
        return embed(texts)

    if setup.client == "sync":
        with pytest.raises(TypeError, match="AsyncStore"):
            new_facts(embed=slowly)
    else:
        facts = new_facts(embed=slowly)
        await facts.add("ada", "Ada swims.")
        assert len(await facts.search("ada", "swims", min_score=None)) == 1
