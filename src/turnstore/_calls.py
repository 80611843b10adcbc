"""An operation as a value: what is sent, and how its reply is read.

Nothing here talks to Redis. A `Call` is one command, a `Together` some that go in one round
trip, an `Ask` one question to a function of the caller's. A `Flow` is an operation of one or
several of them: a generator that yields one and is sent back its result, or has its error
thrown into it. `_io` holds the two loops, sync and async, that run it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

from ._scripts import Script
from .errors import ServerError, UnavailableError

__all__ = ["Ask", "Call", "Flow", "Pause", "Scan", "Step", "Together", "in_steps", "pairs_of"]

R = TypeVar("R")
P = ParamSpec("P")

Step: TypeAlias = "Call | Together | Scan | Ask | Pause"
Flow: TypeAlias = Generator["Call | Together | Scan | Ask | Pause", Any, R]


class Call(NamedTuple):
    """One command on one conversation.

    Attributes:
        operation: What the caller asked for, in the words of an error: "append".
        keys: The keys that it touches, all of one conversation and so of one slot.
        command: The script, or the name of a plain command.
        arguments: What follows the keys, in order.
        writes: Whether it can change something: a lost answer then leaves it open
            whether it did.
        read: Makes the result out of the server's reply, whose texts are bytes.
        expected: The revision that the caller demands, for the error of a conflict.
    """

    operation: str
    keys: tuple[bytes, ...]
    command: Script | str
    arguments: tuple[bytes | int | str, ...]
    writes: bool
    read: Callable[[Any], Any]
    expected: str | None = None


class Together(NamedTuple):
    """Several commands on keys of one slot, in this order; its result is a list of theirs.

    In one round trip, where the client is one of a single server; others may come between.

    Attributes:
        calls: The commands.
        beside: One more, last, that is sent only where it takes no round trip of its own. Its
            result is None where it was not sent, and where it failed: ask again to learn why.
    """

    calls: tuple[Call, ...]
    beside: Call | None = None


class Scan(NamedTuple):
    """A look at some of all keys that there are, for those that begin alike.

    Its result is where to go on, None at the end, and a list of keys; what was there from
    the beginning to the end is among them, some of it twice.

    Attributes:
        operation: As for `Call`.
        key: A key of the slot that they are in; empty looks at all nodes of a Cluster.
        pattern: As for `SCAN`.
        at: Where to go on; None is the beginning.
    """

    operation: str
    key: bytes
    pattern: bytes
    at: Any = None


class Ask(NamedTuple):
    """One question to a function that the caller gave: a model, an embedder, a search.

    On an async store the function may be async; a sync one runs in a thread there, so that
    it does not hold up the event loop. On a sync store it has to be sync.

    Attributes:
        function: The caller's function.
        arguments: What it is given.
        deadline: Seconds after which `TimeoutError` is raised; None waits. A sync function
            cannot be stopped: its thread runs on, as a daemon, and its result is thrown away.
        given: What the caller gave, where the function is one of ours that asks it: what hangs is
            known by it. None is the function.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    deadline: float | None = None
    given: Any = None


class Pause(NamedTuple):
    """A while in which nothing is sent: the thread or the task sleeps.

    Attributes:
        seconds: How long.
    """

    seconds: float


def in_steps(work: Callable[P, Flow[R]]) -> Callable[P, Flow[R]]:
    """Let a flow of several writes that breaks off after one of them say that it did a part."""

    @wraps(work)
    def flow(*args: P.args, **kwargs: P.kwargs) -> Flow[R]:
        running, wrote = work(*args, **kwargs), False
        try:
            step = next(running)
            while True:
                try:
                    reply = yield step
                except BaseException as error:  # noqa: BLE001 - the flow knows what to do with it
                    step = running.throw(error)
                else:
                    wrote = wrote or (isinstance(step, Call) and step.writes)
                    step = running.send(reply)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]  # StopIteration.value is Any
        except ServerError as error:
            if wrote and not getattr(error, "outcome_unknown", False):
                error.args = (
                    f"{error}. A part of what was asked for was done before: do it again",
                )
                if isinstance(error, UnavailableError):
                    error.outcome_unknown = True
            raise

    return flow


def pairs_of(reply: Any) -> dict[Any, Any]:
    """Read a reply of names and values: a map of RESP3, or of RESP2 both in turn."""
    if isinstance(reply, dict):
        return reply
    return dict(zip(reply[::2], reply[1::2], strict=True))
