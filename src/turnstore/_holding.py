"""Hold a lease while a turn goes on: a thread, or a task, renews it in the background.

Beside `_io`, the only module with threads and tasks of its own. What they do is in
`_leases`; here is when. A thread or a task knows the lease and not the turn, so that a turn
that nobody has any more is collected as ever, and its lease given back.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Protocol, TypeVar

from . import _io
from ._calls import Flow
from ._leases import Hold
from .errors import ClosedError

__all__ = ["AsyncHolding", "AsyncRunner", "Holding", "Runner"]

R = TypeVar("R")
T = TypeVar("T")


class Runner(Protocol):
    """Runs a flow on the connection of a store."""

    def __call__(self, flow: Flow[R], /) -> R:
        """Run it to its end."""
        ...


class AsyncRunner(Protocol):
    """Runs a flow on the connection of an async store."""

    def __call__(self, flow: Flow[R], /) -> Awaitable[R]:
        """Run it to its end."""
        ...


class Holding:
    """Renews and gives back the lease of one turn."""

    def __init__(self, run: Runner, hold: Hold) -> None:
        self._run = run
        self._hold = hold
        # Its `put` may be called from a finaliser, in whatever thread that runs.
        self._end: SimpleQueue[None] = SimpleQueue()
        self._kept = False

    def keep(self, turn: object) -> None:
        """Renew the lease from now on, until it is released or the turn is collected."""
        self._start()
        weakref.finalize(turn, self._end.put, None).atexit = False

    def release(self) -> None:
        """Give the lease back; where the server has failed, in the background."""
        if not self._hold.unreachable:
            with suppress(ClosedError):
                self._run(self._hold.release())
        elif not self._kept and not self._hold.over:
            self._start()
        self._end.put(None)
        self._kept = False

    def let_go(self) -> None:
        """Have the background give it back: sends nothing itself, and so fits a finaliser."""
        self._end.put(None)

    def _start(self) -> None:
        # The queue is a new one with each start, so that an end is for one thread alone.
        self._end, self._kept = SimpleQueue(), True
        arguments = (self._run, self._hold, self._end)
        threading.Thread(target=_renew, args=arguments, name="turnstore-lease", daemon=True).start()

    def follow(self, chunks: Iterator[T]) -> Iterator[T]:
        """Pass on chunks; until the first one is asked for, the reader stands still."""
        self._hold.move(has_chunk=True)
        return self._passed_on(chunks)

    def _passed_on(self, chunks: Iterator[T]) -> Iterator[T]:
        self._hold.move(has_chunk=False)
        try:
            for chunk in chunks:
                self._hold.move(has_chunk=True)
                yield chunk
                self._hold.move(has_chunk=False)
        finally:  # also where it is left before its end
            self._hold.move(has_chunk=False)


def _renew(run: Runner, hold: Hold, end: SimpleQueue[None]) -> None:
    with suppress(ClosedError):
        while _waits(end, hold.renewal_seconds) and run(hold.renew()):
            pass
        run(hold.release())


def _waits(end: SimpleQueue[None], seconds: float) -> bool:
    try:
        end.get(timeout=seconds)
    except Empty:
        return True
    return False


# An event loop keeps no task that nobody else has.
_TASKS: set[asyncio.Task[None]] = set()


class AsyncHolding:
    """Renews and gives back the lease of one turn."""

    def __init__(self, run: AsyncRunner, hold: Hold) -> None:
        self._run = run
        self._hold = hold
        self._end: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._kept = False

    def keep(self, turn: object) -> None:
        """Renew the lease from now on, until it is released or the turn is collected."""
        self._start()
        weakref.finalize(turn, self.let_go).atexit = False

    async def release(self) -> None:
        """Give the lease back; where the server has failed, in the background."""
        if not self._hold.unreachable:
            with suppress(ClosedError):
                await _io.unbroken(self._run(self._hold.release()), "the return of a lease")
        elif not self._kept and not self._hold.over:
            self._start()
        self.let_go()
        self._kept = False

    def let_go(self) -> None:
        """Have the background give it back: sends nothing itself, and so fits a finaliser."""
        if self._end is not None and self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed, and its tasks with it
                self._loop.call_soon_threadsafe(self._end.set)

    def _start(self) -> None:
        self._end, self._kept = asyncio.Event(), True
        self._loop = asyncio.get_running_loop()
        task = asyncio.create_task(_arenew(self._run, self._hold, self._end))
        _TASKS.add(task)
        task.add_done_callback(_TASKS.discard)

    def follow(self, chunks: AsyncIterator[T]) -> AsyncIterator[T]:
        """Pass on chunks; until the first one is asked for, the reader stands still."""
        self._hold.move(has_chunk=True)
        return self._passed_on(chunks)

    async def _passed_on(self, chunks: AsyncIterator[T]) -> AsyncIterator[T]:
        self._hold.move(has_chunk=False)
        try:
            async for chunk in chunks:
                self._hold.move(has_chunk=True)
                yield chunk
                self._hold.move(has_chunk=False)
        finally:  # also where it is left before its end
            self._hold.move(has_chunk=False)


async def _arenew(run: AsyncRunner, hold: Hold, end: asyncio.Event) -> None:
    with suppress(ClosedError):
        while await _awaits(end, hold.renewal_seconds) and await run(hold.renew()):
            pass
        await run(hold.release())


async def _awaits(end: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await end.wait()
    except TimeoutError:
        return True
    return False
