"""How a test talks to a model: the same words for chat completions and for responses."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import openai

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from turnstore import AsyncConversation

Json = dict[str, Any]

BROKEN: tuple[type[Exception], ...] = (
    openai.APIConnectionError,
    # openai 2 lets the error of its HTTP library through where a stream breaks
    *(import_module(n).TransportError for n in ("httpx", "httpx2") if find_spec(n)),
)
"""What the SDK raises where a connection breaks."""


@dataclass(frozen=True)
class Api:
    """One endpoint."""

    name: str
    field: str

    def of(self, client: AsyncOpenAI) -> Any:
        """Give what has `create`, `parse` and `stream`."""
        return client.chat.completions if self.field == "messages" else client.responses

    def asked(self, given: Any, **options: Any) -> Json:
        """Give the arguments of a call; a text is one message of the user."""
        if isinstance(given, str):
            given = [{"role": "user", "content": given}]
        return {"model": "m", self.field: given, **options}

    async def create(self, client: AsyncOpenAI, given: Any, **options: Any) -> Any:
        """Ask, plain or with stream=True."""
        return await self.of(client).create(**self.asked(given, **options))

    async def say(self, client: AsyncOpenAI, given: Any, **options: Any) -> str:
        """Ask, and give the text of the answer."""
        return self.text(await self.create(client, given, **options))

    def text(self, reply: Any) -> str:
        """Give the text of a whole reply."""
        if self.field == "messages":
            return str(reply.choices[0].message.content)
        return str(reply.output_text)

    def piece(self, event: Any) -> str:
        """Give the text of one event of a stream."""
        if self.field == "messages":
            return "".join(choice.delta.content or "" for choice in event.choices)
        return str(event.delta) if event.type == "response.output_text.delta" else ""

    async def read(self, stream: Any) -> str:
        """Read a stream to its end, and give its text."""
        return "".join([self.piece(event) async for event in stream])


CHAT = Api("chat", "messages")
RESPONSES = Api("responses", "input")


async def texts(chat: AsyncConversation) -> list[str]:
    """Give the texts that are stored, oldest first."""
    return [text_of(message) for message in await chat.read()]


def text_of(message: Json) -> str:
    """Give the text of a stored message of either format."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return str(content)


async def parsed(raw: Any) -> Any:
    """Give what a raw response holds; its `parse` is a coroutine in some of them."""
    value = raw.parse()
    return await value if inspect.isawaitable(value) else value
