"""Measure in one environment, and print the figures as JSON on the last line.

`run.py` starts it: with its own Python for the floors and turnstore, and with a peer's Python for
the same floors, turnstore and that peer: every ratio is between things that ran side by side.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import json
import sys
import traceback
from pathlib import Path
from typing import Any

import environment
import harness
import local_server
import subjects
from context import Context

CASES = ("append", "read", "turn", "writers", "memory", "handle", "wrap", "context")
PEER_CASES = ("append", "read", "turn", "writers", "memory")
ALONE = ("frameworks",)  # run where they are named, for a table of their own


def measure(
    case: str, kind: harness.Kind, url: str, effort: harness.Effort, peer: Any
) -> list[Any]:
    """One case for one kind of client."""
    types = list(subjects.FLOORS[kind])
    if subjects.ours_is_there():
        types.append(subjects.OURS[kind])
    limits: dict[str, Any] = {}
    if peer is not None:
        types.append(peer.Peer)
        limits = getattr(peer, "LIMITS", {})
    with asyncio.Runner() if kind == "async" else contextlib.nullcontext() as runner:
        context = Context(url, kind, effort, types, runner, peer and peer.Peer.name, limits)
        found: list[Any] = importlib.import_module(f"cases.{case}").measure(context)
    return found


def main() -> None:
    """Run what the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer")
    parser.add_argument("--modules", nargs="*", default=[])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    effort = harness.QUICK if options.quick else harness.FULL
    peer: Any = None
    kinds: list[harness.Kind] = ["sync", "async"]
    cases: tuple[str, ...] = CASES
    if options.peer:
        sys.path.insert(0, str(Path(__file__).parent / "peers"))
        peer = importlib.import_module(options.peer)
        kinds, cases = [peer.Peer.kind], PEER_CASES
    answer: dict[str, Any] = {"figures": [], "failures": []}
    for case in (*cases, *ALONE):
        if case not in (options.only or cases):
            continue
        for kind in kinds:
            # a server of its own for each case: nothing that an earlier one left weighs on it
            with local_server.server(options.modules) as url:
                answer.setdefault("environment", environment.describe(url))
                try:
                    answer["figures"] += measure(case, kind, url, effort, peer)
                except Exception as error:  # noqa: BLE001 (reported, with the rest)
                    traceback.print_exc()
                    answer["failures"].append(
                        {
                            "case": case,
                            "kind": kind,
                            "reason": f"{type(error).__name__}: {error}"[:300],
                        }
                    )
            print(f"{case} ({kind}) done", file=sys.stderr, flush=True)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
