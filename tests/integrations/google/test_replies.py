"""Google's client with a memory: what is kept, and what is sent."""

from __future__ import annotations

import base64
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from google.genai import Client, errors, types

from tests.integrations.google.talking import ask, body, model_said, said, stream, user
from turnstore.context import Context
from turnstore.testing import ModelServer, Reply, ToolCall

if TYPE_CHECKING:
    from turnstore import Conversation

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]

# What an SDK that is older than the model makes of this lacks the newer fields.
THOUGHTS = [
    {"text": "Let me see", "thought": True},
    {
        "functionCall": {"name": "f", "args": {"a": [1.0, 2**70, {"x": None}]}, "newer": 1},
        "thoughtSignature": "EqQBCg+//w==",
    },
    {"functionCall": {"name": "f", "args": {}, "id": "2"}, "newField": {"x": 1}},
]
RESULTS = [{"functionResponse": {"name": "f", "response": {"result": n}}} for n in ("1", "2")]


@pytest.mark.parametrize("say", [ask, stream])
def test_parts_are_stored_and_sent_as_they_came(
    ada: Any, chat: Conversation, model: ModelServer, say: Any
) -> None:
    model.script(Reply(fields={"parts": THOUGHTS}))
    reply = say(ada, "Hi")
    assert chat.read()[1]["parts"] == THOUGHTS
    contents = [one.candidates[0].content for one in (reply if say is stream else [reply])]
    # A loop that is written by hand sends what the SDK answered back, and is recognised.
    again = [types.UserContent("Hi"), *contents, types.Content(**user(*RESULTS))]
    say(ada, again)
    question, calls, results = model.requests[-1].messages
    assert (question, calls["parts"], results) == (user("Hi"), THOUGHTS, user(*RESULTS))
    (turn,) = chat.turns().__iter__()
    assert [message["role"] for message in turn.messages] == ["user", "model"] * 2


@pytest.mark.parametrize("say", [ask, stream])
def test_what_is_known_of_a_turn(ada: Any, chat: Conversation, say: Any) -> None:
    say(ada, "Hello")
    (turn,) = chat.turns().__iter__()
    usage = turn.meta.pop("usage")
    assert usage["promptTokenCount"] > 0
    assert usage["totalTokenCount"] > usage["promptTokenCount"]
    assert turn.meta == {"model": "m", "finish_reason": "STOP", "response_id": "response-1"}
    assert turn.format == "google.contents"


@pytest.mark.parametrize("say", [ask, stream])
@pytest.mark.parametrize(
    "reply, kept",
    [
        pytest.param(Reply("Once upon", finish="MAX_TOKENS"), True, id="cut text"),
        pytest.param(Reply("x", tool_calls=[ToolCall(name="f")]), True, id="call"),
        pytest.param(
            Reply("x", tool_calls=[ToolCall(name="f")], finish="MAX_TOKENS"), False, id="cut call"
        ),
        pytest.param(Reply(), False, id="empty"),
        pytest.param(Reply(""), False, id="empty text"),
        pytest.param(Reply(refusal="No."), False, id="refusal"),
        pytest.param(
            Reply(fields={"parts": [{"text": "hm", "thought": True}]}), False, id="thought alone"
        ),
        *(
            pytest.param(Reply("x", finish=reason.value), False, id=reason.value)
            for reason in types.FinishReason
            if reason.value not in {"STOP", "MAX_TOKENS"}
        ),
    ],
)
def test_which_replies_are_kept(  # noqa: PLR0913 - a table
    ada: Any, chat: Conversation, model: ModelServer, say: Any, reply: Reply, *, kept: bool
) -> None:
    model.script(reply)
    say(ada, "Hi")
    assert bool(chat.read()) is kept


@pytest.mark.filterwarnings("ignore:THING_OF_2031 is not a valid:UserWarning")
@pytest.mark.parametrize("say", [ask, stream])
def test_a_finish_reason_that_nobody_knows(
    ada: Any, chat: Conversation, model: ModelServer, say: Any
) -> None:
    model.script(Reply("x", finish="THING_OF_2031"))
    say(ada, "Hi")
    assert chat.read() == []


def test_a_prompt_that_was_blocked(ada: Any, chat: Conversation, model: ModelServer) -> None:
    blocked = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
    model.script(Reply(body=blocked), Reply(events=[blocked]))
    assert ask(ada, "Hi").candidates is None
    (chunk,) = stream(ada, "Hi")
    assert chunk.prompt_feedback.block_reason == "PROHIBITED_CONTENT"
    assert chat.read() == []


def test_a_stream_without_a_finish_reason_is_not_saved(
    ada: Any, chat: Conversation, model: ModelServer
) -> None:
    chunks = [body("Hi", finish=None), body(" you", finish=None)]
    model.script(Reply(events=chunks), Reply(events=[*chunks, body(finish="STOP")]))
    assert said(stream(ada, "one")) == "Hi you"
    assert chat.read() == []
    stream(ada, "two")
    assert chat.read()[1] == model_said("Hi you")


def test_what_a_context_adds_is_part_of_the_system_instruction(
    chat: Conversation, base: Client, model: ModelServer
) -> None:
    client = chat.wrap(base, context=Context(sources=[lambda _: ["It is nine."]]))
    own = types.Content(parts=[types.Part(text="Be brief."), types.Part(text="Be kind.")])
    for system, count in ((None, 0), ("Be brief.", 1), (own, 2)):
        ask(client, "When?", system_instruction=system)
        parts = model.requests[-1].body["systemInstruction"]["parts"]
        assert [part["text"] for part in parts[:count]] == ["Be brief.", "Be kind."][:count]
        assert "It is nine." in parts[count]["text"]
        assert "nine" not in str(model.requests[-1].messages)
    assert "nine" not in str(chat.read())


def test_contents_with_the_role_system(ada: Any, chat: Conversation, model: ModelServer) -> None:
    policy = {"role": "system", "parts": [{"text": "Be brief."}]}
    for contents in ([policy, user("Hi")], [user("Hi"), policy, user("Again")]):
        ask(ada, contents)
        assert model.requests[-1].body["systemInstruction"] == {"parts": policy["parts"]}
        assert {m["role"] for m in model.requests[-1].messages} == {"user", "model"} - (
            set() if len(model.requests) > 1 else {"model"}
        )
    assert "Be brief." not in str(chat.read())


def test_images_and_several_contents(ada: Any, chat: Conversation, model: ModelServer) -> None:
    image = b"\x89PNG\xff\xfe"
    part = types.Part.from_bytes(data=image, mime_type="image/png")
    ask(ada, [part, "What is it?"])
    ask(ada, [user("And"), user("now?")])
    stored = chat.read()[0]["parts"][0]["inlineData"]
    assert stored["mimeType"] == "image/png"
    assert base64.urlsafe_b64decode(stored["data"]) == image
    assert model.requests[-1].messages[0]["parts"] == [
        {"inlineData": stored},
        {"text": "What is it?"},
    ]
    assert [message["parts"] for message in chat.read()[2:4]] == [
        [{"text": "And"}],
        [{"text": "now?"}],
    ]
    assert model.requests[-1].messages[-1] == user("And", "now?")


class TestHostileProviders:
    @pytest.mark.parametrize(
        "whole, kept",
        [
            pytest.param({}, None, id="nothing"),
            pytest.param({"candidates": None}, None, id="null"),
            pytest.param({"candidates": []}, None, id="no candidates"),
            pytest.param({"candidates": [{}]}, None, id="empty candidate"),
            pytest.param({"candidates": [{"finishReason": "STOP"}]}, None, id="no content"),
            pytest.param(
                {"candidates": [{"content": {}, "finishReason": "STOP"}]}, None, id="empty content"
            ),
            pytest.param(body(), None, id="empty parts"),
            pytest.param(body({}), None, id="empty part"),
            pytest.param(
                body({}, "a", {"text": None}), [{}, {"text": "a"}, {"text": None}], id="and another"
            ),
            pytest.param(
                {"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}]},
                [{"text": "a"}],
                id="no role",
            ),
            pytest.param(
                {
                    "candidates": [
                        {"content": model_said("a"), "finishReason": "STOP"},
                        {"content": model_said("b"), "finishReason": "SAFETY", "index": 1},
                    ]
                },
                [{"text": "a"}],
                id="several candidates",
            ),
            pytest.param(
                {"candidates": [body("a")["candidates"][0]], "usageMetadata": None, "more": [None]},
                [{"text": "a"}],
                id="odd fields",
            ),
        ],
    )
    @pytest.mark.parametrize("say", [ask, stream])
    def test_odd_shapes(  # noqa: PLR0913 - a table
        self, ada: Any, chat: Conversation, model: ModelServer, *, say: Any, whole: Any, kept: Any
    ) -> None:
        model.script(Reply(body=whole, events=[whole]))
        say(ada, "Hi")
        assert [message["parts"] for message in chat.read()[1:]] == ([kept] if kept else [])
        assert {message["role"] for message in chat.read()[1:]} <= {"model"}
        say(ada, "And?")  # the server refuses what Gemini would

    @pytest.mark.parametrize(
        "whole",
        [
            pytest.param({"candidates": "a"}, id="text for candidates"),
            pytest.param({"candidates": [{"content": "a", "finishReason": "STOP"}]}, id="content"),
            pytest.param(body(None), id="null for a part"),
            pytest.param(body({"text": 1}), id="a number for a text"),
            pytest.param(body({"text": "a", "thoughtSignature": "?"}), id="no base64"),
        ],
    )
    @pytest.mark.parametrize("say", [ask, stream])
    def test_what_is_nothing_like_a_reply_is_not_saved(
        self, ada: Any, chat: Conversation, model: ModelServer, say: Any, whole: Any
    ) -> None:
        model.script(Reply(body=whole, events=[body("b", finish=None), whole]))
        with suppress(Exception):  # most of it the SDK refuses
            say(ada, "Hi")
        assert chat.read() == []

    def test_an_error_in_a_stream(self, ada: Any, chat: Conversation, model: ModelServer) -> None:
        model.script(Reply("Hi you", finish="error"))
        with pytest.raises(errors.ServerError):
            stream(ada, "Hello")
        assert chat.read() == []

    def test_more_chunks_after_the_last_one(
        self, ada: Any, chat: Conversation, model: ModelServer
    ) -> None:
        usage = {"usageMetadata": {"totalTokenCount": 9}}
        model.script(Reply(events=[body("a"), usage, {"candidates": [{}]}]))
        stream(ada, "Hi")
        (turn,) = chat.turns().__iter__()
        assert (turn.messages[1], turn.meta["usage"]) == (
            model_said("a"),
            {"totalTokenCount": 9},
        )


class TestRepliesThatWereBrokenOff:
    """The SDK asks for the rest by itself, with a token."""

    FIRST: ClassVar[Any] = {
        **body("Half of ", finish="CONTINUATION", continuationToken="eA=="),
        "usageMetadata": {"totalTokenCount": 2},
    }
    REST: ClassVar[Any] = {**body("it"), "usageMetadata": {"totalTokenCount": 3}}

    @pytest.mark.parametrize("say", [ask, stream])
    def test_the_rest_is_part_of_the_turn(
        self, ada: Any, chat: Conversation, model: ModelServer, say: Any
    ) -> None:
        model.script(*(Reply(body=one, events=[one]) for one in (self.FIRST, self.REST)))
        assert said(say(ada, "Hi")) == "Half of it"
        (turn,) = chat.turns().__iter__()
        assert turn.messages == [user("Hi"), model_said("Half of it")]
        assert turn.meta == {"finish_reason": "STOP", "usage": {"totalTokenCount": 5}}
        first, rest = model.requests
        assert rest.body == {**first.body, "continuationToken": "eA=="}

    def test_without_the_rest_nothing_is_kept(
        self, ada: Any, chat: Conversation, model: ModelServer
    ) -> None:
        model.script(Reply(body=self.FIRST))
        ask(ada, "Hi", automatic_continuation=False)
        assert chat.read() == []
