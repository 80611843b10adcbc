"""`turnstore retain`: what it removes, what it says, and that it needs no embedder."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
import redis

from tests.cli.running import environment, run
from tests.facts.meaning.kit import DIMENSIONS, embed
from turnstore import Store
from turnstore.cli._retain import time_of
from turnstore.facts import Facts, NewFact

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from turnstore.server import EmbeddedServer


@pytest.fixture
def prefix() -> str:
    return f"test-{uuid4().hex}"


@pytest.fixture
def facts(embedded: EmbeddedServer, prefix: str) -> Iterator[Facts]:
    with Store.from_url(embedded.url, name="shop", prefix=prefix) as store:
        facts = Facts(store, embed=embed, dimensions=DIMENSIONS, embedder="words:1", engine="plain")
        for owner in ("ada", "bob"):
            facts.add_many(owner, [NewFact(text=f"{owner} knows {n}.") for n in range(5)])
            facts.add(owner, "Kept.", pinned=True)
        yield facts
        facts.erase("ada")
        facts.erase("bob")


@pytest.fixture
def env(tmp_path: Path, embedded: EmbeddedServer) -> dict[str, str]:
    return environment(tmp_path, REDIS_URL=embedded.url)


def test_it_counts_first_and_removes_then(facts: Facts, env: dict[str, str], prefix: str) -> None:
    place = ("--store", "shop", "--prefix", prefix)
    done = run("retain", *place, "--most", "3", "--dry-run", env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["12 facts of 2 owners", "6 would go by --most 3"]
    assert len(facts.list("ada")) == 6
    done = run("retain", *place, "--most", "3", "--owner", "ada", env=env)
    assert done.stdout.splitlines() == ["6 facts of 1 owner", "3 went by --most 3"]
    assert (len(facts.list("ada")), len(facts.list("bob"))) == (3, 6)
    done = run("retain", *place, "--older-than", "1h", "--unused-for", "2w", env=env)
    assert done.stdout.splitlines() == ["9 facts of 2 owners", "none went"]
    assert facts.health().is_well


def test_the_longest_time_keeps_everything(facts: Facts, env: dict[str, str], prefix: str) -> None:
    now = datetime.now(UTC)
    facts.add("ada", "Ada lived in Oslo.", valid_from=now - timedelta(9), valid_to=now)
    place = ("--store", "shop", "--prefix", prefix, "--owner", "ada")
    for rule in ("--closed-for", "--older-than", "--unused-for"):
        done = run("retain", *place, rule, "999999999d", env=env)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines() == ["7 facts of 1 owner", "none went"]


def test_it_says_by_which_rule_facts_go(facts: Facts, env: dict[str, str], prefix: str) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=9)
    facts.add("ada", "Ada lived in Oslo.", valid_from=long_ago, valid_to=long_ago + timedelta(1))
    place = ("--store", "shop", "--prefix", prefix, "--owner", "ada", "--dry-run")
    done = run("retain", *place, "--closed-for", "7d", "--most", "4", env=env)
    assert done.stdout.splitlines() == [
        "7 facts of 1 owner",
        "1 would go by --closed-for 7d",
        "2 would go by --most 4",
    ]


def test_it_leaves_how_long_facts_live(
    embedded: EmbeddedServer, env: dict[str, str], prefix: str
) -> None:
    with Store.from_url(embedded.url, name="shop", prefix=prefix) as store:
        options: dict[str, Any] = {"dimensions": DIMENSIONS, "embedder": "words:1"}
        facts = Facts(store, embed=embed, engine="plain", ttl=timedelta(hours=1), **options)
        facts.add_many("ada", [NewFact(text=f"Ada knows {n}.") for n in range(5)])
        run("retain", "--store", "shop", "--prefix", prefix, "--most", "2", env=env)
        assert len(facts.list("ada")) == 2
        with redis.Redis.from_url(embedded.url) as raw:
            keys = list(raw.scan_iter(match=f"{prefix}:1:{{*:*}}:facts*"))  # ada's
            assert keys
            assert all(0 < raw.pttl(key) <= 3_600_000 for key in keys)


@pytest.mark.parametrize(
    "arguments, said",
    [
        ((), "no rule is given"),
        (("--older-than", "soon"), "is no time"),
        (("--closed-for", "999999999999d"), "is too long a time; 999,999,999 days are the most"),
        (("--unused-for", "9" * 400), "is too long a time"),
        (("--most", "0"), "most=0"),
        (("--fresh", "2"), "fresh=2.0"),
        (("--most", "1", "--owner", ""), "is empty"),
    ],
)
def test_what_is_no_rule_is_refused(
    env: dict[str, str], arguments: tuple[str, ...], said: str
) -> None:
    done = run("retain", "--store", "shop", *arguments, env=env)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_it_says_what_is_missing(env: dict[str, str]) -> None:
    before = "import sys; sys.modules['numpy'] = None"
    done = run("retain", "--store", "shop", "--most", "5", env=env, before=before)
    assert done.returncode == 1
    assert "pip install '.[facts]'" in done.stderr


@pytest.mark.parametrize(
    "text, hours",
    [("1", 24), ("2d", 48), ("1.5h", 1.5), ("2w", 336), (" 3h ", 3)],
)
def test_times(text: str, hours: float) -> None:
    assert time_of(text) == timedelta(hours=hours)
