"""The applications of the guides for FastAPI, before a type checker that is strict."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.found import needs
from tests.web.guides import code_of

ROOT = Path(__file__).parents[2]
# Whole packages are read, such as that of openai; a cache of its own spares it the next time.
_SETTINGS = ["--config-file", "", "--cache-dir", ".mypy_cache/guides"]


@pytest.mark.web  # what the guides import; of all environments, that of `make check` has mypy, too
def test_the_applications_are_typed(tmp_path: Path) -> None:
    needs("mypy")
    pages = [tmp_path / "basics.py", tmp_path / "recall.py"]
    for page, guide in zip(pages, ("fastapi", "fastapi-recall"), strict=True):
        page.write_text(code_of(guide, "redis://localhost:6379", "shop"))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *_SETTINGS, *pages],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
