"""Facts are stored once, with all that belongs to them; and changed, ended and removed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.store.raw import Raw
from turnstore import LimitError
from turnstore.facts import NewFact

if TYPE_CHECKING:
    from tests.facts.store.conftest import NewFacts
    from turnstore.facts import AsyncFacts

pytestmark = pytest.mark.one_setup

Look = Callable[..., Raw]
NOON = datetime(2024, 5, 3, 12, tzinfo=UTC)


async def test_a_letter_that_makes_a_long_word_is_stored_and_found(
    facts: AsyncFacts, raw: Look
) -> None:
    """Each of these letters is a word of 18 in the form in which words are compared."""
    added = await facts.add("ada", "\ufdf4" * 9000)
    assert raw().records.keys() == {added.id}
    (hit,) = await facts.search("ada", "\ufdf4" * 2000, min_score=None)
    assert (hit.fact.id, hit.lexical > 0) == (added.id, True)
    await facts.update("ada", added.id, text="short")
    assert raw().records[added.id].fact.text == "short"


async def test_a_fact_is_read_as_it_was_stored(facts: AsyncFacts, raw: Look) -> None:
    added = await facts.add(
        "ada",
        "Ada lives in Paris.",
        slot="home",
        conversation="c1",
        sources=["t1", "t2"],
        observed=NOON,
        valid_from=NOON - timedelta(days=1),
        confidence=0.5,
        pinned=True,
        meta={"big": 2**80, "none": None, "list": []},
    )
    assert not added.duplicate
    fact = await facts.get("ada", added.id)
    assert fact is not None
    assert (fact.id, fact.text, fact.kind, fact.slot) == (
        added.id,
        "Ada lives in Paris.",
        "fact",
        "home",
    )
    assert (fact.conversation, fact.sources) == ("c1", ("t1", "t2"))
    assert (fact.observed, fact.valid_from) == (NOON, NOON - timedelta(days=1))
    assert (fact.valid_to, fact.expired, fact.valid_to_before) == (None, None, None)
    assert (fact.confidence, fact.pinned) == (0.5, True)
    assert fact.meta == {"big": 2**80, "none": None, "list": []}
    assert abs(datetime.now(UTC) - fact.created) < timedelta(minutes=5)
    assert raw().records.keys() == {added.id}


async def test_what_is_left_out_is_now(facts: AsyncFacts) -> None:
    fact = await facts.get("ada", (await facts.add("ada", "Ada swims.")).id)
    assert fact
    assert fact.created == fact.observed == fact.valid_from
    assert fact.created.tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "the",
        "Straße, naïve café",
        "日本語の文章です",
        "👩\u200d🚀 flies",
        "a\nb\x00c",
        "w[1,2] 1 2 3",
        "word " * 6000,
        "x" * 32_768,
        "#n #l",
    ],
)
async def test_any_text_comes_back(facts: AsyncFacts, raw: Look, text: str) -> None:
    added = await facts.add("ada", text)
    fact = await facts.get("ada", added.id)
    assert fact
    assert fact.text == text
    assert (await facts.add("ada", text)).id == added.id
    raw()
    assert await facts.forget("ada", added.id)
    assert raw().records == {}


async def test_half_a_letter_is_refused(facts: AsyncFacts, raw: Look) -> None:
    """Whoever was handed it later could not send it: no UTF-8 says it."""
    with pytest.raises(ValueError, match="lone surrogate at position 7"):
        await facts.add("ada", "Half a \ud800 cat.")
    with pytest.raises(ValueError, match="lone surrogate"):
        await facts.add_exchange("ada", "c", "t1", "Half a \ud800 cat.")
    with pytest.raises(ValueError, match="lone surrogate"):
        await facts.add("ada", "A cat.", slot="\ud800")
    added = await facts.add("ada", "A cat.")
    with pytest.raises(ValueError, match="lone surrogate"):
        await facts.update("ada", added.id, text="\ud800")
    assert [record.fact.text for record in raw().records.values()] == ["A cat."]


async def test_the_same_words_are_stored_once(facts: AsyncFacts, raw: Look) -> None:
    first = await facts.add("ada", "Ada lives in Paris.", sources=["t1"], observed=NOON)
    later = NOON + timedelta(hours=1)
    again = await facts.add("ada", " ada  LIVES in Paris. ", sources=["t2", "t1"], observed=later)
    assert (again.id, again.duplicate) == (first.id, True)
    fact = await facts.get("ada", first.id)
    assert fact
    assert fact.text == "Ada lives in Paris."
    assert (fact.sources, fact.observed) == (("t1", "t2"), later)
    earlier = await facts.add("ada", "Ada lives in Paris.", observed=NOON - timedelta(days=1))
    assert earlier.duplicate
    fact = await facts.get("ada", first.id)
    assert fact
    assert fact.observed == later
    assert len(raw().records) == 1


async def test_other_kinds_and_owners_have_their_own(facts: AsyncFacts) -> None:
    ids = {
        (await facts.add("ada", "Ada swims.")).id,
        (await facts.add("ada", "Ada swims.", kind="wish")).id,
        (await facts.add("bob", "Ada swims.")).id,
    }
    assert len(ids) == 3


async def test_a_duplicate_is_not_embedded(new_facts: NewFacts) -> None:
    asked: list[str] = []

    def embed(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return [[1.0, 2.0]] * len(texts)

    facts = new_facts(embed=embed, dimensions=2)
    await facts.add("ada", "Ada swims.")
    await facts.add("ada", "ada swims.")
    assert asked == ["Ada swims."]


async def test_of_many_sources_the_newest_stay(facts: AsyncFacts, raw: Look) -> None:
    added = await facts.add("ada", "Ada swims.", sources=[f"t{n}" for n in range(70)])
    fact = await facts.get("ada", added.id)
    assert fact
    assert fact.sources == tuple(f"t{n}" for n in range(6, 70))
    await facts.add("ada", "Ada swims.", sources=["new", "t69"])
    fact = await facts.get("ada", added.id)
    assert fact
    assert fact.sources == (*(f"t{n}" for n in range(7, 70)), "new")
    raw()


async def test_what_was_ended_can_become_true_again(facts: AsyncFacts, raw: Look) -> None:
    first = await facts.add("ada", "Ada lives in Paris.")
    assert await facts.end("ada", first.id)
    second = await facts.add("ada", "Ada lives in Paris.")
    assert not second.duplicate
    assert len(raw().records) == 2


async def test_a_past_that_is_told_twice_is_stored_once(facts: AsyncFacts) -> None:
    past: dict[str, Any] = {"valid_from": NOON, "valid_to": NOON + timedelta(days=365)}
    first = await facts.add("ada", "Ada lived in Rome.", **past)
    assert (await facts.add("ada", "Ada lived in Rome.", **past)).id == first.id
    other = await facts.add("ada", "Ada lived in Rome.", valid_to=NOON)
    assert not other.duplicate


async def test_many_are_stored_in_their_order(facts: AsyncFacts, raw: Look) -> None:
    new = [NewFact(text=f"Number {n} of Ada.", kind="note") for n in range(250)]
    added = await facts.add_many("ada", new)
    assert len({one.id for one in added}) == 250
    assert not any(one.duplicate for one in added)
    again = await facts.add_many("ada", reversed(new))
    assert [one.id for one in again] == [one.id for one in reversed(added)]
    assert all(one.duplicate for one in again)
    assert await facts.add_many("ada", []) == []
    assert len(raw().records) == 250
    page = await facts.list("ada", 250)
    assert [fact.text for fact in page] == [one.text for one in reversed(new)]


async def test_a_batch_that_repeats_itself_is_stored_once(facts: AsyncFacts, raw: Look) -> None:
    first, second, third = await facts.add_many(
        "ada",
        [
            NewFact(text="Ada swims.", sources=("a",)),
            NewFact(text="ADA swims.", sources=("b",)),
            NewFact(text="Ada reads."),
        ],
    )
    assert (first.duplicate, second.duplicate, third.duplicate) == (False, True, False)
    assert second.id == first.id
    assert raw().records[first.id].fact.sources == ("a", "b")


async def test_one_that_cannot_be_stored_stops_all(facts: AsyncFacts) -> None:
    with pytest.raises(ValueError, match="empty"):
        await facts.add_many("ada", [NewFact(text="Ada swims."), NewFact(text=" ")])
    assert await facts.list("ada") == []


async def test_an_exchange_is_stored_once_for_its_turn(facts: AsyncFacts, raw: Look) -> None:
    first = await facts.add_exchange("ada", "c1", "t1", "user: Hi\nassistant: Hello")
    assert not first.duplicate
    again = await facts.add_exchange("ada", "c1", "t1", "something else")
    assert (again.id, again.duplicate) == (first.id, True)
    other = await facts.add_exchange("ada", "c2", "t1", "user: Hi\nassistant: Hello")
    assert not other.duplicate
    fact = await facts.get("ada", first.id)
    assert fact
    assert (fact.kind, fact.sources, fact.conversation) == ("exchange", ("t1",), "c1")
    assert fact.text == "user: Hi\nassistant: Hello"
    assert len(raw().records) == 2


async def test_an_exchange_is_known_after_a_restart(new_facts: NewFacts) -> None:
    first = await new_facts().add_exchange("ada", "c1", "t1", "user: Hi\nassistant: Hello")
    again = await new_facts().add_exchange("ada", "c1", "t1", "user: Hi\nassistant: Hello")
    assert (again.id, again.duplicate) == (first.id, True)


async def test_a_text_is_changed_with_its_words_and_vector(facts: AsyncFacts, raw: Look) -> None:
    added = await facts.add("ada", "Ada lives in Paris.", sources=["t1"], meta={"a": 1})
    changed = await facts.update("ada", added.id, text="Ada lives in Lyon.")
    assert changed
    assert (changed.text, changed.sources, changed.meta) == (
        "Ada lives in Lyon.",
        ("t1",),
        {"a": 1},
    )
    assert await facts.get("ada", added.id) == changed
    assert raw().records[added.id].revision == "2"
    assert not (await facts.add("ada", "Ada lives in Paris.")).duplicate
    assert (await facts.add("ada", "Ada lives in Lyon.")).duplicate


async def test_other_parts_are_changed_without_the_embedder(new_facts: NewFacts, raw: Look) -> None:
    facts = new_facts()
    added = await facts.add("ada", "Ada lives in Paris.")

    def refuse(texts: list[str]) -> Any:
        raise AssertionError(texts)

    other = new_facts(embed=refuse)
    changed = await other.update("ada", added.id, pinned=True, meta={"a": [1]}, valid_to=None)
    assert changed
    assert (changed.pinned, changed.meta, changed.valid_to) == (True, {"a": [1]}, None)
    assert (await other.update("ada", added.id)) == changed
    raw()


async def test_an_end_is_set_and_taken_back(facts: AsyncFacts, raw: Look) -> None:
    added = await facts.add("ada", "Ada lives in Paris.", valid_from=NOON)
    end = NOON + timedelta(days=3)
    changed = await facts.update("ada", added.id, valid_to=end)
    assert changed
    assert (changed.valid_to, changed.expired) == (end, None)
    raw()
    assert (await facts.search("ada", "Ada Paris", min_score=None)) == []
    changed = await facts.update("ada", added.id, valid_to=None)
    assert changed
    assert changed.valid_to is None
    assert len(await facts.search("ada", "Ada Paris", min_score=None)) == 1
    raw()
    with pytest.raises(ValueError, match="before"):
        await facts.update("ada", added.id, valid_to=NOON - timedelta(days=1))


async def test_two_facts_never_come_to_say_the_same(facts: AsyncFacts, raw: Look) -> None:
    await facts.add("ada", "Ada swims.")
    other = await facts.add("ada", "Ada reads.")
    with pytest.raises(ValueError, match="another fact"):
        await facts.update("ada", other.id, text="ada swims.")
    assert raw().records[other.id].fact.text == "Ada reads."


async def test_what_is_not_there_is_not_changed(facts: AsyncFacts) -> None:
    other = await facts.add("bob", "Bob swims.")
    assert await facts.update("ada", other.id, text="x") is None
    assert not await facts.end("ada", other.id)
    assert not await facts.forget("ada", other.id)
    assert await facts.get("ada", other.id) is None
    assert len(await facts.list("bob")) == 1


async def test_an_ended_fact_is_kept_for_questions_about_the_past(
    facts: AsyncFacts, raw: Look
) -> None:
    old = await facts.add("ada", "Ada lives in Paris.", valid_from=NOON)
    new = await facts.add("ada", "Ada lives in Lyon.")
    moved = NOON + timedelta(days=30)
    assert await facts.end("ada", old.id, valid_to=moved, superseded_by=new.id)
    fact = raw().records[old.id].fact
    assert (fact.valid_to, fact.superseded_by, fact.valid_to_before) == (moved, new.id, None)
    assert fact.expired is not None
    assert [one.text for one in await facts.list("ada")] == ["Ada lives in Lyon."]
    both = await facts.list("ada", include_closed=True)
    assert [one.text for one in both] == ["Ada lives in Lyon.", "Ada lives in Paris."]
    assert await facts.end("ada", old.id, valid_to=moved, superseded_by=new.id)
    assert raw().records[old.id].fact.valid_to == moved


async def test_a_removed_fact_leaves_nothing(facts: AsyncFacts, raw: Look) -> None:
    kept = await facts.add("ada", "Ada reads books.")
    added = await facts.add("ada", "Ada swims and reads.")
    await facts.search("ada", "Ada swims", min_score=None)
    assert await facts.forget("ada", added.id)
    assert raw().records.keys() == {kept.id}
    assert await facts.get("ada", added.id) is None
    assert not await facts.forget("ada", added.id)
    hits = await facts.search("ada", "swims", min_score=None)
    assert [hit.fact.id for hit in hits] == [kept.id]
    assert not (await facts.add("ada", "Ada swims and reads.")).duplicate


async def test_a_conversation_is_forgotten(facts: AsyncFacts, raw: Look) -> None:
    for number in range(120):
        await facts.add("ada", f"Fact {number} of Ada.", conversation="c1")
    kept = await facts.add("ada", "Ada swims.", conversation="c2")
    await facts.add_exchange("ada", "c1", "t1", "user: Hi\nassistant: Hello")
    await facts.add("bob", "Bob swims.", conversation="c1")
    assert await facts.forget_conversation("ada", "c1") == 121
    assert raw().records.keys() == {kept.id}
    assert len(await facts.list("bob")) == 1
    assert await facts.forget_conversation("ada", "c1") == 0
    assert not (await facts.add_exchange("ada", "c1", "t1", "user: Hi")).duplicate


async def test_pages_go_back_to_the_first_fact(facts: AsyncFacts) -> None:
    for number in range(7):
        await facts.add("ada", f"Fact {number}.", kind="odd" if number % 2 else "fact")
    seen: list[str] = []
    cursor = None
    while True:
        page = await facts.list("ada", 3, before=cursor)
        seen += [fact.text for fact in page]
        cursor = page.cursor
        if cursor is None:
            break
        await facts.forget("ada", cursor)  # the page after it is found all the same
    assert seen == [f"Fact {number}." for number in reversed(range(7))]
    assert [fact.text for fact in await facts.list("ada", kinds=["odd"])] == [
        "Fact 5.",
        "Fact 3.",
    ]


async def test_pages_are_of_one_conversation_where_that_is_wanted(facts: AsyncFacts) -> None:
    for number in range(6):
        await facts.add("ada", f"Fact {number}.", conversation=f"c{number % 3}")
    page = await facts.list("ada", 1, conversation="c1")
    assert [fact.text for fact in page] == ["Fact 4."]
    page = await facts.list("ada", 1, conversation="c1", before=page.cursor)
    assert ([fact.text for fact in page], page.cursor) == (["Fact 1."], None)


ZONE = timezone(timedelta(hours=9))
BAD: list[tuple[type[Exception], dict[str, Any]]] = [
    (ValueError, {"text": ""}),
    (ValueError, {"text": " \n"}),
    (TypeError, {"text": b"bytes"}),
    (LimitError, {"text": "x" * 32_769}),
    (LimitError, {"meta": {"x": "x" * 32_768}}),
    (ValueError, {"kind": ""}),
    (ValueError, {"kind": "two words"}),
    (ValueError, {"kind": 'x" or true'}),
    (TypeError, {"kind": 1}),
    (LimitError, {"slot": "x" * 201}),
    (TypeError, {"conversation": 5}),
    (TypeError, {"sources": "t1"}),
    (ValueError, {"sources": ["a b"]}),
    (ValueError, {"valid_from": datetime(2024, 1, 1)}),  # noqa: DTZ001 - it is the point
    (TypeError, {"valid_from": "2024"}),
    (ValueError, {"valid_from": NOON, "valid_to": NOON - timedelta(days=1)}),
    (ValueError, {"observed": datetime.min.replace(tzinfo=ZONE)}),
    (ValueError, {"confidence": 1.5}),
    (TypeError, {"confidence": "high"}),
    (TypeError, {"pinned": 1}),
    (TypeError, {"meta": []}),
    (ValueError, {"meta": {"a": float("nan")}}),
]


@pytest.mark.parametrize("error, options", BAD, ids=[str(list(options)) for _, options in BAD])
async def test_what_is_no_fact_is_refused(
    new_facts: NewFacts, error: type[Exception], options: dict[str, Any]
) -> None:
    def embed(texts: list[str]) -> Any:
        raise AssertionError(texts)

    facts = new_facts(embed=embed)
    with pytest.raises(error):
        await facts.add("ada", **{"text": "Ada swims.", **options})


@pytest.mark.parametrize("id_", ["", "x", "has blank id", "{}{}{}{}{}{}", "x" * 13, None, 12])
async def test_what_is_no_id_is_refused(facts: AsyncFacts, id_: Any) -> None:
    for method in (facts.get, facts.forget, facts.end, facts.update):
        with pytest.raises((TypeError, ValueError)):
            await method("ada", id_)
    with pytest.raises((TypeError, ValueError)):
        await facts.end("ada", "0" * 12, superseded_by=id_ or "-")
    if id_ is not None:
        with pytest.raises((TypeError, ValueError)):
            await facts.list("ada", before=id_)
