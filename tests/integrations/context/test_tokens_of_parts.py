"""Images, audio and files are counted as what they are, at any depth; none is read as text."""

from __future__ import annotations

import base64
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from anthropic import Anthropic
from anthropic.types import Message as AnthropicMessage
from google.genai import types as google
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import ResponseReasoningItem
from openai.types.responses.response_computer_tool_call_output_item import (
    ResponseComputerToolCallOutputItem,
)
from openai.types.responses.response_function_tool_call_output_item import (
    ResponseFunctionToolCallOutputItem,
)
from openai.types.responses.response_output_item import ImageGenerationCall

from tests.context.test_costs import text
from turnstore import Window
from turnstore.context.tokens import token_counter
from turnstore.formats import FORMATS
from turnstore.messages import plain_messages
from turnstore.testing import ModelServer, Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnstore import Store

DATA = base64.b64encode(Random(1).randbytes(150_000)).decode()
URL = f"data:image/png;base64,{DATA}"
FEW = 60  # what may stand around a part: ids, roles, names


def anthropic_image() -> dict[str, Any]:
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": DATA},
    }


def tool_result(*content: dict[str, Any]) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": "t1", "content": list(content)}
    return {"role": "user", "content": [block]}


def google_result(mime: str) -> google.Content:
    blob = google.FunctionResponseBlob(mime_type=mime, data=base64.b64decode(DATA))
    part = google.FunctionResponsePart(inline_data=blob)
    result = google.FunctionResponse(name="f", response={"x": 1}, parts=[part])
    return google.Content(role="user", parts=[google.Part(function_response=result)])


def google_part(mime: str) -> google.Content:
    part = google.Part.from_bytes(data=base64.b64decode(DATA), mime_type=mime)
    return google.Content(role="user", parts=[part])


SHAPES: dict[str, tuple[str, Any, int]] = {
    "anthropic: image": (
        "anthropic.messages",
        {"role": "user", "content": [anthropic_image()]},
        765,
    ),
    "anthropic: result with an image": (
        "anthropic.messages",
        tool_result({"type": "text", "text": "a shot"}, anthropic_image()),
        765,
    ),
    "anthropic: result with two": (
        "anthropic.messages",
        tool_result(anthropic_image(), anthropic_image()),
        2 * 765,
    ),
    "anthropic: document": (
        "anthropic.messages",
        {
            "role": "user",
            "content": [
                {
                    "type": "document",
                    "title": "Notes",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": DATA},
                }
            ],
        },
        4000,
    ),
    "anthropic: document of blocks": (
        "anthropic.messages",
        tool_result(
            {"type": "document", "source": {"type": "content", "content": [anthropic_image()]}}
        ),
        765,
    ),
    "anthropic: signature": (
        "anthropic.messages",
        AnthropicMessage.model_validate(
            {
                "id": "m",
                "model": "m",
                "role": "assistant",
                "type": "message",
                "usage": {"input_tokens": 1, "output_tokens": 1},
                "content": [{"type": "thinking", "thinking": "hm", "signature": DATA[:2000]}],
            }
        ),
        500,
    ),
    "chat: result with an image": (
        "openai.chat",
        {
            "role": "tool",
            "tool_call_id": "c",
            "content": [{"type": "image_url", "image_url": {"url": URL}}],
        },
        765,
    ),
    "chat: audio of the model": (
        "openai.chat",
        ChatCompletionMessage.model_validate(
            {
                "role": "assistant",
                "audio": {"id": "a", "data": DATA, "transcript": "hi", "expires_at": 1},
            }
        ),
        4000,
    ),
    "chat: video": (
        "openai.chat",
        {"role": "user", "content": [{"type": "video_url", "video_url": {"url": URL}}]},
        4000,
    ),
    "responses: result with an image": (
        "openai.responses",
        ResponseFunctionToolCallOutputItem.model_validate(
            {
                "id": "f",
                "type": "function_call_output",
                "call_id": "c",
                "status": "completed",
                "output": [{"type": "input_image", "detail": "auto", "image_url": URL}],
            }
        ),
        765,
    ),
    "responses: screenshot": (
        "openai.responses",
        ResponseComputerToolCallOutputItem.model_validate(
            {
                "id": "x",
                "type": "computer_call_output",
                "call_id": "c",
                "status": "completed",
                "output": {"type": "computer_screenshot", "image_url": URL},
            }
        ),
        765,
    ),
    "responses: image of the model": (
        "openai.responses",
        ImageGenerationCall.model_validate(
            {"type": "image_generation_call", "id": "i", "result": DATA, "status": "completed"}
        ),
        765,
    ),
    "responses: encrypted reasoning": (
        "openai.responses",
        ResponseReasoningItem(type="reasoning", id="r", summary=[], encrypted_content=DATA[:4000]),
        1000,
    ),
    "gemini: result with an image": ("google.contents", google_result("image/png"), 258),
    "gemini: result with a video": ("google.contents", google_result("video/mp4"), 4000),
    "gemini: image": ("google.contents", google_part("image/webp"), 258),
    "gemini: audio": ("google.contents", google_part("audio/wav"), 4000),
    "pydantic-ai: image": (
        "pydantic_ai",
        {
            "kind": "request",
            "parts": [
                {
                    "part_kind": "user-prompt",
                    "content": [{"kind": "binary", "media_type": "image/png", "data": DATA}],
                }
            ],
        },
        765,
    ),
    "llama-index: image": (
        "llama_index",
        {"role": "user", "blocks": [{"block_type": "image", "image": DATA}]},
        765,
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_part_costs_what_it_is_wherever_it_stands(name: str) -> None:
    format_name, given, expected = SHAPES[name]
    rules = FORMATS[format_name]
    if isinstance(given, dict):
        message = given
    else:  # as the SDK's own type has it
        (message,) = plain_messages(rules.answer(given), rules, reply=True)
    assert expected <= token_counter(None)(message) <= expected + FEW


WORDS = "word " * 9000
PNG = {"type": "image", "query": "a boat at sea"}


@pytest.mark.parametrize(
    "message, said",
    [
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "input": PNG}]}, PNG),
        ({"role": "model", "parts": [{"functionCall": {"name": "f", "args": PNG}}]}, PNG),
        (
            {
                "role": "user",
                "content": [
                    {
                        "type": "document",
                        "source": {"type": "text", "media_type": "text/plain", "data": WORDS},
                    }
                ],
            },
            {"data": WORDS},
        ),
        (
            {"role": "user", "parts": [{"functionResponse": {"response": {"data": DATA[:900]}}}]},
            {"data": DATA[:900]},
        ),
        ({"role": "user", "content": DATA[:900]}, {"content": DATA[:900]}),
    ],
    ids=["input", "args", "plain text", "response", "text"],
)  # fmt: skip
def test_what_a_model_reads_as_text_costs_its_text(message: Any, said: dict[str, str]) -> None:
    at_least = sum(map(text, said.values()))
    assert at_least <= token_counter(None)(message) <= at_least + FEW


@pytest.mark.servers("redis-8", "redis-url")
@pytest.mark.one_setup
def test_a_screenshot_that_a_tool_returns_leaves_the_window_as_it_is(
    make_store: Callable[..., Store],
) -> None:
    chat = make_store(count_tokens="cl100k_base").conversation("c")
    with ModelServer() as model, Anthropic(base_url=model.url, api_key="none") as base:
        client = chat.wrap(base, window=Window(tokens=20_000))

        def say(content: Any) -> int:
            client.messages.create(
                model="m", max_tokens=9, messages=[{"role": "user", "content": content}]
            )
            return len(model.requests[-1].messages)

        for number in range(5):
            say(f"question {number}")
        model.script(Reply.tool_call("screenshot", x=1))
        say("take a shot")
        result = tool_result(anthropic_image())["content"]
        result[0]["tool_use_id"] = chat.read()[-1]["content"][0]["id"]
        say(result)
        assert 765 < chat.turns()[-1].tokens < 1000
        assert say("and now?") == 5 * 2 + 4 + 1
