"""Each row of the page on reported faults names tests, and each of them is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
PAGE = ROOT / "docs" / "explanation" / "reported-faults.md"
# What is not there has a reason in place of a test.
_OUT = "## What is not here"
_ROW = re.compile(r"^\|(?! what was |---)(.*)\|$", re.MULTILINE)
_NAMED = re.compile(r"`([^`]+)`")


def rows(page: str) -> list[list[str]]:
    """Give the cells of each row of the page's tables, but for their headings."""
    return [[cell.strip() for cell in row.split(" | ")] for row in _ROW.findall(page)]


def _tests(body: list[ast.stmt]) -> set[str]:
    functions = [one for one in body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {one.name for one in functions if one.name.startswith("test_")}


@cache
def found_in(file: Path) -> frozenset[str]:
    """Give the tests that pytest would find in a file, without importing it."""
    if not file.name.startswith("test_") or not file.is_file():
        return frozenset()
    body = ast.parse(file.read_text()).body
    found = _tests(body)
    for one in body:
        if isinstance(one, ast.ClassDef) and one.name.startswith("Test"):
            found |= {f"{one.name}::{test}" for test in _tests(one.body)}
    return frozenset(found)


def missing(cell: str, tests: Path = TESTS) -> list[str]:
    """Give what a cell names and is no test, or says beside its tests."""
    lost = [] if _NAMED.search(cell) else ["no test is named"]
    for named in _NAMED.findall(cell):
        file, _, test = named.partition("::")
        if test not in found_in(tests / file):
            lost.append(named)
    if rest := _NAMED.sub("", cell).replace(",", "").strip():
        lost.append(rest)
    return lost


SHOWN, LEFT_OUT = (rows(part) for part in PAGE.read_text().split(_OUT))


@pytest.mark.parametrize("row", SHOWN, ids=lambda row: row[0][:60])
def test_a_row_says_what_makes_it_impossible_and_which_tests_show_it(row: list[str]) -> None:
    fault, remedy, named = row
    assert fault
    assert remedy
    assert missing(named) == []


def test_what_is_left_out_has_a_reason() -> None:
    assert all(asked and reason for asked, reason in LEFT_OUT)


def test_the_rows_were_found() -> None:
    assert len(SHOWN) > 50
    assert len(LEFT_OUT) > 1
    assert len({row[0] for row in SHOWN}) == len(SHOWN)


def test_a_name_that_is_no_test_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', [1])\n"
        "def test_one(n): ...\n"
        "async def test_two(): ...\n"
        "def helper():\n    def test_inner(): ...\n"
        "class TestThree:\n    def test_four(self): ...\n"
        "class Other:\n    def test_five(self): ...\n"
    )
    there = "`test_a.py::test_one`, `test_a.py::test_two`, `test_a.py::TestThree::test_four`"
    assert missing(there, tmp_path) == []
    for wrong in (
        "test_a.py",
        "test_a.py::test_three",
        "test_a.py::test_one[1]",
        "test_a.py::test_inner",
        "test_a.py::helper",
        "test_a.py::TestThree",
        "test_a.py::test_four",
        "test_a.py::Other::test_five",
        "test_b.py::test_one",
    ):
        assert missing(f"`{wrong}`", tmp_path) == [wrong]
    assert missing("", tmp_path) == ["no test is named"]
    assert missing("the same", tmp_path) == ["no test is named", "the same"]
    assert missing("`test_a.py::test_one`, test_two", tmp_path) == ["test_two"]
