"""Find, join and hash the Lua scripts.

A script is one file in `lua/`. Its opening comment declares the keys, the arguments and
the answers (`lua/README.md` has the grammar), and callers name the arguments: their
order stands in the file alone. A line `--# include NAME` stands for `lua/lib/NAME.lua`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Any

__all__ = ["Script", "load", "names"]

_INCLUDE = re.compile(r"^--# include (\w+)$")
_DECLARED = re.compile(r"^  \d+ +(\w+) +\w+([?*]?) ", re.MULTILINE)
_SECTION = r"^{}\n(.*?)\n\n"


@dataclass(frozen=True, slots=True, eq=False)
class Script:
    """One script, ready to be sent.

    Attributes:
        name: The file's name without its ending.
        source: The text that the server runs, includes in place.
        sha: Its SHA-1 in hex, by which the server knows it.
        keys: The names of KEYS, in order, where the conversation has no owner.
        arguments: The names of ARGV, in order, likewise.
        owned_keys: The names of KEYS where it has one; those that are many are not named.
        owned_arguments: The names of ARGV, likewise.
        lines: For each line of `source`, the file and line that it came from.
    """

    name: str
    source: str
    sha: str
    keys: tuple[str, ...]
    arguments: tuple[str, ...]
    owned_keys: tuple[str, ...]
    owned_arguments: tuple[str, ...]
    lines: tuple[tuple[str, int], ...]

    def order(self, values: Mapping[str, Any], *, owned: bool = False) -> tuple[Any, ...]:
        """Put named arguments into the order of the script.

        Args:
            values: The arguments by their names.
            owned: Whether those are among them that only an owned conversation has.

        Raises:
            TypeError: A name is missing, or is none of the script's.
        """
        arguments = self.owned_arguments if owned else self.arguments
        try:
            if len(values) == len(arguments):
                return tuple(map(values.__getitem__, arguments))
        except KeyError:
            pass
        msg = f"{self.name}.lua takes {arguments}, not {tuple(values)}"
        raise TypeError(msg)


@cache
def load(name: str) -> Script:
    """Read a script by its name, once in a process."""
    text = (_folder() / f"{name}.lua").read_text("utf-8")
    joined = _join(f"{name}.lua", text)
    source = "\n".join(line for line, _ in joined) + "\n"
    keys, arguments = _declared("KEYS", text), _declared("ARGV", text)
    return Script(
        name=name,
        source=source,
        # Redis names scripts by SHA-1; no secret depends on it.
        sha=sha1(source.encode(), usedforsecurity=False).hexdigest(),
        keys=_named(keys, ""),
        arguments=_named(arguments, ""),
        owned_keys=_named(keys, "?"),
        owned_arguments=_named(arguments, "?"),
        lines=tuple(origin for _, origin in joined),
    )


def names() -> tuple[str, ...]:
    """List the names of all scripts, sorted."""
    return tuple(sorted(path.stem for path in _folder().glob("*.lua")))


def _declared(section: str, text: str) -> list[tuple[str, str]]:
    """Give the names of a section and their marks: `?` may be missing, `*` are many."""
    found = re.search(_SECTION.format(section), text, re.MULTILINE | re.DOTALL)
    return _DECLARED.findall(found[1]) if found else []


def _named(declared: list[tuple[str, str]], marks: str) -> tuple[str, ...]:
    return tuple(name for name, mark in declared if mark in ("", marks))


def _join(file: str, text: str) -> list[tuple[str, tuple[str, int]]]:
    joined: list[tuple[str, tuple[str, int]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        include = _INCLUDE.match(line)
        if include is None:
            joined.append((line, (file, number)))
        else:
            part = f"lib/{include[1]}.lua"
            joined += _join(part, (_folder() / part).read_text("utf-8"))
    return joined


@cache
def _folder() -> Path:
    # A wheel carries the scripts inside the package; a checkout has them at its top.
    packaged = Path(__file__).parent / "lua"
    checkout = Path(__file__).parents[2] / "lua"
    for folder in (packaged, checkout):
        if (folder / "append.lua").is_file():
            return folder
    msg = f"the Lua scripts of turnstore are missing from {packaged}; install it again"
    raise FileNotFoundError(msg)
