"""`turnstore facts`: what is printed of an owner's facts, without an embedder."""

from __future__ import annotations

import json
import subprocess
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
import redis

from tests.cli.running import environment, run
from tests.facts.meaning.kit import DIMENSIONS, embed
from turnstore import Store
from turnstore.facts import Facts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from turnstore.server import EmbeddedServer

MOVED = datetime(2024, 6, 1, tzinfo=UTC)


class Kept:
    """Facts of two owners, and the command line beside them."""

    def __init__(self, facts: Facts, prefix: str, env: dict[str, str]) -> None:
        self.facts = facts
        self.env = env
        self.place = ("--store", "shop", "--prefix", prefix, "--owner")

    def run(
        self, owner: str, *more: str, before: str | None = None, command: str = "facts"
    ) -> subprocess.CompletedProcess[str]:
        return run(command, *self.place, owner, *more, env=self.env, before=before)


@pytest.fixture
def kept(embedded: EmbeddedServer, tmp_path: Path) -> Iterator[Kept]:
    prefix = f"test-{uuid4().hex}"
    with Store.from_url(embedded.url, name="shop", prefix=prefix) as store:
        facts = Facts(store, embed=embed, dimensions=DIMENSIONS, embedder="words:1", engine="plain")
        old = facts.add("ada", "Ada lives in Oslo.", valid_from=MOVED.replace(year=2020))
        new = facts.add("ada", "Ada lives in \x1b[31mRome.", slot="home", valid_from=MOVED)
        facts.end("ada", old.id, valid_to=MOVED, superseded_by=new.id)
        facts.add_exchange("ada", "trip", "turn-1", "User: Where to?\nAssistant: To Oslo.")
        facts.add("bob", "Bob lives in Rome.")
        yield Kept(facts, prefix, environment(tmp_path, REDIS_URL=embedded.url))
        store.erase("ada")
        store.erase("bob")


def test_it_prints_the_newest_first_and_pages(kept: Kept) -> None:
    done = kept.run("ada")
    assert (done.returncode, done.stderr) == (0, "")
    exchange, fact = kept.facts.list("ada")
    first = (
        f"{exchange.observed:%Y-%m-%d %H:%M:%S} UTC  {exchange.id}  exchange  "
        "User: Where to?\\nAssistant: To Oslo.  (in trip)"
    )
    second = (
        f"{fact.observed:%Y-%m-%d %H:%M:%S} UTC  {fact.id}  fact      Ada lives in \\x1b[31mRome."
    )
    assert done.stdout.splitlines() == [first, second]

    page = kept.run("ada", "--limit", "1").stdout.splitlines()
    assert page[0] == first
    cursor = page[1].removeprefix("older facts: --before ")
    assert kept.run("ada", "--before", cursor).stdout == f"{second}\n"


def test_what_later_facts_replaced_is_printed_when_asked_for(kept: Kept) -> None:
    last = kept.run("ada", "--closed", "--kind", "fact").stdout.splitlines()[-1]
    assert last.endswith("Ada lives in Oslo.  (until 2024-06-01 00:00:00 UTC)")


def test_it_gives_json(kept: Kept) -> None:
    done = kept.run("ada", "--json", "--kind", "fact", "--closed", "--limit", "1")
    page = kept.facts.list("ada", 1, kinds=["fact"], include_closed=True)
    assert done.stderr == f"turnstore: older facts: --before {page.cursor}\n"
    said = json.loads(done.stdout)
    (fact,) = page
    assert (said["id"], said["text"], said["slot"]) == (fact.id, fact.text, "home")
    assert (said["valid_from"], said["valid_to"]) == (MOVED.isoformat(), None)
    assert said["sources"] == []


@pytest.mark.parametrize(
    "owner, more, said",
    [
        ("eve", (), "no facts of the owner 'eve' in the store 'shop'"),
        ("bob", ("--kind", "exchange"), "no facts of the kind 'exchange' of the owner 'bob'"),
    ],
)
def test_where_there_is_none_it_says_so(
    kept: Kept, owner: str, more: tuple[str, ...], said: str
) -> None:
    done = kept.run(owner, *more)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr


@pytest.mark.parametrize(
    "more", [("--before", "x"), ("--kind", "no kind"), ("--limit", "0")], ids=lambda one: one[0]
)
def test_arguments_of_no_use_are_refused(kept: Kept, more: tuple[str, ...]) -> None:
    done = kept.run("ada", *more)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


def test_it_says_what_is_missing(kept: Kept) -> None:
    done = kept.run("ada", before="import sys; sys.modules['numpy'] = None")
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install '.[facts]'" in done.stderr


class TestErase:
    """One fact, by its id."""

    def test_it_goes_with_a_receipt_and_nothing_else_does(self, kept: Kept) -> None:
        exchange, fact = kept.facts.list("ada")
        done = kept.run("ada", "--fact", fact.id, "--dry-run", command="erase")
        assert (done.returncode, done.stderr) == (0, "")
        said = '"Ada lives in \\x1b[31mRome.", would be erased'
        assert done.stdout.startswith(f"the fact {fact.id} of the owner 'ada' in the store 'shop'")
        assert said in done.stdout
        assert kept.facts.get("ada", fact.id) == fact
        done = kept.run("ada", "--fact", fact.id, "--yes", "--verify", command="erase")
        assert (done.returncode, done.stderr) == (0, "")
        assert [line.split()[:2] for line in done.stdout.splitlines()] == [
            ["facts", "1"],
            ["verified", "every"],
        ]
        assert [one.id for one in kept.facts.list("ada")] == [exchange.id]
        done = kept.run("ada", "--fact", exchange.id, "--yes", "--json", command="erase")
        assert json.loads(done.stdout)["parts"] == {"exchanges": 1}
        assert len(kept.facts.list("bob")) == 1

    def test_nobody_there_to_answer_erases_nothing(self, kept: Kept) -> None:
        (fact,) = kept.facts.list("bob")
        done = kept.run("bob", "--fact", fact.id, command="erase")
        assert (done.returncode, done.stdout) == (1, "")
        assert "nothing was erased" in done.stderr
        assert kept.facts.list("bob") == [fact]

    def test_one_that_is_not_there_is_said_and_looked_for_on_request(self, kept: Kept) -> None:
        (theirs,) = kept.facts.list("bob")
        done = kept.run("ada", "--fact", theirs.id, "--yes", command="erase")
        assert (done.returncode, done.stdout) == (1, "")
        assert f"no fact {theirs.id} of the owner 'ada'" in done.stderr
        done = kept.run("ada", "--fact", theirs.id, "--yes", "--verify", "--json", command="erase")
        receipt = json.loads(done.stdout)
        assert (receipt["parts"], receipt["verified"]) == ({}, True)
        assert (done.returncode, done.stderr.count("there was no fact")) == (1, 1)
        assert kept.facts.list("bob") == [theirs]

    def test_a_damaged_one_can_be_erased(self, kept: Kept) -> None:
        (fact,) = kept.facts.list("bob")
        key = kept.facts._base.ground.owner("bob").keys.facts
        with closing(redis.Redis.from_url(kept.env["REDIS_URL"])) as raw:
            raw.hset(key, fact.id, "not ours")
        done = kept.run("bob", "--fact", fact.id, "--dry-run", command="erase")
        assert "which cannot be read, would be erased" in done.stdout
        done = kept.run("bob", "--fact", fact.id, "--yes", "--verify", command="erase")
        assert done.stdout.split()[:2] == ["facts", "1"]
        assert kept.facts.list("bob") == []

    def test_what_it_is_of_no_use_with_is_refused(self, kept: Kept) -> None:
        for more in (("--fact", ""), ("--fact", "no id"), ("--fact", "x", "--conversation", "c")):
            done = kept.run("bob", *more, "--yes", command="erase")
            assert (done.returncode, done.stdout) == (2, "")
        done = kept.run(
            "bob",
            "--fact",
            "0" * 12,
            command="erase",
            before="import sys; sys.modules['numpy'] = None",
        )
        assert done.returncode == 1
        assert "pip install '.[facts]'" in done.stderr
