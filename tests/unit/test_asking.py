"""The caller's functions, of which one may hang: the deadline holds, and the process ends."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from tests.waiting import wait_until, wait_until_async
from turnstore import _asking
from turnstore._asking import aask, ask
from turnstore._calls import Ask
from turnstore.context import _models

LONG = 60.0
SOON = 0.01

Way = Callable[[Ask], Any]


@pytest.fixture(params=["sync", "async"])
def way(request: pytest.FixtureRequest) -> Way:
    return ask if request.param == "sync" else lambda question: asyncio.run(aask(question))


class Hanging:
    """A function that hangs until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.asked = 0

    def __call__(self, text: str) -> str:
        self.asked += 1
        self.go.wait(LONG)
        return text


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    function = Hanging()
    yield function
    function.go.set()
    wait_until(lambda: function not in _asking._late.values())


def test_what_it_answers_and_raises_is_the_callers(way: Way) -> None:
    def fails() -> None:
        raise LookupError("mine")

    for deadline in (None, LONG):
        assert way(Ask(str.upper, ("a",), deadline)) == "A"
        with pytest.raises(LookupError, match="mine"):
            way(Ask(fails, (), deadline))


def test_it_sees_the_context_of_who_asks(way: Way) -> None:
    user: ContextVar[str] = ContextVar("user", default="nobody")
    user.set("ada")
    assert way(Ask(user.get, (), LONG)) == "ada"


def test_a_deadline_holds_for_the_caller(way: Way, hanging: Hanging) -> None:
    with pytest.raises(TimeoutError, match=f"Hanging gave no answer within {SOON} seconds"):
        way(Ask(hanging, ("a",), SOON))
    assert not hanging.go.is_set()


def test_a_function_says_itself_what_was_too_late(way: Way) -> None:
    def impatient() -> None:
        raise TimeoutError("mine")

    for deadline in (None, LONG):
        with pytest.raises(TimeoutError, match=r"^mine$"):
            way(Ask(impatient, (), deadline))


def test_a_function_that_hangs_is_not_asked_for_ever(way: Way, hanging: Hanging) -> None:
    for _ in range(_asking._MOST_LATE):
        with pytest.raises(TimeoutError):
            way(Ask(hanging, ("a",), SOON))
    assert hanging.asked == _asking._MOST_LATE
    with pytest.raises(TimeoutError, match="calls of it that were too late still run"):
        way(Ask(hanging, ("a",), LONG))
    assert hanging.asked == _asking._MOST_LATE
    assert way(Ask(str.upper, ("a",), LONG)) == "A"
    hanging.go.set()
    wait_until(lambda: hanging not in _asking._late.values())
    assert way(Ask(hanging, ("a",), LONG)) == "a"


class Client:
    """A client of an SDK that hangs until it is let go."""

    def __init__(self, go: threading.Event) -> None:
        self.chat = self.completions = self
        self.go = go

    def create(self, **_: Any) -> Any:
        self.go.wait(LONG)
        message = SimpleNamespace(content="a")
        return SimpleNamespace(choices=[SimpleNamespace(message=message)])


def answer(way: Way, client: Client, model: str, seconds: float) -> Any:
    """Ask a model by its client, and give what it says."""
    flow = _models.question(client, model, "q", seconds)
    with pytest.raises(StopIteration) as done:
        flow.send(way(next(flow)))
    return done.value.value


def test_a_client_that_hangs_stops_no_other(way: Way) -> None:
    now, later = threading.Event(), threading.Event()
    now.set()
    good, bad = Client(now), Client(later)
    try:
        for _ in range(_asking._MOST_LATE):
            with pytest.raises(TimeoutError):
                answer(way, bad, "m", SOON)
        with pytest.raises(TimeoutError, match="Client is not asked: 32 calls of it"):
            answer(way, bad, "another", LONG)
        assert answer(way, good, "m", LONG) == "a"
    finally:
        later.set()
        wait_until(lambda: bad not in _asking._late.values())
    assert answer(way, bad, "m", LONG) == "a"


class LateClient(Client):
    """One that is async, and does not say so."""

    def create(self, **options: Any) -> Any:
        async def created() -> Any:
            return Client.create(self, **options)

        return created()


def test_a_client_that_does_not_say_that_it_is_async_is_awaited(way: Way) -> None:
    now = threading.Event()
    now.set()
    if way is not ask:
        assert answer(way, LateClient(now), "m", LONG) == "a"
    else:
        with pytest.raises(TypeError, match="LateClient is async, and this store is not"):
            way(next(_models.question(LateClient(now), "m", "q", LONG)))


def test_a_thread_that_has_answered_takes_the_next_question(way: Way) -> None:
    threads: set[threading.Thread] = set()
    for _ in range(10):
        threads.add(way(Ask(threading.current_thread, (), LONG)))
        wait_until(lambda: _asking._resting)
    assert threading.current_thread() not in threads
    assert len(threads) < 10


def test_a_thread_that_hangs_is_left_alone(way: Way, hanging: Hanging) -> None:
    with pytest.raises(TimeoutError):
        way(Ask(hanging, ("a",), SOON))
    assert way(Ask(str.upper, ("a",), LONG)) == "A"


def test_a_thread_without_work_ends(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_asking, "_RESTING_SECONDS", 0.01)
    thread = way(Ask(threading.current_thread, (), LONG))
    wait_until(lambda: not thread.is_alive())
    assert way(Ask(str.upper, ("a",), LONG)) == "A"


def test_it_may_not_end_whatever_asks(way: Way) -> None:
    nothing: Iterator[str] = iter(())
    with pytest.raises(RuntimeError, match="StopIteration"):
        way(Ask(nothing.__next__, (), LONG))


def test_an_async_function_is_told_apart(way: Way) -> None:
    async def answers() -> str:
        return "a"

    for function in (answers, partial(answers)):
        if way is ask:
            with pytest.raises(TypeError, match="AsyncStore"):
                way(Ask(function, ()))
        else:
            assert way(Ask(function, (), LONG)) == "a"


async def test_whoever_is_cancelled_does_not_wait_for_it(hanging: Hanging) -> None:
    task = asyncio.create_task(aask(Ask(hanging, ("a",))))
    await wait_until_async(lambda: hanging.asked)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    "call",
    ["ask(Ask(hangs, (), 0.05))", "asyncio.run(aask(Ask(hangs, (), 0.05)))"],
    ids=["sync", "async"],
)
def test_a_process_with_a_function_that_hangs_ends(call: str) -> None:
    code = f"""
        import asyncio, threading
        from turnstore._asking import aask, ask
        from turnstore._calls import Ask

        def hangs():
            threading.Event().wait()

        try:
            {call}
        except TimeoutError:
            print("too late")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        check=False,
        capture_output=True,
        text=True,
        timeout=LONG,
    )
    assert (done.returncode, done.stdout) == (0, "too late\n"), done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_has_threads_of_its_own() -> None:
    code = """
        import os, time
        from turnstore import _asking
        from turnstore._asking import ask
        from turnstore._calls import Ask

        ask(Ask(str.upper, ("a",), 60.0))
        while not _asking._resting:
            time.sleep(0.01)
        if child := os.fork():
            os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        print(ask(Ask(str.upper, ("b",), 60.0)), flush=True)
        os._exit(0)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        check=False,
        capture_output=True,
        text=True,
        timeout=2 * LONG,
    )
    assert (done.returncode, done.stdout) == (0, "B\n"), done.stderr
