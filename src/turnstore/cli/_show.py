"""`turnstore show`, `stat` and `ping`: look at what is stored, or can be, without changing it."""

from __future__ import annotations

import argparse
import json
from datetime import datetime, timedelta
from shlex import quote
from typing import Any

from ..conversation import Conversation
from ..messages import format_named
from ..results import Turn
from ._opening import opened
from ._terminal import Terminal, harmless

__all__ = ["run", "time", "time_left", "transcript"]

_LABEL = 11


def run(options: argparse.Namespace, terminal: Terminal) -> int:
    """Connect, and show what was asked for."""
    with opened(options) as store:
        if options.command == "ping":
            store.ping()
            terminal.line(f"the server of the store {options.store!r} answers")
            return 0
        chat = store.conversation(options.id, owner=options.owner)
        show = _stat if options.command == "stat" else _show
        return show(chat, options, terminal)


def _show(chat: Conversation, options: argparse.Namespace, terminal: Terminal) -> int:
    page = chat.turns(options.turns, before=options.before)
    if not page:
        if options.before is None:
            return _missing(chat, options, terminal)
        terminal.fail(f"no turns before turn {options.before} at {chat.key}")
        return 1
    if options.json:
        for turn in page:
            terminal.line(json.dumps(_as_json(turn)))
        return 0
    transcript(page, terminal)
    terminal.older("turns", page.cursor, is_json=False)
    return 0


def _stat(chat: Conversation, options: argparse.Namespace, terminal: Terminal) -> int:
    stat = chat.stat()
    if not stat.turns:
        return _missing(chat, options, terminal)
    facts = {
        "key": chat.key,
        "turns": f"{stat.turns:,}",
        "messages": f"{stat.messages:,}",
        "tokens": f"{stat.tokens:,}" if stat.tokens else "not counted",
        "memory": "not told by the server" if stat.bytes is None else f"{stat.bytes:,} bytes",
        "lives for": time_left(stat.ttl),
        "first turn": time(stat.first_time),
        "last turn": time(stat.last_time),
        "revision": stat.revision,
    }
    for name, value in facts.items():
        terminal.line(terminal.styled(name.ljust(_LABEL), "cyan") + " " + value)
    return 0


def _missing(chat: Conversation, options: argparse.Namespace, terminal: Terminal) -> int:
    """Say that there is no such conversation, and where it may be."""
    whose, hint = "", "if it has an owner, name that with --owner"
    if options.owner is not None:
        whose = f" of the owner {options.owner!r}"
        hint = f"turnstore list --owner {quote(options.owner)} prints those that there are"
    where = f"in the store {options.store!r}, at {chat.key}"
    terminal.fail(f"no conversation {options.id!r}{whose} {where}; {hint}")
    return 1


def transcript(turns: list[Turn], terminal: Terminal, indent: int = 0) -> None:
    """Print turns as one reads a conversation: who said what."""
    margin = " " * indent
    for turn in turns:
        title = f"turn {turn.number}"
        terminal.line(
            margin
            + terminal.styled(title, "bold")
            + terminal.styled(f"  {time(turn.time)}  {turn.format}", "faint")
        )
        for message in turn.messages:
            speaker = harmless(str(message.get("role") or message.get("type") or "?"))
            first, *others = _said(message, turn.format)
            label = terminal.styled(speaker.ljust(_LABEL), "cyan")
            terminal.line(f"{margin}  {label} {first}")
            for line in others:
                terminal.line(f"{margin}  {' ' * _LABEL} {line}")


def _said(message: dict[str, Any], format_name: str) -> list[str]:
    """The text of a message, and in JSON what it holds besides."""
    rules = format_named(format_name)
    text = rules.text(message)
    told = {"role", "content"} if text else {"role"}
    rest = {
        name: value for name, value in message.items() if name not in told and value is not None
    }
    lines = text.splitlines()
    if rest or not lines:
        lines.append(json.dumps(rest, ensure_ascii=False))
    return [harmless(line) for line in lines]


def _as_json(turn: Turn) -> dict[str, Any]:
    return {
        "number": turn.number,
        "id": turn.id,
        "time": turn.time.isoformat(),
        "format": turn.format,
        "tokens": turn.tokens,
        "messages": turn.messages,
        "meta": turn.meta,
        "revision": turn.revision,
    }


def time(moment: datetime | None) -> str:
    """Write a moment, to the second."""
    return "-" if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def time_left(ttl: timedelta | None) -> str:
    """Write a time to live."""
    if ttl is None:
        return "ever"
    seconds = int(ttl.total_seconds())
    parts = (
        (seconds // 86400, "d"),
        (seconds // 3600 % 24, "h"),
        (seconds // 60 % 60, "min"),
        (seconds % 60, "s"),
    )
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "less than a second"
