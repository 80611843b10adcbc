"""Whoever starts the command line has closed its input or its output, as a service may."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from tests.cli.running import COMMAND, SECONDS, environment
from turnstore import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from turnstore.server import EmbeddedServer

Started = subprocess.CompletedProcess[str]


@pytest.fixture
def start(embedded: EmbeddedServer, tmp_path: Path) -> Iterator[Callable[[str, str], Started]]:
    """Give a function that runs a command with streams closed as a shell spells it."""
    prefix = f"test-{uuid4().hex}"
    env = environment(tmp_path, REDIS_URL=embedded.url)

    def start(command: str, closed: str) -> Started:
        words = [*COMMAND, *command.split(), "--store", "shop", "--prefix", prefix]
        shell = ["sh", "-c", f'exec "$0" "$@" {closed}', *words]
        return subprocess.run(
            shell, env=env, capture_output=True, text=True, timeout=SECONDS, check=False
        )

    with Store.from_url(embedded.url, name="shop", prefix=prefix) as store:
        chat = store.conversation("trip", owner="ada")
        chat.append("Hello.")
        yield start
        chat.erase()


@pytest.mark.parametrize("command", ["show trip --owner ada", "list --owner ada", "ping"])
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_what_is_closed_leads_nowhere(
    start: Callable[[str, str], Started], command: str, closed: str
) -> None:
    whole = start(command, "")
    done = start(command, closed)
    assert done.returncode == whole.returncode == 0
    assert done.stderr == ""
    is_open = closed in {"2>&-", "<&-"}
    assert done.stdout == (whole.stdout if is_open else "")
    assert whole.stdout


def test_an_error_does_not_come_into_the_output(start: Callable[[str, str], Started]) -> None:
    done = start("show elsewhere", "2>&-")
    assert (done.returncode, done.stdout) == (1, "")
    done = start("show elsewhere --turns 0", ">&-")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


@pytest.mark.parametrize("closed", ["<&-", "<&- >&-"])
def test_nobody_answers_through_an_input_that_is_closed(
    start: Callable[[str, str], Started], closed: str
) -> None:
    done = start("erase --owner ada", closed)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("turnstore: nothing was erased: it asks first")
    assert start("show trip --owner ada", "").returncode == 0
    assert start("erase --owner ada --yes", closed).returncode == 0
    assert start("show trip --owner ada", "").returncode == 1
