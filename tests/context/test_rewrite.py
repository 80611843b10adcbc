"""Follow-up questions that are made to stand alone, for retrieval only."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.context.flows import Recorder, drive, history_of, said
from tests.unit.histories import asks, assistant, result, system, user
from turnstore.context import Rewrite
from turnstore.context.rewrite import standalone

HISTORY = said("boats", "the Mary Rose", "when it sank")


def rewritten(rewrite: Rewrite, question: str = "and why?", history: Any = HISTORY) -> str:
    answer: str = drive(standalone(rewrite, question, history.turns, Counter()))
    return answer


def test_the_model_sees_the_last_turns_and_the_question() -> None:
    model = Recorder("  Why did the Mary Rose sink?\n")
    assert rewritten(Rewrite(model, turns=2)) == "Why did the Mary Rose sink?"
    (prompt,) = model.given
    assert (
        "user: the Mary Rose\nassistant: On the Mary Rose\n"
        "user: when it sank\nassistant: On when it sank\n"
    ) in prompt
    assert "boats" not in prompt
    assert prompt.index("when it sank") < prompt.index("and why?")


def test_tools_instructions_and_long_texts_do_not_fill_the_prompt() -> None:
    turn = [system("secret"), user("x" * 5000), asks("1"), result("1"), assistant("Yes.")]
    model = Recorder("why?")
    rewritten(Rewrite(model), history=history_of([[turn]], {}))
    assert "secret" not in model.given[0]
    assert "tool: 1\nassistant: Yes." in model.given[0]
    assert len(model.given[0]) < 2500
    assert "x […] x" in model.given[0]


def test_another_template() -> None:
    model = Recorder("why?")
    template = '{"ask": "{question}", "after": "{conversation}"}'
    rewritten(Rewrite(model, template=template), "{conversation}?", said("boats"))
    assert model.given == [
        '{"ask": "{conversation}?", "after": "user: boats\nassistant: On boats"}'
    ]


def test_where_nothing_was_said_before_no_model_is_asked() -> None:
    model = Recorder("never")
    assert rewritten(Rewrite(model), history=said()) == "and why?"
    assert rewritten(Rewrite(model), "") == ""
    assert model.given == []


@pytest.mark.parametrize("answer", [RuntimeError("down"), TimeoutError(), "", " ", None, 7])
def test_a_failure_leaves_the_question(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    counts = Counter[str]()
    flow = standalone(Rewrite(Recorder(answer)), "and why?", HISTORY.turns, counts)
    assert drive(flow) == "and why?"
    assert counts == {"rewrite": 1}
    assert "rewrite failed" in caplog.text


def test_the_deadline_is_the_models() -> None:
    ask = next(standalone(Rewrite(str, deadline=2), "and why?", HISTORY.turns, Counter()))
    assert ask.deadline == 2


@pytest.mark.parametrize(
    "options, error, text",
    [
        ({"model": None}, TypeError, "is a function"),
        ({"template": "{question}"}, ValueError, "no place for {conversation}"),
        ({"turns": 0}, ValueError, r"Rewrite\(turns=0\)"),
        ({"turns": None}, TypeError, "say how many turns"),
        ({"deadline": -1}, ValueError, "above 0"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Rewrite(**{"model": str, **options})
