"""The benchmark of recall counts right, on a conversation that was made up for it."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.meaning.kit import embed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

SESSIONS: dict[str, Any] = {
    "session_1_date_time": "1:56 pm on 8 May, 2023",
    "session_1": [
        {"speaker": "Ann", "dia_id": "D1:1", "text": "Where do you sail this summer?"},
        {"speaker": "Ben", "dia_id": "D1:2", "text": "To the islands."},
        {"speaker": "Ben", "dia_id": "D1:3", "text": "Look!", "blip_caption": "a red boat"},
    ],
    "session_2_date_time": "9:00 am on 1 June, 2023",
    "session_2": [{"speaker": "Ann", "dia_id": "D2:1", "text": "I bought a violin."}],
    "session_3_date_time": "a date without a session",
}
QUESTIONS = [
    {"question": "Where does Ben sail?", "evidence": ["D1:2"], "category": 4},
    {"question": "What did Ann buy?", "evidence": ["D:2:1", "D9:9"], "category": 5},
    {"question": "Nothing says so.", "evidence": [], "category": 3},
]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Import a module of the benchmarks, which are scripts and no package."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(BENCHMARKS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Give a file of one conversation."""
    path = tmp_path / "made-up.json"
    path.write_text(json.dumps([{"sample_id": "c", "conversation": SESSIONS, "qa": QUESTIONS}]))
    return path


def test_a_conversation_is_read_with_the_questions_that_have_evidence(
    load: Callable[[str], Any], file: Path
) -> None:
    (one,) = load("retrieval.data").read(file)
    assert [turn.id for turn in one.turns] == ["D1:1", "D1:2", "D1:3", "D2:1"]
    assert one.turns[2].said() == 'Ben said, "Look!" [shares a photo of a red boat]'
    assert one.turns[3].time.isoformat() == "2023-06-01T09:00:00+00:00"
    assert [question.evidence for question in one.questions] == [{"D1:2"}, {"D2:1"}]


def test_pairs_and_a_single_owner_keep_the_evidence(load: Callable[[str], Any], file: Path) -> None:
    data = load("retrieval.data")
    conversations = data.read(file)
    pairs = data.paired(conversations[0])
    assert [turn.id for turn in pairs.turns] == ["D1:1", "D1:3", "D2:1"]
    assert pairs.turns[0].said() == (
        'Ann said, "Where do you sail this summer?"\nBen said, "To the islands."'
    )
    assert [question.evidence for question in pairs.questions] == [{"D1:1"}, {"D2:1"}]
    whole = data.merged(conversations * 2)
    assert len(whole.turns) == 8
    assert len({turn.session for turn in whole.turns}) == 4
    assert whole.questions[0].evidence == {"c D1:2"}


def test_what_is_counted(load: Callable[[str], Any]) -> None:
    metrics, data = load("retrieval.metrics"), load("retrieval.data")
    two = data.Question("q", 1, frozenset({"a", "b"}))
    assert metrics.ndcg(["a", "b"], two.evidence) == 1
    assert metrics.ndcg(["x", "a"], two.evidence) == pytest.approx(0.6309 / 1.6309, abs=1e-4)
    scores = [
        metrics.score("c", two, ["x", "a", *"defghijkl", "b"]),
        metrics.score("d", data.Question("q", 5, frozenset({"a"})), ["a"]),
    ]
    found = metrics.summary(scores)
    assert [found[f"recall@{at}"] for at in (5, 10, 25, 50)] == [75, 75, 100, 100]
    assert (found["all@10"], found["recall@10 without adversarial"]) == (50, 50)
    assert found["questions"] == 2
    assert found["ndcg@10"] == pytest.approx(69.34, abs=0.01)
    # The same measures of each part.
    hop = {"recall@5": 50, "recall@10": 50, "recall@25": 100, "recall@50": 100, "all@10": 0}
    everything = dict.fromkeys((*hop, "ndcg@10"), 100)
    parts = found["categories"]
    assert parts == {
        "multi-hop": {"questions": 1, **hop, "ndcg@10": pytest.approx(38.69, abs=0.01)},
        "adversarial": {"questions": 1, **everything},
    }
    assert found["conversations"] == {"c": parts["multi-hop"], "d": parts["adversarial"]}


def test_categories_are_drawn_with_all_measures(load: Callable[[str], Any]) -> None:
    metrics, data, report = (
        load(name) for name in ("retrieval.metrics", "retrieval.data", "report_retrieval")
    )
    question = data.Question("q", 4, frozenset({"a"}))
    good = metrics.summary([metrics.score("c", question, ["a"])] * 2)
    bad = metrics.summary([metrics.score("c", question, [])])
    default = {"unit": "turn", "subject": "default"}
    figures = [
        {**default, "where": "memory", **good},
        {**default, "where": "plain", **good},
        {**default, "where": "search", **bad},
        {**default, "subject": "words", "where": "search", **good},
    ]
    blocks = report.categories({"figures": figures}).split("\n\n")
    assert blocks[0::2] == [
        "Default ranking; in memory, no server; plain:",
        "Default ranking; search:",
    ]
    assert [block.splitlines()[2:] for block in blocks[1::2]] == [
        ["| single-hop | 2 | " + " | ".join(["100.0"] * 6) + " |"],
        ["| single-hop | 1 | " + " | ".join(["0.0"] * 6) + " |"],
    ]


def test_the_search_in_memory_looks_around(load: Callable[[str], Any], file: Path) -> None:
    memory_, data = load("retrieval.memory"), load("retrieval.data")
    memory = memory_.Memory(data.read(file)[0], embed)
    ranking = load("turnstore.facts").Ranking
    exact = memory.exactly(0, 4)
    assert memory.search(0, memory_.DENSE, 4) == exact
    assert memory.search(1, ranking(), 4)[0] == "D2:1"
    places = [memory.search(0, which, 4).index("D1:2") for which in (ranking(), memory_.FUSED)]
    assert places[0] <= places[1]


def test_without_data_it_is_skipped_with_a_word() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TURNSTORE_LOCOMO"}
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "run.py"), "retrieval"],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("skipped: no data. Give a LoCoMo file with --data")


def test_the_tables_are_those_of_the_results(load: Callable[[str], Any]) -> None:
    run, report, costs = load("run"), load("report_retrieval"), load("report_facts")
    for page in ("benchmarks/README.md", "docs/explanation/ranking.md", "docs/guides/facts.md"):
        text = (BENCHMARKS.parent / page).read_text()
        drawn = report.replace(text, run.of_retrieval(), run.of_retrieval("retrieval/second"))
        assert costs.replace(drawn, run.of_facts()) == text, f"{page}: run.py table --write"
