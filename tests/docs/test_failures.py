"""Each row of the page on failures names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "failures.md").read_text()
# Where a section's tests are: below the folder that it names, or the page's.
_SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
_FOLDER = re.compile(r"below `(tests/\w+)/`")
_ROW = re.compile(r"^\|(?! what happens|---)(.*)\|(.*)\|$", re.MULTILINE)
_TEST = re.compile(r"`(test_\w+\.py)(?:::(\w+))?`")


def _rows() -> list[tuple[str, str, str]]:
    """Give the folder of each row's test, what happens, and what its last cell says."""
    rows = []
    for section in _SECTIONS:
        folder = (_FOLDER.search(section) or _FOLDER.search(PAGE) or [""] * 2)[1]
        for before, last in _ROW.findall(section):
            rows.append((folder, before.partition("|")[0].strip(), last))
    return rows


@pytest.mark.parametrize("folder, what, cell", _rows())
def test_a_row_names_a_test_that_is_there(folder: str, what: str, cell: str) -> None:
    named = _TEST.findall(cell)
    assert named, f"no test of: {what}"
    for file, test in named:
        source = (ROOT / folder / file).read_text()
        assert re.search(rf"^(async )?def {test or 'test_'}", source, re.MULTILINE), test


def test_the_rows_were_found() -> None:
    assert len(_rows()) > 40
