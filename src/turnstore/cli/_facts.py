"""`turnstore facts`: what is kept of an owner among the facts, without an embedder."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import NoReturn

from ._opening import opened
from ._owners import one_line, whose
from ._show import time
from ._terminal import Terminal

__all__ = ["facts"]

_KIND = 8


def facts(options: argparse.Namespace, terminal: Terminal) -> int:
    """Connect, and print a page of facts.

    Raises:
        ModuleNotFoundError: A package of the extra facts is missing.
    """
    from turnstore.facts import Facts  # noqa: PLC0415 - it needs numpy

    with opened(options) as store:
        # A list makes no vectors, and asks for none.
        kept = Facts(store, embed=_never, dimensions=1, embedder="none")
        page = kept.list(
            options.owner,
            options.limit,
            before=options.before,
            kinds=None if options.kind is None else [options.kind],
            include_closed=options.closed,
        )
    if not page:
        which = "facts" if options.kind is None else f"facts of the kind {options.kind!r}"
        before = "" if options.before is None else f" before {options.before}"
        terminal.fail(f"no {which}{before} {whose(options)}")
        return 1
    for fact in page:
        if options.json:
            terminal.line(json.dumps(asdict(fact), default=_written))
            continue
        until = "" if fact.valid_to is None else f"  (until {time(fact.valid_to)})"
        terminal.line(
            terminal.styled(time(fact.observed), "faint")
            + "  "
            + terminal.styled(fact.id, "bold")
            + f"  {fact.kind.ljust(_KIND)}  {one_line(fact.text)}"
            + terminal.styled(until, "faint")
        )
    terminal.older("facts", page.cursor, is_json=options.json)
    return 0


def _never(texts: Sequence[str]) -> NoReturn:
    msg = f"a list embeds nothing, not these {len(texts)} texts"
    raise AssertionError(msg)


def _written(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    msg = f"{type(value).__name__} is not stored in facts"
    raise TypeError(msg)
