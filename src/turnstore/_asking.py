"""Ask the caller's functions: a model, an embedder, a search; each in a thread that may hang.

A function of Python's cannot be stopped. So where there is a deadline, and always beside an event
loop, it runs in a thread that does nothing else meanwhile, and that is left behind if it is too
late: a daemon, so that it keeps neither the interpreter nor `asyncio.run` from their end. One that
has done its work takes the next: a new thread has memory of its own to get first, and a search in
one takes a sixth longer. What hangs in as many threads as `_MOST_LATE`, a function or a client, is
not asked any more until one of them returns.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeAlias

from ._calls import Ask

__all__ = ["aask", "ask"]

_MOST_LATE = 32
_RESTING_SECONDS = 60.0

_Work: TypeAlias = "queue.SimpleQueue[Callable[[], None]]"

# What was too late and still runs, and what the caller gave that hangs there; and where threads
# wait that have nothing to do. A fork has none of the threads.
_late: dict[Future[Any], Any] = {}
_resting: list[_Work] = []
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_late.clear)
    os.register_at_fork(after_in_child=_resting.clear)


def ask(question: Ask) -> Any:
    """Ask a function, and wait for its answer.

    Raises:
        TimeoutError: It is too late, or too many of its earlier calls still are.
        TypeError: It is async.
    """
    function, arguments, deadline, _ = question
    if deadline is None:
        answer = function(*arguments)
    else:
        future = _started(question)
        try:
            answer = future.result(deadline)
        except TimeoutError as error:
            if future.done() and future.exception() is error:  # the function's own
                raise
            raise _too_late(question) from error
        finally:
            _leave(future, question)
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        msg = f"{_name(question)} is async, and this store is not; use AsyncStore"
        raise TypeError(msg)
    return answer


async def aask(question: Ask) -> Any:
    """Ask a function, async or not, and wait for its answer.

    Raises:
        RuntimeError: Something that it waited for was cancelled, and not this task.
        TimeoutError: As for `ask`.
    """
    function, arguments, deadline, _ = question
    task = asyncio.current_task()
    cancelled = task.cancelling() if task else 0
    limit = asyncio.timeout(deadline)
    try:
        async with limit:
            if inspect.iscoroutinefunction(function):
                return await function(*arguments)
            future = _started(question)
            try:
                answer = await asyncio.wrap_future(future)
            finally:
                _leave(future, question)
            return await answer if inspect.isawaitable(answer) else answer
    except TimeoutError as error:
        if not limit.expired():  # the function's own
            raise
        raise _too_late(question) from error
    except asyncio.CancelledError as error:
        if task is None or task.cancelling() > cancelled:
            raise
        # A failure like others: nobody asked for an end of what waits here.
        msg = f"{_name(question)} was cancelled"
        raise RuntimeError(msg) from error


def _started(question: Ask) -> Future[Any]:
    function, arguments, _, _ = question
    given = _given(question)
    late = sum(bool(one == given) for one in tuple(_late.values()))
    if late >= _MOST_LATE:
        msg = f"{_name(question)} is not asked: {late} calls of it that were too late still run"
        raise TimeoutError(msg)
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()  # nobody can cancel it from now on
    context = contextvars.copy_context()

    def work() -> None:
        try:
            answer = context.run(function, *arguments)
        except StopIteration as error:  # which would end whatever runs the flow
            failure = RuntimeError(f"{_name(question)} raised StopIteration")
            failure.__cause__ = error
            future.set_exception(failure)
        except BaseException as error:  # noqa: BLE001 - raised where the answer is waited for
            future.set_exception(error)
        else:
            future.set_result(answer)

    if threading.main_thread().is_alive():
        _in_a_thread(work)
    else:  # the interpreter ends, and starts no thread any more
        work()
    return future


def _in_a_thread(work: Callable[[], None]) -> None:
    try:
        tasks = _resting.pop()
    except IndexError:
        tasks = queue.SimpleQueue()
        threading.Thread(target=_serve, args=(tasks,), name="turnstore-ask", daemon=True).start()
    tasks.put(work)


def _serve(tasks: _Work) -> None:
    """Do one piece of work after the other, until there is none for a while."""
    while True:
        try:
            work = tasks.get(timeout=_RESTING_SECONDS)
        except queue.Empty:
            try:
                _resting.remove(tasks)
            except ValueError:  # it was just taken: there is work
                continue
            return
        work()
        del work  # and all that it holds
        _resting.append(tasks)


def _leave(future: Future[Any], question: Ask) -> None:
    """Count a call that still runs among those that are too late, until it returns."""
    if not future.done():
        _late[future] = _given(question)
        future.add_done_callback(lambda done: _late.pop(done, None))


def _too_late(question: Ask) -> TimeoutError:
    return TimeoutError(f"{_name(question)} gave no answer within {question.deadline:g} seconds")


def _given(question: Ask) -> Any:
    return question.function if question.given is None else question.given


def _name(question: Ask) -> str:
    given = _given(question)
    return getattr(given, "__qualname__", type(given).__name__)
