"""Benchmarks of turnstore: against the least that any store could do, and against its peers.

    python benchmarks/run.py setup [PEER …]      environments of the peers (all by default)
    python benchmarks/run.py run [--quick] [--only CASE …] [--peers PEER …] [--output FILE]
    python benchmarks/run.py retrieval --data FILE […]   how much is found; --help says more
    python benchmarks/run.py facts [--quick] [--peers PEER …] [--output FILE]   what facts cost
    python benchmarks/run.py table [--write FILE … | --check FILE …] [--results FILE]

`run`, the default, measures the floors, turnstore and every peer that is set up (openai-agents is
set up when it is not), and writes results/<day>.json. `table` draws the tables from the newest.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import mix
import peers_setup
import report
import report_brief
import report_context
import report_facts
import report_frameworks
import report_retrieval
import report_wrap
from facts import running

HERE = Path(__file__).parent
RESULTS = HERE / "results"
FIRST_PEER = "openai_agents"


def worker(python: str, arguments: list[str]) -> dict[str, Any]:
    """Run worker.py and read what it measured."""
    environment = dict(os.environ)
    environment["PYTHONPATH"] = str(HERE.parent / "src")
    done = subprocess.run(
        [python, str(HERE / "worker.py"), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        check=False,
    )
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return {"figures": [], "failures": [{"case": "all", "reason": f"exit {done.returncode}"}]}
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def run(options: argparse.Namespace) -> int:
    """Measure, write the results, print the tables."""
    common = ["--quick"] if options.quick else []
    if options.only:
        common += ["--only", *options.only]
    answer = worker(sys.executable, common)
    result: dict[str, Any] = {
        "schema": 1,
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "quick": options.quick,
        "mix": mix.describe(1_000 if options.quick else 10_000),
        **answer,
        "peers": {},
    }
    known = peers_setup.peers()
    names = list(known) if options.peers is None else options.peers
    reasons = peers_setup.setup([FIRST_PEER] if FIRST_PEER in names else [])
    for name in names:
        peer = known[name]
        if name in reasons or not peers_setup.python(name).exists():
            reason = reasons.get(name, "not set up: run `python benchmarks/run.py setup`")
            result["peers"][name] = {
                "title": peer["title"],
                "failures": [{"case": "all", "reason": reason}],
            }
            continue
        print(f"peer {name}", file=sys.stderr, flush=True)
        arguments = ["--peer", peer["adapter"], *common]
        if peer.get("modules"):
            arguments += ["--modules", *peer["modules"]]
        measured = worker(str(peers_setup.python(name)), arguments)
        result["peers"][name] = {"title": peer["title"], **measured}
    output = options.output or RESULTS / f"{result['date']}.json"
    output.parent.mkdir(exist_ok=True)
    output.write_text(json.dumps(result, indent=1) + "\n")
    if options.only == ["frameworks"]:
        print(report_frameworks.table(result))
        return 0
    print(report.tables(result))
    if wrapped := report_wrap.of(result):
        print(f"\n{report_wrap.every(wrapped)}")
    return 0


def retrieval(arguments: list[str], output: Path | None) -> int:
    """Measure how much of what was said is found again; skipped where there are no data."""
    own = peers_setup.python("retrieval")
    environment = {**os.environ, "PYTHONPATH": f"{HERE.parent / 'src'}{os.pathsep}{HERE}"}
    done = subprocess.run(
        [str(own) if own.exists() else sys.executable, "-m", "retrieval.measure", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        check=False,
    )
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines or not lines[-1].startswith("{"):
        print(done.stdout, end="")
        return done.returncode
    result = json.loads(lines[-1])
    output = output or RESULTS / "retrieval" / f"{result['date']}.json"
    output.parent.mkdir(exist_ok=True, parents=True)
    output.write_text(json.dumps(result, indent=1) + "\n")
    print(report_retrieval.all_tables(result))
    return 0


def facts(options: argparse.Namespace) -> int:
    """Measure what facts cost, in the environment of each peer, and write the results."""
    result = running.measured(options.peers, quick=options.quick)
    output = options.output or RESULTS / "facts" / f"{result['date']}.json"
    output.parent.mkdir(exist_ok=True, parents=True)
    output.write_text(json.dumps(result, indent=1) + "\n")
    print(report_facts.table(result))
    return 0


def of_facts() -> dict[str, Any] | None:
    """The newest figures of what facts cost; None where there are none."""
    found = sorted(RESULTS.glob("facts/*.json"))
    return json.loads(found[-1].read_text()) if found else None


def of_retrieval(folder: str = "retrieval") -> dict[str, Any] | None:
    """The newest figures of what is found; None where there are none."""
    found = sorted(RESULTS.glob(f"{folder}/*.json"))
    return json.loads(found[-1].read_text()) if found else None


def newest() -> Path:
    """The newest results."""
    found = sorted(RESULTS.glob("*.json"))
    if not found:
        raise FileNotFoundError("no results yet: python benchmarks/run.py run")
    return found[-1]


def figures_of(case: str) -> list[dict[str, Any]]:
    """The newest figures of a case that is also run alone: `context`, `wrap`."""
    found = sorted((*RESULTS.glob("*.json"), *RESULTS.glob(f"{case}/*.json")), key=lambda p: p.name)
    for path in reversed(found):
        figures: list[dict[str, Any]] = json.loads(path.read_text())["figures"]
        own = [figure for figure in figures if figure["case"].startswith(case)]
        if own:
            return own
    return []


def _pages() -> list[Path]:
    """The pages of this repository that tables are drawn into."""
    root = RESULTS.parents[1]
    pages = [root / "README.md", root / "benchmarks/README.md", *root.glob("docs/**/*.md")]
    return [page for page in pages if "run.py table --write" in page.read_text()]


def table(options: argparse.Namespace) -> int:
    """Print the tables, or write them between the marks of pages, or compare them with these."""
    result = json.loads((options.results or newest()).read_text())
    text = report.tables(result)
    if options.write is None and options.check is None:
        print(text)
        return 0
    status = 0
    for path in options.write or options.check or _pages():
        page = path.read_text()
        drawn = report.replace(page, text) if report.BEGIN in page else page
        drawn = report_brief.replace(drawn, report_brief.table(result))
        drawn = report_wrap.drawn(drawn, {"figures": figures_of("wrap")})
        drawn = report_context.replace(drawn, figures_of("context"))
        drawn = report_retrieval.replace(drawn, of_retrieval(), of_retrieval("retrieval/second"))
        drawn = report_facts.replace(drawn, of_facts())
        drawn = report_frameworks.replace(drawn, of_retrieval("frameworks"))
        if options.write is not None:
            path.write_text(drawn)
        elif drawn != page:
            print(f"{path.name} differs from the results: run.py table --write", file=sys.stderr)
            status = 1
    return status


def main() -> int:
    """Read the arguments and do what they say."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("setup")
    made.add_argument("peers", nargs="*")
    ran = commands.add_parser("run")
    ran.add_argument("--quick", action="store_true", help="a smoke test: the figures mean nothing")
    ran.add_argument("--only", nargs="*", metavar="CASE")
    ran.add_argument("--peers", nargs="*", metavar="PEER", help="these peers only; none if empty")
    ran.add_argument("--output", type=Path)
    found = commands.add_parser("retrieval", add_help=False)
    found.add_argument("--output", type=Path)
    cost = commands.add_parser("facts")
    cost.add_argument("--quick", action="store_true", help="a smoke test: the figures mean nothing")
    cost.add_argument("--peers", nargs="*", metavar="PEER", help="these peers only; none if empty")
    cost.add_argument("--output", type=Path)
    drawn = commands.add_parser("table")
    drawn.add_argument("--write", type=Path, nargs="*")
    drawn.add_argument("--check", type=Path, nargs="*")
    drawn.add_argument("--results", type=Path)
    options, rest = parser.parse_known_args(sys.argv[1:] or ["run"])
    if options.command == "retrieval":
        return retrieval(rest, options.output)
    if rest:
        parser.error(f"unknown arguments: {' '.join(rest)}")
    if options.command == "setup":
        failed = peers_setup.setup(options.peers or list(peers_setup.peers()))
        for name, reason in failed.items():
            print(f"{name}: {reason}", file=sys.stderr)
        return 0
    commands_by_name = {"run": run, "facts": facts, "table": table}
    return commands_by_name[options.command](options)


if __name__ == "__main__":
    sys.exit(main())
