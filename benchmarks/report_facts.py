"""The table of what facts cost, for the page of the benchmarks."""

# ruff: noqa: RUF001 (the table has dashes and a multiplication sign)

from __future__ import annotations

from typing import Any

from report import find, time_text

Figure = dict[str, Any]
BEGIN = "<!-- facts, cost: drawn by `python benchmarks/run.py table --write` -->"
END = "<!-- /facts -->"
_SECOND = 1_000_000
_WHERE = ("one owner", "one large owner", "many owners")


def table(result: dict[str, Any]) -> str:
    """Search, bytes and erasing of each subject; what recall adds; what could not be measured."""
    lines: list[str] = []
    failures: list[str] = []
    ours: list[Figure] = []
    for peer in result["peers"].values():
        failures += [f"- {peer['title']}: {one['reason']}" for one in peer["failures"]]
        figures = peer["figures"]
        if not figures:
            continue
        if not lines:
            lines += [*_setting(result, peer), "", *_head(figures, peer["owners"])]
        names = list(dict.fromkeys(one["subject"] for one in figures if one["case"] == "search"))
        if not ours:
            ours = figures
            lines += [_row(figures, name, name) for name in names[:-1]]
        lines.append(_row(figures, names[-1], peer["title"], beside=names[:-1]))
    if find(ours, case="recall", subject="added"):
        lines += ["", _recall(ours)]
    return "\n".join([*lines, *(["", "Not measured:", "", *failures] if failures else [])])


def _recall(figures: list[Figure]) -> str:
    parts: list[str] = []
    for added in figures:
        if added["subject"] != "added":
            continue
        milliseconds = added["embedding_ms"]
        turn, recalled, search = (
            find(figures, case="recall", subject=name, embedding_ms=milliseconds)
            for name in ("turn", "turn with recall", "search")
        )
        if turn and recalled and search:
            parts.append(
                f"an embedder that takes {milliseconds or 'next to nothing'}"
                f"{' ms' if milliseconds else ''}: a turn {time_text(turn['median_us'])}, with "
                f"recall {time_text(recalled['median_us'])}, the search with its embedding by "
                f"itself {time_text(search['median_us'])}; recall adds {added['of_search']:.2f} "
                "times that"
            )
    return f"What `Recall` adds to a turn (300 facts, plain). With {'. With '.join(parts)}."


def _setting(result: dict[str, Any], peer: dict[str, Any]) -> list[str]:
    where = peer["environment"]
    quick = " **A smoke test: these figures mean nothing.**" if result["quick"] else ""
    text = (
        f"Measured on {result['date']}: {where['server']} with RediSearch 2.10, Python "
        f"{where['python']}; {where['cpus']} cores shared by client and servers; vectors of 384 "
        "numbers, made without an embedder; a server for each subject, all of them searched in "
        f"the same rounds.{quick}"
    )
    return [text]


def _head(figures: list[Figure], owners: int) -> list[str]:
    large = find(figures, case="search", where="one large owner")
    size = f"{large['facts']:,}" if large else "–"
    cases = ("300 facts", f"{size} facts", f"300 facts, {owners:,} other owners")
    searches = " | ".join(f"search, {case}: p50 / p95" for case in cases)
    return [
        (
            f"| | {searches} | bytes a fact, 300 / {size} / many | storing one fact "
            f"| erase 300 / {size} |"
        ),
        "|---" * 7 + "|",
    ]


def _row(figures: list[Figure], name: str, title: str, beside: list[str] | None = None) -> str:
    cells: list[str] = []
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
    fills = [find(figures, case="fill", where=where, subject=name) for where in _WHERE]
    cells.append(" / ".join(f"{fill['bytes_per_fact']:,}" if fill else "–" for fill in fills))
    cells.append(time_text(fills[-1]["us_per_fact"]) if fills[-1] else "–")
    erased = [
        find(figures, case="erase", where=where, subject=name)
        for where in ("one owner", "one large owner")
    ]
    cells.append(
        " / ".join(
            _seconds(one["median_us"]) if one and one["median_us"] is not None else "no way"
            for one in erased
        )
    )
    return f"| {title} | {' | '.join(cells)} |"


def _seconds(microseconds: float) -> str:
    long = microseconds >= _SECOND
    return f"{microseconds / _SECOND:.1f} s" if long else time_text(microseconds)


def replace(page: str, result: dict[str, Any] | None) -> str:
    """The page with the table between its marks, where it has any."""
    before, found, rest = page.partition(BEGIN)
    if not found or result is None:
        return page
    _, closed, after = rest.partition(END)
    if not closed:
        raise ValueError(f"the page lacks the mark {END}")
    return f"{before}{found}\n{table(result)}\n{END}{after}"
