"""Reads the headers of the scripts in lua/, as lua/README.md lays down their grammar."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from turnstore import _scripts

FOLDER = Path(_scripts._folder())
SECTIONS = ("KEYS", "ARGV", "RETURNS", "ERRORS")
TYPES = {"text", "int", "bytes", "list", "zset", "hash", "stream", "JSON"}
#: Those of the store; the ones of facts have tests of their own in tests/facts.
CORE = tuple(name for name in _scripts.names() if not name.startswith(("facts_", "memory_")))


@dataclass(frozen=True)
class Header:
    """What the opening comment of a script declares."""

    name: str
    purpose: str
    keys: tuple[str, ...]
    arguments: tuple[str, ...]
    types: tuple[str, ...]
    marks: dict[str, str]
    returns: str
    errors: tuple[str, ...]
    includes: tuple[str, ...]
    code: str


def read(name: str) -> Header:
    """Read the header of a script; fail where it is not by the grammar."""
    text = (FOLDER / f"{name}.lua").read_text("utf-8")
    opening = re.match(r"--\[\[\n(.*?)\n\]\]\n", text, re.DOTALL)
    assert opening, f"{name}.lua opens with a comment"
    comment, rest = opening[1], text[opening.end() :]
    first, *blocks = comment.split("\n\n")
    title = re.fullmatch(rf"{name}: (.*)", first, re.DOTALL)
    assert title, f"{name}.lua: the first line is `{name}: what it does`"
    sections = {(word := block.split()[0]): block.removeprefix(word) for block in blocks}
    assert tuple(s for s in SECTIONS if s in sections) == tuple(sections), "sections, in order"
    assert set(SECTIONS) - set(sections) <= {"ERRORS"}, "all sections but ERRORS"
    keys, arguments = (table(sections[section]) for section in ("KEYS", "ARGV"))
    return Header(
        name=name,
        purpose=title[1],
        keys=tuple(key for key, _, _ in keys),
        arguments=tuple(argument for argument, _, _ in arguments),
        types=tuple(kind for _, kind, _ in (*keys, *arguments)),
        marks={name: mark for name, _, mark in (*keys, *arguments)},
        returns=sections["RETURNS"].strip(),
        errors=errors(sections.get("ERRORS", "")),
        includes=tuple(re.findall(r"^--# include (\w+)$", rest, re.MULTILINE)),
        code=rest,
    )


def table(section: str) -> list[tuple[str, str, str]]:
    """Read rows of `number name type …`; the numbers count from 1.

    A `?` behind the type is for what only an owned conversation has, a `*` for any number.
    """
    rows = [line.split() for line in section.splitlines() if line.strip()]
    found = []
    for number, row in enumerate(rows, start=1):
        assert row[0] == str(number), row
        kind = row[2].rstrip("?*")
        assert kind in TYPES, row
        found.append((row[1], kind, row[2].removeprefix(kind)))
    assert "*" not in {mark for _, _, mark in found[:-1]}, "only the last may be many"
    return found


def errors(section: str) -> tuple[str, ...]:
    """Read the codes before the two blanks that part them from their meaning."""
    codes: list[str] = []
    for line in section.splitlines():
        if line.strip():
            left = line.strip().split("  ")[0]
            codes += [code.split()[0] for code in left.split(", ")]
    return tuple(codes)


def without_comments(code: str) -> str:
    """Drop the comments of Lua, so that a name in one does not count."""
    return re.sub(r"--.*", "", code)


def included(name: str) -> str:
    """Give the code of a script with its includes in place, without comments."""
    text = _scripts.load(name).source
    return without_comments(re.sub(r"^--\[\[.*?^\]\]$", "", text, flags=re.DOTALL | re.MULTILINE))
