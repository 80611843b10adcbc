"""Timing in pairs: in every round each subject has its go, and ratios are taken round by round.

Absolute times differ from run to run and from machine to machine, and on a shared machine from one
second to the next. A round is short, so what slows it slows all that run in it; the median over the
rounds of the ratio *within* a round is the figure that can be compared.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

Kind = Literal["sync", "async"]
_SLOW_NS = 50_000_000  # a call of 50 ms and more is made once a round


@dataclass(frozen=True)
class Effort:
    """How long a cell of the table may take."""

    seconds: float = 4.0
    min_rounds: int = 5
    max_rounds: int = 400
    inner: int = 4
    quick: bool = False


FULL = Effort()
QUICK = Effort(seconds=0.15, min_rounds=2, max_rounds=6, inner=2, quick=True)


@dataclass
class Go:
    """What one subject does in a round: `before` is not timed, `call(i)` is, `inner` times."""

    name: str
    call: Callable[[int], Any]
    before: Callable[[int], Any] | None = None
    rounds: list[list[float]] = field(default_factory=list)
    slow: bool = False

    def summary(self) -> dict[str, Any]:
        """Median and minimum of all samples, in microseconds."""
        every = [sample for samples in self.rounds for sample in samples]
        return {
            "subject": self.name,
            "median_us": round(statistics.median(every), 2),
            "min_us": round(min(every), 2),
            "samples": len(every),
        }


def run(body: Coroutine[Any, Any, Any], runner: asyncio.Runner | None) -> Any:
    """Run a coroutine on the loop of `runner`, or, for sync subjects, without any loop."""
    if runner is not None:
        return runner.run(body)
    try:
        body.send(None)
    except StopIteration as stop:
        return stop.value
    raise RuntimeError("a sync subject waited for an event loop")


async def settle(value: Any, kind: Kind) -> Any:
    """The value, awaited if the subject is an async one."""
    return await value if kind == "async" else value


async def interleave(gos: Sequence[Go], kind: Kind, effort: Effort) -> None:
    """Fill `rounds` of every Go, in turns, each round starting with another subject."""
    waits = kind == "async"
    clock = time.perf_counter_ns
    for go in gos:  # warm: connections, scripts, caches
        if go.before:
            await settle(go.before(-1), kind)
        started = clock()
        await settle(go.call(0), kind)
        go.slow = clock() - started > _SLOW_NS
    min_rounds = min(3, effort.min_rounds) if any(go.slow for go in gos) else effort.min_rounds
    gc.collect()
    gc.disable()
    try:
        deadline = time.monotonic() + effort.seconds
        for number in range(effort.max_rounds):
            if number >= min_rounds and time.monotonic() > deadline:
                break
            shift = number % len(gos)
            for go in (*gos[shift:], *gos[:shift]):
                if go.before:
                    await settle(go.before(number), kind)
                samples: list[float] = []
                for index in range(1 if go.slow else effort.inner):
                    started = clock()
                    value = go.call(index)
                    if waits:
                        await value
                    samples.append((clock() - started) / 1_000)
                    del value
                go.rounds.append(samples)
            gc.collect(0)
    finally:
        gc.enable()


def ratio(above: Go, below: Go) -> float:
    """The median over the rounds of the ratio of the two medians within a round."""
    pairs = zip(above.rounds, below.rounds, strict=True)
    return round(
        statistics.median(statistics.median(a) / statistics.median(b) for a, b in pairs), 4
    )


def figures(case: str, kind: Kind, gos: Sequence[Go], **facts: Any) -> list[dict[str, Any]]:
    """One record a subject, with its ratio to every other subject of the same rounds."""
    return [
        {
            "case": case,
            "kind": kind,
            **facts,
            **go.summary(),
            "ratio_to": {other.name: ratio(go, other) for other in gos if other is not go},
        }
        for go in gos
    ]
