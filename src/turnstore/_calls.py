"""An operation as a value: what is sent, and how its reply is read.

Nothing here talks to Redis. A `Call` is one command; a `Flow` is an operation of one or
several calls: a generator that yields a call and is sent back what the call read, or has
the call's error thrown into it. `_io` holds the two loops, sync and async, that run it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ._scripts import Script

__all__ = ["Call", "Flow"]

R = TypeVar("R")

Flow: TypeAlias = Generator["Call", Any, R]


class Call(NamedTuple):
    """One command on one key.

    Attributes:
        operation: What the caller asked for, in the words of an error: "append".
        key: The only key that it touches.
        command: The script, or the name of a plain command.
        arguments: What follows the key, in order.
        writes: Whether it can change something: a lost answer then leaves it open
            whether it did.
        read: Makes the result out of the server's reply, whose texts are bytes.
        expected: The revision that the caller demands, for the error of a conflict.
    """

    operation: str
    key: bytes
    command: Script | str
    arguments: tuple[bytes | int | str, ...]
    writes: bool
    read: Callable[[Any], Any]
    expected: str | None = None
