"""The memory's tools in loops of the real SDKs, around a turn and with a wrapped client."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest
from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI

from tests.facts.meaning.kit import Kit, Model, facts_in
from tests.servers.facade import inner
from turnstore.context import Context
from turnstore.facts import Block
from turnstore.testing import ModelServer, Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.servers.setups import Setup
    from turnstore import AsyncStore

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]

Json = dict[str, Any]


class Loop:
    """How one API is asked with tools, and told what they answered."""

    format = "openai.chat"
    kinds: tuple[Any, Any] = (OpenAI, AsyncOpenAI)

    def url(self, model: ModelServer) -> str:
        return model.base_url

    def create(self, client: Any, messages: list[Json], tools: Any) -> Any:
        return client.chat.completions.create(model="m", messages=messages, tools=tools.openai)

    def calls(self, answer: Any) -> list[Any]:
        return list(answer.choices[0].message.tool_calls or ())

    def results(self, answers: list[Json]) -> Any:
        return answers

    def text(self, answer: Any) -> str:
        return str(answer.choices[0].message.content)


class Responses(Loop):
    format = "openai.responses"

    def create(self, client: Any, messages: list[Json], tools: Any) -> Any:
        return client.responses.create(model="m", input=messages, tools=tools.openai_responses)

    def calls(self, answer: Any) -> list[Any]:
        return [item for item in answer.output if item.type == "function_call"]

    def text(self, answer: Any) -> str:
        return str(answer.output_text)


class Messages(Loop):
    format = "anthropic.messages"
    kinds = (Anthropic, AsyncAnthropic)

    def url(self, model: ModelServer) -> str:
        return model.url

    def create(self, client: Any, messages: list[Json], tools: Any) -> Any:
        return client.messages.create(
            model="m", max_tokens=99, messages=messages, tools=tools.anthropic
        )

    def calls(self, answer: Any) -> list[Any]:
        return [block for block in answer.content if block.type == "tool_use"]

    def results(self, answers: list[Json]) -> Any:
        return [{"role": "user", "content": answers}]

    def text(self, answer: Any) -> str:
        return "".join(block.text for block in answer.content if block.type == "text")


@pytest.fixture(params=[Loop, Responses, Messages], ids=["chat", "responses", "anthropic"])
def loop(request: pytest.FixtureRequest) -> Loop:
    made: Loop = request.param()
    return made


@pytest.fixture
async def client(loop: Loop, model: ModelServer, setup: Setup) -> AsyncIterator[Any]:
    kind = loop.kinds[setup.client == "async"]
    made = kind(base_url=loop.url(model), api_key="none", max_retries=0)
    yield made
    await _value(made.close())


@pytest.fixture
def kit(store: AsyncStore) -> Kit:
    return Kit(store, facts_in(store, engine="plain"), Model())


async def _value(made: Any) -> Any:
    return await made if inspect.isawaitable(made) else made


def _script(model: ModelServer) -> None:
    """A model that notes something down, looks it up, and tells what it found."""
    model.script(
        Reply.tool_call("archival_memory_insert", content="Ada has a boat, the Beagle."),
        Reply.tool_call("archival_memory_search", query="What is her boat called?"),
    )


def _context(kit: Kit) -> tuple[Any, Context]:
    memory = kit.memory(Block("human", "What you know of the user.", limit=500))
    return memory, Context(sources=[inner(memory)])


async def test_around_a_turn(loop: Loop, client: Any, kit: Kit, model: ModelServer) -> None:
    _script(model)
    memory, context = _context(kit)
    text = "Note my boat, the Beagle."
    answer: Any = None
    async with kit.chat.turn(text, format=loop.format, context=context) as turn:
        tools = kit.tools(conversation=kit.chat, memory=memory, turn=turn)
        calls: list[Any] = [None]
        while calls:
            answer = await _value(loop.create(client, _sent(loop, turn.messages), inner(tools)))
            turn.reply(answer)
            calls = loop.calls(answer)
            if calls:
                turn.reply(loop.results([await tools.answer(call) for call in calls]))
    assert "Ada has a boat, the Beagle." in loop.text(answer)
    assert [fact.text for fact in await kit.facts.list("ada")] == ["Ada has a boat, the Beagle."]
    (stored,) = await kit.chat.turns()
    assert len(stored.messages) == 6
    assert len(model.requests) == 3
    assert len(model.requests[0].body["tools"]) == 5


async def test_with_a_wrapped_client(loop: Loop, client: Any, kit: Kit, model: ModelServer) -> None:
    _script(model)
    memory, context = _context(kit)
    tools = kit.tools(conversation=kit.chat, memory=memory)
    wrapped = kit.chat.wrap(client, context=context)
    given: Any = [{"role": "user", "content": "Note my boat, the Beagle."}]
    answer: Any = None
    while given:
        answer = await _value(loop.create(wrapped, given, inner(tools)))
        given = loop.results([await tools.answer(call) for call in loop.calls(answer)])
        if not loop.calls(answer):
            break
    assert "Ada has a boat, the Beagle." in loop.text(answer)
    assert [fact.text for fact in await kit.facts.list("ada")] == ["Ada has a boat, the Beagle."]
    (stored,) = await kit.chat.turns()
    assert len(stored.messages) == 6
    assert len(model.requests) == 3


async def test_a_call_that_is_wrong_is_said_to_the_model(
    loop: Loop, client: Any, kit: Kit, model: ModelServer
) -> None:
    model.script(Reply.tool_call("archival_memory_insert", note="x"))
    tools, wrapped = kit.tools(), kit.chat.wrap(client)
    asked = [{"role": "user", "content": "Note it."}]
    calls = loop.calls(await _value(loop.create(wrapped, asked, inner(tools))))
    results = loop.results([await tools.answer(call) for call in calls])
    assert "Error:" in loop.text(await _value(loop.create(wrapped, results, inner(tools))))


def _sent(loop: Loop, messages: list[Json]) -> list[Json]:
    """What the API takes as messages: Anthropic has its instructions beside them."""
    if loop.format != "anthropic.messages":
        return messages
    return [message for message in messages if message["role"] != "system"]
