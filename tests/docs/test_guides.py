"""What guides promise, and their code alone cannot show."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from turnstore import Store

GUIDES = Path(__file__).parents[2] / "docs/guides"
_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_the_fixtures_for_pytest_work(tmp_path: Path) -> None:
    before, _, section = (
        (GUIDES / "test-your-application.md").read_text().partition("## With pytest")
    )
    imports = re.findall(r"^(?:from|import) .+$", "\n".join(_BLOCK.findall(before)), re.MULTILINE)
    code = "\n".join([*imports, *_BLOCK.findall(section)])
    (tmp_path / "test_app.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:valkey", "--rootdir", tmp_path, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_no_message_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    client = redis.Redis(port=1, retry=Retry(NoBackoff(), 0))
    chat = Store(client, name="docs").conversation("ada")
    pending = chat.turn("a secret question", on_load_error="continue")
    with caplog.at_level(logging.DEBUG, "turnstore"), pending as turn:
        turn.reply("a secret answer")
    assert "without memory" in caplog.text
    assert "not saved" in caplog.text
    assert "secret" not in caplog.text
