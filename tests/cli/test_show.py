"""`turnstore show`, `stat` and `ping`, and what every command line has."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from tests.cli.running import COMMAND, SECONDS, environment, run
from turnstore import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from turnstore import Conversation
    from turnstore.server import EmbeddedServer

SECRET = b"sixteen bytes at least\n"


@pytest.fixture
def prefix() -> str:
    return f"test-{uuid4().hex}"


@pytest.fixture
def chat(embedded: EmbeddedServer, prefix: str) -> Iterator[Conversation]:
    with Store.from_url(embedded.url, name="shop", prefix=prefix) as store:
        chat = store.conversation("conv-1")
        chat.append("My name is \x1b[31mAda.\nAnd yours?")
        chat.append(
            [
                {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]},
                {"role": "tool", "tool_call_id": "c1", "content": "42 \ud800"},
            ],
            meta={"model": "m"},
        )
        yield chat
        chat.clear()


@pytest.fixture
def env(tmp_path: Path, embedded: EmbeddedServer) -> dict[str, str]:
    return environment(tmp_path, REDIS_URL=embedded.url)


def test_show_prints_who_said_what(chat: Conversation, env: dict[str, str], prefix: str) -> None:
    done = run("show", "conv-1", "--store", "shop", "--prefix", prefix, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    first, *lines = done.stdout.splitlines()
    assert first.startswith(f"turn 1  {chat.turns()[0].time:%Y-%m-%d %H:%M}")
    assert lines[0] == "  user        My name is \\x1b[31mAda."
    assert lines[1] == "              And yours?"
    assert lines[2].startswith("turn 2")
    assert lines[3] == '  assistant   {"tool_calls": [{"id": "c1"}]}'
    assert lines[4] == "  tool        42 \\ud800"
    assert lines[5] == '              {"tool_call_id": "c1"}'


def test_show_pages_backwards(chat: Conversation, env: dict[str, str], prefix: str) -> None:
    place = ("conv-1", "--store", "shop", "--prefix", prefix)
    newest = run("show", *place, "--turns", "1", env=env)
    assert newest.stdout.startswith("turn 2")
    assert newest.stdout.endswith("older turns: --before 2\n")
    older = run("show", *place, "--before", "2", env=env)
    assert older.stdout.startswith("turn 1")
    assert "older turns" not in older.stdout
    none = run("show", *place, "--before", "1", env=env)
    assert (none.returncode, none.stdout) == (1, "")
    assert none.stderr == f"turnstore: no turns before turn 1 at {chat.key}\n"


def test_show_gives_json(chat: Conversation, env: dict[str, str], prefix: str) -> None:
    done = run("show", "conv-1", "--store", "shop", "--prefix", prefix, "--json", env=env)
    turns = [json.loads(line) for line in done.stdout.splitlines()]
    assert [turn["messages"] for turn in turns] == [turn.messages for turn in chat.turns()]
    assert turns[1]["meta"] == {"model": "m"}
    assert turns[1]["revision"] == chat.stat().revision


def test_stat_prints_the_measures(chat: Conversation, env: dict[str, str], prefix: str) -> None:
    done = run("stat", "conv-1", "--store", "shop", "--prefix", prefix, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    facts = {line[:12].strip(): line[12:] for line in done.stdout.splitlines()}
    assert facts["key"] == chat.key
    assert (facts["turns"], facts["messages"]) == ("2", "3")
    assert facts["tokens"] == "not counted"
    assert facts["lives for"].startswith("23 h 59 min")
    assert facts["revision"] == chat.stat().revision


@pytest.mark.parametrize("command", ["show", "stat"])
def test_a_conversation_that_is_not_there_is_said_to_be_missing(
    env: dict[str, str], command: str
) -> None:
    done = run(command, "nobody", "--store", "shop", env=env)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("turnstore: no ")


def test_stat_prints_tokens_that_were_counted(
    embedded: EmbeddedServer, env: dict[str, str], prefix: str
) -> None:
    with Store.from_url(
        embedded.url, name="shop", prefix=prefix, count_tokens=lambda _message: 600
    ) as store:
        store.conversation("conv-1").append(["Hello.", "Again."])
        done = run("stat", "conv-1", "--store", "shop", "--prefix", prefix, env=env)
        store.conversation("conv-1").clear()
    assert "\ntokens      1,200\n" in done.stdout


def test_ping_says_whether_the_server_answers(env: dict[str, str]) -> None:
    done = run("ping", "--store", "shop", env=env)
    said = "the server of the store 'shop' answers\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
    done = run("ping", "--store", "shop", "--url", "redis://127.0.0.1:1", env=env)
    assert (done.returncode, done.stdout) == (1, "")
    assert "the connection was refused" in done.stderr


def test_a_secret_comes_from_a_file(
    embedded: EmbeddedServer, env: dict[str, str], prefix: str, tmp_path: Path
) -> None:
    file = tmp_path / "secret"
    file.write_bytes(SECRET)
    with Store.from_url(embedded.url, name="shop", prefix=prefix, secret=SECRET) as store:
        store.conversation("conv-1").append("hidden place")
        place = ("conv-1", "--store", "shop", "--prefix", prefix)
        assert run("stat", *place, env=env).returncode == 1
        done = run("show", *place, "--secret-file", str(file), env=env)
        assert "hidden place" in done.stdout
        store.conversation("conv-1").clear()


@pytest.mark.parametrize(
    "arguments, status, complaint",
    [
        (("--url", "redis://127.0.0.1:1"), 1, "the connection was refused"),
        (("--url", "redis://127.0.0.1:1", "--cluster"), 1, "no node of the cluster answered"),
        (("--url", "http://x"), 2, "Redis URL must specify"),
        (("--url", "redis://127.0.0.1?foo=bar"), 2, "cannot use an option of the URL"),
        (("--prefix", "{"), 2, "without blanks and braces"),
        (("--secret-file", "/nowhere"), 1, "No such file"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    env: dict[str, str], arguments: tuple[str, ...], status: int, complaint: str
) -> None:
    done = run("stat", "conv-1", "--store", "shop", *arguments, env=env)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith("turnstore: ")
    assert complaint in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_arguments_of_no_use_are_refused(env: dict[str, str]) -> None:
    assert run(env=env).returncode == 2
    assert run("show", "conv-1", env=env).returncode == 2
    assert run("show", "conv-1", "--store", "x", "--turns", "0", env=env).returncode == 2


def test_help_and_version(env: dict[str, str]) -> None:
    assert run("--version", env=env).stdout.startswith("turnstore 0.")
    text = run("--help", env=env).stdout
    assert all(command in text for command in ("demo", "show", "stat"))


def test_a_reader_that_leaves_early_is_no_error(
    chat: Conversation, env: dict[str, str], prefix: str
) -> None:
    chat.append(["x" * 1000] * 500)
    command = [*COMMAND, "show", "conv-1", "--store", "shop", "--prefix", prefix]
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout
        assert running.stderr
        running.stdout.readline()
        running.stdout.close()
        assert running.wait(SECONDS) == 1
        assert running.stderr.read() == b""
