"""The order of a prompt, as a real model server gets it: by a turn, and by a wrapped client."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from openai import AsyncOpenAI, OpenAI

from tests.clients.talking import CHAT, RESPONSES, Api, text_of
from tests.clients.views import as_async
from turnstore import Window
from turnstore.context import Context, Summary
from turnstore.testing import ModelServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.conftest import NewStore
    from tests.servers.setups import Setup
    from turnstore import AsyncConversation, AsyncStore

pytestmark = [pytest.mark.servers("redis-8", "valkey", "redis-url"), pytest.mark.one_setup]

HEADING = "So far:"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("NO_PROXY", "*")
    with ModelServer() as running:
        yield running


@pytest.fixture
async def base(setup: Setup, model: ModelServer) -> AsyncIterator[OpenAI | AsyncOpenAI]:
    options: dict[str, Any] = {"base_url": model.base_url, "api_key": "none", "max_retries": 0}
    if setup.client == "sync":
        with OpenAI(**options) as client:
            yield client
    else:
        async with AsyncOpenAI(**options) as client:
            yield client


@pytest.fixture(params=[CHAT, RESPONSES], ids=lambda api: api.name)
def api(request: pytest.FixtureRequest) -> Api:
    chosen: Api = request.param
    return chosen


@pytest.fixture
def chat(store: AsyncStore) -> AsyncConversation:
    return store.conversation("c")


def facts(query: Any) -> list[str]:
    return [f"A fact about {query.text}"]


def everything(window: Window | None = None) -> Context:
    return Context(
        window or Window(turns=2),
        summary=Summary(lambda _: "They spoke.", heading=HEADING),
        sources=[facts],
    )


def told(request: Any) -> list[tuple[str, str]]:
    return [(message["role"], text_of(message)) for message in request.messages]


async def test_instructions_context_window_new_messages(
    base: Any, chat: AsyncConversation, api: Api, model: ModelServer
) -> None:
    client = as_async(chat.wrap(base, context=everything()))
    policy = [
        {"role": "system", "content": "Be kind."},
        {"role": "developer", "content": "Be brief."},
    ]
    for number in range(1, 6):
        await api.create(client, [*policy, {"role": "user", "content": f"q{number}"}])
    *rules, context, first, _, third, _, new = told(model.requests[-1])
    assert rules == [("system", "Be kind."), ("developer", "Be brief.")]
    assert context[0] == "system"
    assert context[1].index("A fact about q5") < context[1].index(HEADING)
    assert context[1].endswith(f"{HEADING}\nThey spoke.")
    assert (first, third, new) == (("user", "q3"), ("user", "q4"), ("user", "q5"))
    assert [role for role, _ in told(model.requests[-1])[3:]] == ["user", "assistant"] * 2 + [
        "user"
    ]


async def test_what_was_put_in_is_never_stored_and_has_no_mark(
    base: Any, chat: AsyncConversation, api: Api, model: ModelServer
) -> None:
    client = as_async(chat.wrap(base, context=everything()))
    for number in range(1, 6):
        await api.create(client, f"q{number}")
    (context,) = (m for m in model.requests[-1].messages if m["role"] == "system")
    assert context.keys() - {"type"} == {"role", "content"}
    everything_stored = json.dumps([turn.messages for turn in await chat.turns()])
    assert "fact" not in everything_stored
    assert HEADING not in everything_stored
    assert len(await chat.read()) == 10


async def test_nothing_to_put_in_is_no_message(
    base: Any, chat: AsyncConversation, api: Api, model: ModelServer
) -> None:
    silent = Context(Window(turns=2), summary=Summary(lambda _: "s"), sources=[lambda _: []])
    await api.create(as_async(chat.wrap(base, context=silent)), "q1")
    assert told(model.requests[-1]) == [("user", "q1")]


async def test_a_trimmed_window_never_drops_the_instructions(
    base: Any, chat: AsyncConversation, api: Api, model: ModelServer
) -> None:
    """I1: the system prompt was trimmed away."""
    context = Context(Window(tokens=1, turns=1, messages=1))
    client = as_async(chat.wrap(base, context=context))
    for number in range(4):
        given = [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": f"{number}"},
        ]
        await api.create(client, given)
    assert told(model.requests[-1])[0] == ("system", "Be kind.")
    assert len(told(model.requests[-1])) == 4
    assert [m["role"] for m in await chat.read()].count("system") == 0


async def test_a_summary_made_by_a_client_of_the_sdk(
    base: Any, chat: AsyncConversation, api: Api, model: ModelServer
) -> None:
    summary = Summary(base, model="small", heading=HEADING, template="{summary}|{transcript}")
    client = as_async(chat.wrap(base, context=Context(Window(turns=1), summary=summary)))
    for number in range(1, 4):
        await api.create(client, f"q{number}")
    asked, last = model.requests[-2:]
    assert (asked.path, asked.body["model"]) == ("/v1/chat/completions", "small")
    ((role, prompt),) = told(asked)
    assert role == "user"
    assert prompt.startswith("(none)|user: q1\nassistant: I see 1 message")
    answer = f"I see 1 message; the last one says: {prompt}"
    assert told(last)[0] == ("system", f"{HEADING}\n{answer}")
    assert len(model.requests) == 4, "one question for one turn that fell out"
    assert len(await chat.read()) == 6, "the question itself is no part of the conversation"


async def test_a_sync_client_on_either_store(new_store: NewStore, model: ModelServer) -> None:
    chat = new_store().conversation("c")
    await chat.append(["one"])
    await chat.append(["two"])
    with OpenAI(base_url=model.base_url, api_key="none", max_retries=0) as client:
        context = Context(Window(turns=1), summary=Summary(client, model="small"))
        assert (await chat.summarize(context)).startswith("I see 1 message")


async def test_an_async_client_on_a_sync_store_is_told_apart(
    new_store: NewStore, setup: Setup, model: ModelServer
) -> None:
    chat = new_store().conversation("c")
    await chat.append(["one"])
    await chat.append(["two"])
    client = AsyncOpenAI(base_url=model.base_url, api_key="none", max_retries=0)
    async with client:
        context = Context(Window(turns=1), summary=Summary(client, model="small"))
        if setup.client == "async":
            assert (await chat.summarize(context)).startswith("I see 1 message")
        else:
            with pytest.raises(TypeError, match="use AsyncStore"):
                await chat.summarize(context)
            assert context.counts == {"summary": 1}


def test_a_client_needs_the_name_of_a_model(model: ModelServer) -> None:
    with (
        OpenAI(base_url=model.base_url, api_key="none") as client,
        pytest.raises(TypeError, match="needs the name of the model"),
    ):
        Summary(client)


async def test_a_stream_is_sent_the_same(
    base: Any, chat: AsyncConversation, api: Api, model: ModelServer
) -> None:
    client = as_async(chat.wrap(base, context=everything(Window(turns=1))))
    for number in range(1, 4):
        await api.read(await api.create(client, f"q{number}", stream=True))
    context, first, _, new = told(model.requests[-1])
    assert context[1].endswith("They spoke.")
    assert (first, new) == (("user", "q2"), ("user", "q3"))


async def test_a_tool_loop_keeps_the_order(chat: AsyncConversation) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    for number in range(3):
        await chat.append([f"q{number}", {"role": "assistant", "content": f"a{number}"}])
    async with chat.turn(
        [{"role": "system", "content": "Be kind."}, "Weather?"], context=everything()
    ) as turn:
        turn.reply({"role": "assistant", "content": None, "tool_calls": [call]})
        before = turn.messages
    result = {"role": "tool", "tool_call_id": "c1", "content": "sun"}
    async with chat.turn(
        [{"role": "system", "content": "Be kind."}, result], context=everything()
    ) as turn:
        roles = [message["role"] for message in turn.messages]
        assert roles == ["system", "system", "user", "assistant", "user", "assistant", "tool"]
        turn.reply("It is sunny.")
    assert before[0] == {"role": "system", "content": "Be kind."}
    assert len(await chat.turns()) == 4, "the pieces are one turn"


async def test_a_turn_with_instructions_between_its_messages(chat: AsyncConversation) -> None:
    for number in range(4):
        await chat.append([f"q{number}", {"role": "assistant", "content": f"a{number}"}])
    request = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "one"},
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "two"},
    ]
    async with chat.turn(request, context=everything()) as turn:
        contents = [message["content"] for message in turn.messages]
        turn.reply("done")
    assert contents[0] == "Be kind."
    assert contents[1].endswith("They spoke.")
    assert contents[2:] == ["q2", "a2", "q3", "a3", "one", "Be brief.", "two"]
    assert [m["content"] for m in (await chat.turns())[-1].messages] == ["one", "two", "done"]


async def test_a_greeting_is_sent_where_the_model_may_speak_first(
    base: Any, chat: AsyncConversation, api: Api, model: ModelServer
) -> None:
    greeting = {"role": "assistant", "content": "How can I help?"}
    await chat.append(greeting, format=f"openai.{api.name}")
    await api.create(as_async(chat.wrap(base)), "q1")
    assert told(model.requests[-1]) == [("assistant", "How can I help?"), ("user", "q1")]
