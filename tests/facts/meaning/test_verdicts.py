from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstore.context._common import check_template, fill
from turnstore.facts._learning.prompts import AGAIN, EXTRACTION_PROMPT, PLACES
from turnstore.facts._learning.verdicts import AnswerError, Item, parse

ANSWERS = Path(__file__).parent / "answers"


def answers(kind: str) -> list[Any]:
    files = sorted((ANSWERS / kind).glob("*.txt"))
    assert len(files) > 20
    # Bytes, since a file in text mode would mend the line ends.
    return [pytest.param(file.read_bytes().decode(), id=file.stem) for file in files]


@pytest.mark.parametrize("answer", answers("usable"))
def test_what_can_be_mended_is_read(answer: str) -> None:
    assert parse(answer, facts=2, turns=3) == [Item("new", "Ada lives in Paris.", -1, (1,))]


@pytest.mark.parametrize("answer", answers("unusable"))
def test_what_cannot_is_refused_with_the_reason(answer: str) -> None:
    with pytest.raises(AnswerError) as refused:
        parse(answer, facts=2, turns=3)
    assert 0 < len(str(refused.value)) < 300


def test_each_field_is_read() -> None:
    items = [
        {"verdict": "new", "text": "Ada\n sails.", "turns": [3, 1], "slot": " hobby "},
        {"verdict": "duplicate", "of": 1, "turns": [2]},
        {"verdict": "supersedes", "of": 0, "text": "Ada lives in Rome.", "turns": [2]}
        | {"slot": "home", "from": "2024-05", "to": "2025", "never": True},
        {"verdict": "retracts", "of": 0, "text": "Ada lives in Paris.", "turns": [1]},
    ]
    assert parse(json.dumps({"facts": items}), facts=2, turns=3) == [
        Item("new", "Ada sails.", -1, (1, 3), slot="hobby"),
        Item("duplicate", "", 1, (2,)),
        Item("supersedes", "Ada lives in Rome.", 0, (2,), "home", "2024-05", "2025", never=True),
        Item("retracts", "Ada lives in Paris.", 0, (1,)),
    ]


def test_nothing_to_learn_is_an_answer() -> None:
    assert parse('{"facts": []}', facts=0, turns=1) == []
    assert parse("[]", facts=0, turns=1) == []


def test_of_a_single_turn_the_number_may_be_missing() -> None:
    (item,) = parse('[{"verdict": "new", "text": "Ada sails."}]', facts=0, turns=1)
    assert item.turns == (1,)


def test_where_nothing_is_known_nothing_can_be_spoken_of() -> None:
    with pytest.raises(AnswerError, match="no facts are known"):
        parse('[{"verdict": "duplicate", "of": 0}]', facts=0, turns=1)


def test_more_may_not_be_taken_back_than_is_allowed() -> None:
    items = [
        {"verdict": "supersedes", "of": 0, "text": "Ada lives in Rome.", "turns": [1]},
        {"verdict": "retracts", "of": 1, "text": "Ada sails.", "turns": [1]},
        {"verdict": "new", "text": "Ada bakes.", "turns": [1]},
    ]
    assert len(parse(json.dumps(items), facts=2, turns=1, changes=2)) == 3
    with pytest.raises(AnswerError, match="retracts 2 known facts, and 1 are the most"):
        parse(json.dumps(items), facts=2, turns=1, changes=1)


def test_what_was_mended_keeps_its_texts() -> None:
    text = 'He said ",]" and "{x,}", then \\\\ left,'
    answer = f'Well: {{"facts": [{{"verdict": "new", "text": {json.dumps(text)}, "turns": [1],}}]}}'
    (item,) = parse(answer, facts=0, turns=1)
    assert item.text == text


def test_an_answer_beyond_all_bounds_is_not_looked_at() -> None:
    with pytest.raises(AnswerError, match="letters"):
        parse("[" + " " * 200_001 + "]", facts=0, turns=1)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(answer: str) -> None:
    with suppress(AnswerError):
        assert parse(answer, facts=1, turns=1) == []


NAMES = st.sampled_from(["verdict", "text", "of", "slot", "from", "to", "never", "turns", "x"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)
ITEMS = st.dictionaries(NAMES, VALUES, max_size=8) | VALUES


@given(st.lists(ITEMS, max_size=4))
def test_what_is_read_points_at_what_was_shown(items: list[Any]) -> None:
    try:
        read = parse(json.dumps({"facts": items}), facts=2, turns=3)
    except AnswerError:
        return
    assert len(read) == len(items)
    for item in read:
        assert item.text or item.verdict == "duplicate"
        assert item.of == -1 if item.verdict == "new" else 0 <= item.of < 2
        assert item.turns
        assert set(item.turns) <= {1, 2, 3}


def test_the_template_has_its_places_and_names_every_verdict() -> None:
    check_template("the template", EXTRACTION_PROMPT, *PLACES)
    prompt = fill(EXTRACTION_PROMPT, facts="KNOWN", transcript="{facts} said the user")
    assert "KNOWN" in prompt
    assert "{facts} said the user" in prompt
    assert all(f'"{name}"' in prompt for name in ("new", "duplicate", "supersedes", "retracts"))
    assert "{reason}" in AGAIN


def test_the_example_in_the_template_is_of_the_shape_that_is_read() -> None:
    example = EXTRACTION_PROMPT.partition("nothing else:\n")[2].partition("\n\nEach item")[0]
    assert parse(example, facts=0, turns=1) == [
        Item("new", "...", -1, (1,), slot="...", stated_from="...", stated_to="...")
    ]
