"""Read the newest 100 messages of 100, 1,000 and 10,000."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from context import Context, Filled
from harness import Go

if TYPE_CHECKING:
    from subjects import Subject

LENGTHS = (100, 1_000, 10_000)
NEWEST = 100


def measure(context: Context) -> list[dict[str, Any]]:
    """Figures for each length."""
    found: list[dict[str, Any]] = []
    for count in context.lengths(LENGTHS):
        subjects = [kind(context.url) for kind in context.types if kind.appends]
        gos = [_go(context, subject, count) for subject in subjects]
        found += context.time("read", gos, stored=count)
        for subject in subjects:
            context.do(subject.close())
    return found


def _go(context: Context, subject: Subject, count: int) -> Go:
    filled = Filled(context, subject, f"read:{subject.name}", count, 0)
    key, read = filled.master, subject.read
    got = len(context.do(read(key, NEWEST)))
    if got < NEWEST:
        raise AssertionError(f"{subject.name} read {got} messages of {count}")
    return Go(subject.name, lambda _: read(key, NEWEST))
