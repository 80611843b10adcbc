"""The applications of the guides for FastAPI, before a type checker that is strict."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.web.guides import code_of
from tests.web.running import ROOT

if TYPE_CHECKING:
    from pathlib import Path

# Whole packages are read, such as that of openai; a cache of its own spares it the next time.
_SETTINGS = ["--config-file", "", "--cache-dir", ".mypy_cache/guides"]


def test_the_applications_are_typed(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="make check has it; make test-web has not")
    pages = [tmp_path / "basics.py", tmp_path / "recall.py"]
    for page, guide in zip(pages, ("fastapi", "fastapi-recall"), strict=True):
        page.write_text(code_of(guide, "redis://localhost:6379", "shop"))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *_SETTINGS, *pages],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
