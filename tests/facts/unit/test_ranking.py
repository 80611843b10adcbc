from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstore.facts._scoring.ranking import (
    DIGITS,
    Candidate,
    Decay,
    Ranking,
    neighbours_wanted,
    rank,
)

HOUR = 3600 * 1000
DAY = 24 * HOUR
NOW = 1000 * DAY


def candidate(id_: str, cosine: float = 0.5, lexical: float = 0.0, **more: Any) -> Candidate:
    return Candidate(id_, cosine, lexical, **{"created_ms": NOW} | more)


def order(candidates: list[Candidate], ranking: Ranking, **more: Any) -> str:
    return "".join(one.id for one in rank(candidates, ranking, NOW, 10, **more))


def test_both_halves_count_in_their_shares() -> None:
    pool = [candidate("a", 0.8, 0.0), candidate("b", 0.5, 6.0), candidate("c", 0.6, 3.0)]
    found = rank(pool, Ranking(alpha=0.5), NOW, 2)
    assert [(one.id, one.cosine, one.lexical) for one in found] == [("b", 0.5, 1), ("c", 0.6, 0.5)]
    assert [one.score for one in found] == pytest.approx([0.75, 0.55])
    assert order(pool, Ranking(alpha=1.0)) == "acb"
    assert order(pool, Ranking(alpha=0.0)) == "bca"


def test_equals_stand_in_the_order_of_their_ids_and_noise_does_not_part_them() -> None:
    assert order([candidate("b", 0.5), candidate("a", 0.5 - 1e-13)], Ranking()) == "ab"


def test_a_least_similarity_holds_for_what_was_found_by_words_too() -> None:
    pool = [candidate("a", 0.7, least=0.7), candidate("b", 0.69, 9.0, least=0.7)]
    assert order(pool, Ranking()) == "a"
    assert order([pool[0], pool[1]._replace(least=0.6)], Ranking()) == "ba"


X, NEAR_X, Z = np.array([1.0, 0.0]), np.array([0.99, 0.1]), np.array([0.0, 3.0], np.float32)


def test_of_near_duplicates_the_best_stays() -> None:
    pool = [
        candidate("a", 0.6, vector=X, text="Ada's knee hurts!"),
        candidate("b", 0.7, vector=NEAR_X, text="Ada's knee hurts"),
        candidate("c", 0.5, vector=Z, text="Ada's knee hurts"),
        candidate("d", 0.4),
    ]
    assert order(pool, Ranking()) == "bcd"
    assert order(pool, Ranking(near_duplicate=None)) == "bacd"


@pytest.mark.parametrize(
    "one, other",
    [
        ("Ada's left knee hurts.", "Ada's right knee hurts."),
        ("Ada has 2 cats.", "Ada has 3 cats."),
        ("Ada bought the car.", "Ada sold the car."),
        ("Ada likes tea more than coffee.", "Ada likes coffee more than tea."),
        ("Ada eats meat.", "Ada does not eat meat."),
    ],
)
def test_what_differs_in_a_word_is_no_duplicate_however_near(one: str, other: str) -> None:
    pool = [candidate("a", 0.7, vector=X, text=one), candidate("b", 0.6, vector=X, text=other)]
    assert order(pool, Ranking()) == "ab"
    same = [pool[0], pool[1]._replace(text=one)]
    assert order(same, Ranking()) == "a"


def test_neighbours_lend_a_part_of_their_score() -> None:
    alone = Ranking(neighbours=0, sitting=0, answers=0, questions=0, dates=0)
    pool = [
        candidate("a", 0.9, conversation="c", after="b"),
        candidate("b", 0.1, conversation="c", before="a", after="c"),
        candidate("c", 0.2, conversation="d", before="b", after="d"),
        candidate("d", 0.3),
    ]
    assert order(pool, alone) == "adcb"
    assert order(pool, replace(alone, neighbours=0.5)) == "abdc"
    # It is a rule of the sitting: of another conversation, or hours later, it does not hold.
    late = [pool[0], pool[1]._replace(observed_ms=NOW + 7 * HOUR), *pool[2:]]
    assert order(late, replace(alone, neighbours=0.5)) == "adcb"


def test_the_best_of_a_sitting_speaks_for_the_others() -> None:
    pool = [
        candidate("a", 0.9, conversation="c", observed_ms=NOW),
        candidate("b", 0.1, conversation="c", observed_ms=NOW + 5 * HOUR),
        candidate("c", 0.2, conversation="c", observed_ms=NOW + 12 * HOUR),
        candidate("d", 0.2),
    ]
    ranking = Ranking(alpha=1, neighbours=0, answers=0, questions=0, sitting=0.3)
    found = {one.id: one.score for one in rank(pool, ranking, NOW, 9)}
    assert found == pytest.approx({"a": 0.9, "b": (0.1 + 0.27) / 1.3, "c": 0.2, "d": 0.2})


def test_an_answer_is_found_by_its_question() -> None:
    pool = [
        candidate("q", 0.8, conversation="c", asks=True, after="r"),
        candidate("r", 0.2, conversation="c", before="q", after="s"),
        candidate("s", 0.3, conversation="c", before="r"),
    ]
    ranking = Ranking(alpha=1, neighbours=0, sitting=0, answers=0.5, questions=0.25)
    found = rank(pool, ranking, NOW, 9)
    assert {one.id: one.score for one in found} == pytest.approx({"q": 0.6, "r": 0.6, "s": 0.3})


def test_a_date_in_the_question_counts_what_was_said_or_true_then() -> None:
    may = int(datetime(2026, 5, 7, tzinfo=UTC).timestamp() * 1000)
    pool = [
        candidate("a", 0.5),
        candidate("b", 0.4, observed_ms=may),
        candidate("c", 0.4, from_ms=may + 3 * DAY),
    ]
    assert order(pool, Ranking(), query="What did I do on 7 May 2026?") == "bca"
    assert order(pool, Ranking(), query="What did I do?") == "abc"
    assert order(pool, Ranking(dates=0), query="What did I do on 7 May 2026?") == "abc"


def test_neighbours_of_the_best_that_were_not_found_are_wanted() -> None:
    pool = [
        candidate("b", 0.9, conversation="c", before="a", after="c"),
        candidate("c", 0.8, conversation="c", before="b", after="d"),
        candidate("x", 0.7, before="w", after="y"),
    ]
    assert neighbours_wanted(pool, Ranking(), NOW, 1) == ["a", "d"]
    assert neighbours_wanted(pool, Ranking(neighbours=0, answers=0), NOW, 1) == []
    many = [candidate(f"m{n:02}", 0.5, conversation="c", after=f"n{n:02}") for n in range(40)]
    assert len(neighbours_wanted(many, Ranking(), NOW, 1)) == 20
    assert len(neighbours_wanted(many, Ranking(), NOW, 30)) == 30


def test_facts_fade_unless_they_are_used_or_pinned() -> None:
    ranking = Ranking(decay=Decay(0.2))
    old = {"created_ms": NOW - 90 * DAY}
    pool = [
        candidate("a", 0.52, **old),
        candidate("b", 0.50),
        candidate("c", 0.51, pinned=True, **old),
        candidate("d", 0.52, used_ms=NOW, **old),
    ]
    assert order(pool, Ranking()) == "adcb"
    assert order(pool, ranking) == "cbda"


def test_more_hits_need_more_candidates() -> None:
    assert [Ranking(candidates=40).reach(top_k) for top_k in (1, 20, 21, 100)] == [40, 40, 42, 200]


def test_freshness_halves_with_each_half_life() -> None:
    decay = Decay(half_life=timedelta(days=30), half_life_of_use=timedelta(days=10))
    assert decay.freshness(NOW, None, NOW) == 1
    assert decay.freshness(NOW - 30 * DAY, NOW - 10 * DAY, NOW) == pytest.approx(0.5)
    assert decay.freshness(NOW + DAY, None, NOW) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: Ranking(alpha=1.1),
        lambda: Ranking(candidates=0),
        lambda: Ranking(near_duplicate=-0.1),
        lambda: Ranking(alpha=float("nan")),
        lambda: Decay(weight=0),
        lambda: Decay(half_life=timedelta(0)),
    ],
)
def test_a_wrong_value_is_refused(make: Any) -> None:
    with pytest.raises(ValueError, match=r"Ranking|Decay"):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Ranking(alpha="0.5"),  # type: ignore[arg-type] # on purpose
        lambda: Ranking(candidates=True),
        lambda: Ranking(decay=0.5),  # type: ignore[arg-type] # on purpose
        lambda: Decay(half_life=30),  # type: ignore[arg-type] # on purpose
    ],
)
def test_a_wrong_type_is_refused(make: Any) -> None:
    with pytest.raises(TypeError, match=r"Ranking|Decay"):
        make()


@given(
    st.lists(
        st.builds(
            candidate,
            st.text("abc", min_size=1, max_size=6),
            st.floats(-1, 1),
            st.floats(0, 40),
            created_ms=st.integers(0, NOW),
            conversation=st.sampled_from(["", "c", "d"]),
            asks=st.booleans(),
            before=st.text("abc", max_size=2),
            after=st.text("abc", max_size=2),
        ),
        unique_by=lambda one: one.id,
    ),
    st.randoms(),
)
def test_the_order_does_not_depend_on_the_order_of_candidates(
    pool: list[Candidate], random: Any
) -> None:
    ranking = Ranking(decay=Decay(0.2))
    found = rank(pool, ranking, NOW, len(pool))
    random.shuffle(pool)
    assert rank(pool, ranking, NOW, len(pool)) == found
    assert {one.id for one in found} == {one.id for one in pool}
    assert found[:3] == rank(pool, ranking, NOW, 3)
    scores = [round(one.score, DIGITS) for one in found]  # what is equal so far is a tie
    assert scores == sorted(scores, reverse=True)
