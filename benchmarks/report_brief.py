"""The tables of the README: what matters to a user, out of the same results as the full ones."""

# ruff: noqa: RUF001 (the tables have a multiplication sign)

from __future__ import annotations

from typing import Any

import report
from report import OURS, Figure, find, time_text

BEGIN = "<!-- benchmarks, brief: drawn by `python benchmarks/run.py table --write` -->"
END = "<!-- /brief benchmarks -->"
KINDS = ("sync", "async")
_IDEAL = "floor ideal"
_CASES = (
    ("append", 1_000, "append a turn of 2 messages, 1,000 stored", 1.25),
    ("read", 1_000, "read the newest 100 messages, 1,000 stored", 1.0),
    ("turn", 200, "a turn: read 50 messages, append 2, 200 stored", 1.1),
)
_FAULTS = ("lost", "doubled", "torn")


def tables(result: dict[str, Any]) -> str:
    """Two tables: turnstore beside the floors, and the peers."""
    return "\n".join([*_ours(result), "", *_peers(result)])


def replace(page: str, text: str) -> str:
    """The page with the tables between its marks, where it has them."""
    return report.replace(page, text, BEGIN, END) if BEGIN in page else page


def _ours(result: dict[str, Any]) -> list[str]:
    figures: list[Figure] = result["figures"]
    lines = [
        "| sync / async | turnstore | of the floor | bar | the fastest peer |",
        "|---|---|---|---|---|",
    ]
    for case, stored, title, bar in _CASES:
        found = [find(figures, case=case, kind=k, stored=stored, subject=OURS) for k in KINDS]
        own = [f for f in found if f]
        if not own:
            continue
        ratios = [f["ratio_to"][_IDEAL] for f in own]
        cells = (
            title,
            " / ".join(time_text(f["median_us"]) for f in own),
            _times(ratios) + " ideal" + _headed(own),
            _bar(f"≤ {bar:.2f} ×", met=max(ratios) <= bar),
            " / ".join(_fastest(result, case, kind, stored) for kind in KINDS),
        )
        lines.append(_line(cells))
    return lines + _writers(figures) + _memory(figures)


def _headed(own: list[Figure]) -> str:
    ratios = [f["ratio_to"].get("floor with a head") for f in own]
    known = [ratio for ratio in ratios if ratio]
    return f"; {_times(known)} with a head" if known else ""


def _writers(figures: list[Figure]) -> list[str]:
    found = [find(figures, case="writers", kind=kind, subject=OURS) for kind in KINDS]
    own = [f for f in found if f]
    if not own:
        return []
    faults = " / ".join(_faults(f) for f in own)
    clean = not any(f[name] for f in own for name in _FAULTS)
    rates = [f["rate_ratio_to"][_IDEAL] for f in own]
    rate = " / ".join(f"{f['appends_per_second']:,}" for f in own)
    bar = _bar("≥ 0.80 ×", met=min(rates) >= 0.8)
    return [
        _line(
            ("8 writers: lost, doubled, torn", faults, "", _bar("0, 0, 0", met=clean), "see below")
        ),
        _line(("8 writers: appends a second", rate, _times(rates) + " ideal", bar, "")),
    ]


def _memory(figures: list[Figure]) -> list[str]:
    figure = find(figures, case="memory", stored=1_000, subject=OURS)
    if figure is None:
        return []
    ratio = figure["ratio_to"]["floor raw"]
    size = f"{figure['bytes_per_message']:,.0f}"
    bar = _bar("≤ 1.02 ×", met=ratio <= 1.02)
    title = "bytes of Redis memory a message, 1,000 stored"
    return [_line((title, size, f"{ratio:.2f} × raw", bar, "see below"))]


def _fastest(result: dict[str, Any], case: str, kind: str, stored: int) -> str:
    """The least that a peer takes, in times of what turnstore takes beside it."""
    best = min(
        (
            (figure["ratio_to"][OURS], figure["subject"])
            for own in _of_peers(result)
            for figure in own
            if (figure["case"], figure["kind"], figure.get("stored")) == (case, kind, stored)
            and OURS in figure.get("ratio_to", {})
        ),
        default=None,
    )
    return f"{best[0]:.1f} × ({best[1]})" if best else "–"


def _of_peers(result: dict[str, Any]) -> list[list[Figure]]:
    """The figures of each peer, without those of the floors and of turnstore beside it."""
    every = (
        [f for f in peer.get("figures", ()) if not f["subject"].startswith(("floor", OURS))]
        for peer in result["peers"].values()
    )
    return [own for own in every if own]


def _peers(result: dict[str, Any]) -> list[str]:
    lines = [
        "| time ÷ turnstore's | append | read | turn | bytes a message | lost, doubled, torn |",
        "|---|---|---|---|---|---|",
    ]
    for own in _of_peers(result):
        name, kind = own[0]["subject"], own[0]["kind"]
        cells = [f"{name}, {kind}"]
        for case, stored, _, _ in _CASES:
            figure = find(own, case=case, kind=kind, stored=stored, subject=name)
            ratio = figure["ratio_to"].get(OURS) if figure else None
            cells.append(_ratio(ratio) if ratio else "–")
        size = [f for f in own if f["case"] == "memory" and f["stored"] >= 100]
        cells.append(f"{size[0]['bytes_per_message']:,.0f}" if size else "–")
        writers = find(own, case="writers", kind=kind, subject=name)
        cells.append(f"{_faults(writers)} of {writers['messages']:,}" if writers else "–")
        lines.append(_line(cells))
    return lines if len(lines) > 2 else []


def _faults(figure: Figure) -> str:
    return ", ".join(str(figure[name]) for name in _FAULTS)


def _ratio(ratio: float) -> str:
    return f"{ratio:.1f} ×" if ratio < 10 else f"{ratio:,.0f} ×"


def _times(ratios: list[float]) -> str:
    return " / ".join(f"{ratio:.2f}" for ratio in ratios) + " ×"


def _bar(bar: str, *, met: bool) -> str:
    return f"{bar}: {'met' if met else '**missed**'}"


def _line(cells: tuple[str, ...] | list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
