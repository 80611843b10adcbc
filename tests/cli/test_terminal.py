"""How the demo looks on a terminal."""

from __future__ import annotations

import os
import pty
import re
import struct
import subprocess
from fcntl import ioctl
from termios import TIOCSWINSZ
from typing import TYPE_CHECKING

import pytest

from tests.cli.running import COMMAND, environment
from turnstore.cli._terminal import harmless

if TYPE_CHECKING:
    from pathlib import Path

    from turnstore.server import EmbeddedServer

COLOUR = re.compile(r"\x1b\[[\d;]*m")


def on_terminal(env: dict[str, str], columns: int) -> str:
    """Run the demo on a terminal that is so wide, and give what it printed."""
    master, slave = pty.openpty()
    ioctl(slave, TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([*COMMAND, "demo"], env=env, stdin=slave, stdout=slave, stderr=slave):
        os.close(slave)
        said = b""
        while True:
            try:
                more = os.read(master, 4096)
            except OSError:  # Linux says so at the end
                break
            if not more:
                break
            said += more
    os.close(master)
    return said.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [32, 60, 200])
def test_it_fits_the_terminal(tmp_path: Path, embedded: EmbeddedServer, columns: int) -> None:
    said = on_terminal(environment(tmp_path, REDIS_URL=embedded.url), columns)
    assert COLOUR.search(said)
    plain = COLOUR.sub("", said)
    assert "as promised" in " ".join(plain.split())
    too_long = [line for line in plain.splitlines() if len(line) > min(columns, 88)]
    # Names, times and code are not broken: the terminal does that, and they can be copied.
    allowed = re.compile(r"turnstore-demo-|redis://|^ {5}|  openai\.chat$")
    assert [line for line in too_long if not allowed.search(line)] == []


@pytest.mark.parametrize("more", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_none_is_wanted(
    tmp_path: Path, embedded: EmbeddedServer, more: dict[str, str]
) -> None:
    said = on_terminal(environment(tmp_path, REDIS_URL=embedded.url, **more), 80)
    assert "\x1b" not in said


def test_what_steers_a_terminal_is_spelled_out() -> None:
    assert harmless("a\x1b[31mb\x07\u202e\ud800\tc\nd") == "a\\x1b[31mb\\x07\\u202e\\ud800\tc\nd"
    assert harmless("Ünïcödé 語 🙂") == "Ünïcödé 語 🙂"
