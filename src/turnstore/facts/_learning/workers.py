"""A thread of one's own, in a process that may be forked."""

from __future__ import annotations

import os
import threading
import weakref
from abc import ABC, abstractmethod

__all__ = ["Worker"]


class Worker(ABC):
    """Something that a thread does while there is anything to do.

    What it shares with the thread is read and written with the lock of `_changed`, and each
    change is told there. A process that is forked has none of the threads, and what they held
    and worked on is its parent's: it begins anew.

    Args:
        name: The name of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.begin_anew()
        _workers.add(self)

    def begin_anew(self) -> None:
        """Forget the thread, and what waits."""
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def _start(self) -> None:
        """See to it that the thread is there; with the lock held.

        Raises:
            RuntimeError: No thread can be started. Nothing has changed.
        """
        if self._thread is None:
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            thread.start()
            self._thread = thread

    @abstractmethod
    def _run(self) -> None:
        """Do what there is, then forget the thread, with the lock held, and return."""


_workers: weakref.WeakSet[Worker] = weakref.WeakSet()


def _begin_anew() -> None:
    for worker in tuple(_workers):
        worker.begin_anew()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_begin_anew)
