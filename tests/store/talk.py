"""What the tests of the store share: short names, and what a repetition is known by."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from turnstore import _scripts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.servers.running import Server
    from turnstore import AsyncConversation

#: Of how many appends the turn ids are known, as lua/lib/head.lua has it.
KNOWN = int(re.findall(r"IDS_KEPT = (\d+)", _scripts.load("append").source)[0])


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def texts(messages: Iterable[dict[str, Any]]) -> list[Any]:
    return [message["content"] for message in messages]


async def fill(chat: AsyncConversation, count: int, *, size: int = 1, start: int = 1) -> None:
    """Append turns of `size` messages: the first is 1.1, 1.2, …; their ids are t1, t2, …."""
    for number in range(start, start + count):
        await chat.append([f"{number}.{m}" for m in range(1, size + 1)], turn_id=f"t{number}")


def numbered(*turns: int, size: int = 1) -> list[str]:
    """Give the texts that `fill` made for these turns."""
    return [f"{number}.{m}" for number in turns for m in range(1, size + 1)]


def raw(server: Server, chat: AsyncConversation) -> list[bytes]:
    """Give what the conversation's key holds."""
    found: list[bytes] = server.raw.lrange(chat.key, 0, -1)
    return found


def pttl(server: Server, chat: AsyncConversation) -> int:
    """Give the milliseconds that the conversation has left; -1 is for ever, -2 is no key."""
    return int(server.raw.pttl(chat.key))
