"""The tables of the wrapped clients: what a call with a memory costs over the bare call."""

# ruff: noqa: RUF001 (the tables have a multiplication sign)

from __future__ import annotations

from typing import Any

from report import OURS, Figure, find, replace, time_text

END = "<!-- /wrapped clients -->"
KINDS = ("sync", "async")
_BAR = 1.05
_BARE, _BY_HAND, _PAST = "bare SDK call", "by hand", "by hand, past"


def mark(name: str) -> str:
    """What stands before a table in a page."""
    return f"<!-- wrapped clients, {name}: drawn by `python benchmarks/run.py table --write` -->"


def of(result: dict[str, Any]) -> list[Figure]:
    """The figures of wrapped clients; none if the case was not run."""
    return [figure for figure in result["figures"] if figure["case"].startswith("wrap")]


def drawn(page: str, result: dict[str, Any]) -> str:
    """The page with its tables between their marks; as it was without such figures."""
    figures = of(result)
    for name, table in (("all", every(figures)), ("brief", brief(figures))):
        if figures and mark(name) in page:
            page = replace(page, table, mark(name), END)
    return page


def clients(figures: list[Figure]) -> list[str]:
    """The names of the clients; older results have one, and no name for it."""
    return list(dict.fromkeys(_client(figure) for figure in figures))


def _client(figure: Figure) -> str:
    return str(figure.get("client", "openai"))


def every(figures: list[Figure]) -> str:
    """Each client, kind, and way to be answered."""
    lines = _head(
        "client",
        "bare call",
        "with a memory",
        "÷ bare",
        "÷ by hand: bar ≤ 1.05",
        "÷ by hand, past",
        "`wrap`",
    )
    for name in clients(figures):
        own = [figure for figure in figures if _client(figure) == name]
        for case, title in (("wrap", "call"), ("wrap_stream", "stream")):
            for kind in KINDS:
                ours = find(own, case=case, kind=kind, subject=OURS)
                bare = find(own, case=case, kind=kind, subject=_BARE)
                alone = find(own, case="wrap_alone", kind=kind, subject=OURS)
                if ours is None or bare is None:
                    continue
                ratios = ours["ratio_to"]
                cells = [
                    f"{name}, {title}, {kind}",
                    time_text(bare["median_us"]),
                    time_text(ours["median_us"]),
                    f"{ratios[_BARE]:.2f}",
                    _with_bar(f"{ratios[_BY_HAND]:.2f}", ratios[_BY_HAND]),
                    f"{ratios[_PAST]:.2f}",
                    time_text(alone["median_us"]) if alone else "–",
                ]
                lines.append(_line(cells))
    return "\n".join(lines)


def brief(figures: list[Figure]) -> str:
    """A line for the calls of a client, and one for its streams, for the README."""
    lines = _head(
        "one call or stream, sync / async",
        "bare",
        "with a memory",
        "÷ bare",
        "÷ by hand: bar ≤ 1.05",
        "÷ by hand, past",
    )
    for name in clients(figures):
        own = [figure for figure in figures if _client(figure) == name]
        for case, title in (("wrap", name), ("wrap_stream", f"{name}, stream")):
            if cells := _brief_cells(own, case):
                lines.append(_line([title, *cells]))
    return "\n".join(lines)


def _brief_cells(own: list[Figure], case: str) -> list[str]:
    """What a line says after its name; nothing if the case was not run."""
    ours = [find(own, case=case, kind=kind, subject=OURS) for kind in KINDS]
    bare = [find(own, case=case, kind=kind, subject=_BARE) for kind in KINDS]
    known = [figure for figure in ours if figure]
    if not known:
        return []
    ratios = [[figure["ratio_to"][other] for figure in known] for other in (_BARE, _BY_HAND, _PAST)]
    cells = [
        " / ".join(time_text(figure["median_us"]) for figure in bare if figure),
        " / ".join(time_text(figure["median_us"]) for figure in known),
        *(" / ".join(f"{ratio:.2f}" for ratio in some) for some in ratios),
    ]
    cells[3] = _with_bar(cells[3], max(ratios[1]))
    return cells


def _with_bar(text: str, ratio: float) -> str:
    return f"{text}: {'met' if ratio <= _BAR else '**missed**'}"


def _head(*cells: str) -> list[str]:
    return [_line(list(cells)), "|" + "---|" * len(cells)]


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
