"""Measure in one environment, and print the figures as JSON on the last line; see `run.py`."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import statistics
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

import environment
import harness
import local_server

from . import corpus
from .subjects import OURS, Ours, Plain, Subject

if TYPE_CHECKING:
    from collections.abc import Sequence

SMALL, LARGE = 300, 10_000
QUESTIONS = 200
ERASED = 5
Figure = dict[str, Any]


def main() -> None:
    """Run what the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer")
    parser.add_argument("--engines", nargs="*", default=[kind.engine for kind in OURS])
    parser.add_argument("--owners", type=int, default=100)
    parser.add_argument("--large", type=int, default=LARGE)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    effort = harness.QUICK if options.quick else harness.Effort(seconds=8, max_rounds=200)
    if options.quick:
        options.owners, options.large = 5, 1_000
    types: list[type[Subject]] = [kind for kind in OURS if kind.engine in options.engines]
    if options.peer:
        types.append(importlib.import_module(f"facts.peers.{options.peer}").Peer)
    answer: dict[str, Any] = {"figures": [], "failures": [], "owners": options.owners}
    modules = ["redisearch", "rejson"]
    with contextlib.ExitStack() as stack:
        subjects: list[Subject] = []
        for kind in types:
            # A server for each: what one holds is counted whole, and weighs on no other.
            url = stack.enter_context(local_server.server(modules))
            answer.setdefault("environment", environment.describe(url))
            try:
                subject = kind(url)
            except Exception as error:  # noqa: BLE001 (reported, with the rest)
                traceback.print_exc()
                reason = f"{type(error).__name__}: {error}"[:300]
                answer["failures"].append({"subject": kind.name, "reason": reason})
                continue
            stack.callback(subject.close)
            subjects.append(subject)
        if not answer["failures"]:
            answer["figures"] = measure(subjects, options.owners, options.large, effort)
    print(json.dumps(answer))


def measure(
    subjects: Sequence[Subject], owners: int, large: int, effort: harness.Effort
) -> list[Figure]:
    """Fill, search, add to it, search again, and erase."""
    figures: list[Figure] = []
    used = {subject.name: _used(subject) for subject in subjects}
    names = [f"user {number}" for number in range(owners)]
    for case, filled, asked, facts in (
        ("one owner", ["ada"], ["ada"], SMALL),
        ("one large owner", ["large"], ["large"], large),
        ("many owners", names, names, SMALL),
    ):
        for subject in subjects:
            started = time.monotonic()
            for name in filled:
                subject.fill(name, corpus.texts(name, facts))
            seconds = time.monotonic() - started
            grown = _used(subject) - used[subject.name]
            used[subject.name] += grown
            count = facts * len(filled)
            figures.append(
                {
                    "case": "fill",
                    "where": case,
                    "facts": facts,
                    "subject": subject.name,
                    "bytes_per_fact": round(grown / count),
                    "us_per_fact": round(seconds / count * 1e6, 1),
                }
            )
        figures += _searches(subjects, case, asked, facts, effort)
    for subject in subjects:
        if isinstance(subject, Plain):
            figures += _recall(subject, effort)
    return figures + _erasures(subjects, names)


def _searches(
    subjects: Sequence[Subject], case: str, owners: list[str], facts: int, effort: harness.Effort
) -> list[Figure]:
    asked = [
        (owner, question)
        for number, owner in enumerate((owners * QUESTIONS)[:QUESTIONS])
        for question in corpus.questions(f"{owner} {number}", 1)
    ]
    gos = [harness.Go(subject.name, _searching(subject, asked)) for subject in subjects]
    harness.run(harness.interleave(gos, "sync", effort), None)
    found = harness.figures("search", "sync", gos, where=case, facts=facts)
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


def _recall(ours: Plain, effort: harness.Effort) -> list[Figure]:
    """What a turn takes with and without recall, beside the search alone."""
    asked = corpus.questions("ada", QUESTIONS)
    gos = [
        harness.Go("turn", lambda at: ours.turn("ada", asked[at], recalls=False)),
        harness.Go("turn with recall", lambda at: ours.turn("ada", asked[at], recalls=True)),
        harness.Go("search", lambda at: ours.search("ada", asked[at])),
    ]
    harness.run(harness.interleave(gos, "sync", effort), None)
    added = [
        statistics.median(recalled) - statistics.median(bare)
        for bare, recalled in zip(gos[0].rounds, gos[1].rounds, strict=True)
    ]
    searched = [statistics.median(samples) for samples in gos[2].rounds]
    share = statistics.median(a / b for a, b in zip(added, searched, strict=True))
    found = harness.figures("recall", "sync", gos, facts=SMALL)
    return [*found, {"case": "recall", "subject": "added", "of_search": round(share, 3)}]


def _erasures(subjects: Sequence[Subject], names: list[str]) -> list[Figure]:
    figures: list[Figure] = []
    for subject in subjects:
        for where, owners in (("many owners", names[:ERASED]), ("one large owner", ["large"])):
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
            figures.append({**figure, "median_us": round(statistics.median(times), 1)})
    return figures


def _used(subject: Subject) -> int:
    info = subject.client.info("memory")
    return int(info["used_memory"]) - int(info["mem_clients_normal"])


if __name__ == "__main__":
    main()
