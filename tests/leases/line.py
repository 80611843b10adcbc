"""Looks at the queue of a conversation behind the store's back, and sets it by hand."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.servers.running import Server
    from turnstore import AsyncConversation, Conversation

_LAYOUT = re.compile(rb"queue 1 (\d+) (\S+) (\d+) \|([^|]*)\|([^|]*)")


@dataclass(frozen=True)
class Line:
    """What `lua/README.md` says of the queue."""

    number: int
    token: str
    until_ms: int
    gone: tuple[str, ...]
    waiting: tuple[tuple[str, int], ...]

    @property
    def held(self) -> bool:
        """Whether somebody took the lease and did not give it back."""
        return self.until_ms != 0

    @property
    def text(self) -> str:
        """The line as it is stored."""
        gone = "".join(f" {token}" for token in self.gone)
        waiting = "".join(f" {token}:{until}" for token, until in self.waiting)
        return f"queue 1 {self.number} {self.token} {self.until_ms} |{gone}|{waiting}"


EMPTY = Line(0, "-", 0, (), ())


def key_of(chat: AsyncConversation | Conversation) -> str:
    """Give the key of the queue."""
    return chat.key.removesuffix("turns") + "queue"


def parsed(text: bytes | None) -> Line:
    """Read a line; no key is an empty one."""
    if text is None:
        return EMPTY
    found = _LAYOUT.fullmatch(text)
    assert found, text
    number, token, until_ms, gone, waiting = (part.decode() for part in found.groups())
    pairs = [one.split(":") for one in waiting.split()]
    return Line(
        int(number),
        token,
        int(until_ms),
        tuple(gone.split()),
        tuple((waiter, int(until)) for waiter, until in pairs),
    )


class Queue:
    """The queue of one conversation."""

    def __init__(self, server: Server, chat: AsyncConversation | Conversation) -> None:
        self._redis = server.raw
        self.key = key_of(chat)

    @property
    def line(self) -> Line:
        """What is in it; a key without a time to live is an error."""
        line = parsed(self._redis.get(self.key))
        assert line == EMPTY or self._redis.pttl(self.key) > 0
        return line

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self.line.waiting)

    def has_waiting(self, count: int) -> bool:
        """Say whether so many wait."""
        return self.waiting == count

    def run_out(self) -> None:
        """Let the lease be over by now, as if its time had passed."""
        self._put(replace(self.line, until_ms=1))

    def forget_waiters(self) -> None:
        """Let the time of those who wait be over."""
        line = self.line
        self._put(replace(line, waiting=tuple((token, 1) for token, _ in line.waiting)))

    def lose(self) -> None:
        """Delete the key, as an eviction does."""
        self._redis.delete(self.key)

    def _put(self, line: Line) -> None:
        self._redis.set(self.key, line.text, px=600_000)
