"""Starts web applications as a user does: in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2

from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SECONDS = 60  # what anything may take on a slow machine
# Warnings are errors in the applications too. The one exception: uvicorn leaves its own socket to
# the end of the process.
PYTHON = [sys.executable, "-W", "error", "-W", "ignore:unclosed <socket.socket:ResourceWarning"]


class Application:
    """A running application.

    Attributes:
        url: Where it is.
        pid: The process that supervises its workers.
        log: The file with all it has written.
    """

    def __init__(self, url: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.url = url
        self.pid = process.pid
        self.log = log
        self._process = process

    def workers(self) -> list[int]:
        """The processes that answer requests."""
        return [one for one in children(self.pid) if is_worker(one)]

    def answers(self) -> bool:
        """Whether it answers by now; fails if it has ended."""
        assert self._process.poll() is None, self.log.read_text()
        try:
            httpx2.get(self.url)
        except httpx2.TransportError:
            return False
        return True

    def end(self, number: int = signal.SIGTERM) -> int:
        """Tell it to stop; give its exit status. A terminal's Ctrl-C goes to its workers too."""
        send = os.killpg if number == signal.SIGINT else os.kill
        send(self.pid, number)
        return self._process.wait(SECONDS)


def environment(**more: str) -> dict[str, str]:
    """Give an environment in which nothing says where a Redis or a model is."""
    unwanted = {"REDIS_URL", "OPENAI_BASE_URL", "OPENAI_API_KEY", "EXAMPLE_MODEL"}
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    return {**kept, "NO_PROXY": "*", **more}


@contextmanager
def application(
    command: list[str], url: str, log: Path, *, cwd: Path = ROOT, **env: str
) -> Iterator[Application]:
    """Start an application, and wait until it answers.

    Args:
        command: The command.
        url: Where it will be.
        log: Where to write what it says.
        cwd: The directory to start it in.
        env: What else is in its environment.
    """
    with (
        log.open("wb") as file,
        subprocess.Popen(
            command,
            env=environment(**env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C in a terminal is for pytest
        ) as process,
    ):
        try:
            app = Application(url, process, log)
            wait_until(app.answers, seconds=SECONDS)
            yield app
        finally:
            process.terminate()
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise


def children(pid: int) -> list[int]:
    """Give the children of a process, the zombies left out."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # ended meanwhile
            one, _, rest = stat.read_text().rpartition(")")
            state, parent = rest.split()[:2]
            if int(parent) == pid and state != "Z":
                found.append(int(one.split()[0]))
    return sorted(found)


def is_worker(pid: int) -> bool:
    """Say whether a process was spawned to answer requests."""
    with suppress(OSError):
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def speaks_to(pid: int, port: int) -> bool:
    """Say whether a process has a connection to a port of this machine."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            inodes.add(str(link.readlink()).removeprefix("socket:[").removesuffix("]"))
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    established = "01"
    return any(
        row[2].endswith(f":{port:04X}") and row[3] == established and row[9] in inodes
        for row in rows
    )


def exists(pid: int) -> bool:
    """Say whether there is such a process."""
    return Path(f"/proc/{pid}").exists()
