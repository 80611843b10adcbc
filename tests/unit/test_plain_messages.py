"""What a format calls plain is passed over: it may call and answer nothing, and goes out as is."""

from __future__ import annotations

from typing import Any

import pytest

from turnstore.formats import FORMATS

Json = dict[str, Any]


def chat(content: Any, role: Any = "assistant", **more: Any) -> Json:
    return {"role": role, "content": content, **more}


def item(**fields: Any) -> Json:
    return {"id": "m", "status": "completed", **fields}


def ai(**data: Any) -> Json:
    return {"type": "ai", "data": {"content": "a", "type": "ai", **data}}


TEXT = {"type": "text", "text": "a"}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
OUTPUT = [{"type": "output_text", "text": "a", "annotations": []}]

PLAIN: list[tuple[str, Json]] = [
    ("openai.chat", chat("a", "user")),
    ("openai.chat", chat([TEXT, TEXT])),
    ("anthropic.messages", chat("")),
    ("anthropic.messages", chat([TEXT])),
    ("openai.responses", chat("a", "user")),
    ("openai.responses", item(type="message", role="assistant", content=OUTPUT)),
    ("langchain", ai()),
    ("langchain", ai(tool_calls=[], additional_kwargs={}, usage_metadata={"input_tokens": 1})),
    ("langchain", {"type": "human", "data": {"content": ["a"], "type": "human"}}),
]
OTHERS: list[tuple[str, Json]] = [
    ("openai.chat", chat(None, tool_calls=[CALL])),
    ("openai.chat", chat("a", refusal=None)),
    ("openai.chat", chat("21", "tool", tool_call_id="c")),
    ("openai.chat", chat("21", "tool")),
    ("openai.chat", chat([])),
    ("openai.chat", chat(["a"])),
    ("openai.chat", chat("a", ["user"])),
    ("openai.chat", {"role": "assistant", "refusal": "No."}),
    ("anthropic.messages", chat([{"type": "text", "text": " "}])),
    ("anthropic.messages", chat([{**TEXT, "citations": None}])),
    ("anthropic.messages", chat([{"type": "tool_use", "id": "c"}])),
    ("anthropic.messages", chat([{"type": "tool_result", "tool_use_id": "c"}], "user")),
    ("openai.responses", item(type="function_call", call_id="c", name="f", arguments="{}")),
    ("openai.responses", item(type="function_call_output", call_id="c", output="21")),
    ("openai.responses", item(type="mcp_approval_request", role="assistant")),
    ("langchain", ai(tool_calls=[{"id": "c", "name": "f", "args": {}}])),
    ("langchain", ai(invalid_tool_calls=[{"id": "c", "name": "f", "args": "{"}])),
    ("langchain", ai(additional_kwargs={"function_call": {"name": "f"}})),
    ("langchain", {"type": "tool", "data": {"content": "21", "tool_call_id": "c"}}),
    ("google.contents", {"role": "user", "parts": [{"functionResponse": {"name": "f"}}]}),
    ("llama_index", {"role": "user", "blocks": []}),
]


@pytest.mark.parametrize("name, message", PLAIN, ids=str)
def test_what_is_plain_calls_and_answers_nothing(name: str, message: Json) -> None:
    rules = FORMATS[name]
    assert rules.is_plain(message)
    assert rules.calls(message) == rules.results(message) == []
    assert rules.outgoing(message) is message


@pytest.mark.parametrize("name, message", OTHERS, ids=str)
def test_what_is_not_is_looked_into(name: str, message: Json) -> None:
    assert not FORMATS[name].is_plain(message)
