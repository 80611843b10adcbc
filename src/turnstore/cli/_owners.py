"""`turnstore list` and `turnstore erase`: what an owner has, and the end of it."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from dataclasses import asdict
from typing import Any, NamedTuple

from .._calls import Call, Flow
from ..results import ConversationInfo, Erasure
from ..store import Store
from ._opening import opened
from ._show import time
from ._terminal import Terminal, counted, harmless

__all__ = ["confirmed", "one_line", "print_receipt", "run", "whose"]

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
        title = "" if info.title is None else f"  {one_line(info.title)}"
        terminal.line(
            terminal.styled(time(info.last_activity), "faint")
            + f"  {turns:>11}  "
            + terminal.styled(one_line(info.id), "bold")
            + title
        )
    terminal.older("conversations", page.cursor, is_json=options.json)
    return 0


def _nothing_listed(store: Store, options: argparse.Namespace, terminal: Terminal) -> int:
    """Say that there are no conversations, and what there is besides."""
    if options.before is not None:
        terminal.fail(f"no conversations before {options.before} {whose(options)}")
        return 1
    there = _count(store, options.owner)
    if not any(there.parts.values()):
        terminal.fail(f"no conversations {whose(options)}")
        return 1
    say = terminal.note if options.json else terminal.line
    say(f"no conversations, but {there.others} {whose(options)}; turnstore facts prints them")
    return 0


def _erase(store: Store, options: argparse.Namespace, terminal: Terminal) -> int:
    there, owned = _what_goes(store, options), whose(options)
    if options.dry_run:
        counts = json.dumps(there.as_json())
        terminal.line(counts if options.json else f"{there} {owned} would be erased")
        return 0
    going = f"{there} {owned} will be erased for good, with all that belongs to them."
    if not confirmed(going, options, terminal):
        return 1
    _can_read_facts()
    if options.conversation is None:
        receipt = store.erase(options.owner, verify=options.verify)
    else:
        chat = store.conversation(options.conversation, owner=options.owner)
        receipt = chat.erase(verify=options.verify)
    print_receipt(receipt, options, terminal)
    left = _what_goes(store, options)
    if left:
        terminal.fail(
            f"{left} {owned} were written after the erasure, which is complete for what was "
            "there before. Stop the application, or sign the user out, and erase again"
        )
        return 1
    return 0


def confirmed(going: str, options: argparse.Namespace, terminal: Terminal) -> bool:
    """Ask whether something is to be erased, unless that was said; without a yes, say so."""
    if options.yes:
        return True
    if not sys.stdin.isatty():
        terminal.fail(
            "nothing was erased: it asks first, and nobody is there to answer; "
            "say --yes, or count first by --dry-run"
        )
        return False
    terminal.line(going)
    terminal.ask("Go on? [y/N] ")
    if sys.stdin.readline().strip().lower() in {"y", "yes"}:
        return True
    terminal.fail("nothing was erased")
    return False


def print_receipt(
    receipt: Erasure, options: argparse.Namespace, terminal: Terminal, *, of_fact: bool = False
) -> None:
    """Print what was removed; of a fact, nothing of conversations."""
    if options.json:
        terminal.line(json.dumps(asdict(receipt)))
        return
    history = {"conversations": receipt.conversations, "turns": receipt.turns}
    counts = {**history, "messages": receipt.messages, **receipt.parts, "keys": receipt.keys}
    facts = {
        **{name: f"{n:,}" for name, n in (receipt.parts if of_fact else counts).items()},
        "verified": "every key of the server was looked at, and nothing is left"
        if receipt.verified
        else "no; --verify looks at every key of the server",
    }
    for name, value in facts.items():
        terminal.line(terminal.styled(name.ljust(_LABEL), "cyan") + " " + value)


class _There(NamedTuple):
    """What an owner has, or one conversation.

    Attributes:
        conversations: How many there are.
        turns: How many they have.
        parts: What there is besides, by name, as a receipt has it: `facts` and `exchanges`;
            `facts_and_exchanges` where numpy is missing, without which nothing tells them apart;
            `facts` without a number for one conversation, whose facts are not counted.
    """

    conversations: int
    turns: int
    parts: dict[str, int | None]

    def __bool__(self) -> bool:
        return bool(self.conversations or self.turns or any(self.parts.values()))

    def __str__(self) -> str:
        spoken = f"{counted(self.conversations, 'conversation')} with {counted(self.turns, 'turn')}"
        return f"{spoken}, {self.others}"

    @property
    def others(self) -> str:
        """What there is besides conversations, in words."""
        match self.parts:
            case {"facts": int(facts), "exchanges": int(exchanges)}:
                return f"{counted(facts, 'fact')} and {counted(exchanges, 'exchange')}"
            case {"facts_and_exchanges": int(both)}:
                return f"{both:,} facts and exchanges"
            case _:
                return "and its facts,"

    def as_json(self) -> dict[str, int | None]:
        """Give it as an object of JSON."""
        return {"conversations": self.conversations, "turns": self.turns, **self.parts}


def _what_goes(store: Store, options: argparse.Namespace) -> _There:
    if options.conversation is None:
        return _count(store, options.owner)
    turns = store.conversation(options.conversation, owner=options.owner).stat().turns
    return _There(int(turns > 0), turns, {"facts": None})


def _count(store: Store, owner: str) -> _There:
    """Count what an owner has, and change nothing: the owner's facts without numpy, too."""
    conversations, turns, before = 0, 0, None
    while True:
        page = store.conversations(owner, _PAGE, before=before)
        conversations += len(page)
        turns += sum(info.turns or 0 for info in page)
        before = page.cursor
        if before is None:
            return _There(conversations, turns, _parts(store, owner))


def _parts(store: Store, owner: str) -> dict[str, int | None]:
    house: Any = store  # the command line is of it: where its keys lie, and what runs flows
    home, run_flow = house._home, house._run  # noqa: SLF001 - of the same house
    both: int = run_flow(_facts(home.owner(owner).signs[0]))
    if not _can_read_facts():
        return {"facts_and_exchanges": both}
    from turnstore.facts._owner import Ground  # noqa: PLC0415 - facts need numpy
    from turnstore.facts._storing.counting import count_exchanges  # noqa: PLC0415 - as above

    exchanges: int = run_flow(count_exchanges(Ground(home).owner(owner))) if both else 0
    return {"facts": max(both - exchanges, 0), "exchanges": exchanges}


def _facts(key: bytes) -> Flow[int]:
    count: int = yield Call("count", (key,), "hlen", (), writes=False, read=int)
    return count


def _can_read_facts() -> bool:
    """Whether numpy is there; an erasure counts facts then, and else finds them by their keys."""
    try:
        importlib.import_module("turnstore.facts")
    except ModuleNotFoundError:
        return False
    return True


def _as_json(info: ConversationInfo) -> dict[str, object]:
    return {**asdict(info), "last_activity": info.last_activity.isoformat()}


def whose(options: argparse.Namespace) -> str:
    """Say whose something is, and where."""
    return f"of the owner {options.owner!r} in the store {options.store!r}"


def one_line(text: str) -> str:
    """Write a text in one line, without what steers a terminal."""
    return harmless(text).replace("\n", "\\n").replace("\t", "\\t")
