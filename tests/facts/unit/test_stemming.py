from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstore.facts._scoring.stemming import stem

# One line for each rule.
STEMS = """
caresses caress | ponies poni | ties ti | caress caress | cats cat
feed feed | agreed agre | plastered plaster | bled bleed | motoring motor | sing sing
conflated conflat | troubled troubl | sized size | hopping hop | falling fall | hissing hiss
fizzed fizz | failing fail | filing file | happy happi | sky sky
relational relat | conditional condit | valenci valenc | digitizer digit | radicalli radic
vietnamization vietnam | predication predic | operator oper | feudalism feudal
decisiveness decis | hopefulness hope | callousness callous | formaliti formal
sensitiviti sensit | sensibiliti sensibl | triplicate triplic | formative form
formalize formal | electrical electr | hopeful hope | goodness good
revival reviv | allowance allow | inference infer | airliner airlin | adjustable adjust
irritant irrit | replacement replac | adjustment adjust | dependent depend | adoption adopt
homologou homolog | communism commun | activate activ | angulariti angular
homologous homolog | effective effect | bowdlerize bowdler | union union
probate probat | rate rate | cease ceas | controll control | roll roll | michelle michel
"""


@pytest.mark.parametrize(
    "word, expected", [pair.split() for pair in STEMS.replace("\n", "|").split("|") if pair.strip()]
)
def test_a_rule(word: str, expected: str) -> None:
    assert stem(word) == expected


@pytest.mark.parametrize(
    "one, other",
    [("went", "going"), ("bought", "buys"), ("children", "child"), ("ran", "running")],
)
def test_what_no_rule_reaches_is_known(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize("word", ["", "is", "2nd", "b2b", "\u00fcbung", "\u5bb6\u65cf"])
def test_what_is_no_english_word_is_left_as_it_is(word: str) -> None:
    assert stem(word) == word


@given(st.text(string.ascii_lowercase, min_size=1, max_size=12))
def test_a_stem_is_never_empty_or_much_longer(word: str) -> None:
    assert 1 <= len(stem(word)) <= len(word) + 1
