"""A turn of one's own stores of an answer of the SDK what a wrapped client stores of it."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
from openai import OpenAI, pydantic_function_tool
from pydantic import BaseModel

from turnstore.testing import ModelServer, Reply, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnstore import Conversation, PendingTurn, Store, Turn

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]

Json = dict[str, Any]


class Birth(BaseModel):
    """An object of the SDK's that is not JSON."""

    day: date


BIRTH = '{"day": "1815-12-10"}'
CALL = ToolCall(name="Birth", arguments=BIRTH, id="call_1")
TOOL: Any = pydantic_function_tool(Birth)
TOOL_OF_RESPONSES: Any = {"type": "function", "strict": True, **TOOL["function"]}


def create(client: OpenAI, messages: Any, *, tools: bool) -> Any:
    more: Json = {"tools": [TOOL]} if tools else {}
    return client.chat.completions.create(model="m", messages=messages, **more)


def parse(client: OpenAI, messages: Any, *, tools: bool) -> Any:
    more: Json = {"tools": [TOOL]} if tools else {"response_format": Birth}
    return client.chat.completions.parse(model="m", messages=messages, **more)


def stream(client: OpenAI, messages: Any, *, tools: bool) -> Any:
    more: Json = {"tools": [TOOL]} if tools else {"response_format": Birth}
    usage: Json = {"include_usage": True}
    asked: Json = {"model": "m", "messages": messages, "stream_options": usage, **more}
    with client.chat.completions.stream(**asked) as events:
        return events.get_final_completion()


def respond(client: OpenAI, messages: Any, *, tools: bool) -> Any:
    more: Json = {"tools": [TOOL_OF_RESPONSES]} if tools else {}
    return client.responses.create(model="m", input=messages, **more)


def respond_parsed(client: OpenAI, messages: Any, *, tools: bool) -> Any:
    more: Json = {"tools": [TOOL_OF_RESPONSES]} if tools else {"text_format": Birth}
    return client.responses.parse(model="m", input=messages, **more)


def respond_streamed(client: OpenAI, messages: Any, *, tools: bool) -> Any:
    more: Json = {"tools": [TOOL_OF_RESPONSES]} if tools else {"text_format": Birth}
    with client.responses.stream(model="m", input=messages, **more) as events:
        return events.get_final_response()


CHAT = [create, parse, stream]
RESPONSES = [respond, respond_parsed, respond_streamed]
WAYS = [("openai.chat", way) for way in CHAT] + [("openai.responses", way) for way in RESPONSES]


@pytest.fixture
def chat(make_store: Callable[..., Store]) -> Conversation:
    """Give an empty conversation."""
    return make_store().conversation("ada")


def stored(chat: Conversation, ask: Callable[[OpenAI, ModelServer], None]) -> Turn:
    """Give what is stored when a server that was asked nothing before is asked."""
    with ModelServer() as model, OpenAI(base_url=model.base_url, api_key="none") as client:
        ask(client, model)
    (turn,) = chat.turns()
    chat.clear()
    return turn


@pytest.mark.parametrize("tools", [False, True], ids=["text", "tools"])
@pytest.mark.parametrize("format_, way", WAYS, ids=[way.__name__ for _, way in WAYS])
def test_it_is_the_same(chat: Conversation, format_: str, way: Any, *, tools: bool) -> None:
    scripted = Reply(tool_calls=[CALL]) if tools else Reply(BIRTH)
    question = {"role": "user", "content": "When was I born?"}

    def wrapped(client: OpenAI, model: ModelServer) -> None:
        model.script(scripted)
        way(chat.wrap(client), [question], tools=tools)

    def by_hand(client: OpenAI, model: ModelServer) -> None:
        model.script(scripted)
        with chat.turn(question, format=format_) as turn:
            turn.reply(way(client, turn.messages, tools=tools))

    one, other = stored(chat, wrapped), stored(chat, by_hand)
    assert other.messages == one.messages
    assert other.meta == one.meta
    assert other.meta.keys() == {"model", "finish_reason", "usage", "response_id"}


def test_what_is_appended_of_it_is_the_same(chat: Conversation) -> None:
    def appended(client: OpenAI, model: ModelServer) -> None:
        model.script(Reply(tool_calls=[CALL]))
        completion = stream(client, [{"role": "user", "content": "Hi"}], tools=True)
        chat.append(["Hi", completion.choices[0].message])

    _, said = stored(chat, appended).messages
    call = {"name": "Birth", "arguments": BIRTH}
    assert said == {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": call}],
    }


def test_what_the_caller_gives_as_a_dict_stays_as_it_is(chat: Conversation) -> None:
    said = {"role": "assistant", "content": "a", "parsed": {"a": 1}, "audio": None}
    with chat.turn("Hi") as turn:
        turn.reply(said)
    (saved,) = chat.turns()
    assert (saved.messages[1], saved.meta) == (said, {})


class TestTheMeta:
    def ask(self, client: OpenAI, turn: PendingTurn) -> Any:
        return create(client, turn.messages, tools=False)

    def test_what_the_caller_puts_there_stays(self, chat: Conversation, client: OpenAI) -> None:
        with chat.turn("Hi", meta={"model": "mine"}) as turn:
            turn.reply(self.ask(client, turn))
            turn.meta["finish_reason"] = "mine, too"
            turn.reply(self.ask(client, turn))
        (saved,) = chat.turns()
        assert (saved.meta["model"], saved.meta["finish_reason"]) == ("mine", "mine, too")
        assert saved.meta["response_id"] == "chatcmpl-2"

    def test_what_several_answers_used_adds_up(
        self, chat: Conversation, client: OpenAI, model: ModelServer
    ) -> None:
        model.script(Reply(tool_calls=[CALL]), Reply("1815."))
        used = []
        with chat.turn("Hi") as turn:
            for result in (None, {"role": "tool", "tool_call_id": "call_1", "content": "1815"}):
                if result:
                    turn.reply(result)
                completion = self.ask(client, turn)
                used.append(completion.usage.total_tokens)
                turn.reply(completion)
        (saved,) = chat.turns()
        assert saved.meta["usage"]["total_tokens"] == sum(used)
        assert saved.meta["finish_reason"] == "stop"

    def test_a_block_that_failed_leaves_nothing_there(
        self, chat: Conversation, client: OpenAI
    ) -> None:
        turn = chat.turn("Hi", meta={"by": "ada"})
        with pytest.raises(KeyError), turn:  # noqa: PT012 - its block fails, not its end
            turn.reply(self.ask(client, turn))
            raise KeyError
        with turn:
            assert turn.meta == {"by": "ada"}
            turn.reply("Hello.")
        assert chat.turns()[0].meta == {"by": "ada"}

    def test_what_is_not_json_is_left_out(
        self, chat: Conversation, client: OpenAI, caplog: pytest.LogCaptureFixture
    ) -> None:
        with chat.turn("Hi") as turn:
            completion = self.ask(client, turn)
            completion.model = object()
            turn.reply(completion)
        (saved,) = chat.turns()
        assert (saved.meta, len(saved.messages)) == ({}, 2)
        assert "saved without its meta, which is not JSON" in caplog.text
