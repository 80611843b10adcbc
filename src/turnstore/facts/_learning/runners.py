"""Work through conversations in the background: one thread, or one task, at a time.

It runs while something waits, and ends when nothing does. What waits to be read is not more than
a note that there may be something: Redis knows what was read, so that nothing is lost with it.
What waits to be noted in Redis is worked through before the end, at once.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from math import inf
from typing import TYPE_CHECKING

from .._workers import Worker
from .schedule import Pending

if TYPE_CHECKING:
    from turnstore._place import Place

__all__ = ["AsyncRunner", "Runner", "left"]

_PATIENCE = 10.0  # seconds, at the end of the interpreter


def left(timeout: float | None, since: float) -> float | None:
    """Give what is left of a timeout since a time of `time.monotonic`; None of none."""
    return None if timeout is None else max(since + timeout - time.monotonic(), 0.0)


class Runner(Worker):
    """Work through conversations in a thread.

    A process that is forked begins anew: what waits and what is worked on is its parent's.

    Args:
        work: Looks at one, and says in how many seconds to look again; None does not. It
            raises nothing.
        most: How many may wait.
        finishes: Whether what waits is worked through at a close and at the end of the
            interpreter, and not given up.
    """

    def __init__(
        self, work: Callable[[Place], float | None], most: int, *, finishes: bool = False
    ) -> None:
        self._work = work
        self._most = most
        self._finishes = finishes
        self.is_closed = False
        """Whether it takes nothing any more."""
        super().__init__("turnstore-extraction", _PATIENCE)

    def begin_anew(self) -> None:
        """Forget what waits, and the thread."""
        super().begin_anew()
        self._pending = Pending(self._most)
        self._is_working = False

    def put(self, place: Place, seconds: float = 0.0) -> bool:
        """Note a conversation, to be looked at in so many seconds; False where it cannot be.

        Raises:
            RuntimeError: No thread can be started; it waits until one can.
        """
        with self._changed:
            if self.is_closed or not self._pending.put(place, time.monotonic() + seconds):
                return False
            self._start()
            self._changed.notify_all()
            return True

    def take_all(self, timeout: float | None) -> list[Place]:
        """Wait until no conversation is worked on, and take all that wait."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_working, timeout)
            places = self._pending.take_all()
            self._changed.notify_all()
            return places

    def end(self) -> None:
        """Take nothing any more, and give up what waits, if that is not to be finished."""
        with self._changed:
            self.is_closed = True
            if not self._finishes:
                self._pending.take_all()
            self._changed.notify_all()

    def close(self, timeout: float | None) -> None:
        """End it, and wait for what is worked on, and for what is to be finished."""
        self.end()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def finish(self, since: float) -> None:
        """Wait for what is to be finished."""
        if self._finishes:
            self.close(left(self.patience, since))

    def _run(self) -> None:
        while True:
            place = self._next()
            if place is None:
                return
            again: float | None = None
            try:
                again = self._work(place)
            finally:
                with self._changed:
                    self._is_working = False
                    if again is not None and not self.is_closed:
                        self._pending.put(place, time.monotonic() + again)
                    if sys.exc_info()[0] is not None:  # SystemExit; the next one has a new thread
                        self._over()
                    self._changed.notify_all()

    def _next(self) -> Place | None:
        """Wait for the next conversation whose time has come; None where none waits."""
        with self._changed:
            while True:
                place, seconds = self._pending.take(inf if self.is_closed else time.monotonic())
                if place is not None:
                    self._is_working = True
                    return place
                if seconds is None:
                    self._over()
                    return None
                self._changed.wait(seconds)


class AsyncRunner:
    """Work through conversations in a task.

    Args:
        work: As for `Runner`, and awaited.
        most: How many may wait.
        finishes: As for `Runner`; but the end of the event loop is the end of its task.
    """

    def __init__(
        self,
        work: Callable[[Place], Awaitable[float | None]],
        most: int,
        *,
        finishes: bool = False,
    ) -> None:
        self._work = work
        self._finishes = finishes
        self.is_closed = False
        """Whether it takes nothing any more."""
        self._pending = Pending(most)
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task: asyncio.Task[None] | None = None

    def put(self, place: Place, seconds: float = 0.0) -> bool:
        """Note a conversation, to be looked at in so many seconds; False where it cannot be."""
        if self.is_closed or not self._pending.put(place, time.monotonic() + seconds):
            return False
        if self._task is None or self._task.done():
            self._idle.set()
            self._task = asyncio.get_running_loop().create_task(self._run())
        self._changed.set()
        return True

    async def take_all(self, timeout: float | None) -> list[Place]:  # noqa: ASYNC109 - its twin's
        """Wait until no conversation is worked on, and take all that wait."""
        try:
            async with asyncio.timeout(timeout):
                while not self._idle.is_set():  # it may have begun another one meanwhile
                    await self._idle.wait()
        except TimeoutError:
            pass  # what is worked on holds its lease; the others are taken all the same
        places = self._pending.take_all()
        self._changed.set()
        return places

    def end(self) -> None:
        """Take nothing any more, and give up what waits, if that is not to be finished."""
        self.is_closed = True
        if not self._finishes:
            self._pending.take_all()
        self._changed.set()

    async def close(self, timeout: float | None) -> None:  # noqa: ASYNC109 - its twin's
        """End it, and wait for what is worked on, and for what is to be finished."""
        self.end()
        task = self._task
        if task is not None and task is not asyncio.current_task():
            done, _ = await asyncio.wait({task}, timeout=timeout)
            if not done:
                task.cancel()
                await asyncio.wait({task})

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            place, seconds = self._pending.take(inf if self.is_closed else time.monotonic())
            if place is None:
                if seconds is None:
                    return
                try:
                    async with asyncio.timeout(seconds):
                        await self._changed.wait()
                except TimeoutError:
                    pass
                continue
            self._idle.clear()
            try:
                again = await self._work(place)
            finally:
                self._idle.set()
            if again is not None and not self.is_closed:
                self._pending.put(place, time.monotonic() + again)
