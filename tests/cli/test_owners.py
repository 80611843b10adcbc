"""`turnstore list` and `turnstore erase`, and looks at conversations that have an owner."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
import redis

from tests.cli.running import COMMAND, SECONDS, environment, run
from tests.facts.meaning.kit import DIMENSIONS, embed
from tests.servers import found
from turnstore import Store
from turnstore.facts import Facts
from turnstore.server import EmbeddedServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NO_NUMPY = "import sys; sys.modules['numpy'] = None"


on_each_engine = pytest.mark.parametrize(
    "kind", ["plain", "vectorset", "search"], indirect=True, scope="module"
)


@pytest.fixture(scope="module", params=["plain"])
def kind(request: pytest.FixtureRequest) -> str:
    """Give the engine of the facts."""
    return str(request.param)


@pytest.fixture(scope="module")
def home(kind: str) -> Iterator[EmbeddedServer]:
    """Give a server that has the engine."""
    able = [one for one in (*found.servers(), *found.with_search()) if kind in one.engines]
    config = {"loadmodule": str(found.search_module())} if kind == "search" else {}
    binary = next((one.binary for one in able if one.binary), None)
    if binary is None:
        found.lack(f"no server here has the engine {kind}")
    with EmbeddedServer(binary=binary, config=config) as running:
        yield running


class Shop:
    """A store with two owners, and what the command line needs to find it."""

    def __init__(self, store: Store, facts: Facts, prefix: str, env: dict[str, str]) -> None:
        self.store = store
        self.facts = facts
        self.prefix = prefix
        self.env = env
        self.place = ("--store", "shop", "--prefix", prefix, "--owner")

    def run(
        self, command: str, owner: str, *more: str, before: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        return run(command, *self.place, owner, *more, env=self.env, before=before)


@pytest.fixture
def shop(home: EmbeddedServer, kind: str, tmp_path: Path) -> Iterator[Shop]:
    prefix = f"test-{uuid4().hex}"
    with Store.from_url(home.url, name="shop", prefix=prefix) as store:
        facts = Facts(store, embed=embed, dimensions=DIMENSIONS, embedder="words:1", engine=kind)
        for owner in ("ada", "bob"):
            for place in ("trip", "work\n\x1b[31m"):
                store.conversation(place, owner=owner).append(["Hello.", "Again."])
            store.conversation("trip", owner=owner).set_title("A trip\u202e")
            facts.add(owner, f"{owner} lives in Paris.")
        store.conversation("trip", owner="ada").append("Where to?")
        yield Shop(store, facts, prefix, environment(tmp_path, REDIS_URL=home.url))
        store.erase("ada", verify=True)
        store.erase("bob", verify=True)


def test_show_and_stat_find_what_an_owner_has(shop: Shop) -> None:
    done = run("show", "trip", *shop.place, "ada", env=shop.env)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "  user        Where to?"
    done = run("stat", "trip", *shop.place, "ada", env=shop.env)
    assert shop.store.conversation("trip", owner="ada").key in done.stdout


@pytest.mark.parametrize("command", ["show", "stat"])
def test_show_and_stat_hint_at_the_owner(shop: Shop, command: str) -> None:
    key = shop.store.conversation("trip").key
    done = run(command, "trip", *shop.place[:-1], env=shop.env)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"turnstore: no conversation 'trip' in the store 'shop', at {key}; "
        "if it has an owner, name that with --owner\n"
    )
    done = run(command, "trip", *shop.place, "eve's", env=shop.env)
    assert (done.returncode, done.stdout) == (1, "")
    assert "'trip' of the owner \"eve's\" in the store 'shop'" in done.stderr
    assert """turnstore list --owner 'eve'"'"'s' prints""" in done.stderr


def test_list_has_the_newest_first_and_pages(shop: Shop) -> None:
    done = shop.run("list", "ada")
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()
    info = shop.store.conversations("ada")[0]
    assert first == f"{info.last_activity:%Y-%m-%d %H:%M:%S} UTC      2 turns  trip  A trip\\u202e"
    assert second.endswith(" UTC       1 turn  work\\n\\x1b[31m")

    page = shop.run("list", "ada", "--limit", "1").stdout.splitlines()
    assert page[0] == first
    cursor = page[1].removeprefix("older conversations: --before ")
    assert shop.run("list", "ada", "--before", cursor).stdout == f"{second}\n"
    done = shop.run("list", "ada", "--before", "1")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "turnstore: no conversations before 1 of the owner 'ada' in the store 'shop'\n"
    )


def test_list_says_what_there_is_besides_conversations(shop: Shop) -> None:
    for chat in ("trip", "work\n\x1b[31m"):
        shop.store.conversation(chat, owner="ada").clear()
    said = (
        "no conversations, but 1 fact and 0 exchanges of the owner 'ada' in the store 'shop'; "
        "turnstore facts prints them\n"
    )
    done = shop.run("list", "ada", before=NO_NUMPY)
    less = said.replace("1 fact and 0 exchanges", "1 facts and exchanges")
    assert (done.returncode, done.stdout, done.stderr) == (0, less, "")
    done = shop.run("list", "ada", "--json")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"turnstore: {said}")
    done = shop.run("list", "eve")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "turnstore: no conversations of the owner 'eve' in the store 'shop'\n"


def test_list_gives_json(shop: Shop) -> None:
    done = shop.run("list", "ada", "--json", "--limit", "1")
    page = shop.store.conversations("ada", 1)
    assert done.stderr == f"turnstore: older conversations: --before {page.cursor}\n"
    (info,) = page
    assert json.loads(done.stdout) == {
        "id": "trip",
        "title": "A trip\u202e",
        "last_activity": info.last_activity.isoformat(),
        "turns": 2,
        "messages": 3,
    }


@on_each_engine
def test_erase_prints_its_receipt_and_leaves_nothing(shop: Shop, home: EmbeddedServer) -> None:
    shop.facts.add_exchange("ada", "trip", "turn-1", "User: Where to?\nAssistant: To Oslo.")
    shop.facts.add_exchange("ada", "trip", "turn-2", "User: When?\nAssistant: In May.")
    said = "2 conversations with 3 turns, 1 fact and 2 exchanges of the owner 'ada' in the store"
    done = shop.run("erase", "ada", "--dry-run")
    assert (done.returncode, done.stdout) == (0, f"{said} 'shop' would be erased\n")
    assert len(shop.store.conversations("ada")) == 2

    done = shop.run("erase", "ada", "--yes", "--verify")
    assert (done.returncode, done.stderr) == (0, "")
    receipt = {line[:13].strip(): line[14:] for line in done.stdout.splitlines()}
    keys = receipt.pop("keys")
    assert int(keys) >= 4
    assert receipt == {
        "conversations": "2",
        "turns": "3",
        "messages": "5",
        "facts": "1",
        "exchanges": "2",
        "verified": "every key of the server was looked at, and nothing is left",
    }
    _only_notes_are_left(shop, home, "ada")
    assert len(shop.store.conversations("bob")) == 2
    done = shop.run("erase", "ada", "--dry-run", "--json")
    assert json.loads(done.stdout) == {
        "conversations": 0,
        "turns": 0,
        "facts": 0,
        "exchanges": 0,
    }


@on_each_engine
def test_erase_of_one_conversation_leaves_the_others(shop: Shop) -> None:
    said = "1 conversation with 2 turns, and its facts, of the owner 'ada' in the store 'shop'"
    one = ("--conversation", "trip")
    done = shop.run("erase", "ada", *one, "--dry-run")
    assert (done.returncode, done.stdout) == (0, f"{said} would be erased\n")
    done = shop.run("erase", "ada", *one, "--yes", before=NO_NUMPY)
    assert done.returncode == 1
    assert "Nothing was deleted: `import turnstore.facts`, which needs numpy" in done.stderr
    done = shop.run("erase", "ada", *one, "--yes", "--verify", "--json")
    receipt = json.loads(done.stdout)
    assert (receipt["conversations"], receipt["turns"], receipt["verified"]) == (1, 2, True)
    assert [chat.id for chat in shop.store.conversations("ada")] == ["work\n\x1b[31m"]
    done = shop.run("erase", "ada", *one, "--yes")
    assert (done.returncode, done.stdout.split()[:2]) == (0, ["conversations", "0"])


def test_erase_without_numpy_finds_the_facts_too(shop: Shop, home: EmbeddedServer) -> None:
    done = shop.run("erase", "ada", "--dry-run", "--json", before=NO_NUMPY)
    assert json.loads(done.stdout) == {
        "conversations": 2,
        "turns": 3,
        "facts_and_exchanges": 1,
    }
    done = shop.run("erase", "ada", "--yes", "--json", before=NO_NUMPY)
    assert (done.returncode, done.stderr) == (0, "")
    receipt = json.loads(done.stdout)
    assert (receipt["conversations"], receipt["turns"], receipt["parts"]) == (2, 3, {})
    _only_notes_are_left(shop, home, "ada")


def _only_notes_are_left(shop: Shop, home: EmbeddedServer, owner: str) -> None:
    """Look for keys of the owner, whose digest is in the key of each conversation."""
    tag = shop.store.conversation("x", owner=owner).key.partition("}")[0].partition("{")[2]
    with redis.Redis.from_url(home.url) as raw:
        keys = [key.decode() for key in raw.scan_iter(match=f"{shop.prefix}:*")]
    assert [key.rpartition(":")[2] for key in keys if tag in key] == ["generation"]


def test_erase_asks_first(shop: Shop) -> None:
    for answer, left in (("n", 2), ("", 2), ("y", 0)):
        done, said = _on_terminal(shop, answer)
        assert "Go on? [y/N]" in said
        assert ("nothing was erased" in said) == bool(left)
        assert done == (1 if left else 0)
        assert len(shop.store.conversations("ada")) == left


def _on_terminal(shop: Shop, answer: str) -> tuple[int, str]:
    """Run it where somebody can answer."""
    master, slave = pty.openpty()
    command = [*COMMAND, "erase", *shop.place, "ada"]
    with subprocess.Popen(
        command, env=shop.env, stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as running:
        os.write(master, f"{answer}\n".encode())
        said, _ = running.communicate(timeout=SECONDS)
    os.close(master)
    os.close(slave)
    return running.returncode, said.decode()


def test_erase_does_nothing_where_nobody_can_answer(shop: Shop) -> None:
    done = subprocess.run(
        [*COMMAND, "erase", *shop.place, "ada"],
        env=shop.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing was erased" in done.stderr
    assert "--yes" in done.stderr
    assert len(shop.store.conversations("ada")) == 2


def test_what_is_written_meanwhile_is_told(shop: Shop) -> None:
    """The process itself stands for a user who says something while the erasure runs."""
    before = """
import turnstore
real = turnstore.Store.erase
def erase(self, owner, **options):
    receipt = real(self, owner, **options)
    self.conversation("late", owner=owner).append("Here I am again.")
    return receipt
turnstore.Store.erase = erase
"""
    done = shop.run("erase", "ada", "--yes", before=before)
    assert done.returncode == 1
    assert "1 conversation with 1 turn, 0 facts and 0 exchanges of" in done.stderr
    assert "erase again" in done.stderr
    assert done.stdout.startswith("conversations 2\n")


@pytest.mark.parametrize("command", ["list", "erase", "facts"])
@pytest.mark.parametrize(
    "arguments, status, complaint",
    [
        (("",), 2, "is empty"),
        (("ada", "--url", "redis://127.0.0.1:1"), 1, "the connection was refused"),
        (("ada", "--prefix", "{"), 2, "without blanks and braces"),
    ],
    ids=["owner", "server", "prefix"],
)
def test_what_is_wrong_is_said(
    shop: Shop, command: str, arguments: tuple[str, ...], status: int, complaint: str
) -> None:
    done = shop.run(command, *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert complaint in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_dry_run_erases_nothing_that_could_be_verified(shop: Shop) -> None:
    done = shop.run("erase", "ada", "--dry-run", "--verify")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--verify: not allowed with argument --dry-run" in done.stderr
    assert len(shop.store.conversations("ada")) == 2


def test_an_owner_is_always_named(shop: Shop) -> None:
    for command in ("list", "erase", "facts"):
        assert run(command, "--store", "shop", env=shop.env).returncode == 2
    for command in ("list", "facts"):
        assert shop.run(command, "ada", "--limit", "0").returncode == 2
