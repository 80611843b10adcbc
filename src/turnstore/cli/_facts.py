"""`turnstore facts`, and `turnstore erase` of one of them, without an embedder."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, NoReturn

from ..errors import CorruptTurnError
from ._opening import opened
from ._owners import confirmed, one_line, print_receipt, whose
from ._show import time
from ._terminal import Terminal

if TYPE_CHECKING:
    from turnstore.facts import Facts

    from ..store import Store

__all__ = ["erase", "facts"]

_KIND = 8


def facts(options: argparse.Namespace, terminal: Terminal) -> int:
    """Connect, and print a page of facts.

    Raises:
        ModuleNotFoundError: A package of the extra facts is missing.
    """
    with opened(options) as store:
        page = _facts_of(store).list(
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
        source = f"  (in {one_line(fact.conversation)})" if fact.conversation else ""
        terminal.line(
            terminal.styled(time(fact.observed), "faint")
            + "  "
            + terminal.styled(fact.id, "bold")
            + f"  {fact.kind.ljust(_KIND)}  {one_line(fact.text)}"
            + terminal.styled(until + source, "faint")
        )
    terminal.older("facts", page.cursor, is_json=options.json)
    return 0


def erase(options: argparse.Namespace, terminal: Terminal) -> int:
    """Connect, and erase one fact, after a question.

    Raises:
        ModuleNotFoundError: A package of the extra facts is missing.
    """
    with opened(options) as store:
        kept = _facts_of(store)
        kind, said = _there(kept, options)
        if not kind and not options.verify:
            terminal.fail(f"no fact {options.fact} {whose(options)}")
            return 1
        what = f"the {kind or 'fact'} {options.fact} {whose(options)}, {said},"
        if options.dry_run:
            count = json.dumps({f"{kind}s": 1})
            terminal.line(count if options.json else f"{what} would be erased")
            return 0
        if not confirmed(f"{what} will be erased for good.", options, terminal):
            return 1
        receipt = kept.forget(options.owner, options.fact, verify=options.verify)
    print_receipt(receipt, options, terminal, of_fact=True)
    if not receipt:
        terminal.fail(f"there was no fact {options.fact} {whose(options)}")
    return 0 if receipt else 1


def _there(kept: Facts, options: argparse.Namespace) -> tuple[str, str]:
    """Give what a fact is, as a receipt has it, and what it says; nothing where there is none."""
    try:
        fact = kept.get(options.owner, options.fact)
    except CorruptTurnError:
        return "fact", "which cannot be read"
    if fact is None:
        return "", "which is not there"
    kind = "exchange" if fact.kind == "exchange" else "fact"
    return kind, f'"{one_line(fact.text)}"'


def _facts_of(store: Store) -> Facts:
    """Give facts that make no vectors, and ask for none."""
    from turnstore.facts import Facts  # noqa: PLC0415 - it needs numpy

    return Facts(store, embed=_never, dimensions=1, embedder="none")


def _never(texts: Sequence[str]) -> NoReturn:
    msg = f"nothing is embedded here, not these {len(texts)} texts"
    raise AssertionError(msg)


def _written(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    msg = f"{type(value).__name__} is not stored in facts"
    raise TypeError(msg)
