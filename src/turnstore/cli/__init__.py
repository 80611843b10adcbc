"""The command line: `turnstore demo`, looks at what is stored, and the upkeep of it.

`turnstore --help` says what there is. The demo is in `_demo` and `_talk`, the looks at a
conversation are in `_show`, what is of an owner is in `_owners`, facts are in `_facts` and their
upkeep in `_retain`, and what all of them print goes through `_terminal`.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import TurnstoreError
from ._terminal import Terminal

__all__ = ["main", "parser"]

_OF_NO_USE = 2
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: What follows the program's name; `sys.argv` by default.

    Returns:
        The exit status: 0 where all went well, 1 where it did not, 2 for arguments of no use,
        130 after Ctrl-C.
    """
    _open_streams()
    options = parser().parse_args(arguments)
    terminal = Terminal()
    try:
        return _run(options, terminal)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has seen enough; Python would complain once more at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (TurnstoreError, OSError) as error:
        terminal.fail(str(error))
        return 1
    except ValueError as error:  # what arguments say is checked where it is used
        terminal.fail(str(error))
        return _OF_NO_USE


def _open_streams() -> None:
    """Let a stream that whoever started this has closed lead nowhere, and not be missing.

    Else what is opened next, such as a connection, would have its number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(nowhere, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - to the end


def _run(options: argparse.Namespace, terminal: Terminal) -> int:
    if options.command == "demo":
        from ._demo import demo  # noqa: PLC0415 - only the demo needs servers and processes

        return demo(terminal, cluster=options.cluster)
    of_fact = options.command == "erase" and options.fact is not None
    if of_fact or options.command in {"facts", "retain"}:
        from . import _facts, _retain  # noqa: PLC0415 - as above

        runs = {"erase": _facts.erase, "facts": _facts.facts, "retain": _retain.retain}
        try:
            return runs[options.command](options, terminal)
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("turnstore"):
                raise
            terminal.fail(f"{error.name} is missing: pip install '.[facts]' in a clone")
            return 1
    from . import _owners, _show  # noqa: PLC0415 - as above

    if options.command in {"list", "erase"}:
        return _owners.run(options, terminal)
    return _show.run(options, terminal)


def parser() -> argparse.ArgumentParser:
    """Make the parser of the command line."""
    top = argparse.ArgumentParser(
        prog="turnstore",
        description="Look after the conversations and facts that turnstore keeps in Redis. "
        "turnstore COMMAND --help says more of a command.",
        epilog="Exit status: 0 all went well, 1 it did not, 2 wrong arguments, 130 Ctrl-C.",
    )
    version = importlib.metadata.version("turnstore")
    top.add_argument("--version", action="version", version=f"turnstore {version}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    demo = commands.add_parser(
        "demo",
        help="see an LLM client remember, without a key or a network",
        description="Two processes hold one conversation through the openai package, with a small "
        "local server in place of a model. It uses the Redis at the environment's REDIS_URL, or "
        "starts one of its own; what it made is removed at the end. It needs the extra demo.",
    )
    demo.add_argument("--cluster", action="store_true", help="REDIS_URL is a node of a Cluster")

    show = commands.add_parser(
        "show",
        help="print the turns of a conversation",
        description="Print the newest turns of a conversation, oldest first. Nothing is changed.",
    )
    _place(show)
    show.add_argument(
        "--turns", type=int, default=50, metavar="N", help="at most so many; default 50"
    )
    show.add_argument(
        "--before", type=int, metavar="NUMBER", help="only turns older than the one of this number"
    )
    show.add_argument("--json", action="store_true", help="one JSON object a line for each turn")

    stat = commands.add_parser(
        "stat",
        help="print how many turns a conversation has, its size and its time to live",
        description="Print what a conversation holds, how much memory it takes in Redis, and how "
        "long it lives if nothing is added. Nothing is changed.",
    )
    _place(stat)

    ping = commands.add_parser(
        "ping",
        help="ask whether the server can be used",
        description="Ask the server for a key of the store. Exit status 1, and why, where it does "
        "not answer or does not let you in. Nothing is changed.",
    )
    _store(ping)

    listing = commands.add_parser(
        "list",
        help="print the conversations of an owner",
        description="Print the conversations of an owner, such as a user of your application, "
        "those that were written to last first: when that was, how many turns they hold, their "
        "ids and titles. Conversations without an owner are in no list. Nothing is changed. Exit "
        "status 1 where the owner has none, and no facts either.",
    )
    _owner(listing)
    listing.add_argument(
        "--limit", type=int, default=50, metavar="N", help="at most so many; default 50"
    )
    listing.add_argument(
        "--before",
        type=int,
        metavar="CURSOR",
        help="older ones: the number that the list before ended with",
    )
    listing.add_argument(
        "--json", action="store_true", help="one JSON object a line for each conversation"
    )

    facts = commands.add_parser(
        "facts",
        help="print the facts of an owner",
        description="Print what is kept of an owner among the facts, newest first: when it was "
        "last heard, its id, whether it is a fact or an exchange, and its text. Nothing is "
        "changed. Exit status 1 where there is none. It needs the extra facts, and no embedder.",
    )
    _owner(facts)
    facts.add_argument(
        "--kind", metavar="KIND", help="only those of this kind, such as fact or exchange"
    )
    facts.add_argument(
        "--closed", action="store_true", help="those too that later ones have taken the place of"
    )
    facts.add_argument(
        "--limit", type=int, default=50, metavar="N", help="at most so many; default 50"
    )
    facts.add_argument(
        "--before", metavar="CURSOR", help="older ones: the id that the list before ended with"
    )
    facts.add_argument("--json", action="store_true", help="one JSON object a line for each fact")

    erase = commands.add_parser(
        "erase",
        help="delete everything of an owner, one conversation or one fact, for good",
        description="Delete everything of an owner, for good: conversations, titles, facts and "
        "all else; or one conversation and what was remembered of it; or one fact, which needs "
        "the extra facts. It says what there is and asks first. A model's answer that is on its "
        "way then is not saved. Exit status 1 where something is left, or was written meanwhile.",
    )
    _owner(erase)
    which = erase.add_mutually_exclusive_group()
    which.add_argument("--conversation", metavar="ID", help="only this one of the owner's")
    which.add_argument(
        "--fact", metavar="ID", help="only this one, which turnstore facts prints with its id"
    )
    erase.add_argument("--yes", action="store_true", help="do not ask")
    how = erase.add_mutually_exclusive_group()
    how.add_argument(
        "--dry-run", action="store_true", help="only count what there is; without --verify"
    )
    how.add_argument(
        "--verify",
        action="store_true",
        help="afterwards look at every key of the server, and show that nothing is left; "
        "without --dry-run",
    )
    erase.add_argument(
        "--json", action="store_true", help="the receipt, or the count, as one JSON object"
    )

    retain = commands.add_parser(
        "retain",
        help="remove facts that are not to be kept",
        description="Remove long-term facts of all owners, or of one. A fact goes where one of "
        "the rules given says so; a pinned fact stays. TIME is a number of hours, days or weeks, "
        "as in 12h, 90d or 4w; without a letter it is days. To be run now and then, as from "
        "cron. Without a rule it is refused. It needs the extra facts.",
    )
    retain.add_argument(
        "--closed-for", metavar="TIME", help="remove facts that are not true any more for so long"
    )
    retain.add_argument(
        "--older-than", metavar="TIME", help="remove facts that were stored so long ago"
    )
    retain.add_argument(
        "--unused-for",
        metavar="TIME",
        help="remove facts that were neither stored, heard again nor found for so long",
    )
    retain.add_argument(
        "--fresh",
        type=float,
        metavar="SHARE",
        help="remove facts that are less fresh: 1 is a new one, and 30 days without use halve it",
    )
    retain.add_argument(
        "--most", type=int, metavar="N", help="of each owner keep only the N freshest"
    )
    retain.add_argument("--owner", metavar="ID", help="the facts of one owner; default all")
    retain.add_argument("--dry-run", action="store_true", help="only count what would go")
    _store(retain)
    return top


def _place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the id of the conversation")
    parser.add_argument(
        "--owner", metavar="ID", help="the id of its owner; needed where it has one"
    )
    _store(parser)


def _owner(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--owner", required=True, metavar="ID", help="the id of the owner")
    _store(parser)


def _store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--store", required=True, metavar="NAME", help="the store's name, as in Store(name=NAME)"
    )
    parser.add_argument(
        "--url",
        metavar="URL",
        help="the server; default what REDIS_URL says, else redis://localhost:6379",
    )
    parser.add_argument(
        "--prefix", default="turnstore", help="the store's prefix; default turnstore"
    )
    parser.add_argument(
        "--secret-file",
        type=Path,
        metavar="FILE",
        help="a file whose bytes are the store's secret, if it has one",
    )
    parser.add_argument(
        "--cluster", action="store_true", help="the server is a node of a Redis Cluster"
    )
