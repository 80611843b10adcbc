"""Runs the command line as a user does: in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = [sys.executable, "-m", "turnstore"]
SECONDS = 60


def environment(temporary: Path, **more: str) -> dict[str, str]:
    """Give an environment without what the machine says of Redis and colours.

    Temporary files go to `temporary`, so that a test sees what is left of them.
    """
    unwanted = {"REDIS_URL", "NO_COLOR", "COLUMNS"}
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    return {**kept, "TMPDIR": str(temporary), "TERM": "xterm-256color", **more}


def run(
    *arguments: str, env: dict[str, str], before: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run it to its end; `before` is Python that is run in its process first."""
    command = [*(COMMAND if before is None else after(before)), *arguments]
    return subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def after(before: str) -> list[str]:
    """Give the command with Python that is run in its process first."""
    code = f"{before}\nimport sys\nfrom turnstore.cli import main\nsys.exit(main(sys.argv[1:]))"
    return [sys.executable, "-c", code]
