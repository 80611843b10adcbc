"""Anthropic's clients with a memory: what is kept, and what is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anthropic
import pytest
from anthropic import (
    Anthropic,
)

from tests.integrations.anthropic.talking import Json, ask, said, user
from turnstore.context import Context
from turnstore.testing import ModelServer, Reply, ToolCall

if TYPE_CHECKING:
    from turnstore import Conversation

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]


THOUGHTS = [
    {"type": "thinking", "thinking": "Let me see", "signature": "EqQBCkYIBxgC+/=="},
    {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4a"},
    {"type": "text", "text": "Rome", "citations": [{"type": "char_location", "cited_text": "R"}]},
    {"type": "tool_use", "id": "t1", "name": "w", "input": {"a": [1.0, 2**70, {"x": None}]}},
]


@pytest.mark.parametrize("stream", [False, True])
def test_blocks_are_stored_and_sent_as_they_came(
    ada: Any, chat: Conversation, model: ModelServer, *, stream: bool
) -> None:
    model.script(Reply(fields={"content": THOUGHTS}, finish="tool_use"))
    if stream:
        with ada.messages.stream(model="m", max_tokens=9, messages=[user("Hi")]) as events:
            reply = events.get_final_message()
    else:
        reply = ask(ada, "Hi")
    assert chat.read()[1] == {"role": "assistant", "content": THOUGHTS}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "21"}
    # A loop that is written by hand sends what the SDK answered back, and is recognised.
    again = {"role": "assistant", "content": reply.content}
    assert said(ask(ada, "Hi", again, user([result]))) == "The tool says: 21"
    assert model.requests[-1].messages[1]["content"] == THOUGHTS
    assert len(model.requests[-1].messages) == 3
    (turn,) = chat.turns().__iter__()
    assert [m["role"] for m in turn.messages] == ["user", "assistant", "user", "assistant"]


def test_what_is_known_of_a_turn(ada: Any, chat: Conversation, model: ModelServer) -> None:
    container = {"id": "container_1", "expires_at": "2026-12-01T00:00:00Z"}
    for stream in (False, True):
        model.script(Reply("Hi", fields={"container": container}))
        reply = ask(ada, "Hello", stream=stream)
        if stream:
            assert [event.type for event in reply][-1] == "message_stop"
        turn = chat.turns(1).__iter__().__next__()
        usage = turn.meta.pop("usage")
        assert usage["input_tokens"] > 0
        assert usage["output_tokens"] > 0
        assert turn.meta.pop("response_id").startswith("msg_")
        assert turn.meta == {"model": "m", "finish_reason": "end_turn", "container": "container_1"}
        assert turn.format == "anthropic.messages"
    ask(ada, "Go on", container="container_1")
    assert model.requests[-1].body["container"] == "container_1"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "reply, kept",
    [
        pytest.param(Reply("Once", finish="stop_sequence"), True, id="stop sequence"),
        pytest.param(Reply("Once upon", finish="max_tokens"), True, id="cut text"),
        pytest.param(Reply("No.", finish="refusal"), False, id="refusal"),
        pytest.param(Reply("x", finish="compaction"), False, id="compaction"),
        pytest.param(Reply("x", finish="thing_of_2031"), False, id="unknown"),
        pytest.param(Reply(), False, id="empty"),
        pytest.param(
            Reply("x", tool_calls=[ToolCall(name="w")], finish="max_tokens"), False, id="cut call"
        ),
        pytest.param(
            Reply(fields={"content": THOUGHTS[:1]}, finish="max_tokens"), False, id="cut thought"
        ),
    ],
)
def test_which_replies_are_kept(  # noqa: PLR0913 - a table
    ada: Any, chat: Conversation, model: ModelServer, reply: Reply, *, kept: bool, stream: bool
) -> None:
    model.script(reply)
    answer = ask(ada, "Hi", stream=stream)
    if stream:
        list(answer)
    assert bool(chat.read()) is kept


def test_a_stream_without_message_stop_is_not_saved(
    ada: Any, chat: Conversation, model: ModelServer
) -> None:
    delta = {"type": "text_delta", "text": "Hi"}
    events: list[Json] = [
        {"type": "message_start", "message": {"id": "m", "content": [], "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
    ]
    model.script(Reply(events=events), Reply(events=[*events, {"type": "message_stop"}]))
    list(ask(ada, "one", stream=True))
    assert chat.read() == []
    list(ask(ada, "two", stream=True))
    assert chat.read()[1]["content"] == [{"type": "text", "text": "Hi"}]


def test_an_error_in_a_stream_saves_nothing(
    ada: Any, chat: Conversation, model: ModelServer
) -> None:
    model.script(Reply("Hi you", finish="error"))
    with pytest.raises(anthropic.APIStatusError):
        list(ask(ada, "Hello", stream=True))
    assert chat.read() == []


def test_words_put_into_the_models_mouth_are_one_message_with_its_own(
    ada: Any, chat: Conversation, model: ModelServer
) -> None:
    for stream in (False, True):
        model.script(Reply(" B) Helios"))
        reply = ask(ada, "Sun?", {"role": "assistant", "content": "The answer is"}, stream=stream)
        if stream:
            list(reply)
        assert model.requests[-1].messages[-1]["content"] == "The answer is"
        turn = chat.turns(1).__iter__().__next__()
        assert turn.messages == [
            user("Sun?"),
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "The answer is B) Helios"}],
            },
        ]


def test_a_paused_turn_goes_on(ada: Any, chat: Conversation, model: ModelServer) -> None:
    searching = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    paused = Reply(fields={"content": [searching]}, finish="pause_turn")
    for go_on in ("nothing new", "all of it"):
        chat.clear()
        model.script(paused, Reply("Found it"))
        reply = ask(ada, "Search")
        if go_on == "nothing new":
            ask(ada)
        else:
            ask(ada, "Search", {"role": "assistant", "content": reply.content})
        assert model.requests[-1].messages == [
            user("Search"),
            {"role": "assistant", "content": [searching]},
        ]
        (turn,) = chat.turns().__iter__()
        assert [m["role"] for m in turn.messages] == ["user", "assistant", "assistant"]


def test_what_a_context_adds_is_part_of_the_option_system(
    chat: Conversation, base: Anthropic, model: ModelServer
) -> None:
    client = chat.wrap(base, context=Context(sources=[lambda _: ["It is nine."]]))
    cached = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    body: Json = {}
    for system in ({}, {"system": "Be brief."}, {"system": cached}):
        ask(client, "When?", **system)
        body = model.requests[-1].body
        assert "It is nine." in body["system"][-1]["text"]
        assert len(body["system"]) == 1 + bool(system)
        assert "nine" not in str(body["messages"])
    assert body["system"][0] == cached[0]
    assert "nine" not in str(chat.read())


def test_messages_of_the_role_system(ada: Any, chat: Conversation, model: ModelServer) -> None:
    policy = {"role": "system", "content": "Be brief."}
    ask(ada, "Hello")
    ask(ada, policy, user("Hi"))
    assert model.requests[-1].body["system"] == [{"type": "text", "text": "Be brief."}]
    assert "system" not in {m["role"] for m in model.requests[-1].messages}
    ask(ada, user("Hi"), policy, user("Again"))
    assert [m["role"] for m in model.requests[-1].messages][-3:] == ["user", "system", "user"]
    assert "Be brief." not in str(chat.read())


def test_a_message_of_the_sdk_as_a_message(ada: Any, model: ModelServer) -> None:
    reply = ask(ada, "My name is Ada.")
    assert said(ask(ada, "My name is Ada.", reply.model_dump(), user("What is my name?"))) == (
        "Your name is Ada."
    )
    assert len(model.requests[-1].messages) == 3


def test_generators_and_empty_texts(ada: Any, chat: Conversation, model: ModelServer) -> None:
    content = [{"type": "text", "text": ""}, {"type": "text", "text": "Hi"}]
    model.script(Reply(fields={"content": content}))
    ada.messages.create(model="m", max_tokens=9, messages=(user(text) for text in ("a", "b")))
    assert [m["content"] for m in chat.read()] == ["a", "b", content]
    ask(ada, "And?")  # the server refuses an empty text, as Anthropic does
    assert model.requests[-1].messages[2]["content"] == content[1:]
