"""Models that summarise for tests, and what a test asks of a conversation with a summary."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from turnstore import Window
from turnstore.context import Context, Summary

if TYPE_CHECKING:
    from tests.servers.running import Server
    from turnstore import AsyncConversation

HEADING = "So far:"
NEVER = 10**6


class Echo:
    """A model that forgets nothing: its summary is all that it was ever told, line by line."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return prompt.removeprefix("(none)\n")


def echoing(echo: Any, window: Window | None = None, **options: Any) -> Context:
    """Make a context whose summary is a list of lines."""
    options = {"template": "{summary}\n{transcript}", "heading": HEADING, **options}
    return Context(window or Window(turns=4), summary=Summary(echo, **options))


def lines(first: int, last: int) -> list[str]:
    """Give the lines of a transcript of turns that `say` made."""
    return [
        f"{who}: {what}{n}"
        for n in range(first, last + 1)
        for who, what in (("user", "q"), ("assistant", "a"))
    ]


async def say(chat: AsyncConversation, number: int, context: Context) -> list[dict[str, Any]]:
    """Take a turn, and give what was sent."""
    async with chat.turn(f"q{number}", context=context) as turn:
        sent: list[dict[str, Any]] = turn.messages
        turn.reply(f"a{number}")
    return sent


def carried(sent: list[dict[str, Any]]) -> list[str]:
    """Give the lines of the summary that was sent; none where there was none."""
    if sent[0]["role"] != "system":
        return []
    heading, *rest = sent[0]["content"].split("\n")
    assert heading == HEADING
    assert sent[0].keys() == {"role", "content"}, "no mark of ours"
    return list(rest)


def as_lines(sent: list[dict[str, Any]]) -> list[str]:
    return [f"{m['role']}: {m['content']}" for m in sent if m["role"] != "system"]


async def fill(chat: AsyncConversation, first: int, last: int) -> None:
    """Store turns without any context."""
    for number in range(first, last + 1):
        await chat.append([f"q{number}", {"role": "assistant", "content": f"a{number}"}])


def part(chat: AsyncConversation, name: str) -> str:
    """Give the key of the summary or the lease."""
    return f"{chat.key.removesuffix(':turns')}:{name}"


def stored(server: Server, chat: AsyncConversation) -> tuple[int, list[str]] | None:
    """Give up to which turn the summary goes, and its lines."""
    raw = server.raw.get(part(chat, "summary"))
    if raw is None:
        return None
    number, _, turn, _, text = json.loads(raw)
    assert number == 1
    return turn, text.split("\n")


def lease(server: Server, chat: AsyncConversation) -> int:
    """Give the milliseconds that the lease has left; -2 where nobody holds one."""
    return int(server.raw.pttl(part(chat, "lease")))
