from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstore.facts._learning.guards import may_replace
from turnstore.facts._scoring.repetition import is_repetition

SAME = [
    ("Ada lives in Paris.", "Ada lives in Paris"),
    ("Ada lives in Paris.", "Ada is living in Paris."),
    ("They live in Paris.", "They are living in Paris."),
    ("Ada is running a shop.", "Ada runs a shop."),
    ("Ada now lives in Paris!", "Ada currently lives in Paris."),
    ("The user lives in Berlin.", "User lives in Berlin."),
    ("Ada has two cats.", "Ada has 2 cats."),
    ("It costs 1,000 euros.", "It costs 1000 euros."),
    ("Ada doesn't eat meat.", "Ada does not eat meat."),
    ("Ada won\u2019t fly.", "Ada will not fly."),
    ("Ada can't swim.", "Ada can not swim."),
    ("Ｃａｆé in Paris", "Café in Paris"),
    ("张三住在巴黎。", "张三住在巴黎"),
    ("Ada is a nurse.", "Ada is a nurse"),
]

APART = [
    # numbers
    ("Ada has 2 cats.", "Ada has 3 cats."),
    ("Ada has two cats.", "Ada has three cats."),
    ("Ada takes 5 mg daily.", "Ada takes 50 mg daily."),
    ("It is 1.5 km away.", "It is 15 km away."),
    ("It is -3 degrees.", "It is 3 degrees."),
    ("Call 555-1234.", "Call 555-1235."),
    ("Ada pays $5.", "Ada pays €5."),
    ("It fell by 5%.", "It fell by 5."),
    ("Version 1.10 is out.", "Version 1.1 is out."),
    # dates
    ("The appointment is on Monday.", "The appointment is on Tuesday."),
    ("Ada was born on 3 May 1990.", "Ada was born on 5 March 1990."),
    ("The flight leaves at 10:30.", "The flight leaves at 10:50."),
    ("It ends on 2024-05-03.", "It ends on 2024-05-30."),
    # negations, and what has ended or is only wished for
    ("Ada eats meat.", "Ada does not eat meat."),
    ("Ada has a dog.", "Ada has no dog."),
    ("Ada lives in Paris.", "Ada never lived in Paris."),
    ("Ada lives in Paris.", "Ada used to live in Paris."),
    ("Ada lives in Paris.", "Ada lived in Paris."),
    ("Ada was living in Paris.", "Ada is living in Paris."),
    ("Ada lives in Paris.", "Ada no longer lives in Paris."),
    ("Ada lives in Paris.", "Ada wants to live in Paris."),
    ("Ada likes olives.", "Ada dislikes olives."),
    ("Ada bought the house.", "Ada sold the house."),
    # names
    ("Ada lives in Paris.", "Bob lives in Paris."),
    ("Ada lives in Paris.", "Ada lives in Rome."),
    ("Ada manages Bob.", "Bob manages Ada."),
    ("Ada visited Turkey.", "Ada visited turkey."),
    ("Ada's cat is ill.", "Ada is ill."),
    ("张三住在巴黎。", "李四住在巴黎。"),
    ("Она живёт в Париже.", "Она живёт в Риме."),
    # the rest of what vectors do not see
    ("Ada's left knee hurts.", "Ada's right knee hurts."),
    ("Ada likes tea more than coffee.", "Ada likes coffee more than tea."),
    ("Ada moved from Paris to Rome.", "Ada moved to Paris from Rome."),
    ("Ada's brother lives in Rome.", "Ada's sister lives in Rome."),
    ("His son lives in Rome.", "His sons live in Rome."),
    ("Ada has a cat.", "Ada has cats."),
    ("Ada likes painting.", "Ada likes paints."),
    ("Ada is a nurse.", "Ada was a nurse."),
    ("Ada is bearing it.", "Ada is a bear."),
    ("", ""),
    ("?!", "..."),
]


@pytest.mark.parametrize("one, other", SAME)
def test_the_same_in_almost_the_same_words_is_a_repetition(one: str, other: str) -> None:
    assert is_repetition(one, other)
    assert is_repetition(other, one)


@pytest.mark.parametrize("one, other", APART)
def test_what_differs_in_one_word_is_no_repetition(one: str, other: str) -> None:
    assert not is_repetition(one, other)
    assert not is_repetition(other, one)


@given(st.text(max_size=60), st.text(max_size=60))
def test_it_is_the_same_both_ways(one: str, other: str) -> None:
    assert is_repetition(one, other) == is_repetition(other, one)


@given(st.from_regex(r"[A-Z][a-z]{1,6}( [a-z0-9]{1,6}){1,5}", fullmatch=True))
def test_a_text_repeats_itself_and_nothing_with_a_word_more(text: str) -> None:
    assert is_repetition(text, text + ".")
    assert not is_repetition(text, text + " not")
    assert not is_repetition(text, text + " 7")


@pytest.mark.parametrize(
    "old, new, cosine, allowed",
    [
        ("home", "home", 0.0, True),
        ("home", "Home", 0.0, True),
        ("home", "job", 0.49, False),
        ("home", "job", 0.5, True),
        ("", "", 0.49, False),
        ("", "", 0.5, True),
        ("home", "", 0.1, False),
        ("home", "", float("nan"), False),
    ],
)
def test_only_a_fact_of_the_same_slot_or_near_by_gives_way(
    old: str,
    new: str,
    cosine: float,
    allowed: bool,  # noqa: FBT001
) -> None:
    assert may_replace(old, new, cosine) is allowed
