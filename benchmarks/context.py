"""What a case is given: the server, the subjects of one kind, the effort."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import harness
import mix

if TYPE_CHECKING:
    import asyncio

    from harness import Effort, Go, Kind
    from mix import Turn
    from subjects import Subject

_QUICK_LENGTH = 1_000


@dataclass
class Context:
    """One kind of subjects on one server."""

    url: str
    kind: Kind
    effort: Effort
    types: list[type[Subject]]
    runner: asyncio.Runner | None
    peer: str | None = None
    limits: dict[str, Any] = field(default_factory=dict)

    def lengths(self, all_of: tuple[int, ...]) -> tuple[int, ...]:
        """The lengths of conversation to measure; a quick run leaves out the long ones."""
        return tuple(n for n in all_of if n <= _QUICK_LENGTH) if self.effort.quick else all_of

    def do(self, value: Any) -> Any:
        """Let an untimed call of a subject finish."""
        return harness.run(harness.settle(value, self.kind), self.runner)

    def time(self, case: str, gos: list[Go], **facts: Any) -> list[dict[str, Any]]:
        """Interleave the subjects and give one figure each."""
        harness.run(harness.interleave(gos, self.kind, self.effort), self.runner)
        return harness.figures(case, self.kind, gos, **facts)


@dataclass
class Filled:
    """A subject with a conversation of `count` messages, renewed before it has grown by a tenth."""

    context: Context
    subject: Subject
    label: str
    count: int
    each: int
    master: str = field(init=False)
    turns: list[Any] = field(init=False)
    fresh: list[Any] = field(init=False)
    key: str = field(init=False)
    used: int = field(init=False, default=0)
    number: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.turns = [self.subject.native(turn) for turn in mix.conversation(self.count)]
        self.fresh = [self.subject.native(turn) for turn in _fresh()]
        self.master = self.key = re.sub(r"\W+", "_", f"{self.label}_{self.count}")
        self.context.do(self.subject.fill(self.master, self.turns))
        self.room = max(self.each, self.count // 20)
        self.used = self.room

    def renew(self, number: int) -> Any:
        """A conversation of the stated length for the next round, if this one has grown."""
        del number
        self.used += self.each
        if self.used <= self.room:
            return _nothing() if self.context.kind == "async" else None
        self.used = self.each
        self.number += 1
        self.key = f"{self.master}_{self.number}"
        return self.subject.renew(self.master, self.key, self.turns)

    def next_turn(self, index: int) -> Any:
        """A turn to append, seldom the same."""
        return self.fresh[(self.number * self.each + self.used + index) % len(self.fresh)]


async def _nothing() -> None:
    return None


def _fresh() -> list[Turn]:
    return mix.fresh_turns(64)
