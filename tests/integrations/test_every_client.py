"""Every client class that the SDKs of Anthropic and OpenAI export can be given a memory.

What lies between a client and its cloud (addresses, signatures, tokens) is below the call that is
remembered, so a transport that answers stands for all of them. A class that a new version of an
SDK exports fails here until it is named below.
"""

from __future__ import annotations

import inspect
import json
from base64 import b64encode
from struct import pack
from typing import TYPE_CHECKING, Any
from zlib import crc32

import anthropic
import httpx2
import openai
import pytest
from anthropic import AnthropicBedrock, AnthropicVertex, AsyncAnthropicBedrock
from anthropic import _base_client as anthropic_base
from openai import _base_client as openai_base

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.setups import Setup
    from turnstore import AsyncStore, Store

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]

Json = dict[str, Any]

_KEY: Json = {"api_key": "none"}
_AWS: Json = {"aws_access_key": "a", "aws_secret_key": "b", "aws_region": "us-east-1"}
# What each class needs to be made, without its prefix Async.
ARGUMENTS: dict[str, Json] = {
    "Anthropic": _KEY,
    "AnthropicAWS": {**_KEY, "aws_region": "us-east-1", "workspace_id": "w"},
    "AnthropicBedrock": _AWS,
    "AnthropicBedrockMantle": _AWS,
    "AnthropicFoundry": {**_KEY, "resource": "r"},
    "AnthropicGoogleCloud": {
        "project": "p",
        "location": "us-east5",
        "workspace_id": "w",
        "token_provider": "token",
    },
    "AnthropicVertex": {"region": "us-east5", "project_id": "p", "access_token": "t"},
    "OpenAI": _KEY,
    "AzureOpenAI": {**_KEY, "azure_endpoint": "https://a.example", "api_version": "1"},
    "BedrockOpenAI": {**_KEY, "aws_region": "us-east-1"},
}


def _exported() -> list[type]:
    """The client classes of both SDKs, each once, in the order of their names."""
    bases = {
        anthropic: (anthropic_base.SyncAPIClient, anthropic_base.AsyncAPIClient),
        openai: (openai_base.SyncAPIClient, openai_base.AsyncAPIClient),
    }
    found = {
        getattr(sdk, name)
        for sdk, kinds in bases.items()
        for name in dir(sdk)
        if not name.startswith("_") and _is_a(getattr(sdk, name), kinds)
    }
    return sorted(found, key=lambda one: one.__name__)


def _is_a(value: object, kinds: tuple[type, ...]) -> bool:
    return inspect.isclass(value) and issubclass(value, kinds)


def _is_async(kind: type) -> bool:
    return kind.__name__.startswith("Async")


CLASSES = _exported()


def test_each_class_is_known() -> None:
    both = {prefix + name for prefix in ("", "Async") for name in ARGUMENTS}
    assert {kind.__name__ for kind in CLASSES} == both


def _full(name: str, setup: Setup) -> str:
    return name if setup.client == "sync" else f"Async{name}"


class Cloud:
    """What answers in place of a provider: how many messages it saw."""

    def __init__(self) -> None:
        self.asked: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        text = f"saw {len(json.loads(request.content)['messages'])}"
        if "chat/completions" in str(request.url):
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            return httpx2.Response(200, json={"id": "c", "created": 1, "choices": [choice]})
        return httpx2.Response(
            200,
            json={
                "id": "m",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "stop_reason": "end_turn",
                "content": [{"type": "text", "text": text}],
                "usage": {"input_tokens": 1, "output_tokens": 1},
            },
        )

    def client(self, kind: type, **options: Any) -> Any:
        transport = httpx2.MockTransport(self)
        http: Any = (httpx2.AsyncClient if _is_async(kind) else httpx2.Client)(transport=transport)
        arguments = {**ARGUMENTS[kind.__name__.removeprefix("Async")], **options}
        if "token_provider" in arguments:
            arguments["token_provider"] = _later if _is_async(kind) else lambda: "token"
        return kind(http_client=http, max_retries=0, **arguments)


async def _later() -> str:
    return "token"


async def _value(made: Any) -> Any:
    return await made if inspect.isawaitable(made) else made


async def _say(client: Any, text: str) -> str:
    messages = [{"role": "user", "content": text}]
    if hasattr(client, "chat"):
        reply = await _value(client.chat.completions.create(model="m", messages=messages))
        return str(reply.choices[0].message.content)
    made = client.messages.create(model="claude-x", max_tokens=9, messages=messages)
    return str((await _value(made)).content[0].text)


@pytest.mark.parametrize("name", ARGUMENTS)
async def test_it_remembers_and_so_does_its_copy(
    name: str, store: AsyncStore, setup: Setup
) -> None:
    kind = next(one for one in CLASSES if one.__name__ == _full(name, setup))
    cloud, chat = Cloud(), store.conversation("ada")
    base = cloud.client(kind)
    assert await _say(base, "not of this conversation") == "saw 1"
    before = dict(vars(base))
    wrapped: Any = chat.wrap(base)
    assert issubclass(type(wrapped), kind)
    assert await _say(wrapped, "one") == "saw 1"
    assert await _say(wrapped, "two") == "saw 3"
    assert await _say(wrapped.with_options(timeout=9), "three") == "saw 5"
    assert vars(base) == before
    assert await _say(base, "nor is this") == "saw 1"
    assert [len(turn.messages) for turn in await chat.turns()] == [2, 2, 2]
    assert len({request.url for request in cloud.asked}) == 1
    assert len({request.headers["user-agent"] for request in cloud.asked}) == 1
    await _value(base.close())


_STREAM: list[Json] = [
    {
        "type": "message_start",
        "message": {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    *(
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": text},
        }
        for text in ("Hello", " Ada")
    ),
    {"type": "content_block_stop", "index": 0},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 2},
    },
    {"type": "message_stop"},
]


def _framed(event: Json) -> bytes:
    """An event as AWS frames those of a stream: lengths and headers, each with its checksum."""
    chunk = b64encode(json.dumps(event).encode()).decode()
    payload = json.dumps({"bytes": chunk}).encode()
    headers = b"".join(
        pack(">B", len(name)) + name + pack(">BH", 7, len(value)) + value
        for name, value in (
            (b":event-type", b"chunk"),
            (b":content-type", b"application/json"),
            (b":message-type", b"event"),
        )
    )
    lengths = pack(">II", 16 + len(headers) + len(payload), len(headers))
    frame = lengths + pack(">I", crc32(lengths)) + headers + payload
    return frame + pack(">I", crc32(frame))


@pytest.mark.parametrize("said", [_STREAM, _STREAM[:-1]], ids=["complete", "truncated"])
async def test_a_stream_of_bedrock_is_saved_where_it_is_complete(
    store: AsyncStore, setup: Setup, said: list[Json]
) -> None:
    def stream(request: httpx2.Request) -> httpx2.Response:
        assert request.url.path.endswith("invoke-with-response-stream")
        content = b"".join(map(_framed, said))
        kind = {"content-type": "application/vnd.amazon.eventstream"}
        return httpx2.Response(200, headers=kind, content=content)

    transport = httpx2.MockTransport(stream)
    asked: Json = {"model": "claude-x", "max_tokens": 9, "stream": True}
    asked["messages"] = [{"role": "user", "content": "Hi"}]
    chat: Any = store.conversation("ada")
    if setup.client == "sync":
        with AnthropicBedrock(**_AWS, http_client=httpx2.Client(transport=transport)) as client:
            events = list(chat.wrap(client).messages.create(**asked))
    else:
        http = httpx2.AsyncClient(transport=transport)
        async with AsyncAnthropicBedrock(**_AWS, http_client=http) as other:
            made = await chat.wrap(other).messages.create(**asked)
            events = [event async for event in made]
    assert [event.type for event in events] == [event["type"] for event in said]
    complete = [{"role": "assistant", "content": [{"type": "text", "text": "Hello Ada"}]}]
    assert (await chat.read())[1:] == (complete if said is _STREAM else [])


def test_credentials_that_vertex_was_given_are_shared(make_store: Callable[..., Store]) -> None:
    """Those that it looks for itself are looked for by each wrapped client, as by each copy."""

    class Credentials:
        expired, token = True, ""

        def refresh(self, _: object) -> None:
            refreshed.append(self)
            self.expired, self.token = False, "t"

    refreshed: list[Credentials] = []
    cloud, chat, given = Cloud(), make_store().conversation("ada"), Credentials()
    http = httpx2.Client(transport=httpx2.MockTransport(cloud))
    with AnthropicVertex(
        region="us-east5",
        project_id="p",
        credentials=given,  # type: ignore[arg-type]
        http_client=http,
    ) as base:
        for _ in range(3):
            chat.wrap(base).messages.create(
                model="claude-x", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
            )
    assert refreshed == [given]
    assert {request.headers["authorization"] for request in cloud.asked} == {"Bearer t"}
