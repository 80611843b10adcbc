"""A turn of one's own stores of an answer what a wrapped client stores; OpenAI's is in clients/."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from anthropic import Anthropic
from google import genai
from google.genai import types
from pydantic import BaseModel

from turnstore.testing import ModelServer, Reply, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnstore import Conversation, Turn

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]


class Sum(BaseModel):
    """What a model is asked for."""

    total: int


TOOL: Any = {"name": "sum", "input_schema": {"type": "object"}}
SAID = [
    pytest.param(Reply('{"total": 3}'), id="text"),
    pytest.param(Reply(tool_calls=[ToolCall(name="sum", arguments={"a": 1}, id="c1")]), id="tool"),
]


def _create(client: Anthropic, asked: Any) -> Any:
    return client.messages.create(**asked)


def _beta(client: Anthropic, asked: Any) -> Any:
    return client.beta.messages.create(**asked)


def _parse(client: Anthropic, asked: Any) -> Any:
    return client.messages.parse(output_format=Sum, **asked)


def _stream(client: Anthropic, asked: Any) -> Any:
    with client.messages.stream(**asked) as events:
        return events.get_final_message()


def stored(chat: Conversation, reply: Reply, ask: Callable[[ModelServer], None]) -> Turn:
    """Give what is stored when a server that was asked nothing before is asked."""
    with ModelServer() as model:
        model.script(reply)
        ask(model)
    (turn,) = chat.turns()
    chat.clear()
    return turn


@pytest.mark.parametrize("reply", SAID)
@pytest.mark.parametrize("way", [_create, _beta, _parse, _stream])
def test_of_anthropic(chat: Conversation, reply: Reply, way: Callable[..., Any]) -> None:
    asked: Any = {"model": "m", "max_tokens": 9, "tools": [TOOL]}
    question: Any = {"role": "user", "content": "A sum, please."}

    def wrapped(model: ModelServer) -> None:
        with Anthropic(base_url=model.url, api_key="none") as client:
            way(chat.wrap(client), {**asked, "messages": [question]})

    def by_hand(model: ModelServer) -> None:
        with (
            Anthropic(base_url=model.url, api_key="none") as client,
            chat.turn(question, format="anthropic.messages") as turn,
        ):
            turn.reply(way(client, {**asked, "messages": turn.messages}))

    one, other = stored(chat, reply, wrapped), stored(chat, reply, by_hand)
    assert other.messages == one.messages
    assert other.meta == one.meta
    assert other.meta.keys() == {"model", "finish_reason", "usage", "response_id"}
    assert "parsed_output" not in str(other.messages)


@pytest.mark.parametrize("reply", SAID)
def test_of_google(chat: Conversation, reply: Reply) -> None:
    question: Any = {"role": "user", "parts": [{"text": "A sum, please."}]}

    def ask(client: genai.Client, contents: Any) -> Any:
        return client.models.generate_content(model="m", contents=contents)

    def wrapped(model: ModelServer) -> None:
        options = types.HttpOptions(base_url=model.url)
        with genai.Client(api_key="none", http_options=options) as client:
            ask(chat.wrap(client), [question])

    def by_hand(model: ModelServer) -> None:
        options = types.HttpOptions(base_url=model.url)
        with (
            genai.Client(api_key="none", http_options=options) as client,
            chat.turn(question, format="google.contents") as turn,
        ):
            turn.reply(ask(client, turn.messages))

    one, other = stored(chat, reply, wrapped), stored(chat, reply, by_hand)
    assert other.messages == one.messages
    assert other.meta == one.meta
    assert other.meta.keys() == {"model", "finish_reason", "usage", "response_id"}
