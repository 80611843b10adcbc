"""The model server as Google's client sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.genai import Client, errors, types

from tests.integrations.google.talking import ask, model_said, said, stream, user, weather
from turnstore.testing import Reply, ToolCall

if TYPE_CHECKING:
    from turnstore.testing import ModelServer

TALK = [user("My name is Ada."), model_said("Hello Ada."), user("What is my name?")]
CALL = {"functionCall": {"name": "f", "args": {}}}
RESULT = {"functionResponse": {"name": "f", "response": {"a": 1, "b": "x"}}}


def test_it_knows_what_the_conversation_says(base: Client, model: ModelServer) -> None:
    assert said(ask(base, TALK)) == "Your name is Ada."
    assert said(stream(base, TALK)) == "Your name is Ada."
    assert said(ask(base, "Hello")) == "I see 1 message; the last one says: Hello"
    result = said(ask(base, [user("q"), model_said(CALL), user(RESULT)]))
    assert result == 'The tool says: {"a": 1, "b": "x"}'
    assert [request.path.rpartition(":")[2] for request in model.requests] == [
        "generateContent",
        "streamGenerateContent",
        "generateContent",
        "generateContent",
    ]
    assert model.requests[0].path.endswith("/models/m:generateContent")
    assert model.requests[0].messages == TALK


def test_it_knows_what_the_instructions_say(base: Client, model: ModelServer) -> None:
    told = ["Be brief.", "My name is Ada."]
    for say in (ask, stream):
        assert said(say(base, "What is my name?", system_instruction=told)) == "Your name is Ada."
        assert model.requests[-1].instructions == "Be brief.\nMy name is Ada."


def test_a_reply_has_what_geminis_has(base: Client, model: ModelServer) -> None:
    model.script(Reply("Hi", tool_calls=[ToolCall(name="f", arguments={"x": 1}, id="c")]))
    reply = ask(base, "Hello")
    text, call = reply.candidates[0].content.parts
    assert (text.text, text.thought_signature) == ("Hi", None)
    assert call.function_call == types.FunctionCall(id="c", name="f", args={"x": 1})
    assert call.thought_signature == b"thoughts of call 1"
    assert (reply.model_version, reply.response_id) == ("m", "response-1")
    assert reply.usage_metadata.total_token_count > reply.usage_metadata.prompt_token_count


@pytest.mark.parametrize("say", [ask, stream])
def test_the_sdk_calls_functions_by_itself(base: Client, model: ModelServer, say: Any) -> None:
    model.script(
        Reply("I look.", tool_calls=[ToolCall(name="weather", arguments={"city": "Rome"})])
    )
    assert said(say(base, "Warm?", tools=[weather])).endswith("The tool says: 21 degrees in Rome")


@pytest.mark.parametrize(
    "contents, why",
    [
        ([{"role": "assistant", "parts": [{"text": "a"}]}], "the roles are user and model"),
        ([user()], "must not be empty"),
        ([user("a", "")], "must not be empty"),
        ([user("a"), model_said(CALL), user("b")], "a response for each"),
        ([user("a"), model_said(CALL, CALL), user(RESULT)], "a response for each"),
        ([user("a"), user(RESULT)], "no other has any"),
        ([user("a"), model_said(CALL)], "no response for the function calls"),
        ([user(CALL)], "the model's"),
    ],
)
def test_what_it_refuses(base: Client, contents: Any, why: str) -> None:
    options = types.HttpOptions(extra_body={"contents": contents})
    config = types.GenerateContentConfig(http_options=options)
    with pytest.raises(errors.ClientError, match=why) as caught:
        base.models.generate_content(model="m", contents="x", config=config)
    assert (caught.value.code, caught.value.status) == (400, "INVALID_ARGUMENT")


def test_errors(base: Client, model: ModelServer) -> None:
    for status, name in ((429, "RESOURCE_EXHAUSTED"), (500, "INTERNAL")):
        model.script(Reply.error(status, "not now"))
        with pytest.raises(errors.APIError, match="not now") as caught:
            ask(base, "Hello")
        assert (caught.value.code, caught.value.status) == (status, name)


def test_errors_of_the_embedder(base: Client, model: ModelServer) -> None:
    model.script(Reply.error(429, "not now"), to="embedding")
    with pytest.raises(errors.APIError, match="not now") as caught:
        base.models.embed_content(model="m", contents="Hi")
    assert (caught.value.code, caught.value.status) == (429, "RESOURCE_EXHAUSTED")
    assert base.models.embed_content(model="m", contents="Hi").embeddings
