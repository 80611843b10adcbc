"""Runs luacheck on each script as the server gets it, with the shared functions in place.

What luacheck finds is told at the line of the file that it came from; run by `make check`.
"""

from __future__ import annotations

import re
import subprocess
import sys

from turnstore import _scripts

_WARNING = re.compile(r"^stdin:(\d+):(\d+)-\d+: \((\w+)\) (.*)$")
_UNUSED_FUNCTION = "W211"
_SHADOWS = "W431"


def lint(name: str) -> set[str]:
    """Give what luacheck says of the script `name`."""
    script = _scripts.load(name)
    command = ["luacheck", "--formatter", "plain", "--codes", "--ranges", "-"]
    run = subprocess.run(command, input=script.source, capture_output=True, text=True, check=False)
    if run.returncode > 2:  # 1 and 2: it has something to say
        raise RuntimeError(f"luacheck failed: {run.stderr or run.stdout}")
    said = set()
    for line in run.stdout.splitlines():
        warning = _WARNING.match(line)
        if not warning:
            said.add(f"{name}.lua: {line}")
            continue
        file, number = script.lines[int(warning[1]) - 1]
        # A script takes a part of lib/ whole, and need not use all that it brings. Where a part
        # stands below the script's arguments, its own have the same names.
        if not (warning[3] in (_UNUSED_FUNCTION, _SHADOWS) and file.startswith("lib/")):
            said.add(f"lua/{file}:{number}:{warning[2]}: {warning[3]} {warning[4]}")
    return said


def main() -> int:
    """Say what there is to mend; give the exit status."""
    said = set().union(*map(lint, _scripts.names()))
    print(*sorted(said), sep="\n", end="\n" if said else "")
    return bool(said)


if __name__ == "__main__":
    sys.exit(main())
