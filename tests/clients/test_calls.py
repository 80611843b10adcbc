"""What a client with a memory sends and stores: plain calls, on both endpoints."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import openai
import pytest
from openai import NOT_GIVEN
from pydantic import BaseModel

from tests.clients.talking import BROKEN, CHAT, RESPONSES, parsed, texts
from turnstore import FormatError, Window
from turnstore.clients import _endpoints
from turnstore.testing import Reply

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from tests.clients.conftest import Wrap
    from tests.clients.talking import Api
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore import AsyncConversation, AsyncStore
    from turnstore.testing import ModelServer

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]


class City(BaseModel):
    name: str


async def test_the_second_client_knows_what_the_first_was_told(
    wrap: Wrap, store: AsyncStore, api: Api
) -> None:
    first, second = (wrap(store.conversation("ada")) for _ in range(2))
    await api.say(first, "My name is Ada.")
    assert await api.say(second, "What is my name?") == "Your name is Ada."


# What a worker of an application does, in a process of its own.
WORKER = """
import sys
from openai import OpenAI
from turnstore import Store

redis_url, prefix, model_url, text = sys.argv[1:]
with Store.from_url(redis_url, name="test", prefix=prefix) as store:
    with OpenAI(base_url=model_url, api_key="none") as base:
        client = store.conversation("ada").wrap(base)
        asked = {"model": "m", "messages": [{"role": "user", "content": text}], "stream": True}
        for chunk in client.chat.completions.create(**asked):
            print(chunk.choices[0].delta.content or "", end="")
"""


@pytest.mark.servers("redis-8")
def test_two_processes_hold_one_conversation(
    server: Server, prefix: str, proxy: Proxy, model: ModelServer
) -> None:
    assert server.addresses

    def run(text: str) -> str:
        command = [sys.executable, "-c", WORKER, proxy.url, prefix, model.base_url, text]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    assert "Ada" in run("My name is Ada.")
    assert run("What is my name?") == "Your name is Ada."


async def test_another_conversation_knows_nothing(
    wrap: Wrap, ada: AsyncOpenAI, store: AsyncStore, api: Api
) -> None:
    await api.say(ada, "My name is Ada.")
    bob = wrap(store.conversation("bob"))
    assert await api.say(bob, "What is my name?") == "You have not told me your name."


async def test_a_call_is_one_turn_with_what_is_known_of_it(
    ada: AsyncOpenAI, chat: AsyncConversation, api: Api, model: ModelServer
) -> None:
    reply = await api.create(ada, "Hello")
    (turn,) = (await chat.turns()).__iter__()
    assert turn.format == f"openai.{api.name}"
    assert [message["role"] for message in turn.messages] == ["user", "assistant"]
    assert turn.meta == {
        "model": "m",
        "finish_reason": "stop" if api is CHAT else "completed",
        "usage": reply.usage.to_dict(),
        "response_id": reply.id,
    }
    assert len(model.requests) == 1


async def test_one_load_and_one_save(
    far: AsyncConversation, proxy: Proxy, wrap: Wrap, api: Api
) -> None:
    client = wrap(far)
    await api.say(client, "Hello")
    proxy.clear()
    await api.say(client, "Hello")
    assert (proxy.count("LRANGE"), proxy.count("EVALSHA")) == (1, 1)


async def test_a_call_that_the_sdk_repeats_is_loaded_and_saved_once(
    far: AsyncConversation, proxy: Proxy, wrap: Wrap, model: ModelServer, api: Api
) -> None:
    chat = far
    client = wrap(chat).with_options(max_retries=3)
    await api.say(client, "Hello")
    proxy.clear()
    model.script(Reply.error(500), Reply.error(429), Reply("fine"))
    assert await api.say(client, "Hello again") == "fine"
    assert (proxy.count("LRANGE"), proxy.count("EVALSHA")) == (1, 1)
    assert len(await chat.read()) == 4
    assert model.requests[1].body == model.requests[3].body


async def test_an_error_of_the_provider_saves_nothing(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer, api: Api
) -> None:
    model.script(Reply.error(400, "no"), Reply("cut off", ending="cut"))
    with pytest.raises(openai.BadRequestError):
        await api.say(ada, "Hello")
    with pytest.raises(BROKEN):
        await api.say(ada, "Hello")
    assert await chat.read() == []


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(refusal="No."), id="refusal"),
        pytest.param(Reply("Wel", finish="content_filter"), id="content_filter"),
        pytest.param(Reply(body={"object": "x"}), id="nothing known"),
        pytest.param(Reply("Wel", finish="error"), id="error"),
    ],
)
async def test_a_reply_that_did_not_succeed_is_given_back_and_not_saved(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer, reply: Reply, api: Api
) -> None:
    model.script(reply)
    assert await api.create(ada, "Hello") is not None
    assert await chat.read() == []


async def test_a_text_that_ended_at_the_limit_is_kept_and_a_tool_call_is_not(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer
) -> None:
    call = Reply.tool_call("f").tool_calls
    model.script(Reply("Once upon", finish="length"), Reply(tool_calls=call, finish="length"))
    await CHAT.create(ada, "Tell me a story")
    await CHAT.create(ada, "Call f")
    assert await texts(chat) == ["Tell me a story", "Once upon"]


async def test_an_incomplete_response_is_not_saved(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer
) -> None:
    model.script(Reply("Once upon", finish="length"))
    await RESPONSES.create(ada, "Tell me a story")
    assert await chat.read() == []


async def test_the_json_is_stored_as_the_provider_wrote_it(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer
) -> None:
    message = {
        "zz": [1.0, 2**70, {"x": None}],
        "role": "assistant",
        "content": "\x00 \u2028 \ud83d",
        "reasoning_content": "hm",
        "refusal": None,
        "tool_calls": None,
    }
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    model.script(Reply(body={"id": "c", "object": "chat.completion", "choices": [choice]}))
    await CHAT.create(ada, "Hello")
    (stored,) = (await chat.read())[1:]
    assert stored == message
    assert list(stored) == list(message)
    assert type(stored["zz"][0]) is float

    await CHAT.say(ada, "And?")
    _, sent, _ = model.requests[-1].messages
    assert sent == {
        "zz": [1.0, 2**70, {"x": None}],
        "role": "assistant",
        "content": "\x00 \u2028 \ufffd",  # UTF-8 cannot say half a character
        "reasoning_content": "hm",
    }


async def test_unknown_items_of_a_response_are_stored_and_sent_as_they_came(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer
) -> None:
    output = [
        {"type": "reasoning", "id": "rs_1", "encrypted_content": "x", "summary": [], "new": 1.0},
        {"type": "thing_of_2031", "id": "t", "nothing": None},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
    ]
    model.script(Reply(body={"id": "r", "status": "completed", "output": output}))
    await RESPONSES.create(ada, "Hello")
    assert (await chat.read())[1:] == output
    await RESPONSES.say(ada, "And?")
    assert model.requests[-1].messages[1:-1] == output


async def test_instructions_reach_the_model_and_are_not_stored(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer, api: Api
) -> None:
    await api.say(ada, "Hello")
    for role in ("system", "developer"):
        policy = {"role": role, "content": "Be brief."}
        await api.say(ada, [policy, {"role": "user", "content": f"I am {role}"}])
        sent = model.requests[-1].messages
        assert sent[0] == policy
        assert sent.count(policy) == 1
    assert {m["role"] for m in await chat.read()} == {"user", "assistant"}
    assert len(await chat.read()) == 6


async def test_the_instructions_option_of_responses_passes_through(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer
) -> None:
    await RESPONSES.say(ada, "Hello", instructions="Be brief.")
    assert model.requests[-1].body["instructions"] == "Be brief."
    assert len(await chat.read()) == 2


async def test_input_as_a_text(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer
) -> None:
    await ada.responses.create(model="m", input="Hello")
    assert model.requests[-1].messages == [{"role": "user", "content": "Hello"}]
    assert (await texts(chat))[0] == "Hello"


async def test_a_window(ada: AsyncOpenAI, wrap: Wrap, chat: AsyncConversation, api: Api) -> None:
    for name in ("Ada", "Bob", "Cyd"):
        await api.say(ada, f"I am {name}")
    short = wrap(chat, window=Window(turns=1))
    said = await api.say(short, "Hello")
    assert said == "I see 3 messages; the last one says: Hello"


async def test_messages_as_generators_and_sdk_objects(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer
) -> None:
    reply = await CHAT.create(ada, ({"role": "user", "content": text} for text in ("a", "b")))
    again = [reply.choices[0].message, {"role": "user", "content": "c"}]
    await CHAT.create(ada, again)
    assert [m["content"] for m in model.requests[-1].messages][::2] == ["a", model_said(reply)]
    assert (await texts(chat))[:3] == ["a", "b", model_said(reply)]
    assert len(await chat.read()) == 5


def model_said(reply: Any) -> str:
    return str(reply.choices[0].message.content)


async def test_parse(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer, api: Api
) -> None:
    model.script(Reply('{"name": "Rome"}'))
    kind: Any = {"response_format": City} if api is CHAT else {"text_format": City}
    reply = await api.of(ada).parse(**api.asked("A city?"), **kind)
    value = reply.choices[0].message.parsed if api is CHAT else reply.output_parsed
    assert value == City(name="Rome")
    assert await texts(chat) == ["A city?", '{"name": "Rome"}']
    assert "parsed" not in str(await chat.read())


async def test_a_parse_that_fails_saves_nothing(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer, api: Api
) -> None:
    model.script(Reply("not JSON"))
    kind: Any = {"response_format": City} if api is CHAT else {"text_format": City}
    with pytest.raises(ValueError, match="JSON"):
        await api.of(ada).parse(**api.asked("A city?"), **kind)
    assert await chat.read() == []


async def test_raw_responses(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer, api: Api
) -> None:
    raw = await api.of(ada).with_raw_response.create(**api.asked("My name is Ada."))
    assert raw.headers["content-type"] == "application/json"
    assert len(await chat.read()) == 2
    assert "Ada" in api.text(await parsed(raw))
    manager = api.of(ada).with_streaming_response.create(**api.asked("What is my name?"))
    async with manager as response:
        assert len(await chat.read()) == 4
        assert api.text(await parsed(response)) == "Your name is Ada."
    assert "x-stainless-raw-response" in model.requests[0].headers


@pytest.mark.parametrize(
    "option",
    [
        {"previous_response_id": "r"},
        {"conversation": "c"},
        {"background": True},
        {"prompt": {"id": "p"}},
    ],
    ids=lambda option: next(iter(option)),
)
async def test_a_history_with_the_provider_is_refused(
    ada: AsyncOpenAI, model: ModelServer, option: dict[str, Any], api: Api
) -> None:
    (name,) = option
    for given in ({"extra_body": option}, option if api is RESPONSES else {"extra_body": option}):
        with pytest.raises(ValueError, match=name):
            await api.create(ada, "Hello", **given)
    assert model.requests == []


async def test_several_replies_are_refused_before_anything_is_read(
    far: AsyncConversation, proxy: Proxy, wrap: Wrap, model: ModelServer
) -> None:
    client = wrap(far)
    proxy.go_down()
    with pytest.raises(ValueError, match="n=2"):
        await CHAT.create(client, "Hello", n=2)
    assert model.requests == []


async def test_options_that_ask_for_nothing_pass(ada: AsyncOpenAI) -> None:
    await CHAT.say(ada, "Hello", n=1)
    await CHAT.say(ada, "Hello", n=None)
    chat = {"previous_response_id": None, "background": False, "conversation": NOT_GIVEN}
    with pytest.raises(FormatError):
        await RESPONSES.say(ada, "Hello", **chat)


async def test_server_side_truncation_is_warned_of_once(
    ada: AsyncOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_endpoints, "_warned", set())
    with pytest.warns(UserWarning, match="truncation"):
        await RESPONSES.say(ada, "Hello", truncation="auto")
    with pytest.warns(UserWarning, match="context_management"):
        await RESPONSES.say(ada, "Hello", context_management=[{"type": "compaction"}])
    await RESPONSES.say(ada, "Hello", truncation="auto")
    await RESPONSES.say(ada, "Hello", truncation="disabled")


async def test_extra_body_is_sent_and_may_hold_the_messages(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer, api: Api
) -> None:
    extra = {"top_k": 3, api.field: [{"role": "user", "content": "My name is Ada."}]}
    await api.say(ada, "ignored", extra_body=extra)
    await api.say(ada, "What is my name?", extra_body={"top_k": 3})
    assert model.requests[-1].body["top_k"] == 3
    assert (await texts(chat))[-1] == "Your name is Ada."


async def test_no_new_message_asks_for_another_reply(
    ada: AsyncOpenAI, chat: AsyncConversation, api: Api
) -> None:
    await api.say(ada, "Hello")
    assert "I see 2 messages" in await api.say(ada, [])
    assert len(await chat.read()) == 3


async def test_one_conversation_speaks_one_format(
    ada: AsyncOpenAI, wrap: Wrap, chat: AsyncConversation, model: ModelServer
) -> None:
    await CHAT.say(ada, "My name is Ada.")
    with pytest.raises(FormatError, match="on_other_format"):
        await RESPONSES.say(ada, "What is my name?")
    assert len(model.requests) == 1
    both = wrap(chat, on_other_format="text")
    assert await RESPONSES.say(both, "What is my name?") == "Your name is Ada."


@pytest.mark.filterwarnings("ignore:Passing raw bytes:DeprecationWarning")
async def test_a_body_that_is_no_dict_is_refused(ada: AsyncOpenAI) -> None:
    with pytest.raises(TypeError, match="body"):
        await ada.post("/chat/completions", body=b"{}", cast_to=object)


@pytest.mark.parametrize("content", [b"hello", bytearray(b"x"), {1}])
async def test_bytes_are_refused_though_the_sdk_makes_a_list_of_them(
    ada: AsyncOpenAI, chat: AsyncConversation, api: Api, model: ModelServer, content: Any
) -> None:
    asked = [{"role": "user", "content": given} for given in ("Hi", content)]
    with pytest.raises(ValueError, match=r"message 1: \.content is a list of numbers"):
        await api.create(ada, asked)
    assert model.requests == []
    assert await chat.read() == []


async def test_client_post(ada: AsyncOpenAI, chat: AsyncConversation) -> None:
    body = CHAT.asked("My name is Ada.")
    answer: Any = await ada.post("/chat/completions", body=body, cast_to=object)
    assert "Ada" in answer["choices"][0]["message"]["content"]
    assert len(await chat.read()) == 2
