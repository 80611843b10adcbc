"""A thread of one's own: in a process that may be forked, and that ends."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from abc import ABC, abstractmethod

__all__ = ["Worker"]


class Worker(ABC):
    """Something that a thread does while there is anything to do.

    What it shares with the thread is read and written with the lock of `_changed`, and each
    change is told there. A process that is forked has none of the threads, and what they held
    and worked on is its parent's: it begins anew. The thread is a daemon, so that one that hangs
    does not keep the interpreter from its end; that waits for `finish`.

    Args:
        name: The name of the thread.
        patience: Seconds that the end of the interpreter may wait in vain.
    """

    _thread: threading.Thread | None

    def __init__(self, name: str, patience: float) -> None:
        self._name = name
        self.patience = patience
        self.begin_anew()
        _workers.add(self)

    def begin_anew(self) -> None:
        """Forget the thread, and what waits."""
        self._changed = threading.Condition()
        self._over()

    @abstractmethod
    def finish(self, since: float) -> None:
        """Wait, at the end of the interpreter, for what is to be done before it.

        Args:
            since: When that end began, by the monotonic clock.
        """

    @abstractmethod
    def _run(self) -> None:
        """Do what there is; then be over, with the lock held, and return."""

    def _start(self) -> None:
        """See to it that the thread is there; with the lock held.

        Raises:
            RuntimeError: No thread can be started. Nothing has changed.
        """
        if self._thread is not None:
            return
        if not threading.current_thread().is_alive():  # as the main thread is at its end
            msg = "the interpreter ends, and would not wait for a thread"
            raise RuntimeError(msg)
        thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        thread.start()
        self._thread = thread
        _at_work.add(self)
        # What is registered last is done first: before a store is closed by such a function.
        atexit.unregister(_finish)
        atexit.register(_finish)

    def _over(self) -> None:
        """Have no thread any more; with the lock held."""
        self._thread = None
        _at_work.discard(self)


_workers: weakref.WeakSet[Worker] = weakref.WeakSet()
_at_work: set[Worker] = set()  # those with a thread


def _begin_anew() -> None:
    for worker in tuple(_workers):
        worker.begin_anew()


def _finish() -> None:
    since = time.monotonic()
    for worker in sorted(_at_work, key=lambda one: one.patience):
        worker.finish(since)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_begin_anew)
