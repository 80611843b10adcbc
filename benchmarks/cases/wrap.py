"""Wrap a client and make one call: each real SDK against an API on this machine.

`bare SDK call` sends the newest 50 messages and a new one, kept in memory. `by hand` reads them
from Redis at the ideal floor, makes the same call, and stores question and answer at the ideal
floor: the call plus the two round trips. `by hand, past` hands the messages over in `extra_body`,
past what the SDK does with every one of them, which takes longer than all the rest; turnstore does
the same. It wraps the client anew for each call, as a web handler would.
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import mix
import subjects
from context import Context, Filled
from harness import Go
from wrapped_clients import CLIENTS, Client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Ask: TypeAlias = "Callable[..., Any]"
NEWEST = 50
STORED = 200
_BATCH = 50


def measure(context: Context) -> list[dict[str, Any]]:
    """Figures for a plain call and for a stream of each client; and what `wrap` alone costs."""
    found: list[dict[str, Any]] = []
    with _model_server() as url:
        for kind in CLIENTS:
            try:
                sdk = kind(context.kind, url)
            except ImportError:
                continue
            for case, stream in (("wrap", False), ("wrap_stream", True)):
                found += _calls(context, case, sdk, stream=stream)
            found += _wrap_alone(context, sdk)
            context.do(sdk.close())
    return found


def _calls(context: Context, case: str, sdk: Client, *, stream: bool) -> list[dict[str, Any]]:
    ask = _asker(context, sdk, stream=stream)
    ideal = subjects.FLOORS[context.kind][1](context.url)
    ideal.native = sdk.native
    floor = _filled(context, ideal, f"{case}_{sdk.name}_floor")
    past = _filled(context, ideal, f"{case}_{sdk.name}_past")
    history = mix.flat([sdk.native(turn) for turn in mix.conversation(STORED)])[-NEWEST:]
    gos = [
        Go("bare SDK call", lambda i: ask(sdk.client, [*history, floor.fresh[i][0]])),
        Go("by hand", _by_hand(context, ask, sdk, floor), floor.renew),
        Go("by hand, past", _by_hand(context, ask, sdk, past, past=True), past.renew),
    ]
    opened = [ideal]
    if subjects.ours_is_there():
        ours: Any = subjects.OURS[context.kind](context.url)
        ours.native, ours.fill = sdk.native, partial(_fill, context, ours, sdk)
        filled = _filled(context, ours, f"{case}_{sdk.name}_ours")
        window = ours.windows[NEWEST]

        def wrapped(index: int) -> Any:
            remembering = ours.store.conversation(filled.key).wrap(sdk.client, window=window)
            return ask(remembering, [filled.fresh[index][0]])

        context.do(wrapped(0))
        kept = ours.filler.conversation(filled.key).read(ours.all)
        if len(kept) != STORED + 2:
            raise AssertionError(f"one call left {len(kept)} messages where {STORED} were")
        gos.append(Go("turnstore", wrapped, filled.renew))
        opened.append(ours)
    found = context.time(case, gos, stored=STORED, client=sdk.name)
    for subject in opened:
        context.do(subject.close())
    return found


def _filled(context: Context, subject: Any, label: str) -> Filled:
    filled = Filled(context, subject, label, STORED, context.effort.inner)
    filled.room = context.effort.inner
    return filled


def _fill(context: Context, ours: Any, sdk: Client, key: str, turns: list[Any]) -> Any:
    """What `fill` does, in the client's format."""
    conversation = ours.filler.conversation(key)
    for turn in turns:
        conversation.append(turn, format=sdk.format)
    return _nothing() if context.kind == "async" else None


async def _nothing() -> None:
    return None


def _asker(context: Context, sdk: Client, *, stream: bool) -> Ask:
    def ask(client: Any, messages: list[Any], *, past: bool = False) -> Any:
        answer = sdk.call(client, messages, stream=stream, past=past)
        return "".join(map(sdk.text, answer)) if stream else sdk.text(answer)

    async def ask_async(client: Any, messages: list[Any], *, past: bool = False) -> Any:
        answer = await sdk.call(client, messages, stream=stream, past=past)
        return "".join([sdk.text(one) async for one in answer]) if stream else sdk.text(answer)

    return ask_async if context.kind == "async" else ask


def _by_hand(
    context: Context, ask: Ask, sdk: Client, floor: Filled, *, past: bool = False
) -> Callable[[int], Any]:
    subject = floor.subject

    def reply(answer: str) -> Any:
        return sdk.native([{"role": "assistant", "content": answer}])[0]

    def call(index: int) -> None:
        question = floor.fresh[index][0]
        answer = ask(sdk.client, [*subject.read(floor.key, NEWEST), question], past=past)
        subject.append(floor.key, [question, reply(answer)])

    async def call_async(index: int) -> None:
        question = floor.fresh[index][0]
        read = await subject.read(floor.key, NEWEST)
        answer = await ask(sdk.client, [*read, question], past=past)
        await subject.append(floor.key, [question, reply(answer)])

    return call_async if context.kind == "async" else call


def _wrap_alone(context: Context, sdk: Client) -> list[dict[str, Any]]:
    if not subjects.ours_is_there():
        return []
    ours: Any = subjects.OURS[context.kind](context.url)
    conversation = ours.store.conversation("wrap")
    go = Go("turnstore", lambda _: None)
    for _ in range(5 if context.effort.quick else 40):
        started = time.perf_counter_ns()
        for _ in range(_BATCH):
            conversation.wrap(sdk.client)
        go.rounds.append([(time.perf_counter_ns() - started) / 1_000 / _BATCH])
    context.do(ours.close())
    return [{"case": "wrap_alone", "kind": context.kind, "client": sdk.name, **go.summary()}]


@contextmanager
def _model_server() -> Iterator[str]:
    script = Path(__file__).parent.parent / "model_server.py"
    process = subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("no pipes")
        port = int(process.stdout.readline())
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.communicate()
