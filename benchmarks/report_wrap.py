"""The table of the wrapped clients: what a call with a memory costs over the bare call."""

# ruff: noqa: RUF001 (the tables have a multiplication sign)

from __future__ import annotations

from typing import Any

from report import OURS, Figure, find, replace, time_text

BEGIN = "<!-- wrapped clients, all: drawn by `python benchmarks/run.py table --write` -->"
END = "<!-- /wrapped clients -->"
KINDS = ("sync", "async")
_BAR = 1.05
_BARE, _BY_HAND, _PAST = "bare SDK call", "by hand", "by hand, past"


def of(result: dict[str, Any]) -> list[Figure]:
    """The figures of wrapped clients; none if the case was not run."""
    return [figure for figure in result["figures"] if figure["case"].startswith("wrap")]


def drawn(page: str, result: dict[str, Any]) -> str:
    """The page with its table between the marks; as it was without such figures."""
    figures = of(result)
    return replace(page, every(figures), BEGIN, END) if figures and BEGIN in page else page


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


def _with_bar(text: str, ratio: float) -> str:
    return f"{text}: {'met' if ratio <= _BAR else '**missed**'}"


def _head(*cells: str) -> list[str]:
    return [_line(list(cells)), "|" + "---|" * len(cells)]


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
