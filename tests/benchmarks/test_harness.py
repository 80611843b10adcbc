"""The benchmarks run; what they measure is nobody's business here."""

# ruff: noqa: RUF001 (the tables have a multiplication sign)

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from turnstore.messages import format_named, plain_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Import a module of the benchmarks, which are scripts and no package."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(BENCHMARKS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_mix_is_deterministic_and_of_the_stated_size(load: Callable[[str], Any]) -> None:
    mix = load("mix")
    for count in (10, 100, 200, 1_000, 2_000):
        turns = mix.conversation(count)
        assert len(mix.flat(turns)) == count
        assert turns == mix.conversation(count)
    facts = mix.describe(2_000)
    assert 590 < facts["bytes_per_message"] < 640
    assert 180 < facts["user_characters"] < 220
    assert 760 < facts["assistant_characters"] < 840


@pytest.mark.parametrize("newest", [50, 100])
def test_a_window_begins_at_a_turn(load: Callable[[str], Any], newest: int) -> None:
    mix = load("mix")
    held = 0
    for turn in reversed(mix.conversation(1_000)):
        held += len(turn)
        if held >= newest:
            break
    assert held == newest


def test_every_round_has_each_subject(load: Callable[[str], Any]) -> None:
    harness = load("harness")
    calls: list[str] = []
    gos = [harness.Go(name, lambda _, n=name: calls.append(n)) for name in "ab"]
    effort = harness.Effort(seconds=0, min_rounds=3, inner=2)
    harness.run(harness.interleave(gos, "sync", effort), None)
    assert calls == ["a", "b", *"aabb", *"bbaa", *"aabb"]
    assert [figure["samples"] for figure in harness.figures("x", "sync", gos)] == [6, 6]


def test_ratio_is_taken_round_by_round(load: Callable[[str], Any]) -> None:
    harness = load("harness")
    one, other = harness.Go("one", print), harness.Go("other", print)
    one.rounds, other.rounds = [[10.0], [200.0], [3.0]], [[5.0], [100.0], [1.0]]
    assert harness.ratio(one, other) == 2.0


def test_async_subjects_are_awaited(load: Callable[[str], Any]) -> None:
    harness = load("harness")
    seen: list[int] = []

    async def call(index: int) -> None:
        await asyncio.sleep(0)
        seen.append(index)

    effort = harness.Effort(seconds=0, min_rounds=1, inner=2)
    with asyncio.Runner() as runner:
        harness.run(harness.interleave([harness.Go("a", call)], "async", effort), runner)
    assert seen == [0, 0, 1]


def test_audit_counts_what_went_wrong(load: Callable[[str], Any]) -> None:
    writers = load("cases.writers")
    good = [f"{w}/{n}/{p} text" for n in range(2) for w in range(8) for p in (0, 1)]
    clean = {"messages": 32, "lost": 0, "doubled": 0, "torn": 0, "out_of_order": 0}
    assert writers.audit(good, 2) == clean
    assert writers.audit([*good, good[0], good[1]], 2)["doubled"] == 2
    assert writers.audit(good[2:], 2)["lost"] == 2
    torn = [good[0], good[2], good[1], good[3], *good[4:]]
    assert writers.audit(torn, 2)["torn"] == 2
    swapped = [*good[16:18], *good[2:16], *good[0:2], *good[18:]]
    assert writers.audit(swapped, 2)["out_of_order"] == 1


def test_tables_say_what_was_missed_and_what_was_not_run(load: Callable[[str], Any]) -> None:
    report = load("report")
    ratios = {"floor raw": 2.0, "floor ideal": 1.3}
    figures = [
        {
            "case": "append",
            "kind": "sync",
            "stored": stored,
            "subject": "turnstore",
            "median_us": 100.0,
            "ratio_to": ratios,
        }
        for stored in (10, 1_000, 10_000)
    ]
    peer = {"title": "a peer", "failures": [{"case": "all", "reason": "no wheel"}]}
    result = {
        "date": "2026-01-01",
        "quick": False,
        "mix": {"bytes_per_message": 607.0},
        "figures": figures,
        "peers": {"peer": peer},
    }
    text = report.tables(result)
    assert "| ≤ 1.25 × floor ideal | 1.30 / 1.30 / 1.30 | **missed** |" in text
    assert "a peer, all: no wheel" in text
    page = f"a\n{report.BEGIN}\nold\n{report.END}\nb\n"
    replaced = report.replace(page, text)
    assert replaced.startswith("a\n")
    assert "old" not in replaced
    assert report.replace(replaced, text) == replaced


def test_tables_of_the_context_stand_where_a_page_has_their_marks(
    load: Callable[[str], Any],
) -> None:
    report = load("report_context")
    shares = {"share": 0.9, "tokens_a_prompt": 5891.5, "new_tokens_a_prompt": 572.2}
    figure = {"case": "context_prefix", "kind": "sync", "calls": 999, "starts_moved": 76, **shares}
    figure["window"] = "Window(turns=None, messages=None, tokens=8000, step=0.5)"
    page = f"a\n{report.mark('prefix')}\nold\n{report.END}\nb\n"
    replaced = report.replace(page, [figure])
    row = "| `Window(tokens=8000, step=0.5)` | 5,892 | 90% | 572 | 76 times in 999 calls |"
    assert row in replaced
    assert "old" not in replaced
    assert report.replace(replaced, [figure]) == replaced
    assert report.replace("no marks", [figure]) == "no marks"


def wrapped(**facts: Any) -> dict[str, Any]:
    ratios = {"bare SDK call": 0.5, "by hand": 0.4, "by hand, past": 1.25}
    figure = {"case": "wrap", "kind": "sync", "subject": "turnstore", "median_us": 2000.0}
    return {**figure, "ratio_to": ratios, **facts}


def bare(**facts: Any) -> dict[str, Any]:
    return wrapped(subject="bare SDK call", median_us=4000.0, **facts)


def test_wrapped_clients_have_a_line_each(load: Callable[[str], Any]) -> None:
    report = load("report_wrap")
    slow = {"bare SDK call": 1.5, "by hand": 1.2, "by hand, past": 1.3}
    figures = [
        bare(client="openai"),
        wrapped(client="openai"),
        bare(client="other"),
        wrapped(client="other", ratio_to=slow),
        bare(client="other", kind="async"),
        wrapped(client="other", kind="async"),
        bare(client="other", case="wrap_stream"),
        wrapped(client="other", case="wrap_stream"),
        {**wrapped(client="other", case="wrap_alone", median_us=9.5), "ratio_to": {}},
    ]
    page = f"{report.BEGIN}\nold\n{report.END}\n"
    result = {"figures": [*figures, {"case": "append"}]}
    drawn = report.drawn(page, result)
    assert "old" not in drawn
    assert "| openai, call, sync | 4.0 ms | 2.0 ms | 0.50 | 0.40: met | 1.25 | – |" in drawn
    assert (
        "| other, call, sync | 4.0 ms | 2.0 ms | 1.50 | 1.20: **missed** | 1.30 | 9.5 µs |" in drawn
    )
    assert "| other, call, async | 4.0 ms | 2.0 ms | 0.50 | 0.40: met | 1.25 | – |" in drawn
    assert "| other, stream, sync | 4.0 ms | 2.0 ms | 0.50 | 0.40: met | 1.25 | 9.5 µs |" in drawn
    assert report.drawn(drawn, result) == drawn


def test_older_results_have_one_client_without_a_name(load: Callable[[str], Any]) -> None:
    report = load("report_wrap")
    page = f"{report.BEGIN}\nold\n{report.END}\n"
    drawn = report.drawn(page, {"figures": [bare(), wrapped()]})
    assert "| openai, call, sync | 4.0 ms | 2.0 ms | 0.50 | 0.40: met | 1.25 | – |" in drawn
    assert report.drawn(page, {"figures": []}) == page, "a run of other cases changes nothing"
    assert report.drawn("no marks", {"figures": [bare(), wrapped()]}) == "no marks"


def test_the_table_of_the_readme_has_times_and_multiples(load: Callable[[str], Any]) -> None:
    report = load("report_brief")

    def figures(subject: str, kind: str, ratio: float) -> list[dict[str, Any]]:
        who = {"subject": subject, "kind": kind}
        cases = (("append", 1_000), ("read", 1_000), ("turn", 200))
        timed = [
            {"case": case, "stored": n, "median_us": 114.2, "ratio_to": {"turnstore": ratio}, **who}
            for case, n in cases
        ]
        faults = {"lost": 0, "doubled": 1, "torn": 2, "messages": 1_600}
        size = {"case": "memory", "stored": 1_000, "bytes_per_message": 691.4, "ratio_to": {}}
        writers = {"case": "writers", "ratio_to": {}, **faults}
        return [*timed, *([] if kind == "async" else [{**size, **who}]), {**writers, **who}]

    ours = [*figures("turnstore", "sync", 1), *figures("turnstore", "async", 1)]
    peer = figures("other", "sync", 35.4)
    floor = figures("floor ideal", "sync", 0.5)
    result = {
        "figures": [*floor, *ours],
        "peers": {"p": {"figures": [*floor, *ours, *peer]}, "none": {"failures": []}},
    }
    page = f"{report.BEGIN}\nold\n{report.END}\n"
    drawn = report.replace(page, report.table(result))
    assert drawn.splitlines()[3:-1] == [
        "| turnstore, sync | 114 µs | 114 µs | 114 µs | 691 | 0, 1, 2 of 1,600 |",
        "| turnstore, async | 114 µs | 114 µs | 114 µs | 691 | 0, 1, 2 of 1,600 |",
        "| other, sync | 35 × | 35 × | 35 × | 691 | 0, 1, 2 of 1,600 |",
    ]
    assert report.replace("no marks", report.table(result)) == "no marks"


def test_each_client_has_the_turns_of_the_mix(load: Callable[[str], Any]) -> None:
    clients, mix = load("wrapped_clients"), load("mix")
    (turn,) = (turn for turn in mix.conversation(40) if len(turn) == 4)
    roles = {"openai": "tool", "anthropic": "user", "google": "user"}
    for kind in clients.CLIENTS:
        native = kind.native(object.__new__(kind), turn)
        assert len(native) == 4, kind.name
        if kind.name in roles:
            assert native[2]["role"] == roles[kind.name]
        plain_messages(native, format_named(kind.format))


def test_a_quick_run_measures_every_case(tmp_path: Path) -> None:
    output = tmp_path / "quick.json"
    command = [sys.executable, str(BENCHMARKS / "run.py"), "run", "--quick", "--peers"]
    done = subprocess.run(
        [*command, "--output", str(output)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(output.read_text())
    assert result["failures"] == [], done.stderr
    measured = {(figure["case"], figure["kind"]) for figure in result["figures"]}
    both = ["append", "append_full", "read", "turn", "writers", "handle"]
    both += ["wrap", "wrap_stream", "wrap_alone"]
    both += ["context_read", "context_count", "context_count_all", "context_turn"]
    once = {("memory", "sync"), ("context_prefix", "sync")}
    assert measured == once | {(case, kind) for case in both for kind in ("sync", "async")}
    ours = [f for f in result["figures"] if f["subject"] == "turnstore" and f["case"] == "writers"]
    assert [f[name] for f in ours for name in ("lost", "doubled", "torn", "out_of_order")] == [
        0
    ] * 8
    assert str(BENCHMARKS.parent) not in output.read_text()
