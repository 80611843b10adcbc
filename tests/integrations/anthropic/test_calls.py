"""Anthropic's clients with a memory: calls of every kind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import anthropic
import pytest
from anthropic import (
    Anthropic,
    AsyncAnthropic,
    AsyncStream,
    Stream,
    beta_async_tool,
    beta_tool,
)
from pydantic import BaseModel

from tests.integrations.anthropic.talking import ask, said, user
from turnstore import AsyncStore, SaveError, Store
from turnstore.testing import ModelServer, Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from turnstore import Conversation

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]


class City(BaseModel):
    name: str


def test_the_type_stays_and_the_other_client_is_left_alone(
    chat: Conversation, base: Anthropic, model: ModelServer
) -> None:
    resources, before = base.messages, dict(vars(base))
    wrapped = chat.wrap(base)
    assert isinstance(wrapped, Anthropic)
    assert type(wrapped).__name__ == "Anthropic"
    assert vars(base) == before
    assert wrapped.messages is not resources
    ask(wrapped, "My name is Ada.")
    assert said(ask(base, "What is my name?")) == "You have not told me your name."
    wrapped.close()
    with wrapped:
        assert not base.is_closed()
    assert not base.is_closed()
    assert model.requests[0].headers["user-agent"] == model.requests[1].headers["user-agent"]
    with pytest.raises(TypeError, match="memory already"):
        chat.wrap(wrapped)


@pytest.mark.parametrize(
    "system", ["My name is Ada.", [{"type": "text", "text": "My name is Ada."}]]
)
def test_the_model_server_reads_the_system_prompt(
    base: Anthropic, model: ModelServer, system: Any
) -> None:
    reply = ask(base, "What is my name?", system=system)
    assert said(reply) == "Your name is Ada."
    assert model.requests[-1].instructions == "My name is Ada."


async def test_the_wrong_kind_of_store() -> None:
    nowhere = "redis://127.0.0.1:1"
    with Store.from_url(nowhere, name="t") as store, pytest.raises(TypeError, match="AsyncStore"):
        store.conversation("a").wrap(AsyncAnthropic(api_key="none"))
    async with AsyncStore.from_url(nowhere, name="t") as other:
        chat = other.conversation("a")
        with pytest.raises(TypeError, match="conversation of Store"):
            chat.wrap(Anthropic(api_key="none"))


def test_a_copy_with_other_options_keeps_the_memory(ada: Any, chat: Conversation) -> None:
    ask(ada.with_options(timeout=9), "My name is Ada.")
    seen = []

    def middleware(request: Any, call_next: Any) -> Any:
        seen.append(len(request.json["messages"]))
        return call_next(request)

    assert said(ask(ada.with_middleware(middleware), "What is my name?")) == "Your name is Ada."
    assert seen == [3]  # the caller's middleware sees what the model is sent
    assert len(chat.turns()) == 2


@pytest.mark.parametrize("text", ["é \u2028", "half \ud83d"], ids=["any text", "half a letter"])
def test_what_is_sent_is_what_the_sdk_would_send(
    ada: Any, base: Anthropic, chat: Conversation, model: ModelServer, text: str
) -> None:
    def past(text: str) -> list[Any]:
        blocks = [{"type": "text", "text": text}, {"type": "thing", "n": [2**63, 1.5, None]}]
        return [user(text), {"role": "assistant", "content": blocks}]

    chat.append(past(text), format="anthropic.messages")
    options = {"metadata": {"user_id": "é"}, "stop_sequences": ["x"]}
    ask(ada, "Hello", **options)
    ask(base, *past(text.replace("\ud83d", "\ufffd")), "Hello", **options)
    ours, sdks = model.requests
    assert ours.body == sdks.body
    assert ours.headers["content-type"] == sdks.headers["content-type"]


def test_an_option_that_is_no_json_is_refused_by_the_sdk(ada: Any, model: ModelServer) -> None:
    with pytest.raises(ValueError, match="JSON"):
        ask(ada, "Hello", extra_body={"temperature": float("nan")})
    assert model.requests == []


async def test_one_load_and_one_save_also_when_the_sdk_tries_again(
    new_store: NewStore, proxy: Proxy, model: ModelServer, setup: Any
) -> None:
    chat: Any = new_store(at=proxy).conversation("ada")
    kind: Any = Anthropic if setup.client == "sync" else AsyncAnthropic
    client = kind(base_url=model.url, api_key="none", max_retries=3)
    wrapped: Any = chat.wrap(client)

    async def say(text: str, *, stream: bool) -> None:
        if setup.client == "sync":
            await asyncio.to_thread(lambda: list(ask(wrapped, text, stream=stream)))
        elif stream:
            assert [event async for event in await ask(wrapped, text, stream=True)]
        else:
            await ask(wrapped, text)

    await say("Hello", stream=False)
    for stream in (False, True):
        proxy.clear()
        model.requests.clear()
        model.script(Reply.error(500), Reply.error(529), Reply("fine"))
        await say("Again", stream=stream)
        assert (proxy.count("LRANGE"), proxy.count("EVALSHA")) == (1, 1)
        first, _, third = model.requests
        assert first.body == third.body
    assert len(await chat.turns()) == 3
    closing = client.close()
    if closing is not None:
        await closing


def test_other_endpoints_are_the_sdks_own(ada: Any, chat: Conversation, model: ModelServer) -> None:
    ask(ada, "Hello")
    counted = ada.messages.count_tokens(model="m", messages=[user("Hi")])
    assert counted.input_tokens == len(str([user("Hi")])) // 4
    assert len(model.requests) == 1
    with pytest.raises(anthropic.NotFoundError):
        ada.messages.batches.list()
    assert len(chat.turns()) == 1


def test_streams_are_the_sdks_own(ada: Any, chat: Conversation) -> None:
    with ask(ada, "Hello", stream=True) as stream:
        assert isinstance(stream, Stream)
    assert chat.read() == []
    with ada.messages.stream(model="m", max_tokens=9, messages=[user("My name is Ada.")]) as one:
        assert "Ada" in "".join(one.text_stream)
    with ada.beta.messages.stream(
        model="m", max_tokens=9, messages=[user("What is my name?")]
    ) as two:
        assert two.get_final_text() == "Your name is Ada."
    assert len(chat.turns()) == 2


def test_raw_responses(ada: Any, chat: Conversation) -> None:
    raw = ada.messages.with_raw_response.create(
        model="m", max_tokens=9, messages=[user("My name is Ada.")]
    )
    assert "Ada" in said(raw.parse())
    asked = {"model": "m", "max_tokens": 9, "messages": [user("What is my name?")]}
    with ada.messages.with_streaming_response.create(**asked) as response:
        assert said(response.parse()) == "Your name is Ada."
    raw = ada.messages.with_raw_response.create(**asked, stream=True)
    list(raw.parse())
    assert len(chat.turns()) == 3


def test_parse(ada: Any, chat: Conversation, model: ModelServer) -> None:
    model.script(Reply('{"name": "Rome"}'))
    asked: Any = {"model": "m", "max_tokens": 9, "output_format": City}
    reply = ada.messages.parse(**asked, messages=[user("A city?")])
    assert reply.parsed_output == City(name="Rome")
    assert "parsed" not in str(chat.read())
    again = {"role": "assistant", "content": reply.content}
    model.script(Reply('{"name": "Oslo"}'))
    ada.messages.parse(**asked, messages=[user("A city?"), again, user("Another?")])
    assert len(model.requests[-1].messages) == 3
    assert len(chat.turns()) == 2
    model.script(Reply("not JSON"))
    with pytest.raises(ValueError, match="JSON"):
        ada.messages.parse(**asked, messages=[user("A third?")])
    assert len(chat.turns()) == 2


@beta_tool
def weather(city: str) -> str:
    """Say how warm it is.

    Args:
        city: Where.
    """
    return f"21 degrees in {city}"


def test_the_sdks_tool_runner(ada: Any, chat: Conversation, model: ModelServer) -> None:
    ask(ada, "Hello")
    for stream in (False, True):
        model.script(Reply.tool_call("weather", city="Rome"))
        runner = ada.beta.messages.tool_runner(
            model="m", max_tokens=9, messages=[user("Warm?")], tools=[weather], stream=stream
        )
        assert said(runner.until_done()) == "The tool says: 21 degrees in Rome"
    assert [len(turn.messages) for turn in chat.turns()] == [2, 4, 4]
    assert [len(request.messages) for request in model.requests] == [1, 3, 5, 7, 9]


async def test_async_helpers(
    make_async_store: Callable[..., AsyncStore], model: ModelServer
) -> None:
    chat = make_async_store().conversation("ada")

    @beta_async_tool
    async def weather(city: str) -> str:
        """Say how warm it is.

        Args:
            city: Where.
        """
        return f"21 degrees in {city}"

    async with AsyncAnthropic(base_url=model.url, api_key="none", max_retries=0) as base:
        ada = chat.wrap(base)
        asked: Any = {"model": "m", "max_tokens": 9, "messages": [user("Hello")]}
        made = await ada.messages.create(**asked, stream=True)
        assert isinstance(made, AsyncStream)
        await made.close()
        async with ada.messages.stream(**asked) as events:
            assert (await events.get_final_text()).endswith("Hello")
        raw = await ada.messages.with_raw_response.create(**asked)
        assert said(await raw.parse())
        async with ada.messages.with_streaming_response.create(**asked) as response:
            assert said(await response.parse())
        model.script(Reply('{"name": "Rome"}'))
        parsed = await ada.messages.parse(**asked, output_format=City)
        assert parsed.parsed_output == City(name="Rome")
        model.script(Reply.tool_call("weather", city="Rome"))
        runner = ada.beta.messages.tool_runner(**asked, tools=[weather])
        assert said(await runner.until_done()) == "The tool says: 21 degrees in Rome"
    assert [len(turn.messages) for turn in await chat.turns()] == [2, 2, 2, 2, 4]


@pytest.mark.parametrize("option", ["thread", "context_management", "compaction"])
def test_a_history_that_the_provider_keeps_or_rewrites_is_refused(
    ada: Any, model: ModelServer, option: str
) -> None:
    with pytest.raises(ValueError, match=option):
        ada.beta.messages.create(
            model="m", max_tokens=9, messages=[user("Hi")], **{option: {"type": "create"}}
        )
    assert model.requests == []
    ada.beta.messages.create(model="m", max_tokens=9, messages=[user("Hi")], **{option: None})
    assert len(model.requests) == 1


def test_an_answer_that_cannot_be_saved_is_not_lost(
    make_store: Callable[..., Store], base: Anthropic
) -> None:
    client = make_store(max_turn_bytes=10).conversation("ada").wrap(base)
    with pytest.raises(SaveError) as caught:
        ask(client, "Hello")
    assert said(caught.value.reply).endswith("Hello")
    with pytest.raises(SaveError) as caught:
        list(ask(client, "Hello", stream=True))
    assert isinstance(caught.value.reply, anthropic.types.Message)


def test_a_turn_without_the_wrapper(chat: Conversation, base: Anthropic) -> None:
    for text in ("My name is Ada.", "What is my name?"):
        with chat.turn(text, format="anthropic.messages") as turn:
            turn.reply(ask(base, *turn.messages))
    assert chat.read()[-1]["content"][0]["text"] == "Your name is Ada."


class Mine(Anthropic):
    """A client as a user may have derived it, with a constructor of its own."""

    def __init__(self, url: str) -> None:
        super().__init__(base_url=url, api_key="none", max_retries=0)
        self.label = "mine"


def test_a_client_class_of_the_users_own(chat: Conversation, model: ModelServer) -> None:
    with Mine(model.url) as client:
        wrapped = chat.wrap(client)
        assert (type(wrapped).__name__, wrapped.label) == ("Mine", "mine")
        ask(wrapped, "Hello")
    assert len(chat.turns()) == 1
