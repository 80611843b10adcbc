"""The rules of LangChain's format, on what its `message_to_dict` writes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from turnstore.messages import FORMATS, plain_messages

RULES = FORMATS["langchain"]

Json = dict[str, Any]


def said(kind: str, content: Any = "", **data: Any) -> Json:
    return {"type": kind, "data": {"content": content, "type": kind, **data}}


CALL = {"name": "weather", "args": {}, "id": "c1", "type": "tool_call"}


def test_text_becomes_a_message() -> None:
    assert plain_messages("hi", RULES) == [said("human", "hi")]
    assert plain_messages("hi", RULES, reply=True) == [said("ai", "hi")]
    assert RULES.context("hi") == said("system", "hi")


def test_an_object_is_kept_with_all_its_fields() -> None:
    one = SimpleNamespace(type="human", model_dump=lambda: {"content": "hi", "id": None})
    assert plain_messages([one], RULES) == [
        {"type": "human", "data": {"content": "hi", "id": None}}
    ]


@pytest.mark.parametrize("kind", ["ai", "human", "tool", "function", "system", "chat"])
def test_a_chunk_becomes_the_message_it_is_a_part_of(kind: str) -> None:
    name = f"{'AI' if kind == 'ai' else kind.title()}MessageChunk"
    chunk = said(name, "hi", tool_call_chunks=[{"index": 0}], chunk_position="last", zz=1.0)
    assert plain_messages(chunk, RULES) == [said(kind, "hi", zz=1.0)]


@pytest.mark.parametrize("wrong", [{"role": "user", "content": "hi"}, {"type": "human"}, {}])
def test_what_it_is_not(wrong: Json) -> None:
    with pytest.raises(ValueError, match="message_to_dict"):
        plain_messages([wrong], RULES)


def test_a_chunk_without_data_is_refused_as_any_other() -> None:
    with pytest.raises(ValueError, match="message_to_dict"):
        plain_messages([{"type": "AIMessageChunk"}], RULES)


def test_who_speaks() -> None:
    instructions = [said("system"), said("chat", role="system"), said("chat", role="developer")]
    replies = [said("ai"), said("chat", role="assistant")]
    others = [said("human"), said("tool", tool_call_id="c1"), said("chat", role="user")]
    assert all(map(RULES.is_instruction, instructions))
    assert not any(map(RULES.is_instruction, replies + others))
    assert all(map(RULES.is_reply, replies))
    assert not any(map(RULES.is_reply, instructions + others))


def test_calls_and_their_results() -> None:
    broken = {**CALL, "id": "c2", "args": "{", "error": None, "type": "invalid_tool_call"}
    assert RULES.calls(said("ai", tool_calls=[CALL], invalid_tool_calls=[broken])) == ["c1", "c2"]
    assert RULES.calls(said("ai", tool_calls=[], invalid_tool_calls=None)) == []
    assert RULES.calls(said("human", tool_calls=[CALL])) == []
    assert RULES.results(said("tool", "21", tool_call_id="c1")) == ["c1"]
    assert RULES.results(said("ai")) == []


def test_the_older_calls_without_an_id() -> None:
    call = said("ai", additional_kwargs={"function_call": {"name": "weather"}})
    assert RULES.calls(call) == RULES.results(said("function", name="weather"))


@pytest.mark.parametrize(
    "data",
    [
        {"response_metadata": {"finish_reason": "content_filter"}},
        {"response_metadata": {"stop_reason": "refusal"}},
        {"response_metadata": {"finish_reason": "SAFETY"}},
        {"response_metadata": {"status": "incomplete"}},
        {"response_metadata": {"model_provider": "openai"}},
        {"additional_kwargs": {"refusal": "No."}},
        {"content": [{"type": "refusal", "refusal": "No."}]},
        {"content": ""},
        {"content": [], "additional_kwargs": {"refusal": None}, "tool_calls": []},
    ],
)
def test_what_must_not_be_saved(data: Json) -> None:
    content = data.pop("content", "Wel")
    assert RULES.unfit(said("ai", content, **data))
    assert not RULES.unfit(said("human", content, **data))


@pytest.mark.parametrize("reason", ["stop", "length", "tool_calls", "end_turn", None])
def test_what_may(reason: str | None) -> None:
    assert not RULES.unfit(said("ai", "Wel", response_metadata={"finish_reason": reason}))


def test_an_answer_may_be_without_a_text() -> None:
    assert not RULES.unfit(said("ai", tool_calls=[CALL]))
    assert not RULES.unfit(said("ai", additional_kwargs={"function_call": {"name": "weather"}}))


def test_text_as_a_person_reads_it() -> None:
    blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}, "b"]
    assert RULES.text(said("ai", blocks)) == "ab"
    assert RULES.text(said("human", "hi")) == "hi"


def test_another_id_is_no_other_message() -> None:
    one, other = said("ai", "hi", id="1"), said("ai", "hi", id="2")
    assert RULES.comparable(one) == RULES.comparable(other)
