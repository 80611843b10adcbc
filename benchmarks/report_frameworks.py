"""The table of the frameworks: what a turn costs by turnstore's adapter, by hand, by their own."""

# ruff: noqa: RUF001 (the table has a multiplication sign)

from __future__ import annotations

from typing import Any

import report
from report import OURS, Figure, find, time_text

_MARK = "<!-- frameworks: drawn by `python benchmarks/run.py table --write` -->"
_END = "<!-- /frameworks -->"
_BY_HAND = "by hand"


def replace(page: str, result: dict[str, Any] | None) -> str:
    """The page with its table between the marks; as it was without either."""
    if result is None or _MARK not in page:
        return page
    return report.replace(page, table(result), _MARK, _END)


def table(result: dict[str, Any]) -> str:
    """A row for each run: by the main environment, and beside each peer."""
    lines = [
        "| framework | by hand | turnstore | ÷ by hand | its own store on Redis | ÷ turnstore |",
        "|---|---|---|---|---|---|",
    ]
    runs = [result["figures"], *(peer.get("figures", []) for peer in result["peers"].values())]
    for figures in runs:
        own = [figure for figure in figures if figure["case"] == "frameworks"]
        lines += [
            _row(name, [figure for figure in own if figure["framework"] == name])
            for name in dict.fromkeys(figure["framework"] for figure in own)
        ]
    return "\n".join(lines)


def _row(name: str, figures: list[Figure]) -> str:
    ours, by_hand = (find(figures, subject=subject) for subject in (OURS, _BY_HAND))
    if ours is None or by_hand is None:
        raise ValueError(f"{name}: not all figures are there")
    theirs = [one for one in figures if one["subject"] not in (OURS, _BY_HAND)]
    cells = [
        f"{name}, {ours['kind']}",
        time_text(by_hand["median_us"]),
        time_text(ours["median_us"]),
        f"{ours['ratio_to'][_BY_HAND]:.2f}",
        *(f"{time_text(one['median_us'])} ({one['subject']})" for one in theirs or ()),
        *(f"{one['ratio_to'][OURS]:.2f} ×" for one in theirs),
    ]
    return "| " + " | ".join(cells if theirs else [*cells, "–", "–"]) + " |"
