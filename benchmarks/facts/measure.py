"""Measure one step in one environment, and print the figures as JSON on the last line.

`running.py` has the order of the steps. The servers that are filled with all owners outlive them.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import statistics
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any, NamedTuple

import environment
import harness
import local_server

from . import corpus, recalls
from .running import MODULES
from .subjects import OURS, Ours, Plain, Subject

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SMALL = 300
QUESTIONS = 200
ERASED = 3
FILL_SECONDS = 150  # so long a server is filled; then the figure says how many owners it has
ALONE, LARGE, FIRST = "ada", "large", "user 0"
Figure = dict[str, Any]


class Scale(NamedTuple):
    """How much is stored, and how long is measured."""

    owners: int
    large: int
    effort: harness.Effort


FULL = Scale(1_000, 10_000, harness.Effort(seconds=15, max_rounds=200))
QUICK = Scale(5, 1_000, harness.QUICK)


def main() -> None:
    """Run what the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("step", choices=("fill", "search", "erase"))
    parser.add_argument("--filled", type=json.loads, required=True, help="servers by engine")
    parser.add_argument("--peer")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    scale = QUICK if options.quick else FULL
    answer: dict[str, Any] = {
        "figures": [],
        "failures": [],
        "owners": scale.owners,
        "environment": environment.describe(next(iter(options.filled.values()))),
    }
    with contextlib.ExitStack() as stack:
        ours = [
            stack.enter_context(_opened(kind, options.filled[kind.key]))
            for kind in OURS
            if kind.key in options.filled
        ]
        peers: list[Subject] = []
        if options.peer:
            kind = importlib.import_module(f"facts.peers.{options.peer}").Peer
            try:
                # A server for each: what one holds is counted whole, and weighs on no other.
                url = stack.enter_context(local_server.server(MODULES))
                peers.append(stack.enter_context(_opened(kind, url)))
            except Exception as error:  # noqa: BLE001 (reported, with the rest)
                traceback.print_exc()
                reason = f"{type(error).__name__}: {error}"[:300]
                answer["failures"].append({"subject": kind.name, "reason": reason})
        if options.step == "fill":
            answer["figures"] = _filled_whole(ours, scale)
            plain = options.filled[Plain.key]
            answer["figures"] += recalls.measured(
                plain, FIRST, corpus.questions(FIRST, QUESTIONS), scale.effort
            )
        elif options.step == "erase":
            answer["figures"] = _erasures(ours)
        elif not answer["failures"]:
            answer["figures"] = _searched(ours, peers, scale)
    print(json.dumps(answer))


@contextlib.contextmanager
def _opened(kind: type[Subject], url: str) -> Iterator[Subject]:
    subject = kind(url)
    try:
        yield subject
    finally:
        subject.close()


def _searched(ours: Sequence[Subject], peers: Sequence[Subject], scale: Scale) -> list[Figure]:
    """Search where there is one owner alone, and where all are; then let the peer erase."""
    with contextlib.ExitStack() as stack:
        alone = [
            stack.enter_context(
                _opened(type(subject), stack.enter_context(local_server.server(MODULES)))
            )
            for subject in ours
        ]
        figures = [_filled(subject, "one owner", [ALONE], SMALL) for subject in (*alone, *peers)]
        figures += _searches((*alone, *peers), "one owner", ALONE, SMALL, scale.effort)
    figures += _filled_whole(peers, scale)
    for where, owner, facts in (
        ("many owners", FIRST, SMALL),
        ("one large owner", LARGE, scale.large),
    ):
        figures += _searches((*ours, *peers), where, owner, facts, scale.effort)
    return figures + _erasures(peers)


def _filled_whole(subjects: Sequence[Subject], scale: Scale) -> list[Figure]:
    """Fill servers with one large owner, then with many small ones."""
    names = [f"user {number}" for number in range(scale.owners)]
    return [
        _filled(subject, *what)
        for subject in subjects
        for what in (
            ("one large owner", [LARGE], scale.large),
            ("many owners", names, SMALL),
        )
    ]


def _filled(subject: Subject, where: str, owners: list[str], facts: int) -> Figure:
    before = _used(subject)
    started = time.monotonic()
    filled = 0
    for owner in owners:
        if time.monotonic() - started > FILL_SECONDS:
            break
        subject.fill(owner, corpus.texts(owner, facts))
        filled += 1
    seconds = time.monotonic() - started
    count = facts * filled
    print(f"{subject.name}: {where} filled in {seconds:.1f} s", file=sys.stderr, flush=True)
    return {
        "case": "fill",
        "where": where,
        "facts": facts,
        "owners": filled,
        "subject": subject.name,
        "bytes_per_fact": round((_used(subject) - before) / count),
        "us_per_fact": round(seconds / count * 1e6, 1),
    }


def _searches(
    subjects: Sequence[Subject], where: str, owner: str, facts: int, effort: harness.Effort
) -> list[Figure]:
    asked = [(owner, question) for question in corpus.questions(owner, QUESTIONS)]
    gos = [harness.Go(subject.name, _searching(subject, asked)) for subject in subjects]
    harness.run(harness.interleave(gos, "sync", effort), None)
    found = harness.figures("search", "sync", gos, where=where, facts=facts)
    for figure, go in zip(found, gos, strict=True):
        samples = sorted(sample for samples in go.rounds for sample in samples)
        figure["p95_us"] = round(samples[int(0.95 * (len(samples) - 1))], 1)
    return found


def _searching(subject: Subject, asked: list[tuple[str, str]]) -> Any:
    number = iter(range(sys.maxsize))

    def search(_: int) -> None:
        owner, question = asked[next(number) % len(asked)]
        if not subject.search(owner, question):
            raise AssertionError(f"{subject.name} found nothing for {owner}")

    return search


def _erasures(subjects: Sequence[Subject]) -> list[Figure]:
    """Erase the large owner, and some of the small ones."""
    small = [f"user {number}" for number in range(1, 1 + ERASED)]
    figures: list[Figure] = []
    for subject in subjects:
        for where, owners in (("one owner", small), ("one large owner", [LARGE])):
            figure = {"case": "erase", "where": where, "subject": subject.name}
            if not subject.erases:
                figures.append({**figure, "median_us": None})
                continue
            times = []
            for owner in owners:
                started = time.perf_counter()
                subject.erase(owner)
                times.append((time.perf_counter() - started) * 1e6)
                if isinstance(subject, Ours) and subject.facts.list(owner):
                    raise AssertionError(f"{subject.name} left something of {owner}")
            print(f"{subject.name}: {where} erased in {sum(times) / 1e6:.1f} s", file=sys.stderr)
            figures.append({**figure, "median_us": round(statistics.median(times), 1)})
    return figures


def _used(subject: Subject) -> int:
    info = subject.client.info("memory")
    return int(info["used_memory"]) - int(info["mem_clients_normal"])


if __name__ == "__main__":
    main()
