"""Tables out of results, and the bars."""

# ruff: noqa: RUF001 (the tables have a multiplication sign)

from __future__ import annotations

from typing import Any

BEGIN = "<!-- benchmarks: drawn by `python benchmarks/run.py table --write` -->"
END = "<!-- /benchmarks -->"
_LENGTHS = {"append": (10, 1_000, 10_000), "read": (100, 1_000, 10_000), "turn": (200, 2_000)}
OURS = "turnstore"
_PEERS_NOTE = (
    "Of the peers: the time, and in brackets the peer's over that of turnstore beside it, in the "
    "same process and the same rounds. A peer that cannot read the newest few reads all of them."
)
Figure = dict[str, Any]


def find(figures: list[Figure], **facts: Any) -> Figure | None:
    """The figure with these facts."""
    for figure in figures:
        if all(figure.get(name) == value for name, value in facts.items()):
            return figure
    return None


def time_text(microseconds: float) -> str:
    """A time as one reads it."""
    if microseconds < 10:
        return f"{microseconds:.1f} µs"
    if microseconds < 1_000:
        return f"{microseconds:.0f} µs"
    milliseconds = microseconds / 1_000
    return f"{milliseconds:.1f} ms" if milliseconds < 10 else f"{milliseconds:,.0f} ms"


def _joined(ratios: list[float]) -> str:
    return " / ".join(f"{ratio:.2f}" for ratio in ratios)


class Bars:
    """The bars, each with the ratio that was measured."""

    def __init__(self, result: dict[str, Any]) -> None:
        self.result = result
        self.figures: list[Figure] = result["figures"]
        self.rows: list[tuple[str, str, str, bool | None]] = []

    def all(self) -> list[tuple[str, str, str, bool | None]]:
        """Name, bar, measured, met; None where nothing was measured."""
        for kind in ("sync", "async"):
            self._ratios("append", kind, 1.25)
            self._flat("append", kind, 1.15)
            self._ratios("append_full", kind, 1.25, lengths=(1_000,))
            self._ratios("read", kind, 1.0)
            self._flat("read", kind, 1.15)
            self._ratios("turn", kind, 1.1)
            self._peers(kind)
            self._writers(kind)
        self._memory()
        for kind in ("sync", "async"):
            figure = find(self.figures, case="handle", kind=kind)
            if figure:
                sent = figure["commands_sent"]
                text = f"{figure['median_us']:.1f} µs, {sent} commands"
                self._add(
                    f"make a conversation handle, {kind}",
                    "≤ 5 µs, no I/O",
                    text,
                    met=figure["median_us"] <= 5 and sent == 0,
                )
        return self.rows

    def _add(self, name: str, bar: str, measured: str, *, met: bool) -> None:
        self.rows.append((name, bar, measured, met))

    def _ratios(self, case: str, kind: str, bar: float, lengths: tuple[int, ...] = ()) -> None:
        lengths = lengths or _LENGTHS[case]
        ratios = self._to_ideal(case, kind, lengths, OURS)
        if not ratios:
            return
        title = {"append_full": "append at the limit", "read": "read newest 100"}.get(case, case)
        where = " / ".join(f"{n:,}" for n in lengths)
        measured = _joined(ratios)
        if by_hand := self._to_ideal(case, kind, lengths, f"{OURS} read, append"):
            measured += f" (as a read and an append: {_joined(by_hand)})"
        self._add(
            f"{title}, {kind} ({where} stored)",
            f"≤ {bar:.2f} × floor ideal",
            measured,
            met=max(ratios) <= bar,
        )

    def _to_ideal(
        self, case: str, kind: str, lengths: tuple[int, ...], subject: str
    ) -> list[float]:
        """The ratios to the ideal floor at each length; none if one of them is missing."""
        found = [
            find(self.figures, case=case, kind=kind, stored=stored, subject=subject)
            for stored in lengths
        ]
        return [f["ratio_to"]["floor ideal"] for f in found if f] if all(found) else []

    def _flat(self, case: str, kind: str, bar: float) -> None:
        """How a figure grows with the length, beyond what the floor's own does in the same run."""
        first, last = (
            find(self.figures, case=case, kind=kind, stored=n, subject=OURS)
            for n in (_LENGTHS[case][0], _LENGTHS[case][-1])
        )
        if first is None or last is None:
            return
        grown = last["ratio_to"]["floor ideal"] / first["ratio_to"]["floor ideal"]
        lengths = f"{_LENGTHS[case][0]} to {_LENGTHS[case][-1]:,}"
        self._add(
            f"{case} flat from {lengths}, {kind} (relative to the floor's own change)",
            f"≤ {bar:.2f}",
            f"{grown:.2f}",
            met=grown <= bar,
        )

    def _peers(self, kind: str) -> None:
        for stored in _LENGTHS["turn"]:
            best: tuple[float, str] | None = None
            for peer in self.result["peers"].values():
                for figure in peer.get("figures", ()):
                    if (
                        figure["case"] != "turn"
                        or figure["kind"] != kind
                        or figure["stored"] != stored
                    ):
                        continue
                    if figure["subject"].startswith(("floor", OURS)):
                        continue
                    ratio = figure["ratio_to"].get(OURS)
                    if ratio is not None and (best is None or ratio < best[0]):
                        best = ratio, figure["subject"]
            if best:
                self._add(
                    f"turn against the fastest peer, {kind}, {stored:,} stored ({best[1]})",
                    "≥ 3 × faster",
                    f"{best[0]:.1f}",
                    met=best[0] >= 3,
                )

    def _writers(self, kind: str) -> None:
        figure = find(self.figures, case="writers", kind=kind, subject=OURS)
        if figure is None:
            return
        faults = [figure[name] for name in ("lost", "doubled", "torn", "out_of_order")]
        self._add(
            f"8 writers ({figure['as']}): lost, doubled, torn, out of order",
            "0, 0, 0, 0",
            ", ".join(map(str, faults)),
            met=not any(faults),
        )
        rate = figure["rate_ratio_to"]["floor ideal"]
        self._add(
            f"8 writers ({figure['as']}): appends a second",
            "≥ 0.80 × floor ideal",
            f"{rate:.2f}",
            met=rate >= 0.8,
        )

    def _memory(self) -> None:
        ratios = []
        for stored in (1_000, 10_000):
            figure = find(self.figures, case="memory", stored=stored, subject=OURS)
            if figure is None:
                return
            ratios.append(figure["ratio_to"]["floor raw"])
        self._add(
            "bytes a message (1,000 / 10,000 stored)",
            "≤ 1.02 × floor raw",
            " / ".join(f"{r:.3f}" for r in ratios),
            met=max(ratios) <= 1.02,
        )


def tables(result: dict[str, Any]) -> str:
    """The three tables, and what they were measured with."""
    parts = [_setting(result), "", *_bars(result), "", *_times(result), ""]
    failures = _failures(result)
    return "\n".join([*parts, *failures]).rstrip()


def _setting(result: dict[str, Any]) -> str:
    where = result.get("environment", {})
    packages = ", ".join(
        f"{n} {v}" for n, v in where.get("packages", {}).items() if n != "turnstore"
    )
    quick = " **A smoke test: these figures mean nothing.**" if result["quick"] else ""
    return (
        f"Measured on {result['date']}: {where.get('server')}, Python {where.get('python')}, "
        f"{packages}; {where.get('cpus')} cores shared by client and server, loopback interface. "
        f"{result['mix']['bytes_per_message']:.0f} bytes of JSON a message. Ratios are taken round "
        f"by round within one run; times differ from machine to machine.{quick}"
    )


def _bars(result: dict[str, Any]) -> list[str]:
    lines = ["| figure | bar | measured | |", "|---|---|---|---|"]
    rows = Bars(result).all()
    lines += [
        f"| {n} | {bar} | {got} | {'met' if met else '**missed**'} |" for n, bar, got, met in rows
    ]
    return lines if rows else []


def _times(result: dict[str, Any]) -> list[str]:
    head = (
        "| | append 2 messages, 10 / 1,000 / 10,000 stored "
        "| read newest 100 of 100 / 1,000 / 10,000 "
        "| turn: read 50, append 2, 200 / 2,000 stored | bytes/message "
        "| 8 writers: lost, doubled, torn, out of order of messages; appends/s |"
    )
    lines = [head, "|---|---|---|---|---|---|"]
    figures = result["figures"]
    for kind in ("sync", "async"):
        names = ("floor raw", "floor ideal", "floor with a head", OURS)
        lines += [
            _row(figures, name, kind, f"{name}, {kind}")
            for name in names
            if find(figures, kind=kind, subject=name)
        ]
    extra: list[str] = []
    for peer in result["peers"].values():
        own = [f for f in peer.get("figures", ()) if not f["subject"].startswith(("floor", OURS))]
        if own:
            name, kind = own[0]["subject"], own[0]["kind"]
            extra.append(_row(own, name, kind, f"{name}, {kind}", ratios=True))
    if extra:
        lines += [*extra, "", _PEERS_NOTE]
    return lines


def _row(figures: list[Figure], name: str, kind: str, title: str, *, ratios: bool = False) -> str:
    cells = [title]
    for case, lengths in _LENGTHS.items():
        found = [find(figures, case=case, kind=kind, stored=n, subject=name) for n in lengths]
        if not any(found):
            cells.append("–")
            continue
        text = " / ".join(time_text(f["median_us"]) if f else "–" for f in found)
        if ratios and all(f and OURS in f["ratio_to"] for f in found):
            text += " (" + " / ".join(_times_text(f["ratio_to"][OURS]) for f in found if f) + ")"
        cells.append(text)
    memory = [
        f for f in figures if f["case"] == "memory" and f["subject"] == name and f["stored"] >= 100
    ]
    cells.append(" / ".join(f"{f['bytes_per_message']:,.0f}" for f in memory[:1]) or "–")
    writers = find(figures, case="writers", kind=kind, subject=name)
    if writers:
        faults = ", ".join(str(writers[k]) for k in ("lost", "doubled", "torn", "out_of_order"))
        cells.append(f"{faults} of {writers['messages']:,}; {writers['appends_per_second']:,}/s")
    else:
        cells.append("–")
    return "| " + " | ".join(cells) + " |"


def _times_text(ratio: float) -> str:
    return f"{ratio:.1f}×" if ratio < 10 else f"{ratio:,.0f}×"


def _failures(result: dict[str, Any]) -> list[str]:
    lines = [f"- turnstore, {f['case']}: {f['reason']}" for f in result.get("failures", ())]
    for peer in result["peers"].values():
        lines += [
            f"- {peer['title']}, {f['case']}: {f['reason']}" for f in peer.get("failures", ())
        ]
    return ["Not measured:", "", *lines] if lines else []


def replace(page: str, text: str, begin: str = BEGIN, end: str = END) -> str:
    """The page with the tables between its marks."""
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"the page lacks the marks {begin} and {end}")
    return f"{before}{begin}\n{text}\n{end}{after}"
