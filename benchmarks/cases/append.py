"""Append a turn of two messages to a conversation of 10, 1,000 and 10,000 messages.

`append` has room left; `append_full` is at the store's limit, so each append drops the oldest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from context import Context, Filled
from harness import Go
from subjects import NO_LIMIT, WITH_HEAD

if TYPE_CHECKING:
    from subjects import Subject

LENGTHS = (10, 1_000, 10_000)


def measure(context: Context) -> list[dict[str, Any]]:
    """Figures for each length, with and without a limit that bites."""
    found: list[dict[str, Any]] = []
    for count in context.lengths(LENGTHS):
        found += _at(context, "append", count, NO_LIMIT)
        if context.peer is None and count == 1_000:
            found += _at(context, "append_full", count, count)
    return found


def _at(context: Context, case: str, count: int, limit: int) -> list[dict[str, Any]]:
    types = [kind for kind in context.types if kind.appends]
    if context.peer is None and limit == NO_LIMIT:
        types.insert(2, WITH_HEAD[context.kind])
    subjects = [kind(context.url, limit) for kind in types]
    gos = [_go(context, case, subject, count) for subject in subjects]
    found = context.time(case, gos, stored=count)
    for subject in subjects:
        context.do(subject.close())
    return found


def _go(context: Context, case: str, subject: Subject, count: int) -> Go:
    filled = Filled(context, subject, f"{case}:{subject.name}", count, context.effort.inner)
    append = subject.append
    return Go(subject.name, lambda i: append(filled.key, filled.next_turn(i)), filled.renew)
