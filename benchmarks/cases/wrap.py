"""Wrap a client and make one call: the real SDK against a chat API on this machine.

`bare SDK call` sends the newest 50 messages and a new one, kept in memory. `by hand` reads them
from Redis at the ideal floor, makes the same call, and stores question and answer at the ideal
floor: the call plus the two round trips. `by hand, past` hands the messages over in `extra_body`,
past the SDK's walk over every one of them, which takes longer than all the rest; turnstore does
the same. It wraps the client anew for each call, as a web handler would.
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import mix
import subjects
from context import Context, Filled
from harness import Go

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Ask: TypeAlias = "Callable[..., Any]"
NEWEST = 50
STORED = 200
_BATCH = 50


def measure(context: Context) -> list[dict[str, Any]]:
    """Figures for a plain call and for a stream; and what `wrap` alone costs."""
    try:
        import openai  # noqa: PLC0415 (an extra)
    except ImportError:
        return []
    kind = openai.OpenAI if context.kind == "sync" else openai.AsyncOpenAI
    found: list[dict[str, Any]] = []
    with _model_server() as base:
        client: Any = kind(api_key="none", base_url=base, max_retries=0)
        for case, stream in (("wrap", False), ("wrap_stream", True)):
            found += _calls(context, case, client, stream=stream)
        found += _wrap_alone(context, client)
        context.do(client.close())
    return found


def _calls(context: Context, case: str, client: Any, *, stream: bool) -> list[dict[str, Any]]:
    ask = _asker(context, stream=stream)
    ideal = subjects.FLOORS[context.kind][1](context.url)
    floor = Filled(context, ideal, f"{case}_floor", STORED, context.effort.inner)
    floor.room = context.effort.inner
    past = Filled(context, ideal, f"{case}_past", STORED, context.effort.inner)
    past.room = context.effort.inner
    history = mix.flat(mix.conversation(STORED))[-NEWEST:]
    gos = [
        Go("bare SDK call", lambda i: ask(client, [*history, floor.fresh[i][0]])),
        Go("by hand", _by_hand(context, ask, client, floor), floor.renew),
        Go("by hand, past", _by_hand(context, ask, client, past, past=True), past.renew),
    ]
    opened = [ideal]
    if subjects.ours_is_there():
        ours: Any = subjects.OURS[context.kind](context.url)
        filled = Filled(context, ours, f"{case}_ours", STORED, context.effort.inner)
        filled.room = context.effort.inner
        window = ours.windows[NEWEST]

        def wrapped(index: int) -> Any:
            remembering = ours.store.conversation(filled.key).wrap(client, window=window)
            return ask(remembering, [filled.fresh[index][0]])

        context.do(wrapped(0))
        kept = context.do(ours.texts(filled.key))
        if len(kept) != STORED + 2:
            raise AssertionError(f"one call left {len(kept)} messages where {STORED} were")
        gos.append(Go("turnstore", wrapped, filled.renew))
        opened.append(ours)
    found = context.time(case, gos, stored=STORED)
    for subject in opened:
        context.do(subject.close())
    return found


def _asker(context: Context, *, stream: bool) -> Ask:
    more: dict[str, Any] = {"model": "bench", "stream": True} if stream else {"model": "bench"}

    def ask(client: Any, messages: list[Any], *, past: bool = False) -> Any:
        answer = client.chat.completions.create(**more, **_sent(messages, past=past))
        if not stream:
            return answer.choices[0].message.content
        return "".join(c.choices[0].delta.content or "" for c in answer)

    async def ask_async(client: Any, messages: list[Any], *, past: bool = False) -> Any:
        answer = await client.chat.completions.create(**more, **_sent(messages, past=past))
        if not stream:
            return answer.choices[0].message.content
        return "".join([c.choices[0].delta.content or "" async for c in answer])

    return ask_async if context.kind == "async" else ask


def _sent(messages: list[Any], *, past: bool) -> dict[str, Any]:
    """The messages as an argument, or, past the SDK's walk over each of them, in `extra_body`."""
    return (
        {"messages": [], "extra_body": {"messages": messages}} if past else {"messages": messages}
    )


def _by_hand(
    context: Context, ask: Ask, client: Any, floor: Filled, *, past: bool = False
) -> Callable[[int], Any]:
    subject = floor.subject

    def call(index: int) -> None:
        question = floor.fresh[index][0]
        answer = ask(client, [*subject.read(floor.key, NEWEST), question], past=past)
        subject.append(floor.key, [question, {"role": "assistant", "content": answer}])

    async def call_async(index: int) -> None:
        question = floor.fresh[index][0]
        answer = await ask(client, [*await subject.read(floor.key, NEWEST), question], past=past)
        await subject.append(floor.key, [question, {"role": "assistant", "content": answer}])

    return call_async if context.kind == "async" else call


def _wrap_alone(context: Context, client: Any) -> list[dict[str, Any]]:
    if not subjects.ours_is_there():
        return []
    ours: Any = subjects.OURS[context.kind](context.url)
    conversation = ours.store.conversation("wrap")
    go = Go("turnstore", lambda _: None)
    for _ in range(5 if context.effort.quick else 40):
        started = time.perf_counter_ns()
        for _ in range(_BATCH):
            conversation.wrap(client)
        go.rounds.append([(time.perf_counter_ns() - started) / 1_000 / _BATCH])
    context.do(ours.close())
    return [{"case": "wrap_alone", "kind": context.kind, **go.summary()}]


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
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.communicate()
