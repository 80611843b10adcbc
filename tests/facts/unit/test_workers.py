"""What works in the background, where no thread can be started."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.waiting import wait_until
from turnstore.facts._learning.runners import Runner

if TYPE_CHECKING:
    from turnstore._place import Place

LONG = 60.0


def place(name: str) -> Any:
    return SimpleNamespace(keys=name)  # all that is looked at


def refuse(thread: threading.Thread) -> None:
    raise RuntimeError(f"no thread for {thread.name}")


def test_what_could_not_be_worked_on_waits_for_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []

    def work(one: Place) -> None:
        seen.append(str(one.keys))

    runner = Runner(work, 10)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="no thread"):
            runner.put(place("a"))
    assert seen == []
    assert runner.put(place("b"))
    wait_until(lambda: seen == ["a", "b"], seconds=LONG)
    runner.close(LONG)


def test_what_never_had_a_thread_can_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner(lambda _: None, 10)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="no thread"):
            runner.put(place("a"))
    runner.close(LONG)
    assert runner.take_all(LONG) == []
    assert not runner.put(place("b"))
