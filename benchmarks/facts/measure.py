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

SMALL, LARGE, MANY, TINY = 300, 10_000, 1_000, 30
QUESTIONS = 200
ERASED = 3
EMBEDDING_MS = 10  # what an embedder takes, where it is not left out
Figure = dict[str, Any]


def main() -> None:
    """Run what the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer")
    parser.add_argument("--engines", nargs="*", default=[kind.engine for kind in OURS])
    parser.add_argument("--owners", type=int, default=MANY)
    parser.add_argument("--large", type=int, default=LARGE)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    effort = harness.QUICK if options.quick else harness.Effort(seconds=10, max_rounds=200)
    if options.quick:
        options.owners, options.large = 20, 1_000
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
    names = [f"user {number}" for number in range(owners)]
    for case, filled, facts, asked, held in (
        ("one owner", ["ada"], SMALL, "ada", SMALL),
        ("one large owner", ["large"], large, "large", large),
        ("many owners", names, TINY, "ada", SMALL),
    ):
        figures += [_filled(subject, case, filled, facts) for subject in subjects]
        figures += _searches(subjects, case, asked, held, effort)
    for subject in subjects:
        if isinstance(subject, Plain):
            for milliseconds in (0, EMBEDDING_MS):
                figures += _recall(subject, milliseconds, effort)
    return figures + _erasures(subjects)


def _filled(subject: Subject, case: str, owners: list[str], facts: int) -> Figure:
    before = _used(subject)
    started = time.monotonic()
    for owner in owners:
        subject.fill(owner, corpus.texts(owner, facts))
    seconds = time.monotonic() - started
    count = facts * len(owners)
    print(f"{subject.name}: {case} filled in {seconds:.1f} s", file=sys.stderr, flush=True)
    return {
        "case": "fill",
        "where": case,
        "facts": facts,
        "subject": subject.name,
        "bytes_per_fact": round((_used(subject) - before) / count),
        "us_per_fact": round(seconds / count * 1e6, 1),
    }


def _searches(
    subjects: Sequence[Subject], case: str, owner: str, facts: int, effort: harness.Effort
) -> list[Figure]:
    asked = [(owner, question) for question in corpus.questions(owner, QUESTIONS)]
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


def _recall(ours: Plain, milliseconds: int, effort: harness.Effort) -> list[Figure]:
    """What a turn takes with and without recall, beside the search alone.

    The search has the embedding in it, which takes so many milliseconds.
    """
    asked = corpus.questions("ada", QUESTIONS)
    ours.embedding_ms = milliseconds
    gos = [
        harness.Go("turn", lambda at: ours.turn("ada", asked[at], recalls=False)),
        harness.Go("turn with recall", lambda at: ours.turn("ada", asked[at], recalls=True)),
        harness.Go("search", lambda at: ours.search("ada", asked[at])),
    ]
    harness.run(harness.interleave(gos, "sync", effort), None)
    ours.embedding_ms = 0
    bare, recalled, searched = ([statistics.median(samples) for samples in go.rounds] for go in gos)
    rounds = list(zip(bare, recalled, searched, strict=True))
    share = statistics.median((more - less) / search for less, more, search in rounds)
    found = harness.figures("recall", "sync", gos, facts=SMALL, embedding_ms=milliseconds)
    added = {"case": "recall", "subject": "added", "embedding_ms": milliseconds}
    return [*found, {**added, "of_search": round(share, 3)}]


def _erasures(subjects: Sequence[Subject]) -> list[Figure]:
    """Erase the large owner, and some of as many facts as the small one."""
    gone = [f"gone {number}" for number in range(ERASED)]
    figures: list[Figure] = []
    for subject in subjects:
        for where, owners in (("one owner", gone), ("one large owner", ["large"])):
            figure = {"case": "erase", "where": where, "subject": subject.name}
            if not subject.erases:
                figures.append({**figure, "median_us": None})
                continue
            times = []
            for owner in owners:
                if owner in gone:
                    subject.fill(owner, corpus.texts(owner, SMALL))
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
