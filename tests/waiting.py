"""Waiting for something to become true: what tests do instead of sleeping."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_POLL_SECONDS = 0.01


def wait_until(predicate: Callable[[], object], *, seconds: float = 10) -> None:
    """Return as soon as `predicate` gives something true; fail the test after `seconds`."""
    deadline = time.monotonic() + seconds
    while not predicate():
        if time.monotonic() > deadline:
            raise AssertionError(f"still not true after {seconds} s: {predicate}")
        time.sleep(_POLL_SECONDS)


async def wait_until_async(predicate: Callable[[], object], *, seconds: float = 10) -> None:
    """Do what `wait_until` does, and let the other tasks run meanwhile."""
    deadline = time.monotonic() + seconds
    while not predicate():
        if time.monotonic() > deadline:
            raise AssertionError(f"still not true after {seconds} s: {predicate}")
        await asyncio.sleep(_POLL_SECONDS)
