"""The server's clock jumps: order and totals never depend on it, and a life is measured by it."""

from __future__ import annotations

import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
import redis

from tests.failure.helping import said
from tests.invariants.raw import look
from tests.servers.found import lack
from tests.waiting import wait_until
from turnstore.server import EmbeddedServer

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from tests.conftest import NewStore, OwnServer

LIBRARIES = list(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))

# The jemalloc of Debian's Redis 7.0 does not start under libfaketime.
pytestmark = pytest.mark.servers("redis-8", "valkey")


class Clocked(NamedTuple):
    """A server whose clock a test may set."""

    server: EmbeddedServer
    file: Path

    def jump(self, by: timedelta) -> None:
        """Move the server's clock away from the true time by `by`."""
        seconds = int(by.total_seconds())
        fresh = self.file.with_suffix(".new")
        fresh.write_text(f"{seconds:+d}s\n")
        fresh.rename(self.file)
        true = time.time()
        with redis.Redis.from_url(self.server.url) as raw:
            wait_until(lambda: abs(raw.time()[0] - true - seconds) < 30)


@pytest.fixture
def clocked(own_server: OwnServer, tmp_path: Path) -> Iterator[Clocked]:
    """Start a server under libfaketime."""
    with clocked_server(own_server, tmp_path) as server:
        yield server


@contextmanager
def clocked_server(
    own_server: OwnServer, tmp_path: Path, config: dict[str, str] | None = None
) -> Generator[Clocked]:
    """Start a server under libfaketime, with this configuration."""
    if not LIBRARIES:
        lack("no libfaketime on this machine (on Debian or Ubuntu: apt install faketime)")
    plain = own_server()
    file = tmp_path / "clock"
    file.write_text("+0s\n")
    script = tmp_path / plain.binary.name
    script.write_text(
        "#!/bin/sh\n"
        f"LD_PRELOAD={LIBRARIES[0]} FAKETIME_TIMESTAMP_FILE={file} FAKETIME_NO_CACHE=1 "
        f'DONT_FAKE_MONOTONIC=1 exec {plain.binary} "$@"\n'
    )
    script.chmod(0o755)
    plain.stop()
    with EmbeddedServer(binary=script, config=config) as server:
        yield Clocked(server, file)


@pytest.mark.parametrize("days", [-30, 30], ids=["back", "ahead"])
async def test_order_and_totals_do_not_depend_on_the_clock(
    new_store: NewStore, clocked: Clocked, days: int
) -> None:
    chat = new_store(at=clocked.server, ttl=timedelta(days=90)).conversation("ada")
    await chat.append("first", turn_id="a")
    clocked.jump(timedelta(days=days))
    await chat.append("second")
    clocked.jump(timedelta(0))
    third = await chat.append("third")
    assert third.turns == 3
    assert (await chat.append("first", turn_id="a")).duplicate
    assert await said(chat) == ["first", "second", "third"]
    turns = await chat.turns()
    assert [turn.number for turn in turns] == [1, 2, 3]
    shift = turns[1].time - datetime.now(UTC)
    assert abs(shift - timedelta(days=days)) < timedelta(hours=1), "times say what the clock said"
    with redis.Redis.from_url(clocked.server.url) as raw:
        look(raw, chat.key)


async def test_a_jump_ahead_ends_lives(new_store: NewStore, clocked: Clocked) -> None:
    chat = new_store(at=clocked.server, ttl=timedelta(hours=1)).conversation("ada")
    await chat.append("before")
    clocked.jump(timedelta(hours=2))
    assert await said(chat) == []
    assert (await chat.append("after")).turns == 1


async def test_a_jump_back_prolongs_lives_until_the_next_append(
    new_store: NewStore, clocked: Clocked
) -> None:
    chat = new_store(at=clocked.server, ttl=timedelta(hours=1)).conversation("ada")
    await chat.append("before")
    clocked.jump(timedelta(hours=-5))
    ttl = (await chat.stat()).ttl
    assert ttl
    assert ttl > timedelta(hours=5)
    await chat.append("after")
    ttl = (await chat.stat()).ttl
    assert ttl
    assert ttl <= timedelta(hours=1)
    assert await said(chat) == ["before", "after"]
