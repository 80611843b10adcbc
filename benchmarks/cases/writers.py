"""Eight writers on one conversation: what is lost, doubled, torn or out of order, and how fast.

Sync: eight processes, each with its own client. Async: eight tasks of one loop, with one client.
Every turn is a question and its answer, numbered by its writer.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import queue
import statistics
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import harness
import mix

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier

    from context import Context
    from subjects import Subject

WRITERS = 8
ROUNDS = 5


def tagged(writer: int, turns: int) -> list[mix.Turn]:
    """A writer's turns: each text begins with the writer, the number and the place in the turn."""
    made = mix.fresh_turns(turns, seed=mix.SEED + 100 + writer)
    for number, turn in enumerate(made):
        for place, message in enumerate(turn):
            message["content"] = f"{writer}/{number}/{place} {message['content']}"
    return made


def audit(texts: list[str], turns: int) -> dict[str, int]:
    """Count what went wrong in a conversation that eight writers of `turns` turns have written."""
    seen = [tuple(int(part) for part in text.split(" ", 1)[0].split("/")) for text in texts]
    unique = set(seen)
    expected = {(w, n, p) for w in range(WRITERS) for n in range(turns) for p in (0, 1)}
    torn = sum(
        1
        for index, (writer, number, place) in enumerate(seen)
        if place == 0 and seen[index + 1 : index + 2] != [(writer, number, 1)]
    )
    order = 0
    last = dict.fromkeys(range(WRITERS), -1)
    for writer, number, place in seen:
        if place == 0:
            order += number < last[writer]
            last[writer] = max(last[writer], number)
    return {
        "messages": len(expected),
        "lost": len(expected - unique),
        "doubled": len(seen) - len(unique),
        "torn": torn,
        "out_of_order": order,
    }


def measure(context: Context) -> list[dict[str, Any]]:
    """Counts and appends a second for each subject, rounds interleaved."""
    types = [kind for kind in context.types if kind.appends and kind.name != "floor raw"]
    turns = 5 if context.effort.quick else 25 if context.peer else 200
    rounds = 2 if context.effort.quick or context.peer else ROUNDS
    phases = [(number, index) for number in range(rounds) for index in range(len(types))]
    rates: list[list[float]] = [[] for _ in types]
    faults: list[dict[str, int]] = [{} for _ in types]
    walls = (_tasks if context.kind == "async" else _processes)(context, types, phases, turns)
    for (number, index), wall in zip(phases, walls, strict=True):
        subject = types[index](context.url)
        for name, value in audit(context.do(subject.texts(_key(number, index))), turns).items():
            faults[index][name] = faults[index].get(name, 0) + value
        context.do(subject.close())
        rates[index].append(WRITERS * turns / wall)
    found: list[dict[str, Any]] = []
    for index, kind in enumerate(types):
        pairs = {
            other.name: round(
                statistics.median(a / b for a, b in zip(rates[index], rates[at], strict=True)), 4
            )
            for at, other in enumerate(types)
            if at != index
        }
        found.append(
            {
                "case": "writers",
                "kind": context.kind,
                "subject": kind.name,
                "writers": WRITERS,
                "as": "tasks" if context.kind == "async" else "processes",
                "turns_each": turns,
                "rounds": rounds,
                **faults[index],
                "appends_per_second": round(statistics.median(rates[index])),
                "rate_ratio_to": pairs,
            }
        )
    return found


class _Job(NamedTuple):
    """What every writer has to do: in each phase, append its turns to one subject."""

    url: str
    types: list[type[Subject]]
    phases: list[tuple[int, int]]
    turns: int


def _key(number: int, index: int) -> str:
    return f"writers_{number}_{index}"


def _processes(
    context: Context, types: list[type[Subject]], phases: list[tuple[int, int]], turns: int
) -> list[float]:
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(WRITERS)
    spans_out: Any = spawn.Queue()
    job = _Job(context.url, types, phases, turns)
    processes = [
        spawn.Process(target=_writer, args=(number, job, barrier, spans_out))
        for number in range(WRITERS)
    ]
    for process in processes:
        process.start()
    spans = []
    for _ in range(WRITERS * len(phases)):
        while True:
            try:
                spans.append(spans_out.get(timeout=5))
                break
            except queue.Empty:
                if any(process.exitcode not in (None, 0) for process in processes):
                    for process in processes:
                        process.kill()
                    raise RuntimeError("a writer process failed") from None
    for process in processes:
        process.join()
    walls = []
    for at in range(len(phases)):
        mine = [span for span in spans if span[0] == at]
        walls.append(max(span[2] for span in mine) - min(span[1] for span in mine))
    return walls


def _writer(writer: int, job: _Job, barrier: Barrier, spans_out: Any) -> None:
    subjects = [kind(job.url) for kind in job.types]
    natives = [[s.native(turn) for turn in tagged(writer, job.turns)] for s in subjects]
    for subject, mine in zip(subjects, natives, strict=True):
        subject.append(f"writers_warm_{writer}", mine[0])
    for at, (number, index) in enumerate(job.phases):
        subject, key = subjects[index], _key(number, index)
        barrier.wait(120)
        started = time.monotonic()
        for turn in natives[index]:
            subject.append(key, turn)
        spans_out.put((at, started, time.monotonic()))
    for subject in subjects:
        subject.close()


def _tasks(
    context: Context, types: list[type[Subject]], phases: list[tuple[int, int]], turns: int
) -> list[float]:
    async def body() -> list[float]:
        subjects = [kind(context.url) for kind in types]
        natives = [
            [[s.native(turn) for turn in tagged(writer, turns)] for writer in range(WRITERS)]
            for s in subjects
        ]
        walls: list[float] = []

        async def one(subject: Subject, key: str, mine: list[Any]) -> None:
            for turn in mine:
                await subject.append(key, turn)

        for index, subject in enumerate(subjects):  # as many connections as writers
            await asyncio.gather(
                *(one(subject, f"writers_warm_{w}", natives[index][w][:1]) for w in range(WRITERS))
            )
        for number, index in phases:
            key = _key(number, index)
            started = time.monotonic()
            async with asyncio.TaskGroup() as group:
                for writer in range(WRITERS):
                    group.create_task(one(subjects[index], key, natives[index][writer]))
            walls.append(time.monotonic() - started)
        for subject in subjects:
            await subject.close()
        return walls

    found: list[float] = harness.run(body(), context.runner)
    return found
