"""The order in which what facts cost is measured; it starts the servers and the environments."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import local_server
import peers_setup

MODULES = ("redisearch", "rejson")
ENGINES = ("plain", "vectorset", "search", "hnsw")
BESIDE = "search"  # all engines are measured beside the first peer, and this one beside each
_HERE = Path(__file__).parent.parent


def measured(names: list[str] | None, *, quick: bool) -> dict[str, Any]:
    """Fill a server for each engine, measure each peer beside them, and erase.

    Args:
        names: The peers; None is all.
        quick: Whether it is a smoke test.
    """
    known = peers_setup.facts_peers()
    names = list(known) if names is None else names
    reasons = peers_setup.setup(names)
    common = ["--quick"] if quick else []
    peers: dict[str, Any] = {}
    with contextlib.ExitStack() as stack:
        filled = {one: stack.enter_context(local_server.server(MODULES)) for one in ENGINES}
        ours = _step("fill", sys.executable, filled, common)
        shown = filled
        for name in names:
            title = known[name]["title"]
            print(f"peer {name}", file=sys.stderr, flush=True)
            if name in reasons:
                answer = _failed(title, reasons[name])
            else:
                arguments = ["--peer", known[name]["adapter"], *common]
                answer = _step("search", str(peers_setup.python(name)), shown, arguments)
            if answer["figures"]:
                shown = {BESIDE: filled[BESIDE]}
            peers[name] = {"title": title, **answer}
        alone = [_step("search", sys.executable, filled, common)] if shown is filled else []
        for answer in (*alone, _step("erase", sys.executable, filled, common)):
            ours["figures"] += answer["figures"]
            ours["failures"] += answer["failures"]
    date = dt.datetime.now(dt.UTC).date().isoformat()
    return {"schema": 3, "date": date, "quick": quick, "ours": ours, "peers": peers}


def _step(step: str, python: str, filled: dict[str, str], arguments: list[str]) -> dict[str, Any]:
    path = os.pathsep.join((str(_HERE.parent / "src"), str(_HERE)))
    command = [python, "-m", "facts.measure", step, "--filled", json.dumps(filled), *arguments]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    lines = done.stdout.strip().splitlines() or [""]
    if done.returncode or not lines[-1].startswith("{"):
        return _failed(step, f"it ended early, with {done.returncode}")
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def _failed(subject: str, reason: str) -> dict[str, Any]:
    return {"figures": [], "failures": [{"subject": subject, "reason": reason}]}
