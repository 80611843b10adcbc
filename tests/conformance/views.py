"""What is stored, and what reached the model, as a person would read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnstore import Window
from turnstore.messages import format_named

if TYPE_CHECKING:
    from turnstore import AsyncConversation

Json = dict[str, Any]


async def stored(chat: AsyncConversation) -> list[list[str]]:
    """Give the texts of each stored turn, oldest first; what has none is left out."""
    return [
        [text for message in turn.messages if (text := format_named(turn.format).text(message))]
        for turn in await chat.turns()
    ]


async def kept(chat: AsyncConversation) -> list[Json]:
    """Give everything that is stored."""
    return await chat.read(Window())


def heard(messages: list[Json]) -> list[tuple[str, str]]:
    """Give who said what, of messages that reached the model."""
    return [(str(one.get("role", one.get("type"))), text_of(one)) for one in messages]


def text_of(message: Json) -> str:
    """Give the text of a message in any of the usual shapes."""
    content = message.get("content", message.get("parts", message.get("output")))
    if isinstance(content, list):
        return "".join(
            part if isinstance(part, str) else str(part.get("text") or "") for part in content
        )
    return str(content)
