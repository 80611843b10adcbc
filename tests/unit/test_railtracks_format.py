"""The rules of Railtracks' format, on objects of the same shape."""

from __future__ import annotations

from enum import StrEnum
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from turnstore.messages import FORMATS, plain_messages

RULES = FORMATS["railtracks"]

Json = dict[str, Any]
CALL: Json = {"identifier": "c1", "name": "weather", "arguments": {"city": "Rome"}}
RESULT: Json = {"identifier": "c1", "name": "weather", "result": "warm"}


class Role(StrEnum):
    assistant = "assistant"
    user = "user"
    system = "system"
    tool = "tool"


class Said:
    def __init__(self, role: str, content: Any, **beside: Any) -> None:
        self._role, self._content = Role(role), content
        vars(self).update(beside)

    @property
    def role(self) -> Role:
        return self._role

    @property
    def content(self) -> Any:
        return self._content


class Call(BaseModel):
    identifier: str
    name: str
    arguments: Json


class Result(BaseModel):
    identifier: str
    name: str
    result: str


class Calls(list[Call]):
    text = "I look it up."


def said(role: str, content: Any, **beside: Any) -> Json:
    return {"role": role, "content": content, **beside}


def test_text_becomes_a_message() -> None:
    assert plain_messages("hi", RULES) == [said("user", "hi")]
    assert plain_messages("hi", RULES, reply=True) == [said("assistant", "hi")]
    assert RULES.context("hi") == said("system", "hi")


@pytest.mark.parametrize(
    "given, expected",
    [
        (Said("user", "hi", attachment=None), said("user", "hi")),
        (Said("system", "hi"), said("system", "hi")),
        (Said("assistant", None, later=[None]), said("assistant", None, later=[None])),
        (Said("assistant", [Call(**CALL)]), said("assistant", [CALL])),
        (Said("assistant", Calls([Call(**CALL)])), said("assistant", [CALL], text=Calls.text)),
        (Said("assistant", Call(**CALL)), said("assistant", Call(**CALL).model_dump_json())),
        (
            Said("assistant", Result(**RESULT)),
            said("assistant", Result(**RESULT).model_dump_json()),
        ),
        (Said("tool", Result(**RESULT)), said("tool", RESULT)),
        (
            Said("user", "hi", attachment=[SimpleNamespace(url="a.png", encoding="x")]),
            said("user", "hi", attachment=[{"url": "a.png", "encoding": "x"}]),
        ),
    ],
)
def test_an_object_is_kept_with_what_it_has_beside(given: Any, expected: Json) -> None:
    assert plain_messages([given], RULES) == [expected]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        said("robot", "hi"),
        said("developer", "hi"),
        {"role": "user"},
        said("user", [{"type": "text", "text": "hi"}]),
        said("user", None),
        said("system", None),
        said("tool", "warm"),
        said("tool", {"identifier": "c1"}),
        said("assistant", {"name": "Rome"}),
        said("assistant", [{"type": "text", "text": "hi"}]),
        said("assistant", ["hi"]),
    ],
)
def test_what_it_is_not(wrong: Json) -> None:
    with pytest.raises(ValueError, match="message"):
        plain_messages([wrong], RULES)


def test_calls_and_results_find_one_another() -> None:
    assert RULES.calls(said("assistant", [CALL, {**CALL, "identifier": "c2"}])) == ["c1", "c2"]
    assert RULES.calls(said("assistant", "hi")) == []
    assert RULES.calls(said("user", "hi")) == []
    assert RULES.results(said("tool", RESULT)) == ["c1"]
    assert RULES.results(said("assistant", [CALL])) == []


@pytest.mark.parametrize(
    "message, text",
    [
        (said("user", "hi"), "hi"),
        (said("assistant", None), ""),
        (said("assistant", [CALL]), ""),
        (said("assistant", [CALL], text="I look it up."), "I look it up."),
        (said("tool", RESULT), "warm"),
    ],
)
def test_what_a_person_would_read(message: Json, text: str) -> None:
    assert RULES.text(message) == text


def test_an_answer_without_a_word_is_not_kept() -> None:
    assert RULES.unfit(said("assistant", "")) == "the model said nothing, or refused"
    fit = [said("user", ""), said("assistant", "hi"), said("assistant", [CALL], text="")]
    assert not any(map(RULES.unfit, fit))
