"""The table of what facts cost: what it draws of results, and what it says of those it lacks."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
WHERE = ("one owner", "one large owner", "many owners")


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)
    yield importlib.import_module("report_facts")
    for name in set(sys.modules) - before:
        del sys.modules[name]


def figures(name: str, others: dict[str, float], erased_us: float | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for where in WHERE:
        times = {"facts": 300, "median_us": 2_000.0, "p95_us": 3_000.0, "ratio_to": others}
        found.append({"case": "search", "where": where, "subject": name, **times})
        sizes = {"bytes_per_fact": 2_900, "us_per_fact": 150.0}
        found.append({"case": "fill", "where": where, "subject": name, **sizes})
    erased = {"case": "erase", "subject": name, "median_us": erased_us}
    return [*found, *({**erased, "where": where} for where in WHERE[:2])]


def recall(embedding_ms: int) -> list[dict[str, Any]]:
    times = {"turn": 400.0, "turn with recall": 2_500.0, "search": 2_000.0}
    common = {"case": "recall", "embedding_ms": embedding_ms}
    measured = [{**common, "subject": name, "median_us": time} for name, time in times.items()]
    return [*measured, {**common, "subject": "added", "of_search": 1.05}]


def result(**peers: Any) -> dict[str, Any]:
    environment = {"server": "Redis 8.2.3", "python": "3.11.7", "cpus": 2}
    common = {"failures": [], "figures": [], "owners": 1_000, "environment": environment}
    return {
        "date": "2026-11-30",
        "quick": False,
        "peers": {name: {**common, **peer} for name, peer in peers.items()},
    }


def test_each_subject_has_a_row_and_what_failed_is_said(report: Any) -> None:
    ours = figures("turnstore, plain", {"peer": 4.0}, 12_000.0)
    peer = figures("peer", {"turnstore, plain": 0.25}, 43_000_000.0)
    drawn = report.table(
        result(
            first={"title": "A peer", "figures": [*ours, *peer, *recall(0), *recall(10)]},
            second={"title": "Another", "failures": [{"reason": "it cannot be made"}]},
        )
    )
    assert "| turnstore, plain | 2.0 ms / 3.0 ms |" in drawn
    assert "| A peer | 2.0 ms / 3.0 ms (0.25\u00d7) |" in drawn
    assert "12 ms / 12 ms |" in drawn
    assert "43.0 s / 43.0 s |" in drawn
    assert "300 facts, 1,000 other owners" in drawn
    assert "recall 2.5 ms, the search with its embedding by itself 2.0 ms" in drawn
    assert "takes 10 ms: a turn 400 µs" in drawn
    assert drawn.endswith("Not measured:\n\n- Another: it cannot be made")


def test_who_has_no_way_to_erase_is_named_so(report: Any) -> None:
    drawn = report.table(result(one={"title": "A peer", "figures": figures("peer", {}, None)}))
    assert "| no way / no way |" in drawn
    assert "Recall" not in drawn


def test_a_page_without_the_closing_mark_is_refused(report: Any) -> None:
    with pytest.raises(ValueError, match="lacks the mark"):
        report.replace(report.BEGIN, result())
    assert report.replace("no marks", result()) == "no marks"
