"""`turnstore list` and `turnstore erase`: what an owner has, and the end of it."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from contextlib import suppress
from dataclasses import asdict
from typing import Any, NamedTuple

from .._calls import Call, Flow
from ..results import ConversationInfo, Erasure
from ..store import Store
from ._opening import opened
from ._show import time
from ._terminal import Terminal, counted, harmless

__all__ = ["run"]

_LABEL = 13
_PAGE = 500


def run(options: argparse.Namespace, terminal: Terminal) -> int:
    """Connect, and do what was asked for."""
    with opened(options) as store:
        if options.command == "list":
            return _list(store, options, terminal)
        return _erase(store, options, terminal)


def _list(store: Store, options: argparse.Namespace, terminal: Terminal) -> int:
    page = store.conversations(options.owner, options.limit, before=options.before)
    if not page:
        return _nothing_listed(store, options, terminal)
    for info in page:
        if options.json:
            terminal.line(json.dumps(_as_json(info)))
            continue
        turns = "? turns" if info.turns is None else counted(info.turns, "turn")
        title = "" if info.title is None else f"  {_one_line(info.title)}"
        terminal.line(
            terminal.styled(time(info.last_activity), "faint")
            + f"  {turns:>11}  "
            + terminal.styled(_one_line(info.id), "bold")
            + title
        )
    if page.cursor is not None:
        older = f"older conversations: --before {page.cursor}"
        if options.json:
            terminal.note(older)
        else:
            terminal.line(terminal.styled(older, "faint"))
    return 0


def _nothing_listed(store: Store, options: argparse.Namespace, terminal: Terminal) -> int:
    """Say that there are no conversations, and what there is besides."""
    if options.before is not None:
        terminal.fail(f"no conversations before {options.before} {_whose(options)}")
        return 1
    facts = _count(store, options.owner).facts
    if not facts:
        terminal.fail(f"no conversations {_whose(options)}")
        return 1
    say = terminal.note if options.json else terminal.line
    say(
        f"no conversations, but {counted(facts, 'fact')} {_whose(options)}; "
        "turnstore erase --dry-run counts all that there is"
    )
    return 0


def _erase(store: Store, options: argparse.Namespace, terminal: Terminal) -> int:
    there, whose = _what_goes(store, options), _whose(options)
    if options.dry_run:
        counts = json.dumps(there._asdict())
        terminal.line(counts if options.json else f"{there} {whose} would be erased")
        return 0
    if not options.yes:
        if not sys.stdin.isatty():
            terminal.fail(
                "nothing was erased: it asks first, and nobody is there to answer; "
                "say --yes, or count first by --dry-run"
            )
            return 1
        terminal.line(f"{there} {whose} will be erased for good, with all that belongs to them.")
        terminal.ask("Go on? [y/N] ")
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            terminal.fail("nothing was erased")
            return 1
    _count_facts()
    if options.conversation is None:
        receipt = store.erase(options.owner, verify=options.verify)
    else:
        chat = store.conversation(options.conversation, owner=options.owner)
        receipt = chat.erase(verify=options.verify)
    _print(receipt, options, terminal)
    left = _what_goes(store, options)
    if any(left):
        terminal.fail(
            f"{left} {whose} were written after the erasure, which is complete for what was "
            "there before. Stop the application, or sign the user out, and erase again"
        )
        return 1
    return 0


def _print(receipt: Erasure, options: argparse.Namespace, terminal: Terminal) -> None:
    if options.json:
        terminal.line(json.dumps(asdict(receipt)))
        return
    facts = {
        "conversations": f"{receipt.conversations:,}",
        "turns": f"{receipt.turns:,}",
        "messages": f"{receipt.messages:,}",
        **{name: f"{count:,}" for name, count in receipt.parts.items()},
        "keys": f"{receipt.keys:,}",
        "verified": "every key of the server was looked at, and nothing is left"
        if receipt.verified
        else "no; --verify looks at every key of the server",
    }
    for name, value in facts.items():
        terminal.line(terminal.styled(name.ljust(_LABEL), "cyan") + " " + value)


class _There(NamedTuple):
    """What an owner has, or one conversation, of whose facts nothing is counted."""

    conversations: int
    turns: int
    facts: int | None

    def __str__(self) -> str:
        spoken = f"{counted(self.conversations, 'conversation')} with {counted(self.turns, 'turn')}"
        facts = "its facts," if self.facts is None else counted(self.facts, "fact")
        return f"{spoken}, and {facts}"


def _what_goes(store: Store, options: argparse.Namespace) -> _There:
    if options.conversation is None:
        return _count(store, options.owner)
    turns = store.conversation(options.conversation, owner=options.owner).stat().turns
    return _There(int(turns > 0), turns, None)


def _count(store: Store, owner: str) -> _There:
    """Count what an owner has, and change nothing: the owner's facts without numpy, too."""
    conversations, turns, before = 0, 0, None
    while True:
        page = store.conversations(owner, _PAGE, before=before)
        conversations += len(page)
        turns += sum(info.turns or 0 for info in page)
        before = page.cursor
        if before is None:
            break
    house: Any = store  # the command line is of it: the key of the facts, and what runs flows
    facts: int = house._run(_facts(house._home.owner(owner).signs[0]))  # noqa: SLF001
    return _There(conversations, turns, facts)


def _facts(key: bytes) -> Flow[int]:
    count: int = yield Call("count", (key,), "hlen", (), writes=False, read=int)
    return count


def _count_facts() -> None:
    """Let the erasure count facts, where numpy is there; without, it finds them by their keys."""
    with suppress(ModuleNotFoundError):
        importlib.import_module("turnstore.facts")


def _as_json(info: ConversationInfo) -> dict[str, object]:
    return {**asdict(info), "last_activity": info.last_activity.isoformat()}


def _whose(options: argparse.Namespace) -> str:
    return f"of the owner {options.owner!r} in the store {options.store!r}"


def _one_line(text: str) -> str:
    return harmless(text).replace("\n", "\\n").replace("\t", "\\t")
