"""What goes in comes out equal, through every server and client (PAINS G)."""

from __future__ import annotations

import enum
import json
from typing import TYPE_CHECKING, Any

import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionMessage,
    ChatCompletionUserMessageParam,
)
from openai.types.responses import Response

from tests.store.talk import assistant, user
from tests.unit.test_json import FAITHFUL, JSON, exactly, nested
from turnstore import Window

if TYPE_CHECKING:
    from tests.servers.running import Server
    from turnstore import AsyncStore

pytestmark = pytest.mark.one_setup


VALUES = {**FAITHFUL, "200 levels": nested(196)}  # it stands in a list, in a dict, in a turn


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
async def test_values(store: AsyncStore, value: Any) -> None:
    chat = store.conversation("c")
    await chat.append([user("before")])
    await chat.append([user([value]), assistant(None)], meta={"value": value})
    await chat.append([user("after")])
    history = await chat.read()
    assert [exactly(m["content"]) for m in history] == [
        exactly(content) for content in ("before", [value], None, "after")
    ]
    assert exactly(history.turns[1].meta) == exactly({"value": value})
    assert exactly((await chat.turns())[1].messages) == exactly([user([value]), assistant(None)])
    (undone,) = (await chat.rewind(2))[:1]
    assert exactly(undone.meta) == exactly({"value": value})


@pytest.mark.servers("redis-8", "redis-url", "no-server")  # bytes are bytes to any server
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(messages=JSON, meta=JSON)
def test_any_json(server: Server, setup: Any, prefix: str, messages: Any, meta: Any) -> None:
    from turnstore import Store  # noqa: PLC0415 - hypothesis runs sync tests; the client matters not

    client = server.client(setup)
    chat = Store(client, name="test", prefix=prefix).conversation("c")
    chat.clear()
    chat.append([user(messages), user("x")], meta={"meta": meta})
    history = chat.read(Window())
    assert exactly([*history]) == exactly([user(messages), user("x")])
    assert exactly(history.turns[0].meta) == exactly({"meta": meta})
    client.close()


# Objects of the openai package

CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1.0}'}}
COMPLETION: dict[str, Any] = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{
        "index": 0, "finish_reason": "tool_calls",
        "message": {
            "role": "assistant", "content": None, "refusal": None, "tool_calls": [CALL],
            "reasoning_content": "because", "annotations": [],
            "thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "Eq8B"}],
        },
    }],
}  # fmt: skip


async def test_a_message_of_a_completion(store: AsyncStore) -> None:
    """G1, G4: calls, unknown fields and signatures stay as they came."""
    chat = store.conversation("c")
    completion = ChatCompletion.model_validate(COMPLETION)
    await chat.append(["q", completion.choices[0].message])
    assert await chat.read() == [user("q"), COMPLETION["choices"][0]["message"]]


async def test_a_message_made_by_hand(store: AsyncStore) -> None:
    chat = store.conversation("c")
    message = ChatCompletionMessage(role="assistant", content="a")
    parameter = ChatCompletionUserMessageParam(role="user", content="q")
    await chat.append([parameter, message])
    assert await chat.read() == [user("q"), assistant("a")]


async def test_objects_inside_dicts(store: AsyncStore) -> None:
    """As many write it: `{"role": …, "tool_calls": message.tool_calls}`."""
    chat = store.conversation("c")
    message = ChatCompletion.model_validate(COMPLETION).choices[0].message
    await chat.append({"role": "assistant", "content": None, "tool_calls": message.tool_calls})
    assert (await chat.read())[0]["tool_calls"] == [CALL]


async def test_items_of_a_response(store: AsyncStore) -> None:
    items: list[dict[str, Any]] = [
        {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "gAAA"},
        {"type": "function_call", "id": "fc", "call_id": "1", "name": "f", "arguments": "{}"},
        {"type": "kind_of_2031", "id": "x", "deep": {"a": [None, 1.0]}},
    ]
    response = Response.construct(id="r", output=items)  # as the SDK does, without validation
    chat = store.conversation("c")
    await chat.append([user("q"), *response.output], format="openai.responses")
    assert await chat.read() == [user("q"), *items]


class Kind(enum.StrEnum):
    USER = "user"


class Part(pydantic.BaseModel):
    type: str = "text"
    text: str


class Image(Part):
    type: str = "image"
    url: str


class Said(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")

    role: Kind = Kind.USER
    content: list[Part]


async def test_models_of_the_caller(store: AsyncStore) -> None:
    """G2, G3: the fields of a subclass, tags that are defaults, unknown fields."""
    chat = store.conversation("c")
    parts = [Part(text="a"), Image(text="b", url="u")]
    await chat.append(Said.model_validate({"content": parts, "extra": {"x": 1}}))
    assert await chat.read() == [
        {
            "role": "user",
            "content": [{"type": "text", "text": "a"}, {"type": "image", "text": "b", "url": "u"}],
            "extra": {"x": 1},
        }
    ]


async def test_what_is_stored_is_json_that_anyone_can_read(
    store: AsyncStore, server: Server
) -> None:
    """G6: no pickle, no private encoding: what is in Redis can be looked at."""
    chat = store.conversation("c")
    await chat.append([user("中文 😀"), assistant("é")])
    _, element = server.raw.lrange(chat.key, 0, -1)
    assert user("中文 😀") in json.loads(element)[-1]
    assert "中文 😀".encode() in element, "and is not escaped, which would double its size"


async def test_list_content_is_as_good_as_text(store: AsyncStore) -> None:
    """G8: a message whose content is a list was invisible to a search."""
    chat = store.conversation("c")
    await chat.append([user([{"type": "text", "text": "a"}]), assistant("b")])
    assert len(await chat.read()) == 2


async def test_one_odd_message_poisons_nothing(store: AsyncStore) -> None:
    """G9: lone surrogates made a whole conversation unreadable."""
    chat = store.conversation("c")
    for content in ("a", "\ud83d", "b", 2**70, "c"):
        await chat.append(user(content))
    assert [m["content"] for m in await chat.read()] == ["a", "\ud83d", "b", 2**70, "c"]
    assert [m["content"] for m in await chat.read(Window(turns=4))] == ["\ud83d", "b", 2**70, "c"]


async def test_a_large_message(store: AsyncStore) -> None:
    chat = store.conversation("c")
    image = "A" * 4_000_000
    await chat.append(user([{"type": "image_url", "image_url": {"url": image}}]))
    await chat.append("what is it?")
    assert (await chat.read())[0]["content"][0]["image_url"]["url"] == image
