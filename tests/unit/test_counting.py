"""Counters that threads share: nothing is lost, and a fork hangs on no lock."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from turnstore._counting import count
from turnstore.context import Context, Query, Retrieval
from turnstore.context._common import failed
from turnstore.context.retrieval import recall

LONG = 60.0


class Meeting:
    """Where two threads meet that have read the same number; one who is alone goes on at last."""

    def __init__(self) -> None:
        self.barrier = threading.Barrier(2)

    def wait(self) -> None:
        with suppress(threading.BrokenBarrierError):
            self.barrier.wait(0.2)


class Slow(Counter[str]):
    """A counter whose reader is interrupted before it writes."""

    def __init__(self) -> None:
        super().__init__()
        self.meeting = Meeting()
        self.is_read = threading.Event()

    def __getitem__(self, name: str) -> int:
        number = super().__getitem__(name)
        self.is_read.set()
        self.meeting.wait()
        return number


class SlowRetrieval(Retrieval):
    """A source that fails, and whose failures are read like that."""

    __slots__ = ("meeting", "number")

    def __init__(self) -> None:
        self.number = 0
        self.meeting = Meeting()
        super().__init__(print)

    @property
    def failures(self) -> int:
        number = self.number
        self.meeting.wait()
        return number

    @failures.setter
    def failures(self, number: int) -> None:
        self.number = number


def twice(work: Callable[[], Any]) -> None:
    """Do something in two threads at once."""
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()


def test_two_threads_count_to_two() -> None:
    counts = Slow()
    twice(lambda: count(counts, "failed"))
    assert dict(counts) == {"failed": 2}


def test_failures_of_two_threads_are_two() -> None:
    counts = Slow()
    twice(lambda: failed(counts, "after", OSError("down"), "the turn is saved"))
    assert dict(counts) == {"after": 2}


def test_failures_of_a_source_in_two_threads_are_two() -> None:
    source, counts = SlowRetrieval(), Context().counts

    def ask() -> None:
        flow = recall([source], Query("Hi"), None, counts)
        next(flow)
        with pytest.raises(StopIteration):
            flow.throw(OSError("down"))

    twice(ask)
    assert (source.number, counts) == (2, {"recall": 2})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_counts_though_a_thread_was_counting_at_the_fork() -> None:
    counts = Slow()
    thread = threading.Thread(target=count, args=(counts, "failed"))
    thread.start()
    assert counts.is_read.wait(LONG)
    child = os.fork()
    if not child:
        status = 1
        signal.alarm(int(LONG))  # ends it if it hangs
        try:
            count(Counter(), "failed")
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.join(LONG)
    assert dict(counts) == {"failed": 1}
