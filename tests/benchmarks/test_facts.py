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


def searches(name: str, others: dict[str, float]) -> list[dict[str, Any]]:
    times = {"facts": 300, "median_us": 2_000.0, "p95_us": 3_000.0, "ratio_to": others}
    return [{"case": "search", "where": where, "subject": name, **times} for where in WHERE]


def fills(name: str, owners: int = 1_000) -> list[dict[str, Any]]:
    sizes = {"bytes_per_fact": 2_900, "us_per_fact": 150.0, "owners": owners}
    return [{"case": "fill", "where": where, "subject": name, **sizes} for where in WHERE]


def erasures(name: str, erased_us: float | None) -> list[dict[str, Any]]:
    erased = {"case": "erase", "subject": name, "median_us": erased_us}
    return [{**erased, "where": where} for where in WHERE[:2]]


def recall(
    embedding_ms: int, late: int = 0, added: float = 1.05, kind: str = "sync"
) -> list[dict[str, Any]]:
    common = {"case": "added", "kind": kind, "embedding_ms": embedding_ms, "of": "Recall()"}
    no_deadline = {**common, "subject": "Recall(deadline=None)", "of_hand": 1.004}
    return [
        {**common, "subject": "turn", "median_us": 400.0},
        {**common, "subject": "Recall()", "median_us": 2_500.0, "of_hand": added, "late": late},
        {**no_deadline, "median_us": 2_400.0},
        {**common, "subject": "by hand", "median_us": 2_390.0},
    ]


def result(ours: list[dict[str, Any]], **peers: Any) -> dict[str, Any]:
    environment = {"server": "Redis 8.2.3", "python": "3.11.7", "cpus": 2}
    common = {"failures": [], "figures": [], "owners": 1_000, "environment": environment}
    return {
        "schema": 3,
        "date": "2026-11-30",
        "quick": False,
        "ours": {**common, "figures": ours},
        "peers": {name: {**common, **peer} for name, peer in peers.items()},
    }


def test_each_subject_has_a_row_and_what_failed_is_said(report: Any) -> None:
    plain = "turnstore, plain"
    peer = [*searches("peer", {plain: 0.25}), *fills("peer"), *erasures("peer", 43_000_000.0)]
    drawn = report.table(
        result(
            [*fills(plain), *recall(0), *recall(10), *erasures(plain, 12_000.0)],
            first={"title": "A peer", "figures": [*searches(plain, {"peer": 4.0}), *peer]},
            second={"title": "Another", "failures": [{"reason": "it cannot be made"}]},
        )
    )
    assert "| turnstore, plain | 1,000 | 2.0 ms / 3.0 ms |" in drawn
    assert "| A peer | 1,000 | 2.0 ms / 3.0 ms (0.25\u00d7) |" in drawn
    assert "12 ms / 12 ms |" in drawn
    assert "43.0 s / 43.0 s |" in drawn
    row = "takes 10 ms | 400 µs | 2.5 ms | 2.4 ms | 1.05\u00d7 |"
    assert f"| `Recall()` on a `Store`; an embedder that {row}" in drawn
    assert drawn.endswith("Not measured:\n\n- Another: it cannot be made")


def test_without_peers_there_are_the_rows_of_the_engines(report: Any) -> None:
    name = "turnstore, plain"
    drawn = report.table(result([*fills(name), *searches(name, {}), *erasures(name, 12_000.0)]))
    assert "| turnstore, plain | 1,000 | 2.0 ms / 3.0 ms |" in drawn
    assert "Recall" not in drawn


def test_who_has_no_way_to_erase_is_named_so(report: Any) -> None:
    peer = [*searches("peer", {}), *fills("peer"), *erasures("peer", None)]
    drawn = report.table(result(fills("ours"), one={"title": "A peer", "figures": peer}))
    assert "| no way / no way |" in drawn


def test_how_many_owners_were_searched_stands_in_each_row(report: Any) -> None:
    ours = fills("all") + fills("some", owners=446)
    peer = [*searches("peer", {}), *fills("peer", owners=897)]
    drawn = report.table(result(ours, one={"title": "A peer", "figures": peer}))
    head, _, *rows = (line for line in drawn.splitlines() if line.startswith("|"))
    assert head.startswith("| | owners of 300 facts | ")
    assert "1,000" not in head
    assert [row.split(" | ")[:2] for row in rows] == [
        ["| all", "1,000"],
        ["| some", "446: the time was up"],
        ["| A peer", "897: the time was up"],
    ]


def test_what_recall_adds_has_a_bar(report: Any) -> None:
    figures = [*recall(0, added=1.0), *recall(10, late=2, added=1.016, kind="async")]
    drawn = report.bars(result(figures))
    first, second, third, last = drawn.splitlines()[2:]
    start = "| `Recall()` on a `Store` adds to a turn; an embedder that takes next to nothing |"
    assert first.startswith(start)
    assert first.endswith(" \u00d7 the search and the embedding | 1.00 | met |")
    assert second.startswith("| `Recall(deadline=None)` on a `Store` adds to a turn; ")
    assert "on an `AsyncStore` adds to a turn; an embedder that takes 10 ms | ≤ 1.00" in third
    assert third.endswith(" | 1.02 (2 recalls were too late) | **missed** |")
    assert last.endswith(" | 1.00 | met |")


def test_recalls_that_were_too_late_are_counted(report: Any) -> None:
    name = "turnstore, plain"
    drawn = report.table(result([*fills(name), *recall(0), *recall(10, late=2)]))
    assert "| 1.05\u00d7 (2 recalls were too late) |" in drawn
    assert drawn.count("too late") == 1


@pytest.mark.parametrize("name", ["bars", "cost"])
def test_a_page_without_the_closing_mark_is_refused(report: Any, name: str) -> None:
    with pytest.raises(ValueError, match="lacks the mark"):
        report.replace(report.mark(name), result([]))
    assert report.replace("no marks", result([])) == "no marks"


def test_each_table_stands_behind_its_own_mark(report: Any) -> None:
    marks = [report.mark(name) for name in ("bars", "cost")]
    page = "\n".join(f"{mark}\nold\n{report.END}" for mark in marks)
    measured = result([*fills("ours"), *recall(0)])
    drawn = report.replace(page, measured)
    texts = (report.bars(measured), report.table(measured))
    blocks = zip(marks, texts, strict=True)
    assert drawn == "\n".join(f"{mark}\n{text}\n{report.END}" for mark, text in blocks)


def test_results_of_another_layout_change_nothing(report: Any) -> None:
    page = f"{report.mark('cost')}\nas it was\n{report.END}"
    assert report.replace(page, {**result([]), "schema": 1}) == page
