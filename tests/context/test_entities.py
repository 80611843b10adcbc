"""The names, documents and terms of a conversation: found, carried on, bounded."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.context.flows import Recorder, drive, history_of, said
from tests.unit.histories import assistant, user
from turnstore.context import Entities, simple_entities
from turnstore.context.entities import tracked
from turnstore.messages import FORMATS

CHAT = FORMATS["openai.chat"]


def names(entities: Entities, history: Any, *new: str) -> list[str]:
    messages = [user(text) for text in new]
    found: list[str] = drive(tracked(entities, history.turns, messages, CHAT, Counter()))
    return found


@pytest.mark.parametrize(
    "text, found",
    [
        ("What did Ada Lovelace write to Charles Babbage?", ["Ada Lovelace", "Charles Babbage"]),
        ("Tell me about the Bank of England.", ["Bank of England"]),
        ("I read report_v2.pdf and docs/plan.md today.", ["report_v2.pdf", "docs/plan.md"]),
        ("Is INV-2024-17 paid? The GPT-4 bill is.", ["INV-2024-17", "GPT-4"]),
        ("What does `max_tokens` mean in iPhone OS 17.2?", ["max_tokens", "iPhone OS 17.2"]),
        ('What is a "rolling summary"?', ["rolling summary"]),
        ("Was ist mit „Faust“ von Goethe?", ["Faust", "Goethe"]),
        ("Что сказал Лев Толстой?", ["Что", "Лев Толстой"]),
        ("什么是「红楼梦」", ["红楼梦"]),
        ("Don't ask. It's Ada's book, isn't it?", ["Ada"]),
        ("ada, Ada and ADA", ["Ada"]),
        ("how are you?", []),
        ("", []),
    ],
)
def test_what_the_simple_extractor_finds(text: str, found: list[str]) -> None:
    assert simple_entities(text) == found


@pytest.mark.parametrize("text", ["a" * 300_000, "A" * 300_000, "A-" * 99_999, "a.b/" * 99_999,
                                  '"' * 99_999, "A of " * 99_999, "Aa " * 99_999])  # fmt: skip
def test_the_simple_extractor_is_quick_whatever_the_text(text: str) -> None:
    begun = time.process_time()
    simple_entities(text)
    assert time.process_time() - begun < 2


@given(st.text())
def test_the_simple_extractor_takes_any_text(text: str) -> None:
    found = simple_entities(text)
    assert len({name.casefold() for name in found}) == len(found)


def test_newest_first_each_once() -> None:
    history = said("one", "two", m2={"entities": ["Old One", "Ada"]})
    assert names(Entities(), history, "Did ADA meet Byron?") == ["Byron", "ADA", "Old One"]


def test_the_reply_before_is_looked_through_too() -> None:
    history = history_of([[[user("who wrote it?"), assistant("Mary Shelley did.")]]], {})
    assert names(Entities(), history, "and what about Byron") == ["Byron", "Mary Shelley"]


def test_they_are_carried_on_by_the_newest_turn_that_has_some() -> None:
    history = said("one", "two", "three", m1={"entities": ["A"]}, m2={"entities": ["B"]})
    assert names(Entities(Recorder([])), history, "go on") == ["B"]


@pytest.mark.parametrize("meta", ["Ada", 7, {"Ada": 1}, None, [7, None]])
def test_what_others_keep_under_the_name_does_no_harm(meta: Any) -> None:
    assert names(Entities(), said("one", m1={"entities": meta}), "Byron?") == ["Byron"]


def test_no_more_than_the_limit_and_no_longer_than_names() -> None:
    found = [f"name {number}" for number in range(50)]
    kept = names(Entities(Recorder([*found, " a \n b ", "x" * 999])), said(), "?")
    assert kept[:4] == ["x" * 100, "a b", "name 49", "name 48"]
    assert len(kept) == 20
    assert names(Entities(Recorder(found), limit=1), said(), "?") == ["name 49"]


@pytest.mark.parametrize("answer", [RuntimeError("down"), TimeoutError(), None, ["A", 7]])
def test_a_failure_carries_the_others_on(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    counts = Counter[str]()
    turns = said("one", m1={"entities": ["B"]}).turns
    flow = tracked(Entities(Recorder(answer)), turns, [user("C")], CHAT, counts)
    assert drive(flow) == ["B"]
    assert counts == {"entities": 1}
    assert "entities failed" in caplog.text


def test_where_nothing_is_said_nothing_is_extracted() -> None:
    extract = Recorder(["never"])
    assert names(Entities(extract), said()) == []
    assert extract.given == []


@pytest.mark.parametrize(
    "options, error, text",
    [
        ({"extract": "names"}, TypeError, "is a function"),
        ({"limit": 0}, ValueError, r"Entities\(limit=0\)"),
        ({"limit": None}, TypeError, "say how many"),
        ({"deadline": 0}, ValueError, "above 0"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Entities(**options)
