from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstore.facts._learning.consolidation import Batch, Closing, Plan, Seeing, Shown, consolidate
from turnstore.facts._learning.times import Interval
from turnstore.facts._learning.verdicts import Item, Verdict
from turnstore.facts._model import Fact

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
TURNS = [Shown((f"turn-{number}",), NOW + timedelta(minutes=number)) for number in range(1, 4)]


def year(number: int) -> datetime:
    return datetime(number, 1, 1, tzinfo=UTC)


def fact(
    number: int, text: str, since: int = 2018, until: int | None = None, slot: str = ""
) -> Fact:
    return Fact(
        id=f"fact-{number:07}",
        text=text,
        slot=slot,
        created=year(since),
        observed=year(since),
        valid_from=year(since),
        valid_to=None if until is None else year(until),
    )


PARIS = fact(0, "Ada lives in Paris.", slot="home")
SAILS = fact(1, "Ada sails.")


def learn(*items: Item, known: tuple[Fact, ...] = (PARIS, SAILS), cosine: float = 0.7) -> Plan:
    """Consolidate with all known facts as far from each text as said."""
    near = [{one.id: (one, cosine) for one in known}] * len(items)
    return consolidate(items, Batch(known, TURNS, UTC, "c1"), near)


def held(plan: Plan) -> list[tuple[str, Interval]]:
    return [
        (new.text, Interval(new.valid_from, new.valid_to)) for new in plan.new if new.valid_from
    ]


def test_a_new_fact_holds_since_it_was_said_and_names_its_turns() -> None:
    plan = learn(Item("new", "Ada bakes.", -1, (1, 3), slot="hobby"))
    (new,) = plan.new
    assert (new.text, new.slot, new.conversation) == ("Ada bakes.", "hobby", "c1")
    assert new.sources == ("turn-1", "turn-3")
    assert new.observed == new.valid_from == TURNS[2].time
    assert new.valid_to is None
    assert (plan.seen, plan.closed, plan.notes) == ({}, {}, {})


def test_a_turn_of_several_pieces_is_named_by_all_of_them() -> None:
    turns = [Shown(("a", "b"), NOW)]
    plan = consolidate([Item("new", "Ada bakes.", -1, (1,))], Batch([], turns, UTC, ""), [{}])
    assert plan.new[0].sources == ("a", "b")


def test_a_duplicate_adds_its_turns_to_the_known_fact_alone() -> None:
    plan = learn(Item("duplicate", "", 1, (1,)), Item("duplicate", "", 1, (3, 1)))
    assert plan.seen == {SAILS.id: Seeing(("turn-1", "turn-3"), TURNS[2].time)}
    assert (plan.new, plan.closed) == ([], {})


def test_a_change_closes_the_old_fact_where_the_new_one_starts() -> None:
    plan = learn(Item("supersedes", "Ada lives in Rome.", 0, (2,), "home", "2024"))
    assert held(plan) == [("Ada lives in Rome.", Interval(year(2024)))]
    assert plan.closed == {PARIS.id: Closing(year(2024), 0)}


def test_a_change_without_a_date_is_of_the_time_when_it_was_said() -> None:
    plan = learn(Item("supersedes", "Ada lives in Rome.", 0, (2,), "home"))
    assert plan.closed == {PARIS.id: Closing(TURNS[1].time, 0)}


def test_a_change_to_come_closes_the_old_fact_then() -> None:
    plan = learn(Item("supersedes", "Ada lives in Rome.", 0, (2,), "home", "2030"))
    assert held(plan) == [("Ada lives in Rome.", Interval(year(2030)))]
    assert plan.closed == {PARIS.id: Closing(year(2030), 0)}


def test_a_correction_takes_the_whole_time_of_what_was_never_true() -> None:
    plan = learn(Item("supersedes", "Ada lives in Rome.", 0, (2,), "home", never=True))
    assert held(plan) == [("Ada lives in Rome.", Interval(year(2018)))]
    assert plan.closed == {PARIS.id: Closing(year(2018), 0)}


def test_late_news_is_stored_already_closed_and_the_known_fact_stays() -> None:
    plan = learn(Item("supersedes", "Ada lives in Oslo.", 0, (2,), "home", "2010"))
    assert held(plan) == [("Ada lives in Oslo.", Interval(year(2010), year(2018)))]
    assert not plan.closed


def test_disjoint_times_both_stay() -> None:
    plan = learn(Item("supersedes", "Ada lives in Oslo.", 0, (2,), "home", "2010", "2012"))
    assert held(plan) == [("Ada lives in Oslo.", Interval(year(2010), year(2013)))]
    assert not plan.closed


def test_changes_one_after_the_other_follow_one_another() -> None:
    plan = learn(
        Item("supersedes", "Ada lives in Oslo.", 0, (2,), "home", "2025"),
        Item("supersedes", "Ada lives in Rome.", 0, (1,), "home", "2024"),
    )
    assert held(plan) == [
        ("Ada lives in Oslo.", Interval(year(2025))),
        ("Ada lives in Rome.", Interval(year(2024), year(2025))),
    ]
    assert plan.closed == {PARIS.id: Closing(year(2024), 1)}


@pytest.mark.parametrize("stated", [("soon", ""), ("", "then"), ("2024", "2020")])
def test_dates_that_are_none_or_contradict_each_other_are_left_out(stated: tuple[str, str]) -> None:
    plan = learn(Item("new", "Ada bakes.", -1, (1,), "", *stated))
    assert held(plan) == [("Ada bakes.", Interval(TURNS[0].time))]
    assert plan.notes == Counter(dates=1)


@pytest.mark.parametrize(
    "stated, end",
    [
        ({}, TURNS[0].time),
        ({"stated_to": "2024"}, year(2025)),
        ({"stated_from": "2024"}, year(2024)),
        ({"stated_to": "then"}, TURNS[0].time),
        ({"stated_to": "2010"}, year(2018)),
        ({"never": True}, year(2018)),
    ],
)
def test_what_is_retracted_ends(stated: dict[str, object], end: datetime) -> None:
    item = Item("retracts", "Ada lives in Paris.", 0, (1,), **stated)  # type: ignore[arg-type]  # by name
    plan = learn(item)
    assert plan.closed == {PARIS.id: Closing(end, None)}
    assert not plan.new


@pytest.mark.parametrize("verdict", ["supersedes", "retracts"])
def test_a_fact_gives_way_to_nothing_that_has_nothing_to_do_with_it(verdict: Verdict) -> None:
    plan = learn(Item(verdict, "Ada bakes bread.", 1, (1,)), cosine=0.3)
    assert not plan.closed
    assert plan.notes == Counter(refused=1)
    assert [new.text for new in plan.new] == ["Ada bakes bread."] * (verdict == "supersedes")


def test_in_the_same_slot_it_gives_way_however_different_the_words() -> None:
    plan = learn(Item("supersedes", "The user has moved.", 0, (1,), "Home"), cosine=0.1)
    assert set(plan.closed) == {PARIS.id}


def test_a_repetition_that_the_model_took_for_new_adds_a_source() -> None:
    plan = learn(Item("new", "Ada is living in Paris", -1, (2,)), cosine=0.97)
    assert not plan.new
    assert plan.seen == {PARIS.id: Seeing(("turn-2",), TURNS[1].time)}
    assert plan.notes == Counter(repeated=1)


@pytest.mark.parametrize(
    "text", ["Ada does not live in Paris.", "Bob lives in Paris.", "Ada lived in Paris."]
)
def test_what_only_looks_like_a_repetition_is_stored(text: str) -> None:
    plan = learn(Item("new", text, -1, (2,)), cosine=0.99)
    assert [new.text for new in plan.new] == [text]
    assert not plan.closed


def test_what_says_the_same_in_a_vector_far_away_is_stored() -> None:
    plan = learn(Item("new", "Ada lives in Paris.", -1, (2,)), cosine=0.5)
    assert len(plan.new) == 1


def test_the_same_of_another_time_is_another_fact() -> None:
    once = fact(0, "Ada lives in Paris.", 2010, 2015)
    plan = learn(Item("new", "Ada lives in Paris.", -1, (2,)), known=(once,), cosine=1.0)
    assert held(plan) == [("Ada lives in Paris.", Interval(TURNS[1].time))]


def test_news_that_the_model_took_for_a_new_fact_closes_the_old_one_of_its_slot() -> None:
    cats = fact(0, "Ada has 2 cats.", slot="cats")
    plan = learn(Item("new", "Ada has 3 cats.", -1, (2,), "cats"), known=(cats,), cosine=0.97)
    assert plan.closed == {cats.id: Closing(TURNS[1].time, 0)}
    knee = fact(0, "Ada's left knee hurts.")
    plan = learn(Item("new", "Ada's right knee hurts.", -1, (2,)), known=(knee,), cosine=0.98)
    assert not plan.closed
    assert len(plan.new) == 1


def test_a_known_fact_can_take_the_place_of_another_one() -> None:
    rome = fact(2, "Ada lives in Rome.", 2024, slot="home")
    known = (PARIS, rome)
    plan = learn(
        Item("supersedes", "Ada lives in Rome.", 0, (1,), "home"), known=known, cosine=0.95
    )
    assert not plan.new
    assert set(plan.seen) == {rome.id}
    assert plan.closed == {PARIS.id: Closing(year(2024), rome.id)}


def test_a_fact_does_not_take_its_own_place() -> None:
    plan = learn(Item("supersedes", "Ada lives in Paris!", 0, (1,), "home"), cosine=0.99)
    assert (plan.new, plan.closed) == ([], {})
    assert set(plan.seen) == {PARIS.id}


def test_the_same_twice_in_one_answer_is_one_fact() -> None:
    plan = learn(Item("new", "Ada bakes.", -1, (1,)), Item("new", "Ada bakes", -1, (3,)))
    assert [(new.text, new.sources) for new in plan.new] == [("Ada bakes.", ("turn-1", "turn-3"))]


def test_what_is_retracted_and_superseded_at_once_is_closed_once() -> None:
    plan = learn(
        Item("retracts", "Ada lives in Paris.", 0, (1,), "home", "2020"),
        Item("supersedes", "Ada lives in Rome.", 0, (2,), "home", "2024"),
    )
    assert plan.closed == {PARIS.id: Closing(year(2020), None)}
    assert held(plan) == [("Ada lives in Rome.", Interval(year(2024)))]


VERDICTS: list[Verdict] = ["new", "duplicate", "supersedes", "retracts"]
WORDS = st.sampled_from(["Ada sails.", "Ada lives in Paris.", "Ada lives in Rome.", "Ada bakes."])
DATES = st.sampled_from(["", "2010", "2020", "2024-05-03", "2030", "soon"])


@st.composite
def items(draw: st.DrawFn) -> Item:
    verdict = draw(st.sampled_from(VERDICTS))
    of = -1 if verdict == "new" else draw(st.integers(0, 1))
    turns = tuple(sorted(draw(st.sets(st.integers(1, 3), min_size=1))))
    slot = draw(st.sampled_from(["", "home", "hobby"]))
    dates = draw(DATES), draw(DATES)
    return Item(verdict, draw(WORDS), of, turns, slot, *dates, never=draw(st.booleans()))


@given(st.lists(items(), max_size=5), st.sampled_from([0.0, 0.6, 0.95]))
def test_nothing_is_lost_and_nothing_made_up(given: list[Item], cosine: float) -> None:
    plan = learn(*given, cosine=cosine)
    stated = [item.text for item in given if item.verdict in ("new", "supersedes")]
    known = {PARIS.id: PARIS, SAILS.id: SAILS}
    stored = [new.text for new in plan.new] + [known[id_].text for id_ in plan.seen]
    assert {text for text in stated if text not in stored} == set()
    assert {new.text for new in plan.new} <= set(stated)
    for new in plan.new:
        assert set(new.sources) <= {"turn-1", "turn-2", "turn-3"}
        assert new.sources
        assert new.valid_from is not None
        assert new.valid_to is None or new.valid_from < new.valid_to
    for id_, closing in plan.closed.items():
        assert known[id_].valid_from <= closing.valid_to
        assert closing.by is None or closing.by in known or closing.by in range(len(plan.new))
