"""What whole replies say of themselves, and how it comes into the meta of a turn."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from turnstore.formats.replies import added
from turnstore.messages import FORMATS, note

Json = dict[str, Any]
CHAT, RESPONSES = FORMATS["openai.chat"], FORMATS["openai.responses"]


@pytest.mark.parametrize("name", list(FORMATS))
@pytest.mark.parametrize("given", ["text", {"role": "user", "content": "a"}, [], None])
def test_what_is_no_whole_reply_says_nothing(name: str, given: Any) -> None:
    assert FORMATS[name].about(given) == {}


def test_the_output_of_a_tool_is_no_response() -> None:
    item = {"type": "custom_tool_call_output", "call_id": "c", "output": [{"type": "input_text"}]}
    assert RESPONSES.about(item) == {}
    result = SimpleNamespace(**item)
    assert RESPONSES.answer(result) is result


def test_what_is_not_there_is_left_out() -> None:
    assert CHAT.about({"choices": [], "id": "a", "usage": None}) == {"response_id": "a"}
    assert RESPONSES.about({"output": []}) == {"finish_reason": "completed"}


def test_numbers_add_up_and_all_else_is_of_the_newest() -> None:
    first: Json = {"total": 3, "cost": 0.5, "details": {"cached": 1, "kind": "a"}, "tier": None}
    second: Json = {"total": 4, "cost": 0.25, "details": {"cached": 2, "kind": "b"}, "tier": "x"}
    assert added(first, second) == {
        "total": 7,
        "cost": 0.75,
        "details": {"cached": 3, "kind": "b"},
        "tier": "x",
    }
    assert added({"fast": True}, {"fast": True}) == {"fast": True}


def test_a_null_takes_nothing_away() -> None:
    first: Json = {"total": 3, "details": {"cached": 1}}
    assert added(first, {"total": None, "details": None, "tier": None}) == {**first, "tier": None}
    assert added(first, {"details": {"cached": None}}) == first


def test_the_newest_reply_counts_but_not_before_the_caller() -> None:
    meta: Json = {"model": "mine"}
    told = note(meta, {}, {"model": "a", "finish_reason": "tool_calls"})
    assert meta == {"model": "mine", "finish_reason": "tool_calls"}
    told = note(meta, told, {"model": "b", "finish_reason": "stop"})
    assert meta == {"model": "mine", "finish_reason": "stop"}
    meta["finish_reason"] = "mine"
    note(meta, told, {"finish_reason": "length"})
    assert meta == {"model": "mine", "finish_reason": "mine"}


def test_of_a_parsed_message_what_the_sdk_added_is_left_out() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "parsed_arguments": {}}}
    said: Json = {"content": None, "role": "assistant", "tool_calls": [{**call, "index": 0}, None]}
    assert CHAT.bare({**said, "audio": None, "refusal": None, "parsed": None}) == {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f"}}, None],
    }
    plain: Json = {"role": "assistant", "content": "a", "audio": None}
    assert CHAT.bare(plain) is plain
