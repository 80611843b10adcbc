"""What LiteLLM's replies leave in the memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import litellm
import pytest

from tests.integrations.litellm.talking import CLAUDE, OPENAI, Json, asked, at, said, user
from turnstore.testing import Reply, ToolCall

if TYPE_CHECKING:
    from turnstore import Conversation
    from turnstore.testing import ModelServer

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]

THOUGHTS = [
    {"type": "thinking", "thinking": "Let me see", "signature": "EqQBCkYIBxgC+/=="},
    {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4a"},
    {"type": "thinking", "thinking": "More of it", "signature": "XX+/=="},
]
CALL = {"type": "tool_use", "id": "t1", "name": "w", "input": {"a": [1.0, 2**70, {"x": None}]}}


@pytest.mark.parametrize("stream", [False, True])
def test_thoughts_and_their_signatures_are_kept_and_sent_back(
    chat: Conversation, model: ModelServer, *, stream: bool
) -> None:
    told = chat.wrap(litellm.completion)
    content = [*THOUGHTS, {"type": "text", "text": "Rome"}, CALL]
    model.script(Reply(fields={"content": content}, finish="tool_use"))
    tools = [{"type": "function", "function": {"name": "w", "parameters": {}}}]
    reply = told(**asked(model, "Hi", name=CLAUDE, tools=tools, stream=stream))
    if stream:
        list(reply)
    message = chat.read()[1]
    assert message["thinking_blocks"] == THOUGHTS
    assert message["content"] == "Rome"
    assert message["reasoning_content"] == "Let me seeMore of it"
    assert message["tool_calls"] == [
        {
            "id": "t1",
            "type": "function",
            "function": {
                "name": "w",
                "arguments": '{"a": [1.0, 1180591620717411303424, {"x": null}]}',
            },
        }
    ]
    result = {"role": "tool", "tool_call_id": "t1", "content": "21"}
    assert said(told(**asked(model, result, name=CLAUDE, tools=tools))) == "The tool says: 21"
    assert model.requests[-1].messages[1]["content"] == content
    (turn,) = chat.turns()
    assert [m["role"] for m in turn.messages] == ["user", "assistant", "tool", "assistant"]


REASONING = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "x+/="}
EXTRAS: Json = {
    "reasoning_content": "Let me see",
    "reasoning_items": [REASONING],
    "annotations": [{"type": "url_citation", "url_citation": {"url": "u", "title": "t"}}],
    "images": [{"type": "image_url", "image_url": {"url": "data:,"}, "index": 0}],
    "provider_specific_fields": {
        "thought_signatures": ["c2ln+/="],
        "grounding": {"a": [1.0, None]},
    },
}


@pytest.mark.parametrize("stream", [False, True])
def test_what_else_litellm_knows_of_a_message_is_kept(
    chat: Conversation, model: ModelServer, *, stream: bool
) -> None:
    told = chat.wrap(litellm.completion)
    message = {"role": "assistant", "content": "Rome", **EXTRAS}
    model.script(
        Reply(
            body={
                "id": "c",
                "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            },
            events=[
                {"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
                {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            ],
        )
    )
    reply = told(**asked(model, "Where?", stream=stream))
    if stream:
        list(reply)
    assert chat.read()[1] == message
    told(**asked(model, "And?"))
    assert model.requests[-1].messages[1] == message


def test_a_tool_call_keeps_what_its_provider_signed_it_with(
    chat: Conversation, model: ModelServer
) -> None:
    told = chat.wrap(litellm.completion)
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "w", "arguments": "{}"},
        "provider_specific_fields": {"thought_signature": "c2ln+/="},
    }
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "finish_reason": "tool_calls"}
    events = [
        {"choices": [{"index": 0, "delta": {**message, "tool_calls": [{"index": 0, **call}]}}]},
        {"choices": [{**choice, "delta": {}}]},
    ]
    model.script(Reply(body={"id": "c", "choices": [{**choice, "message": message}]}))
    told(**asked(model, "one"))
    assert chat.read()[1] == message
    chat.clear()
    model.script(Reply(events=events))
    list(told(**asked(model, "two", stream=True)))
    assert chat.read()[1] == message


def test_a_context_of_citations_is_folded_from_a_stream(
    chat: Conversation, model: ModelServer
) -> None:
    told = chat.wrap(litellm.completion)
    cited = [{"type": "char_location", "cited_text": text} for text in ("R", "S")]
    content = [{"type": "text", "text": "Rome", "citations": cited}]
    model.script(Reply(fields={"content": content}))
    list(told(**asked(model, "Hi", name=CLAUDE, stream=True)))
    assert chat.read()[1]["provider_specific_fields"] == {"citations": [cited]}


def test_what_is_known_of_a_turn(chat: Conversation, model: ModelServer) -> None:
    told = chat.wrap(litellm.completion)
    for stream in (False, True):
        model.script(Reply("Hi"))
        reply = told(**asked(model, "Hello", stream=stream, stream_options={"include_usage": True}))
        if stream:
            list(reply)
        meta = chat.turns(1)[0].meta
        assert meta.pop("usage")["total_tokens"] > 0
        assert meta.pop("response_id").startswith("chatcmpl-")
        assert meta == {"model": "gpt-4o", "finish_reason": "stop"}


def native(word: str) -> Reply:
    """A reply with a finish reason that LiteLLM gives out as `stop`."""
    return Reply("Hi", finish=word)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "reply, kept",
    [
        pytest.param(Reply("Once upon", finish="length"), True, id="cut text"),
        pytest.param(native("eos"), True, id="a provider's word for stop"),
        pytest.param(native("MAX_TOKENS"), True, id="a provider's word for length"),
        pytest.param(native("network_error"), False, id="a failure"),
        pytest.param(native("MALFORMED_FUNCTION_CALL"), False, id="a call that is none"),
        pytest.param(native("insufficient_system_resource"), False, id="no room"),
        pytest.param(Reply("x", finish="content_filter"), False, id="filter"),
        pytest.param(Reply(refusal="No."), False, id="refusal"),
        pytest.param(
            Reply("x", fields={"provider_specific_fields": {"refusal": "No."}}),
            False,
            id="refusal elsewhere",
        ),
        pytest.param(Reply(""), False, id="empty"),
        pytest.param(Reply(tool_calls=[ToolCall(name="w")], finish="length"), False, id="cut call"),
    ],
)
def test_which_replies_are_kept(
    chat: Conversation, model: ModelServer, reply: Reply, *, kept: bool, stream: bool
) -> None:
    model.script(reply)
    answer = chat.wrap(litellm.completion)(**asked(model, "Hi", stream=stream))
    if stream:
        list(answer)
    assert bool(chat.read()) is kept


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "reply, kept",
    [
        pytest.param(Reply("Once upon", finish="max_tokens"), True, id="cut text"),
        pytest.param(Reply("Once", finish="refusal"), False, id="refusal"),
        pytest.param(Reply(""), False, id="empty"),
        pytest.param(
            Reply(fields={"content": [{**THOUGHTS[0], "signature": ""}]}, finish="max_tokens"),
            False,
            id="cut thought",
        ),
        pytest.param(
            Reply(fields={"content": THOUGHTS[:1]}, finish="max_tokens"), True, id="whole thought"
        ),
    ],
)
def test_which_replies_of_anthropic_are_kept(
    chat: Conversation, model: ModelServer, reply: Reply, *, kept: bool, stream: bool
) -> None:
    model.script(reply)
    answer = chat.wrap(litellm.completion)(**asked(model, "Hi", name=CLAUDE, stream=stream))
    if stream:
        list(answer)
    assert bool(chat.read()) is kept


@pytest.mark.parametrize("stream", [False, True])
def test_responses_of_another_provider(
    chat: Conversation, model: ModelServer, *, stream: bool
) -> None:
    """LiteLLM makes them of chat completions."""
    told: Any = chat.wrap(litellm.responses)
    for words in ("My name is Ada.", "What is my name?"):
        reply = told(words, **at(model, CLAUDE), stream=stream)
        events: list[Any] = list(reply) if stream else []
        assert not stream or events[-1].type == "response.completed"
    assert len(chat.turns()) == 2
    assert chat.read()[-1]["content"][0]["text"] == "Your name is Ada."
    assert model.requests[-1].path == "/v1/messages"


@pytest.mark.parametrize("name", [OPENAI, CLAUDE])
def test_a_reply_that_is_sent_again_is_recognised(
    chat: Conversation, model: ModelServer, name: str
) -> None:
    told = chat.wrap(litellm.completion)
    content = [*THOUGHTS, {"type": "text", "text": "Rome"}]
    model.script(Reply("Rome", fields={} if name == OPENAI else {"content": content}), Reply("x"))
    reply = told(**asked(model, "Where?", name=name)).choices[0].message
    told(**asked(model, "Where?", reply, "And when?", name=name))
    assert len(model.requests[-1].messages) == 3
    assert [len(turn.messages) for turn in chat.turns()] == [2, 2]


def test_a_reply_of_no_known_shape_saves_nothing(
    chat: Conversation, caplog: pytest.LogCaptureFixture
) -> None:
    mocked = litellm.ModelResponse(choices=[])
    told = chat.wrap(litellm.completion)
    told("gpt-4o", [user("Hi")], mock_response=mocked)
    assert chat.read() == []
    assert "not saved" in caplog.text
