"""The table of the README: turnstore beside its peers, out of the same results as the full ones."""

# ruff: noqa: RUF001 (the tables have a multiplication sign)

from __future__ import annotations

from typing import Any

import report
from report import OURS, Figure, find, time_text

BEGIN = "<!-- benchmarks, brief: drawn by `python benchmarks/run.py table --write` -->"
END = "<!-- /brief benchmarks -->"
KINDS = ("sync", "async")
_CASES = (("append", 1_000), ("read", 1_000), ("turn", 200))
_FAULTS = ("lost", "doubled", "torn")


def table(result: dict[str, Any]) -> str:
    """A line for turnstore, with times, and one for each peer, with multiples of them."""
    lines = [
        "| | append | read | turn | bytes a message | lost, doubled, torn |",
        "|---|---|---|---|---|---|",
        *_ours(result["figures"]),
        *map(_peer, _of_peers(result)),
    ]
    return "\n".join(lines)


def replace(page: str, text: str) -> str:
    """The page with the table between its marks, where it has them."""
    return report.replace(page, text, BEGIN, END) if BEGIN in page else page


def _ours(figures: list[Figure]) -> list[str]:
    lines = []
    for kind in KINDS:
        # What a message takes in Redis is measured once, as it is the same.
        own = [
            figure
            for figure in figures
            if figure.get("subject") == OURS
            and (figure["kind"] == kind or figure["case"] == "memory")
        ]
        if own:
            lines.append(_row(own, OURS, kind, lambda figure: time_text(figure["median_us"])))
    return lines


def _peer(own: list[Figure]) -> str:
    return _row(own, own[0]["subject"], own[0]["kind"], _times)


def _times(figure: Figure) -> str:
    """How many times as long as turnstore it took beside it."""
    ratio = figure["ratio_to"].get(OURS)
    if not ratio:
        return "–"
    return f"{ratio:.1f} ×" if ratio < 10 else f"{ratio:,.0f} ×"


def _row(own: list[Figure], name: str, kind: str, told: Any) -> str:
    found = [find(own, case=case, kind=kind, stored=stored) for case, stored in _CASES]
    size = next((f for f in own if f["case"] == "memory" and f["stored"] >= 100), None)
    writers = find(own, case="writers", kind=kind)
    cells = [
        f"{name}, {kind}",
        *(told(figure) if figure else "–" for figure in found),
        f"{size['bytes_per_message']:,.0f}" if size else "–",
        _faults(writers) if writers else "–",
    ]
    return "| " + " | ".join(cells) + " |"


def _faults(figure: Figure) -> str:
    return f"{', '.join(str(figure[name]) for name in _FAULTS)} of {figure['messages']:,}"


def _of_peers(result: dict[str, Any]) -> list[list[Figure]]:
    """The figures of each peer, without those of the floors and of turnstore beside it."""
    every = (
        [f for f in peer.get("figures", ()) if not f["subject"].startswith(("floor", OURS))]
        for peer in result["peers"].values()
    )
    return [own for own in every if own]
