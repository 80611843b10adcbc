"""Tool loops: open turns, their results, and messages that are sent again."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from tests.clients.talking import CHAT, RESPONSES, texts
from tests.servers.found import needs
from turnstore.testing import Reply, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from openai import AsyncOpenAI, OpenAI

    from tests.clients.conftest import Wrap
    from tests.clients.talking import Api
    from turnstore import AsyncConversation, Store
    from turnstore.testing import ModelServer

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]

Json = dict[str, Any]


class City(BaseModel):
    name: str


def calls_of(api: Api, reply: Any) -> list[Any]:
    """The tool calls in a reply, as the SDK's objects."""
    if api is CHAT:
        return list(reply.choices[0].message.tool_calls or [])
    return [item for item in reply.output if item.type == "function_call"]


def result(api: Api, call: Any, output: str) -> Json:
    """The message that answers a call."""
    if api is CHAT:
        return {"role": "tool", "tool_call_id": call.id, "content": output}
    return {"type": "function_call_output", "call_id": call.call_id, "output": output}


def said(api: Api, reply: Any) -> list[Any]:
    """What a hand-written loop sends back of a reply."""
    return [reply.choices[0].message] if api is CHAT else list(reply.output)


USER = {"role": "user", "content": "How warm is it in Rome?"}


@pytest.mark.parametrize("stream", [False, True])
async def test_results_alone_continue_the_open_turn(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer, api: Api, *, stream: bool
) -> None:
    both = [ToolCall(name="weather", arguments={"city": city}) for city in ("Rome", "Oslo")]
    model.script(Reply(tool_calls=both))
    if stream:
        await api.read(await api.create(ada, [USER], stream=True))
        ids = [call["id"] if api is CHAT else call["call_id"] for call in await called(chat)]
        results = [answer_to(api, call_id) for call_id in ids]
    else:
        reply = await api.create(ada, [USER])
        results = [result(api, call, "21 degrees") for call in calls_of(api, reply)]
    assert await api.say(ada, results) == "The tool says: 21 degrees"
    (turn,) = (await chat.turns()).__iter__()
    assert len(turn.messages) == (5 if api is CHAT else 6)
    assert (await api.say(ada, "Thanks")).startswith(f"I see {len(turn.messages) + 1} messages")


async def called(chat: AsyncConversation) -> list[Json]:
    """The calls that are stored."""
    found: list[Json] = []
    for message in await chat.read():
        found += message.get("tool_calls", [])
        found += [message] if message.get("type") == "function_call" else []
    return found


def answer_to(api: Api, call_id: str) -> Json:
    if api is CHAT:
        return {"role": "tool", "tool_call_id": call_id, "content": "21 degrees"}
    return {"type": "function_call_output", "call_id": call_id, "output": "21 degrees"}


async def test_a_loop_that_sends_everything_again_stores_nothing_twice(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer, api: Api
) -> None:
    await api.say(ada, "Hello")
    model.script(Reply.tool_call("weather", city="Rome"), Reply.tool_call("time", city="Rome"))
    messages: list[Any] = [USER]
    for output in ("21 degrees", "noon"):
        reply = await api.create(ada, messages)
        messages += said(api, reply)
        messages += [result(api, call, output) for call in calls_of(api, reply)]
    assert await api.say(ada, messages) == "The tool says: noon"
    stored = await chat.read()
    assert len(stored) == 2 + 6
    assert len(await chat.turns()) == 2
    assert model.requests[-1].messages[2:] == stored[2:-1] or api is CHAT
    assert len(model.requests[-1].messages) == 7


async def test_a_loop_that_sends_dumped_messages_again(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer
) -> None:
    model.script(Reply.tool_call("weather", city="Rome"))
    reply = await CHAT.create(ada, [USER])
    message = reply.choices[0].message.model_dump()  # with every null that there is
    answer = result(CHAT, reply.choices[0].message.tool_calls[0], "21 degrees")
    assert await CHAT.say(ada, [USER, message, answer]) == "The tool says: 21 degrees"
    assert len(await chat.read()) == 4


async def test_what_parse_returned_is_recognised_when_it_is_sent_again(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer, api: Api
) -> None:
    kind: Any = {"response_format": City} if api is CHAT else {"text_format": City}
    model.script(Reply('{"name": "Rome"}'))
    reply = await api.of(ada).parse(**api.asked([USER]), **kind)
    again = [USER, *said(api, reply), {"role": "user", "content": "Why?"}]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the SDK's own, of the object in `parsed`
        assert (await api.say(ada, again)).startswith("I see 3 messages")
    assert len(await chat.read()) == 4


async def test_the_sdks_parsed_arguments_are_neither_sent_nor_stored(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer
) -> None:
    function = {"name": "f", "arguments": "{}", "parsed_arguments": {"x": 1}}
    call = {"id": "c", "type": "function", "function": function}
    asked = {"role": "assistant", "content": None, "tool_calls": [call], "parsed": None}
    await CHAT.say(ada, [USER, asked, {"role": "tool", "tool_call_id": "c", "content": "1"}])
    assert "parsed" not in str([*model.requests[-1].messages, *await chat.read()])


async def test_a_chat_kept_by_hand_is_recognised(
    ada: AsyncOpenAI, chat: AsyncConversation, api: Api
) -> None:
    mine: list[Any] = []
    reply: Any = None
    for text in ("My name is Ada.", "What is my name?", "Hello"):
        mine.append({"role": "user", "content": text})
        reply = await api.create(ada, mine)
        if api is CHAT:
            mine.append({"role": "assistant", "content": api.text(reply)})
        else:  # as OpenAI's guide has it
            mine += [{"role": item.role, "content": item.content} for item in reply.output]
    assert api.text(reply) == "I see 5 messages; the last one says: Hello"
    assert len(await chat.read()) == 6


async def test_a_new_message_over_an_open_turn_leaves_the_open_turn_out(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer, api: Api
) -> None:
    await api.say(ada, "My name is Ada.")
    model.script(Reply.tool_call("weather", city="Rome"))
    await api.create(ada, [USER])
    assert await api.say(ada, "What is my name?") == "Your name is Ada."
    assert len(model.requests[-1].messages) == 3
    assert len(await chat.turns()) == 3


async def test_a_result_of_no_call_is_refused_before_it_is_sent(
    ada: AsyncOpenAI, model: ModelServer, api: Api
) -> None:
    with pytest.raises(ValueError, match="call_9"):
        await api.say(ada, [answer_to(api, "call_9")])
    assert model.requests == []


async def test_a_failed_second_step_leaves_the_turn_open_and_can_be_repeated(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer, api: Api
) -> None:
    model.script(Reply.tool_call("weather", city="Rome"), Reply.error(400))
    reply = await api.create(ada, [USER])
    results = [result(api, call, "21 degrees") for call in calls_of(api, reply)]
    with pytest.raises(Exception, match="scripted error"):
        await api.say(ada, results)
    assert await api.say(ada, results) == "The tool says: 21 degrees"
    assert len(await chat.turns()) == 1


async def test_another_process_finishes_the_loop(
    wrap: Wrap, chat: AsyncConversation, model: ModelServer, api: Api
) -> None:
    model.script(Reply.tool_call("weather", city="Rome"))
    reply = await api.create(wrap(chat), [USER])
    results = [result(api, call, "21 degrees") for call in calls_of(api, reply)]
    assert await api.say(wrap(chat), results) == "The tool says: 21 degrees"


async def test_custom_tools(ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer) -> None:
    sql = ToolCall(name="sql", arguments="SELECT 1", custom=True, id="call_1")
    model.script(Reply(tool_calls=[sql]))
    await RESPONSES.create(ada, "Count")
    output = {"type": "custom_tool_call_output", "call_id": "call_1", "output": "1"}
    assert await RESPONSES.say(ada, [output]) == "The tool says: 1"
    assert len(await chat.turns()) == 1


async def test_reasoning_stays_beside_its_call(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer
) -> None:
    call = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}"}
    thought = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "x"}
    model.script(Reply(body={"id": "r", "status": "completed", "output": [thought, call]}))
    await RESPONSES.create(ada, "Think")
    await RESPONSES.say(ada, [answer_to(RESPONSES, "c")])
    assert model.requests[-1].messages[1:3] == [thought, call]
    assert (await texts(chat))[0] == "Think"


def test_the_sdks_own_tool_runner(
    make_store: Callable[..., Store], client: OpenAI, model: ModelServer
) -> None:
    runners = needs("openai.lib.responses_tool_runner")  # comes with openai 3
    tool = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
    weather = runners.RegisteredFunction(tool, lambda _: "21 degrees")
    chat = make_store().conversation("ada")
    wrapped = chat.wrap(client)
    wrapped.responses.create(model="m", input="Hello")
    for stream in (False, True):
        model.script(Reply.tool_call("weather"))
        reply = runners.ResponsesToolRunner(functions=[weather]).run(
            wrapped, RESPONSES.asked([USER]), max_steps=3, stream=stream
        )
        assert reply.output_text == "The tool says: 21 degrees"
    assert [len(turn.messages) for turn in chat.turns()] == [2, 4, 4]
    assert [len(request.messages) for request in model.requests] == [1, 3, 5, 7, 9]
