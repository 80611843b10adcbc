"""Refuses files that are too long to be read at one sitting; run by `make check`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTHON_LINES = 460  # about 400; the docstrings of a public class may need more
LUA_LINES = 75  # of code: a script's header and comments may take the room they need


def python_lines(text: str) -> int:
    """Count all lines."""
    return len(text.splitlines())


def lua_lines(text: str) -> int:
    """Count the lines of code."""
    code = re.sub(r"^--\[\[.*?^\]\]$", "", text, flags=re.DOTALL | re.MULTILINE)
    return sum(
        bool(line) and not line.startswith("--") for line in map(str.strip, code.split("\n"))
    )


def main() -> int:
    """Name the files that are too long; give the exit status."""
    status = 0
    for pattern, count, limit in (
        ("src/**/*.py", python_lines, PYTHON_LINES),
        ("tests/**/*.py", python_lines, PYTHON_LINES),
        ("lua/**/*.lua", lua_lines, LUA_LINES),
    ):
        for path in sorted(ROOT.glob(pattern)):
            lines = count(path.read_text(encoding="utf-8"))
            if lines > limit:
                print(f"{path.relative_to(ROOT)}: {lines} lines, and the limit is {limit}")
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
