"""Bytes of Redis memory a message.

Taken as the growth of `used_memory` (less the clients' buffers) over many conversations, not by
MEMORY USAGE: only so are the key, its time to live, and the keys and indexes that some peers keep
beside it counted. For one list the two agree.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import mix
import redis

if TYPE_CHECKING:
    from context import Context
    from subjects import Subject

COPIES = {10: 1_500, 100: 20, 1_000: 30, 10_000: 4}
_SEEDS = 8
_PEER_SECONDS = 10  # a slow one fills fewer conversations


def measure(context: Context) -> list[dict[str, Any]]:
    """One figure a subject and length, with the ratio to the raw floor."""
    if context.kind == "async" and context.peer is None:
        return []  # the same bytes as sync
    lengths = context.limits.get(
        "memory", (10, 1_000, 10_000) if context.peer is None else (1_000,)
    )
    found: list[dict[str, Any]] = []
    for count in context.lengths(lengths):
        copies = COPIES[count]
        if context.effort.quick:
            copies = min(copies, 5)
        seeds = min(_SEEDS, copies)
        conversations = [mix.conversation(count, seed=mix.SEED + number) for number in range(seeds)]
        for kind in context.types:
            if kind.appends:
                subject = kind(context.url)
                found.append(_one(context, subject, conversations, copies, count))
                context.do(subject.close())
        raw = found[-sum(kind.appends for kind in context.types)]["bytes_per_message"]
        for figure in found:
            figure.setdefault(
                "ratio_to", {"floor raw": round(figure["bytes_per_message"] / raw, 4)}
            )
    return found


def _one(
    context: Context, subject: Subject, conversations: list[Any], copies: int, count: int
) -> dict[str, Any]:
    client = redis.Redis.from_url(context.url)
    natives = [[subject.native(turn) for turn in turns] for turns in conversations]
    for number in range(2):  # what a server allocates once, it has then
        context.do(subject.fill(f"memory_warm_{number}", natives[0]))
    before = _used(client)
    deadline = time.monotonic() + _PEER_SECONDS
    done = 0
    for number in range(copies):
        key = re.sub(r"\W+", "_", f"memory_{subject.name}_{count}_{number}")
        turns = natives[number % len(natives)]
        if context.peer is None or subject.name.startswith("floor"):
            context.do(subject.fill(key, turns))
        else:
            for turn in turns:
                context.do(subject.append(key, turn))
        done += 1
        if time.monotonic() > deadline:
            break
    grown = _used(client) - before
    client.close()
    return {
        "case": "memory",
        "kind": context.kind,
        "stored": count,
        "subject": subject.name,
        "conversations": done,
        "bytes_per_message": round(grown / done / count, 1),
    }


def _used(client: Any) -> int:
    info = client.info("memory")
    return int(info["used_memory"]) - int(info["mem_clients_normal"])
