"""Make a conversation handle: no I/O, and cheap enough for one per request."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import redis

if TYPE_CHECKING:
    from context import Context

_BATCH = 200


def measure(context: Context) -> list[dict[str, Any]]:
    """Microseconds a handle, each with an id not seen before, and the commands sent (none)."""
    ours = [kind for kind in context.types if kind.name == "turnstore"]
    if not ours or context.peer is not None:
        return []
    subject: Any = ours[0](context.url)
    make = subject.store.conversation
    watcher: Any = redis.Redis.from_url(context.url)
    before = watcher.info("stats")["total_commands_processed"]
    rounds = []
    for number in range(20 if context.effort.quick else 200):
        names = [f"user-{number}-{index}" for index in range(_BATCH)]
        started = time.perf_counter_ns()
        for name in names:
            make(name)
        rounds.append((time.perf_counter_ns() - started) / 1_000 / _BATCH)
    sent = watcher.info("stats")["total_commands_processed"] - before - 1
    watcher.close()
    context.do(subject.close())
    return [
        {
            "case": "handle",
            "kind": context.kind,
            "subject": "turnstore",
            "median_us": round(statistics.median(rounds), 3),
            "min_us": round(min(rounds), 3),
            "samples": len(rounds),
            "commands_sent": sent,
        }
    ]
