"""`turnstore retain`: remove facts that are not to be kept, without an embedder."""

from __future__ import annotations

import argparse
import re
from datetime import timedelta
from typing import Any

from ._opening import opened
from ._terminal import Terminal, counted

__all__ = ["retain", "time_of"]

_TIME = re.compile(r"(\d+(?:\.\d+)?)([hdw]?)")
_HOURS = {"h": 1, "d": 24, "": 24, "w": 7 * 24}
# The rules, by what a retention calls the facts that go by them.
_RULES = {
    "closed": "closed_for",
    "old": "older_than",
    "unused": "unused_for",
    "faded": "fresh",
    "most": "most",
}
_TIMES = ("closed_for", "older_than", "unused_for")


def retain(options: argparse.Namespace, terminal: Terminal) -> int:
    """Connect, and remove what the rules do not keep.

    Raises:
        ValueError: There is no rule, or one is of no use; nothing was removed.
        ModuleNotFoundError: A package of the extra facts is missing.
    """
    from turnstore.facts._owner import Ground  # noqa: PLC0415 - facts need numpy
    from turnstore.facts._storing.handles import home_in, run_in  # noqa: PLC0415 - as above
    from turnstore.facts._storing.retention import Rule  # noqa: PLC0415 - as above
    from turnstore.facts._storing.retention import retain as tidied  # noqa: PLC0415 - as above

    given = {name: getattr(options, name) for name in (*_TIMES, "fresh", "most")}
    rules: dict[str, Any] = {
        name: time_of(value) if name in _TIMES else value
        for name, value in given.items()
        if value is not None
    }
    if not rules:
        msg = "no rule is given, so that everything is kept; see turnstore retain --help"
        raise ValueError(msg)
    rule = Rule(**rules)
    with opened(options) as store:
        ground = Ground(home_in(store))
        done = run_in(store)(tidied(ground, options.owner, rule, dry_run=options.dry_run))
    verb = "would go" if done.dry_run else "went"
    terminal.line(f"{counted(done.facts, 'fact')} of {counted(done.owners, 'owner')}")
    for reason, count in sorted(done.removed.items()):
        name = _RULES[reason]
        terminal.line(f"{count:,} {verb} by --{name.replace('_', '-')} {given[name]}")
    if not done.removed:
        terminal.line(f"none {verb}")
    return 0


def time_of(text: str) -> timedelta:
    """Read a time: a number of days, or of what the letter behind it says.

    Raises:
        ValueError: It is none.
    """
    parts = _TIME.fullmatch(text.strip())
    if parts is None:
        msg = f"{text!r} is no time; write a number of days, or one with h, d or w behind it"
        raise ValueError(msg)
    try:
        return timedelta(hours=float(parts[1]) * _HOURS[parts[2]])
    except OverflowError:
        msg = f"{text[:40]!r} is too long a time; {timedelta.max.days:,} days are the most"
        raise ValueError(msg) from None
