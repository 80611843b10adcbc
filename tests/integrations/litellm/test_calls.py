"""LiteLLM's functions with a memory: which, how they are called, and what is refused."""

from __future__ import annotations

import inspect
from asyncio import to_thread
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import litellm
import openai
import pytest
from litellm.router import Router

from tests.integrations.litellm.talking import CLAUDE, OPENAI, Json, asked, at, said, text, user
from turnstore import SaveError, remember
from turnstore.testing import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from tests.servers.setups import Setup
    from turnstore import AsyncConversation, Conversation, Store
    from turnstore.testing import ModelServer

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]


def traced(function: Any) -> Any:
    """A decorator as users and tracers have them."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


@pytest.mark.parametrize(
    "function",
    [litellm.completion, traced(litellm.completion), partial(litellm.completion, temperature=0.5)],
    ids=["itself", "decorated", "partial"],
)
def test_the_function_is_known_whatever_is_around_it(
    chat: Conversation, model: ModelServer, function: Any
) -> None:
    told = chat.wrap(function)
    told(**asked(model, "My name is Ada."))
    assert said(told(**asked(model, "What is my name?"))) == "Your name is Ada."
    assert [turn.format for turn in chat.turns()] == ["openai.chat"] * 2
    assert said(function(**asked(model, "What is my name?"))) == "You have not told me your name."


def test_it_is_still_a_function_of_its_kind(
    nowhere: Conversation, anowhere: AsyncConversation
) -> None:
    for name in ("completion", "responses", "acompletion", "aresponses"):
        function = getattr(litellm, name)
        made = (anowhere if name.startswith("a") else nowhere).wrap(function)
        assert made.__name__ == name
        assert made.__doc__ == function.__doc__
        assert inspect.signature(made) == inspect.signature(function)
        assert inspect.iscoroutinefunction(made) == inspect.iscoroutinefunction(function)


@pytest.mark.parametrize(
    "other",
    [
        litellm,
        litellm.text_completion,
        litellm.batch_completion,
        litellm.anthropic_messages,
        litellm.LiteLLM(api_key="none"),
        litellm.LiteLLM(api_key="none").chat.completions.create,
    ],
    ids=lambda other: getattr(other, "__name__", "client"),
)
def test_other_things_of_litellm_are_refused(nowhere: Conversation, other: Any) -> None:
    with pytest.raises(TypeError, match="of litellm, wrap knows the functions completion"):
        nowhere.wrap(other)


def test_what_needs_messages_first_is_not_for_it(nowhere: Conversation) -> None:
    with pytest.raises(TypeError, match="wrap knows functions"):
        nowhere.wrap(Router)
    with pytest.raises(TypeError, match=r"conversation\.wrap"):
        remember(litellm.completion)


def test_a_function_of_ones_own_around_it_takes_the_messages(
    chat: Conversation, model: ModelServer
) -> None:
    def ask(messages: list[Json]) -> str:
        return said(litellm.completion(**at(model), messages=messages))

    told: Any = chat.wrap(ask)
    told("My name is Ada.")
    assert told("What is my name?") == "Your name is Ada."


def test_a_memory_is_not_given_twice(nowhere: Conversation) -> None:
    told = nowhere.wrap(litellm.completion)
    for again in (told, partial(told, model="m"), traced(told)):
        with pytest.raises(TypeError, match="memory already"):
            nowhere.wrap(again)


def test_sync_and_async_are_not_mixed(
    chat: Conversation, nowhere: Conversation, anowhere: AsyncConversation
) -> None:
    with pytest.raises(TypeError, match=r"a conversation of AsyncStore; .* completion"):
        nowhere.wrap(litellm.acompletion)
    with pytest.raises(TypeError, match=r"a conversation of Store; .* aresponses"):
        anowhere.wrap(litellm.responses)
    with pytest.raises(TypeError, match="acompletion needs a conversation of AsyncStore"):
        chat.wrap(litellm.completion)("m", [user("Hi")], mock_response="Hi", acompletion=True)
    assert chat.read() == []


def test_arguments_by_position(chat: Conversation, model: ModelServer) -> None:
    told = chat.wrap(litellm.completion)
    beside = {name: value for name, value in at(model).items() if name != "model"}
    assert said(told(OPENAI, [user("My name is Ada.")], 20, 0.5, **beside))
    assert model.requests[-1].body["temperature"] == 0.5
    first: Any = chat.wrap(partial(litellm.completion, OPENAI, **beside))
    assert said(first([user("What is my name?")])) == "Your name is Ada."
    with pytest.raises(ValueError, match="n=2"):
        told(OPENAI, [user("Hi")], None, None, None, 2, **beside)
    with pytest.raises(TypeError, match="two values for model"):
        told(OPENAI, [user("Hi")], model="m")
    with pytest.raises(TypeError, match="too many"):
        told(*range(99))
    assert len(model.requests) == 2


def test_messages_past_the_sdk(chat: Conversation, model: ModelServer) -> None:
    told = chat.wrap(litellm.completion)
    told(**asked(model, "My name is Ada."))
    extra = {"messages": [user("What is my name?")], "seed": 1}
    assert said(told(**asked(model), extra_body=extra)) == "Your name is Ada."
    assert model.requests[-1].body["seed"] == 1
    assert len(chat.read()) == 4


async def test_the_history_is_read_once_however_often_litellm_tries(
    new_store: NewStore, setup: Setup, proxy: Proxy, model: ModelServer
) -> None:
    chat = new_store(at=proxy).conversation("ada")
    function = litellm.completion if setup.client == "sync" else litellm.acompletion
    told = chat.wrap(function)
    ways: list[Json] = [{"num_retries": 2}]
    if setup.client == "async":  # a sync fallback runs, and leaves, an event loop of its own
        ways.append({"fallbacks": [at(model, CLAUDE)]})
    for n, options in enumerate(ways):
        model.script(Reply.error(500), Reply("Hi"))
        proxy.clear()
        call = asked(model, "Hello", **options)
        reply = await (told(**call) if setup.client == "async" else to_thread(told, **call))
        assert said(reply) == "Hi"
        assert (proxy.count("LRANGE"), proxy.count("EVALSHA")) == (1, 1)
        assert [len(request.messages) for request in model.requests[-2:]] == [2 * n + 1] * 2
    assert model.requests[-1].path == ("/v1/messages" if ways[1:] else "/v1/chat/completions")


def test_mocks(chat: Conversation, scripted: object) -> None:
    del scripted
    told = chat.wrap(litellm.completion)
    assert said(told("gpt-4o", [user("one")], mock_response="Hi")) == "Hi"
    stream = told("gpt-4o", [user("two")], mock_response="Hi there", stream=True)
    assert text(list(stream)) == "Hi there"
    assert len(chat.turns()) == 2
    with pytest.raises(openai.RateLimitError):
        told("gpt-4o", [user("three")], mock_response="litellm.RateLimitError")
    broken = told(
        "gpt-4o", [user("4")], mock_response="Exception: mock_streaming_error", stream=True
    )
    with pytest.raises(Exception, match="mock"):
        list(broken)
    assert [m["content"] for m in chat.read()] == ["one", "Hi", "two", "Hi there"]
    chat.wrap(litellm.responses, on_other_format="text")("3", "gpt-4o", mock_response="Hi")
    assert len(chat.turns()) == 3


def test_a_loop_that_sends_everything_again_is_recognised(
    chat: Conversation, model: ModelServer
) -> None:
    """Written by hand, it sends LiteLLM's own objects back."""
    told = chat.wrap(litellm.completion)
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {}}}]
    model.script(Reply.tool_call("weather", city="Rome"))
    messages: list[Any] = [user("How warm is it?")]
    messages.append(told(**asked(model, *messages, tools=tools)).choices[0].message)
    (call,) = messages[-1].tool_calls
    messages.append({"role": "tool", "tool_call_id": call.id, "content": "21 degrees"})
    messages.append(told(**asked(model, *messages, tools=tools)).choices[0].message)
    told(**asked(model, *messages, "Thanks", tools=tools))
    assert [len(turn.messages) for turn in chat.turns()] == [4, 2]
    assert [one["role"] for one in model.requests[-1].messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]


def test_half_a_character_does_not_end_the_conversation(
    chat: Conversation, model: ModelServer
) -> None:
    told = chat.wrap(litellm.completion)
    model.script(Reply("\ud83d half"))
    told(**asked(model, "Hello"))
    assert chat.read()[1]["content"] == "\ud83d half"
    assert said(told(**asked(model, "And?")))
    assert model.requests[-1].messages[1]["content"] == "\ufffd half"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["completion", "responses"])
def test_an_answer_that_cannot_be_saved_is_not_lost(
    make_store: Callable[..., Store], model: ModelServer, name: str, *, stream: bool
) -> None:
    told = make_store(max_turn_bytes=10).conversation("ada").wrap(getattr(litellm, name))
    field = "messages" if name == "completion" else "input"
    with pytest.raises(SaveError) as caught:
        list(told(**at(model), **{field: [user("Hello")]}, stream=stream))
    assert type(caught.value.reply).__module__.startswith("litellm.types")
    assert "Hello" in str(caught.value.reply)


@pytest.mark.parametrize(
    "messages",
    [5, [5], [None], [{"content": "nobody says this"}], [user(float("nan"))], [user({1, 2})]],
    ids=repr,
)
def test_what_is_no_message_is_refused_before_anything_is_asked(
    chat: Conversation, model: ModelServer, messages: Any
) -> None:
    with pytest.raises((TypeError, ValueError), match="message"):
        chat.wrap(litellm.completion)(**at(model), messages=messages)
    with pytest.raises((TypeError, ValueError), match=r"message|item"):
        chat.wrap(litellm.responses)(**at(model), input=messages)
    assert model.requests == []
    assert chat.read() == []


def test_an_answer_is_refused_by_append_and_its_message_is_taken(
    chat: Conversation, model: ModelServer
) -> None:
    answer: Any = litellm.completion(**asked(model, "My name is Ada."))
    with pytest.raises(ValueError, match="nothing was written"):
        chat.append(["My name is Ada.", answer])
    chat.append(["My name is Ada.", answer.choices[0].message])
    assert said(chat.wrap(litellm.completion)(**asked(model, "What is my name?"))) == (
        "Your name is Ada."
    )
    assert len(model.requests[-1].messages) == 3
