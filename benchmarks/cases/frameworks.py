"""One turn of a framework: read the newest 50 messages, append two, at 200 messages stored.

By turnstore's adapter, by hand at the ideal floor, and, in the environment of a peer that is the
framework's own store on Redis, by that. All make the framework's own message objects.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import mix
import subjects
from context import Context, Filled
from frameworks import FRAMEWORKS, NEWEST, Framework
from harness import Go

if TYPE_CHECKING:
    from collections.abc import Callable

STORED = 200


def measure(context: Context) -> list[dict[str, Any]]:
    """Figures for each framework that is there; beside a peer, for that one alone."""
    found: list[dict[str, Any]] = []
    peer: Any = context.types[-1] if context.peer is not None else None
    for kind in FRAMEWORKS:
        here = peer.__module__ in kind.peers if peer is not None else not kind.peers
        if not here or kind.kind != context.kind or not subjects.ours_is_there():
            continue
        try:
            framework = kind()
        except ImportError:
            continue
        found += _turns(context, framework, peer)
    return found


def _turns(context: Context, framework: Framework, peer: Any) -> list[dict[str, Any]]:
    ideal = subjects.FLOORS[context.kind][1](context.url)
    ideal.native = framework.native
    ideal.fill = partial(_fill_floor, type(ideal).fill, ideal, framework)
    ours: Any = subjects.OURS[context.kind](context.url)
    ours.native = framework.native
    ours.fill = partial(_fill_ours, context, ours, framework)
    window = ours.windows[NEWEST]
    opened = [ideal, ours]

    def go(name: str, subject: Any, turn: Callable[[str, list[Any]], Any]) -> Go:
        filled = Filled(context, subject, f"{framework.name}_{name}", STORED, context.effort.inner)
        filled.room = context.effort.inner
        return Go(name, lambda i: turn(filled.key, filled.next_turn(i)), filled.renew)

    _check(context, framework, ours, window)
    gos = [
        go("by hand", ideal, partial(framework.by_hand, ideal)),
        go("turnstore", ours, partial(framework.turn, ours.store, window)),
    ]
    if peer is not None:
        theirs = peer(context.url)
        theirs.native = framework.native
        opened.append(theirs)
        gos.append(go(theirs.name, theirs, lambda key, turn: theirs.turn(key, NEWEST, turn)))
    found = context.time("frameworks", gos, stored=STORED, framework=framework.name)
    for subject in opened:
        context.do(subject.close())
    return found


def _check(context: Context, framework: Framework, ours: Any, window: Any) -> None:
    key = f"{framework.format}_check"
    context.do(ours.fill(key, [framework.native(turn) for turn in mix.conversation(STORED)]))
    context.do(framework.turn(ours.store, window, key, framework.native(mix.fresh_turns(1)[0])))
    kept = len(ours.filler.conversation(key).read(ours.all))
    if kept != STORED + 2:
        raise AssertionError(f"one turn left {kept} messages where {STORED} were")


def _fill_floor(fill: Any, floor: Any, framework: Framework, key: str, turns: list[Any]) -> Any:
    return fill(floor, key, [framework.dumped(turn) for turn in turns])


def _fill_ours(
    context: Context, ours: Any, framework: Framework, key: str, turns: list[Any]
) -> Any:
    conversation = ours.filler.conversation(key)
    for turn in turns:
        conversation.append(framework.dumped(turn), format=framework.format)
    return _nothing() if context.kind == "async" else None


async def _nothing() -> None:
    return None
