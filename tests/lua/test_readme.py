"""lua/README.md says what the headers say."""

from __future__ import annotations

import re

from tests.lua import headers
from turnstore import _element

TEXT = (headers.FOLDER / "README.md").read_text("utf-8")


def rows(first_cell: str) -> list[list[str]]:
    """Read the rows of the table whose heading begins with `first_cell`."""
    table = re.search(rf"^\| {first_cell} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    assert table, first_cell
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table[1].splitlines()]


def test_the_table_of_scripts_is_the_headers() -> None:
    expected = []
    for name in headers.CORE:
        header = headers.read(name)
        arguments = [f"{one}{header.marks[one]}" for one in header.arguments]
        purpose = " ".join(header.purpose.split()).removesuffix(".")
        cells = [f"`{name}`", purpose, ", ".join(arguments), ", ".join(header.errors)]
        expected.append(cells)
    assert rows("script") == expected


def test_the_layout_of_an_element_is_the_one_python_reads() -> None:
    (line,) = re.findall(r"^    (\[1,<no>.*\])$", TEXT, re.MULTILINE)
    assert line in (_element.__doc__ or "")
    fields = [field for row in re.findall(r"<(\w+)>", line) for field in [row]]
    assert len(fields) + 3 == len(_element.Element._fields), "the number, the messages, the meta"


def test_the_layout_of_the_head_is_the_one_lua_writes() -> None:
    (line,) = re.findall(r"^    (head 1 <no>.*)$", TEXT, re.MULTILINE)
    numbers = re.findall(r"<(\w+)>", line)[:-2]
    head = (headers.FOLDER / "lib/head.lua").read_text("utf-8")
    written = re.search(r'"head 1 (?:%d )+",\n\s*(.*?)\n\s*\)', head, re.DOTALL)
    assert written
    assert re.findall(r"head\.(\w+)", written[1]) == numbers


def test_the_example_is_by_the_grammar() -> None:
    (example,) = re.findall(r"```lua\n(.*?)```", TEXT, re.DOTALL)
    assert [s for s in headers.SECTIONS if f"\n{s}" in example] == list(headers.SECTIONS)
    assert headers.table("  1  turns   list  what\n") == [("turns", "list", "")]


def test_every_file_named_is_there() -> None:
    for name in re.findall(r"`((?:src|tests)/[\w/.]+)`", TEXT):
        assert (headers.FOLDER.parent / name).exists(), name
