"""One turn of a chat: read the newest 50 messages, append two, at 200 and 2,000 messages stored.

turnstore does it with `conversation.turn(...)`, and by hand as the others do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from context import Context, Filled
from harness import Go
from subjects import OursByHand

if TYPE_CHECKING:
    from subjects import Subject

LENGTHS = (200, 2_000)
NEWEST = 50


def measure(context: Context) -> list[dict[str, Any]]:
    """Figures for each length."""
    found: list[dict[str, Any]] = []
    types = list(context.types)
    if context.kind == "sync" and any(kind.name == "turnstore" for kind in types):
        types.append(OursByHand)
    for count in context.lengths(LENGTHS):
        subjects = [kind(context.url) for kind in types]
        gos = [_go(context, subject, count) for subject in subjects]
        found += context.time("turn", gos, stored=count)
        for subject in subjects:
            context.do(subject.close())
    return found


def _go(context: Context, subject: Subject, count: int) -> Go:
    # 4 appends at most between two renewals: the newest 50 messages then still begin at a turn
    filled = Filled(context, subject, f"turn:{subject.name}", count, context.effort.inner)
    filled.room = context.effort.inner
    turn = subject.turn
    return Go(subject.name, lambda i: turn(filled.key, NEWEST, filled.next_turn(i)), filled.renew)
