"""Tables of what is found again, for the page of the benchmarks and for the explanation."""

# ruff: noqa: RUF001 (the tables have dashes)

from __future__ import annotations

from typing import Any

import report
from report import find

Figure = dict[str, Any]
END = "<!-- /retrieval -->"
_ORDER = ("single-hop", "multi-hop", "temporal", "open domain", "adversarial")
_NAMES = {
    "dense, exact": "vectors alone, computed exactly",
    "dense, photos left out": "vectors alone, exactly, without photos",
    "dense": "vectors alone",
    "words": "words alone",
    "fused": "both, fused",
    "default": "**default**",
}
_AVERAGES = "R@5 | R@10 | R@25 | R@50 | nDCG@10 | all@10"
_HEAD = (
    f"| | {_AVERAGES} | R@10 without adversarial "
    "| single / multi / temporal / open / adversarial | conversations |"
)


def mark(name: str) -> str:
    """What stands before a table in a page."""
    return f"<!-- retrieval, {name}: drawn by `python benchmarks/run.py table --write` -->"


def _averages(figure: Figure) -> str:
    names = (*(f"recall@{at}" for at in (5, 10, 25, 50)), "ndcg@10", "all@10")
    return " | ".join(f"{figure[name]:.1f}" for name in names)


def _by_category(figure: Figure) -> list[tuple[str, Figure]]:
    return [(name, found) for name in _ORDER if (found := figure["categories"].get(name))]


def _row(figure: Figure, title: str) -> str:
    without = figure["recall@10 without adversarial"]
    categories = " / ".join(f"{found['recall@10']:.1f}" for _, found in _by_category(figure))
    parts = [found["recall@10"] for found in figure["conversations"].values()]
    spread = f"{min(parts):.1f} to {max(parts):.1f}" if len(parts) > 1 else "–"
    return f"| {title} | {_averages(figure)} | {without:.1f} | {categories} | {spread} |"


def _unit(result: dict[str, Any], unit: str) -> list[str]:
    lines = [_HEAD, "|---" * 10 + "|"]
    for subject, title in _NAMES.items():
        figure = find(result["figures"], unit=unit, subject=subject, where="memory")
        if figure:
            lines.append(_row(figure, title))
    return lines


def turns(result: dict[str, Any]) -> str:
    """A turn is a fact: the usual measure."""
    return "\n".join([_setting(result), "", *_unit(result, "turn")])


def categories(result: dict[str, Any]) -> str:
    """All measures of the default ranking by category; places that show the same share a table."""
    places: dict[str, list[str]] = {}
    for figure in result["figures"]:
        if (figure["unit"], figure["subject"]) == ("turn", "default"):
            rows = "\n".join(
                f"| {name} | {found['questions']:,} | {_averages(found)} |"
                for name, found in _by_category(figure)
            )
            places.setdefault(rows, []).append(_place(figure["where"]))
    head = f"| category | questions | {_AVERAGES} |\n{'|---' * 8}|"
    return "\n\n".join(
        f"Default ranking; {'; '.join(names)}:\n\n{head}\n{rows}" for rows, names in places.items()
    )


def exchanges(result: dict[str, Any]) -> str:
    """Two turns are a fact, as `Exchanges` stores them."""
    return "\n".join(_unit(result, "exchange"))


def one_owner(result: dict[str, Any]) -> str:
    """All conversations are one owner's."""
    return "\n".join(_unit(result, "turn, one owner"))


def engines(result: dict[str, Any]) -> str:
    """The same on each engine, in one store with an owner a conversation."""
    lines = ["| | vectors alone | words alone | both, fused | default | foreign rows |"]
    lines.append("|---" * 6 + "|")
    names = list(dict.fromkeys(figure["where"] for figure in result["figures"]))
    for name in names:
        found = [
            find(result["figures"], unit="turn", subject=subject, where=name)
            for subject in ("dense", "words", "fused", "default")
        ]
        cells = [f"{figure['recall@10']:.2f}" if figure else "–" for figure in found]
        foreign = sum(figure.get("foreign", 0) for figure in found if figure)
        shown = "–" if name == "memory" else str(foreign)
        lines.append(f"| {_place(name)} | {' | '.join(cells)} | {shown} |")
    lines += [f"\nNot measured, {one['engine']}: {one['reason']}" for one in result["failures"]]
    return "\n".join(lines)


def _place(where: str) -> str:
    return "in memory, no server" if where == "memory" else where


def bars(result: dict[str, Any]) -> str:
    """What was to be reached."""
    figures = result["figures"]

    def recall(subject: str, where: str = "memory") -> float | None:
        figure = find(figures, unit="turn", subject=subject, where=where)
        return figure["recall@10"] if figure else None

    lines = ["| figure | bar | measured | |", "|---|---|---|---|"]

    def add(title: str, bar: str, text: str, *, met: bool) -> None:
        lines.append(f"| {title} | {bar} | {text} | {'met' if met else '**missed**'} |")

    exact, default = recall("dense, exact"), recall("default")
    places = [name for name in dict.fromkeys(one["where"] for one in figures) if name != "memory"]
    if exact is None or default is None:
        return ""
    dense = [value for name in places if (value := recall("dense", name)) is not None]
    if dense:
        off = max(abs(value - exact) for value in dense)
        add("vectors alone, of exact, every engine", "≤ 0.5 points", f"{off:.2f}", met=off <= 0.5)
    best = max(recall("dense") or 0, recall("words") or 0)
    above = default - best
    add("default above the better half alone", "≥ 5 points", f"{above:.1f}", met=above >= 5)
    plain = recall("default", "plain")
    for name in places:
        value = recall("default", name)
        if name.startswith("search") and value is not None and plain is not None:
            off = plain - value
            add(f"default, {name}, below plain", "≤ 3 points", f"{off:.2f}", met=off <= 3)
    foreign = sum(figure.get("foreign", 0) for figure in figures)
    add("rows of another owner", "0", str(foreign), met=foreign == 0)
    return "\n".join(lines)


def least(result: dict[str, Any]) -> str:
    """What a least similarity leaves of three hits."""
    each = "R@3 | hits | questions without any"
    lines = [f"| `min_score` | turns: {each} | exchanges: {each} |", "|---" * 7 + "|"]
    for value in dict.fromkeys(one["min_score"] for one in result["least"]):
        cells: list[str] = []
        for unit in ("turn", "exchange"):
            figure = find(result["least"], min_score=value, unit=unit)
            if figure:
                nothing = f"{figure['nothing']:.1f} %"
                cells += [f"{figure['recall@3']:.1f}", f"{figure['hits']:.2f}", nothing]
        lines.append(f"| {'None' if value is None else value} | {' | '.join(cells)} |")
    return "\n".join(lines)


def tuning(result: dict[str, Any]) -> str:
    """What each number of the ranking is worth, and what it is on conversations not seen."""
    tuned = result.get("tuning")
    if not tuned:
        return ""
    lines = ["| | R@10 by its value | chosen without the conversation |", "|---|---|---|"]
    for name, values in tuned["varied"].items():
        cells = ", ".join(f"{value}: {recall:.1f}" for value, recall in values.items())
        lines.append(f"| `{name}` | {cells} | {tuned['held out'][name]['recall@10']:.1f} |")
    whole = tuned["held out"]["any one of them"]["recall@10"]
    lines.append(f"| any one of them | default: {tuned['default']:.1f} | {whole:.1f} |")
    return "\n".join(lines)


def _setting(result: dict[str, Any]) -> str:
    what, where = result["data"], result.get("environment", {})
    packages = ", ".join(f"{name} {version}" for name, version in where.get("packages", {}).items())
    return (
        f"Measured on {result['date']}: {what['name']}, {what['conversations']} conversations, "
        f"{what['turns']:,} turns, {what['questions']:,} questions with evidence; "
        f"{result['embedder']}; {where.get('server', 'in memory')}; {packages}."
    )


_TABLES = {
    "bars": bars,
    "turns": turns,
    "categories": categories,
    "engines": engines,
    "exchanges": exchanges,
    "one owner": one_owner,
    "least": least,
    "tuning": tuning,
}


def all_tables(result: dict[str, Any]) -> str:
    """Every table, one after the other."""
    return "\n\n".join(f"{name}\n{table(result)}" for name, table in _TABLES.items())


def replace(page: str, result: dict[str, Any] | None, second: dict[str, Any] | None) -> str:
    """The page with these tables between its marks, where it has any.

    The table `second` is that of the turns of another corpus.
    """
    tables = [(name, table, result) for name, table in _TABLES.items()]
    for name, table, figures in (*tables, ("second", turns, second)):
        if mark(name) in page and figures is not None:
            page = report.replace(page, table(figures), mark(name), END)
    return page
