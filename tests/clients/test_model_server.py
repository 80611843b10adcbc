"""The model server that users' tests run against, asked by the real openai package."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

import openai
import pytest
from openai import AsyncOpenAI, AzureOpenAI, OpenAI

from tests.clients.talking import BROKEN
from turnstore.clients._folding import ChatFolding
from turnstore.testing import ModelServer, Reply, ToolCall

HELLO: list[Any] = [{"role": "user", "content": "Hello"}]
TALK: list[Any] = [
    {"role": "user", "content": "My name is Ada."},
    {"role": "assistant", "content": "Hello Ada."},
    {"role": "user", "content": "What is my name?"},
]


def say(client: OpenAI, messages: list[Any]) -> str | None:
    completion = client.chat.completions.create(model="m", messages=messages)
    return completion.choices[0].message.content


class TestItsOwnAnswers:
    def test_it_knows_what_the_conversation_says(self, client: OpenAI) -> None:
        assert say(client, TALK) == "Your name is Ada."

    def test_the_newest_of_two_names_counts(self, client: OpenAI) -> None:
        renamed = [{"role": "user", "content": "Now my name is Grace."}, *TALK[1:]]
        assert say(client, TALK[:2] + renamed) == "Your name is Grace."

    def test_it_does_not_know_what_it_was_not_told(self, client: OpenAI) -> None:
        assert say(client, TALK[2:]) == "You have not told me your name."

    @pytest.mark.parametrize("role", ["system", "developer"])
    def test_it_knows_what_instructions_say(self, client: OpenAI, role: str) -> None:
        """As where something was recalled, or summed up."""
        told = {"role": role, "content": [{"type": "text", "text": "Known:\nMy name is Ada.\n"}]}
        assert say(client, [told, TALK[2]]) == "Your name is Ada."
        renamed = {"role": "user", "content": "My name is Grace."}
        assert say(client, [told, renamed, TALK[2]]) == "Your name is Grace."
        items: list[Any] = [{"role": role, "content": "My name is Ada."}, TALK[2]]
        assert client.responses.create(model="m", input=items).output_text == "Your name is Ada."

    def test_it_knows_what_instructions_beside_the_messages_say(
        self, client: OpenAI, model: ModelServer
    ) -> None:
        given: Any = {"model": "m", "instructions": "My name is Ada.", "input": TALK[2:]}
        assert client.responses.create(**given).output_text == "Your name is Ada."
        assert model.requests[-1].instructions == "My name is Ada."
        given["input"] = "Hello"
        response = client.responses.create(**given)
        assert response.output_text == "I see 1 message; the last one says: Hello"
        say(client, HELLO)
        assert model.requests[-1].instructions == ""

    def test_it_knows_what_somebody_is_called(self, client: OpenAI) -> None:
        told = {"role": "user", "content": "My cat is called Tom."}
        asked = {"role": "user", "content": "What is my cat called?"}
        assert say(client, [told, asked]) == "Your cat is called Tom."

    def test_anything_else_is_answered_by_a_count(self, client: OpenAI) -> None:
        assert say(client, HELLO) == "I see 1 message; the last one says: Hello"

    def test_a_response(self, client: OpenAI) -> None:
        response = client.responses.create(model="m", input=TALK)
        assert response.output_text == "Your name is Ada."
        assert client.responses.retrieve(response.id).output_text == "Your name is Ada."

    def test_streams_say_the_same(self, client: OpenAI) -> None:
        with client.chat.completions.stream(model="m", messages=TALK) as chat:
            assert chat.get_final_completion().choices[0].message.content == "Your name is Ada."
        with client.responses.stream(model="m", input=TALK) as response:
            assert response.get_final_response().output_text == "Your name is Ada."

    async def test_an_async_client(self, model: ModelServer) -> None:
        async with AsyncOpenAI(base_url=model.base_url, api_key="none") as client:
            response = await client.responses.create(model="m", input="Hello")
        assert response.output_text == "I see 1 message; the last one says: Hello"

    def test_azure(self, model: ModelServer) -> None:
        endpoint = model.base_url.removesuffix("/v1")
        with AzureOpenAI(azure_endpoint=endpoint, api_key="none", api_version="1") as client:
            assert say(client, TALK) == "Your name is Ada."

    def test_the_requests_are_kept(self, client: OpenAI, model: ModelServer) -> None:
        say(client, TALK)
        client.responses.create(model="m", input="Hello", extra_headers={"X-Mine": "1"})
        chat, response = model.requests
        assert chat.path == "/v1/chat/completions"
        assert chat.messages == TALK
        assert response.messages == HELLO
        assert response.headers["x-mine"] == "1"
        assert response.body == {"model": "m", "input": "Hello"}


class TestWhatItRefuses:
    CALL: ClassVar[Any] = {
        "id": "a",
        "type": "function",
        "function": {"name": "f", "arguments": "{}"},
    }

    @pytest.mark.parametrize(
        "messages",
        [
            pytest.param([{"role": "tool", "tool_call_id": "a", "content": "1"}], id="no call"),
            pytest.param([{"role": "assistant", "tool_calls": [CALL]}], id="no result"),
            pytest.param([{"role": "assistant", "tool_calls": [CALL]}, *HELLO], id="goes on"),
            pytest.param([{"role": "assistant", "tool_calls": None, "content": "x"}], id="null"),
        ],
    )
    def test_chat_messages(self, client: OpenAI, messages: list[Any]) -> None:
        with pytest.raises(openai.BadRequestError):
            say(client, messages)

    def test_a_response_without_its_tool_result(self, client: OpenAI) -> None:
        call: Any = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
        with pytest.raises(openai.BadRequestError):
            client.responses.create(model="m", input=[call, *HELLO])

    def test_a_tool_call_with_its_result(self, client: OpenAI) -> None:
        result = {"role": "tool", "tool_call_id": "a", "content": "21 degrees"}
        asked = {"role": "assistant", "tool_calls": [self.CALL]}
        assert say(client, [*HELLO, asked, result]) == "The tool says: 21 degrees"


class TestScript:
    def test_replies_come_in_their_order(self, client: OpenAI, model: ModelServer) -> None:
        model.script(Reply("one"), Reply("two"))
        assert [say(client, HELLO) for _ in range(2)] == ["one", "two"]
        assert say(client, TALK) == "Your name is Ada."

    def test_an_error_is_tried_again_by_the_sdk(self, model: ModelServer) -> None:
        model.script(Reply.error(500), Reply.error(429), Reply("fine"))
        with OpenAI(base_url=model.base_url, api_key="none", max_retries=2) as client:
            assert say(client, HELLO) == "fine"
        assert len(model.requests) == 3

    @pytest.mark.parametrize("stream", [False, True])
    def test_a_chat_reply(self, client: OpenAI, model: ModelServer, *, stream: bool) -> None:
        calls = [ToolCall(name="f", arguments={"a": 1}), ToolCall(name="g", arguments="x", id="i")]
        model.script(Reply("Well", tool_calls=calls, fields={"reasoning_content": "think hard"}))
        if stream:
            with client.chat.completions.stream(model="m", messages=HELLO) as helper:
                message: Any = helper.get_final_completion().choices[0].message
        else:
            created = client.chat.completions.create(model="m", messages=HELLO)
            assert created.choices[0].finish_reason == "tool_calls"
            message = created.choices[0].message
        assert message.content == "Well"
        assert message.reasoning_content == "think hard"
        first, second = message.tool_calls
        assert (first.function.name, first.function.arguments) == ("f", '{"a": 1}')
        assert (second.id, second.function.arguments) == ("i", "x")

    def test_a_custom_tool(self, client: OpenAI, model: ModelServer) -> None:
        reply = Reply(tool_calls=[ToolCall(name="sql", arguments="SELECT 1", custom=True)])
        model.script(reply, reply)
        whole: Any = client.chat.completions.create(model="m", messages=HELLO).choices[0].message
        assert whole.tool_calls[0].custom.input == "SELECT 1"
        folding = ChatFolding()
        for chunk in client.chat.completions.create(model="m", messages=HELLO, stream=True):
            folding.add(chunk.to_dict())
        (call,) = folding.reply()["choices"][0]["message"]["tool_calls"]
        assert call == whole.tool_calls[0].to_dict() | {"id": call["id"]}

    @pytest.mark.parametrize("stream", [False, True])
    def test_a_response(self, client: OpenAI, model: ModelServer, *, stream: bool) -> None:
        custom = ToolCall(name="sql", arguments="SELECT 1", custom=True)
        model.script(Reply("Well", tool_calls=[ToolCall(name="f"), custom]))
        if stream:
            with client.responses.stream(model="m", input="Hello") as helper:
                response: Any = helper.get_final_response()
        else:
            response = client.responses.create(model="m", input="Hello")
        text, function, tool = response.output
        assert text.content[0].text == "Well"
        assert (function.name, function.arguments) == ("f", "{}")
        assert tool.input == "SELECT 1"

    def test_reply_tool_call(self, client: OpenAI, model: ModelServer) -> None:
        model.script(Reply.tool_call("add", a=1))
        message: Any = client.chat.completions.create(model="m", messages=HELLO).choices[0].message
        assert message.tool_calls[0].function.arguments == '{"a": 1}'

    def test_a_refusal(self, client: OpenAI, model: ModelServer) -> None:
        model.script(Reply(refusal="No."), Reply(refusal="No."))
        message = client.chat.completions.create(model="m", messages=HELLO).choices[0].message
        assert (message.content, message.refusal) == (None, "No.")
        with client.responses.stream(model="m", input="Hello") as helper:
            item: Any = helper.get_final_response().output[0]
        assert item.content[0].refusal == "No."

    @pytest.mark.parametrize(
        "finish, status",
        [("length", "incomplete"), ("content_filter", "incomplete"), ("failed", "failed")],
    )
    def test_a_response_that_did_not_succeed(
        self, client: OpenAI, model: ModelServer, finish: str, status: str
    ) -> None:
        model.script(Reply("Wel", finish=finish), Reply("Wel", finish=finish))
        assert client.responses.create(model="m", input="Hello").status == status
        *_, last = client.responses.create(model="m", input="Hello", stream=True)
        assert last.type == f"response.{status}"

    def test_an_error_event(self, client: OpenAI, model: ModelServer) -> None:
        model.script(Reply("Wel", finish="error"))
        *_, last = client.responses.create(model="m", input="Hello", stream=True)
        assert last.type == "error"

    def test_a_truncated_stream_just_ends(self, client: OpenAI, model: ModelServer) -> None:
        model.script(Reply("Hello", ending="truncated"), Reply("Hello", ending="truncated"))
        chunks = list(client.chat.completions.create(model="m", messages=HELLO, stream=True))
        assert chunks[-1].choices[0].finish_reason is None
        events = list(client.responses.create(model="m", input="Hello", stream=True))
        assert events[-1].type == "response.output_item.done"

    def test_a_cut_stream_breaks(self, client: OpenAI, model: ModelServer) -> None:
        model.script(Reply("Hello", ending="cut"))
        stream = client.chat.completions.create(model="m", messages=HELLO, stream=True)
        assert next(iter(stream)).choices[0].delta.role == "assistant"
        with pytest.raises(BROKEN):
            list(stream)

    def test_a_cut_answer_breaks(self, client: OpenAI, model: ModelServer) -> None:
        model.script(Reply("Hello", ending="cut"))
        with pytest.raises(BROKEN):
            say(client, HELLO)

    def test_a_stream_waits_for_its_event(self, client: OpenAI, model: ModelServer) -> None:
        hold = threading.Event()
        model.script(Reply("Hello you there", hold=hold, pause=0.001, headers={"X-Mine": "1"}))
        texts = []
        for chunk in client.chat.completions.create(model="m", messages=HELLO, stream=True):
            text = chunk.choices[0].delta.content
            if text:
                texts.append(text)
                hold.set()
        assert texts == ["Hello", " you", " there"]

    def test_raw_events_and_bodies(self, client: OpenAI, model: ModelServer) -> None:
        choice = {"index": 7, "delta": {"content": "raw"}, "finish_reason": "eos"}
        model.script(Reply(events=[{"choices": [choice]}]), Reply(body={"choices": []}))
        (chunk,) = client.chat.completions.create(model="m", messages=HELLO, stream=True)
        assert chunk.choices[0].index == 7
        assert client.chat.completions.create(model="m", messages=HELLO).choices == []

    def test_usage_of_a_stream(self, client: OpenAI) -> None:
        options: Any = {"include_usage": True}
        *_, last = client.chat.completions.create(
            model="m", messages=HELLO, stream=True, stream_options=options
        )
        assert last.choices == []
        assert last.usage is not None


class TestServing:
    def test_other_endpoints(self, client: OpenAI, model: ModelServer) -> None:
        assert [model.id for model in client.models.list()] == ["test-model"]
        assert client.embeddings.create(model="m", input="a").data[0].embedding
        with pytest.raises(openai.NotFoundError):
            client.files.list()
        with pytest.raises(openai.NotFoundError):
            client.images.generate(prompt="a")
        assert model.requests == []

    def test_an_id_is_not_given_twice(self, client: OpenAI, model: ModelServer) -> None:
        ids: set[str] = set()
        for _ in range(2):
            ids.add(client.chat.completions.create(model="m", messages=HELLO).id)
            model.requests.clear()
        assert len(ids) == 2

    def test_it_has_no_address_before_it_runs(self) -> None:
        model = ModelServer()
        with pytest.raises(RuntimeError, match="not running"):
            _ = model.base_url
        model.close()
        url = model.start().base_url
        assert model.start().base_url == url
        model.close()

    def test_closing_breaks_what_is_open(self, model: ModelServer, client: OpenAI) -> None:
        model.script(Reply("Hello you", hold=threading.Event()))
        stream = client.chat.completions.create(model="m", messages=HELLO, stream=True)
        next(iter(stream))
        model.close()
        with pytest.raises(BROKEN):
            list(stream)
