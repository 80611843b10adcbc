"""Tables out of the figures of the case `context`: for the README, and for two guides."""

# ruff: noqa: RUF001 (the tables have a multiplication sign)

from __future__ import annotations

from typing import Any

import report
from report import find, time_text

Figure = dict[str, Any]
END = "<!-- /context benchmarks -->"


def mark(name: str) -> str:
    """What stands before a table in a page."""
    return f"<!-- context benchmarks, {name}: drawn by `python benchmarks/run.py table --write` -->"


def bars(figures: list[Figure]) -> str:
    """The bars of the context, each with what was measured."""
    lines = ["| figure | bar | measured | |", "|---|---|---|---|"]

    def add(name: str, bar: str, measured: str, *, met: bool) -> None:
        verdict = "met" if met else "**missed**"
        lines.append(f"| {name} | {bar} | {measured} | {verdict} |")

    for kind in ("sync", "async"):
        by_tokens = find(figures, case="context_read", kind=kind, subject="by tokens")
        all_limits = find(figures, case="context_read", kind=kind, subject="by all limits")
        if by_tokens is None or all_limits is None:
            continue
        stored = f"{by_tokens['stored']:,} turns stored"
        first, second = (f["ratio_to"]["by messages"] for f in (by_tokens, all_limits))
        add(
            f"window by tokens / by turns, messages and tokens, {kind} ({stored})",
            "≤ 1.10 × by messages",
            f"{first:.2f} / {second:.2f}",
            met=max(first, second) <= 1.1,
        )
        counted = [
            find(figures, case=case, kind=kind, subject="counted on read")
            for case in ("context_count_all", "context_count")
        ]
        every, window = (figure["ratio_to"]["by tokens"] if figure else 0 for figure in counted)
        add(
            f"all that is stored read, its tokens counted on read, {kind}",
            "≥ 20 × by tokens",
            f"{every:,.0f} (only that window read and counted: {window:.0f})",
            met=every >= 20,
        )
        for count, what in ((40, "the window holds all"), (200, "the summary is read")):
            figure = find(
                figures, case="context_turn", kind=kind, stored=count, subject="with a summary"
            )
            if figure:
                ratio = figure["ratio_to"]["turnstore"]
                add(
                    f"turn with a summary that folds nothing, {kind}; {what}",
                    "≤ 1.05 × without",
                    f"{ratio:.2f}",
                    met=ratio <= 1.05,
                )
    return "\n".join(lines)


def prefix(figures: list[Figure]) -> str:
    """The shares of unchanged prefixes."""
    lines = [
        "| window | prompt, tokens | an unchanged prefix | the rest, tokens | the start moved |",
        "|---|---|---|---|---|",
    ]
    calls = 0
    for figure in figures:
        if figure["case"] == "context_prefix":
            calls = figure["calls"]
            window = figure["window"].replace("messages=None, ", "").replace("=None", "=")
            given = ", ".join(
                part
                for part in window.removeprefix("Window(").removesuffix(")").split(", ")
                if not part.endswith("=")
            )
            lines.append(
                f"| `Window({given})` | {figure['tokens_a_prompt']:,.0f} "
                f"| {figure['share']:.0%} | {figure['new_tokens_a_prompt']:,.0f} "
                f"| {figure['starts_moved']:,} times in {calls:,} calls |"
            )
    return "\n".join(lines)


def times(figures: list[Figure]) -> str:
    """What a read costs, by how it is limited, beside a read by tokens in the same rounds."""
    lines = ["| read of the newest 100 messages | sync | async |", "|---|---|---|"]
    for title, case, subject in (
        ("by a limit of tokens", "context_read", "by tokens"),
        ("by a limit of messages", "context_read", "by messages"),
        ("by limits of turns, messages and tokens", "context_read", "by all limits"),
        ("by messages, and counted on read", "context_count", "counted on read"),
        ("all of it read and counted", "context_count_all", "counted on read"),
    ):
        cells: list[str] = []
        for kind in ("sync", "async"):
            figure = find(figures, case=case, kind=kind, subject=subject)
            if figure is None:
                cells.append("–")
            elif subject == "by tokens":
                cells.append(time_text(figure["median_us"]))
            else:
                ratio = figure["ratio_to"]["by tokens"]
                cells.append(f"{ratio:.2f} ×" if ratio < 10 else f"{ratio:,.0f} ×")
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


TABLES = {"bars": bars, "prefix": prefix, "times": times}


def replace(page: str, figures: list[Figure]) -> str:
    """The page with these tables between its marks, where it has any."""
    for name, table in TABLES.items():
        if mark(name) in page:
            page = report.replace(page, table(figures), mark(name), END)
    return page
