"""Tables of what facts cost, for the page of the benchmarks and for the guide."""

# ruff: noqa: RUF001 (the table has dashes and a multiplication sign)

from __future__ import annotations

from typing import Any

import report
from report import find, time_text

Figure = dict[str, Any]
END = "<!-- /facts -->"
_SCHEMA = 3
_SECOND = 1_000_000
_WHERE = ("one owner", "many owners", "one large owner")  # as they are searched
_FILLED = ("one owner", "one large owner", "many owners")
_ERASED = ("one owner", "one large owner")
_RECALL_ADDS = 1.0  # at most so many times the search and the embedding, to the hundredth


def mark(name: str) -> str:
    """What stands before a table in a page."""
    return f"<!-- facts, {name}: drawn by `python benchmarks/run.py table --write` -->"


def bars(result: dict[str, Any]) -> str:
    """What was to be reached, of what recall adds to a turn."""
    lines = ["| figure | bar | measured | |", "|---|---|---|---|"]
    for figure in _adding(result["ours"]["figures"]):
        if figure["subject"].startswith("Recall"):
            share = figure["of_hand"]
            met = "met" if round(share, 2) <= _RECALL_ADDS else "**missed**"
            lines.append(
                f"| {_added(figure)} adds to a turn; {_embedder(figure)} "
                f"| ≤ {_RECALL_ADDS:.2f} × the search and the embedding "
                f"| {share:.2f}{_late(figure)} | {met} |"
            )
    return "\n".join(lines)


def _adding(figures: list[Figure]) -> list[Figure]:
    return [one for one in figures if "of_hand" in one]


def _added(figure: Figure) -> str:
    store = "a `Store`" if figure["kind"] == "sync" else "an `AsyncStore`"
    return f"`{figure['subject']}` on {store}"


def _embedder(figure: Figure) -> str:
    milliseconds = figure["embedding_ms"]
    return f"an embedder that takes {f'{milliseconds} ms' if milliseconds else 'next to nothing'}"


def table(result: dict[str, Any]) -> str:
    """Search, bytes and erasing of each subject; what recall adds; what could not be measured."""
    ours = result["ours"]
    failures = [f"- {one['subject']}: {one['reason']}" for one in ours["failures"]]
    measured = [peer for peer in result["peers"].values() if peer["figures"]]
    for peer in result["peers"].values():
        failures += [f"- {peer['title']}: {one['reason']}" for one in peer["failures"]]
    lines: list[str] = []
    if ours["figures"]:
        # What is ours was searched beside the first peer; it was filled and erased by itself.
        figures = [*(measured[0]["figures"] if measured else ()), *ours["figures"]]
        owners = ours["owners"]
        lines += [_setting(result, ours["environment"]), "", *_head(figures)]
        filled = (one["subject"] for one in ours["figures"] if one["case"] == "fill")
        lines += [_row(figures, name, name, owners) for name in dict.fromkeys(filled)]
        lines += [_peer_row(peer, owners) for peer in measured]
        if _adding(figures):
            lines += ["", _turns(figures)]
    return "\n".join([*lines, *(["", "Not measured:", "", *failures] if failures else [])])


def _peer_row(peer: dict[str, Any], owners: int) -> str:
    searched = (one["subject"] for one in peer["figures"] if one["case"] == "search")
    *beside, name = dict.fromkeys(searched)
    return _row(peer["figures"], name, peer["title"], owners, beside)


def _turns(figures: list[Figure]) -> str:
    lines = [
        "| what is added to a turn; 300 facts, plain | a turn | with it | by hand | it adds |",
        "|---" * 5 + "|",
    ]
    for figure in _adding(figures):
        same = {name: figure[name] for name in ("case", "kind", "embedding_ms", "of")}
        turn, by_hand = (find(figures, **same, subject=name) for name in ("turn", "by hand"))
        if turn and by_hand:
            times = (time_text(one["median_us"]) for one in (turn, figure, by_hand))
            lines.append(
                f"| {_added(figure)}; {_embedder(figure)} | {' | '.join(times)} "
                f"| {figure['of_hand']:.2f}×{_late(figure)} |"
            )
    return "\n".join(lines)


def _late(figure: Figure) -> str:
    """What recalls that are beyond their deadline take is no measure of the others."""
    late = figure.get("late")
    return f" ({late} recalls were too late)" if late else ""


def _setting(result: dict[str, Any], where: dict[str, Any]) -> str:
    quick = " **A smoke test: these figures mean nothing.**" if result["quick"] else ""
    return (
        f"Measured on {result['date']}: {where['server']} with RediSearch 2.10, Python "
        f"{where['python']}; {where['cpus']} cores shared by client and servers; vectors of 384 "
        "numbers, made without an embedder; a server for each subject, all of them searched in "
        f"the same rounds.{quick}"
    )


def _head(figures: list[Figure]) -> list[str]:
    large = find(figures, case="search", where="one large owner")
    size = f"{large['facts']:,}" if large else "–"
    cases = (
        "300 facts, alone",
        "300 facts, one of the owners",
        f"{size} facts, beside them",
    )
    searches = " | ".join(f"search, {case}: p50 / p95" for case in cases)
    return [
        (
            f"| | owners of 300 facts | {searches} | bytes a fact, 300 / {size} / owners × 300 "
            f"| storing one of many at once, {size} / owners × 300 | erase 300 / {size} |"
        ),
        "|---" * 8 + "|",
    ]


def _row(
    figures: list[Figure], name: str, title: str, owners: int, beside: list[str] | None = None
) -> str:
    fills = [find(figures, case="fill", where=where, subject=name) for where in _FILLED]
    cells = [_owners(fills[-1], owners)]
    for where in _WHERE:
        figure = find(figures, case="search", where=where, subject=name)
        if figure is None:
            cells.append("–")
            continue
        text = f"{time_text(figure['median_us'])} / {time_text(figure['p95_us'])}"
        if beside:
            ratios = [figure["ratio_to"][other] for other in beside]
            text += " (" + " / ".join(f"{ratio:.2f}×" for ratio in ratios) + ")"
        cells.append(text)
    cells.append(" / ".join(f"{fill['bytes_per_fact']:,}" if fill else "–" for fill in fills))
    cells.append(" / ".join(time_text(fill["us_per_fact"]) if fill else "–" for fill in fills[1:]))
    erased = [find(figures, case="erase", where=where, subject=name) for where in _ERASED]
    cells.append(" / ".join(_erasure(one) for one in erased))
    return f"| {title} | {' | '.join(cells)} |"


def _owners(fill: Figure | None, wanted: int) -> str:
    """How many the server had, beside the large one, when it was searched."""
    if fill is None:
        return "–"
    had = fill["owners"]
    return f"{had:,}" if had >= wanted else f"{had:,}: the time was up"


def _erasure(figure: Figure | None) -> str:
    if figure is None:
        return "–"
    return "no way" if figure["median_us"] is None else _seconds(figure["median_us"])


def _seconds(microseconds: float) -> str:
    long = microseconds >= _SECOND
    return f"{microseconds / _SECOND:.1f} s" if long else time_text(microseconds)


_TABLES = {"bars": bars, "cost": table}


def replace(page: str, result: dict[str, Any] | None) -> str:
    """The page with these tables between its marks, where it has any, of results of this layout."""
    if result is None or result["schema"] != _SCHEMA:
        return page
    for name, drawn in _TABLES.items():
        if mark(name) in page:
            page = report.replace(page, drawn(result), mark(name), END)
    return page
