"""A read-only replica, and a failover: what the old primary refuses, and what Sentinel follows."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.asyncio.sentinel
import redis.sentinel

from tests.failure.helping import said
from tests.invariants.raw import look
from tests.servers.facade import as_async
from tests.waiting import wait_until, wait_until_async
from turnstore import AsyncStore, ReadOnlyError, SaveError, ServerError, Store
from turnstore.server import EmbeddedServer

# redis-py leaves these two without types.
AsyncSentinel: Any = redis.asyncio.sentinel.Sentinel
Sentinel: Any = redis.sentinel.Sentinel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import NewStore, OwnServer
    from tests.servers.setups import Setup


def _replica_of(primary: EmbeddedServer) -> dict[str, str]:
    return {"replicaof": f"127.0.0.1 {primary.port}", "repl-diskless-sync-delay": "0"}


def _is_in_step(replica: redis.Redis, primary: redis.Redis) -> bool:
    ours, theirs = replica.info("replication"), primary.info("replication")
    return bool(
        ours.get("master_link_status") == "up"
        and ours["slave_repl_offset"] == theirs["master_repl_offset"]
    )


async def test_a_replica_reads_and_refuses_to_write(
    new_store: NewStore, own_server: OwnServer
) -> None:
    primary = own_server(config={"repl-diskless-sync-delay": "0"})
    replica = own_server(config=_replica_of(primary))
    chat = new_store(at=primary).conversation("ada")
    there = new_store(at=replica).conversation("ada")
    await chat.append("before", turn_id="a")
    with redis.Redis.from_url(primary.url) as main, redis.Redis.from_url(replica.url) as copy:
        wait_until(lambda: _is_in_step(copy, main))
        assert await said(there) == ["before"]
        assert (await there.stat()).turns == 1
        await new_store(at=replica).ping()
        for act in (
            lambda: there.append("after"),
            there.rewind,
            lambda: there.trim(0),
            there.clear,
        ):
            with pytest.raises(ReadOnlyError, match="nothing was written"):
                await act()
        assert (await there.append("before", turn_id="a")).duplicate, "a repetition only reads"
        with pytest.raises(SaveError) as caught:
            async with there.turn("hi") as turn:
                turn.reply("hello")
        assert isinstance(caught.value.__cause__, ReadOnlyError)
        assert look(copy, chat.key).contents == ["before"]
        copy.execute_command("REPLICAOF NO ONE")
        assert await turn.save()
        assert await said(there) == ["before", "hi", "hello"]


async def test_a_failover_by_hand(new_store: NewStore, own_server: OwnServer) -> None:
    old = own_server(config={"repl-diskless-sync-delay": "0"})
    new = own_server(config=_replica_of(old))
    chat = new_store(at=old).conversation("ada")
    for number in range(20):
        await chat.append(str(number), turn_id=f"t{number}")
    with redis.Redis.from_url(old.url) as before, redis.Redis.from_url(new.url) as after:
        wait_until(lambda: _is_in_step(after, before))
        after.execute_command("REPLICAOF NO ONE")
        before.execute_command(f"REPLICAOF 127.0.0.1 {new.port}")
        with pytest.raises(ReadOnlyError):
            await chat.append("20", turn_id="t20")
        moved = new_store(at=new).conversation("ada")
        assert (await moved.append("19", turn_id="t19")).duplicate
        await moved.append("20", turn_id="t20")
        assert await said(moved) == [str(number) for number in range(21)]
        wait_until(lambda: _is_in_step(before, after))
        assert await said(chat) == [str(number) for number in range(21)]


@pytest.fixture
def sentinel(
    own_server: OwnServer, tmp_path: Path
) -> Iterator[tuple[EmbeddedServer, EmbeddedServer]]:
    """Give a primary with a replica, and a Sentinel that watches them."""
    primary = own_server(config={"repl-diskless-sync-delay": "0"})
    replica = own_server(config=_replica_of(primary))
    with redis.Redis.from_url(primary.url) as main, redis.Redis.from_url(replica.url) as copy:
        wait_until(lambda: _is_in_step(copy, main))
    # A server that is called so is a Sentinel.
    name = "valkey-sentinel" if "valkey" in primary.binary.name else "redis-sentinel"
    binary = tmp_path / name
    binary.symlink_to(primary.binary)
    config = {
        "sentinel monitor": f"main 127.0.0.1 {primary.port} 1",
        "sentinel down-after-milliseconds": "main 300",
        "sentinel failover-timeout": "main 3000",
    }
    with ExitStack() as stack:
        watcher = stack.enter_context(EmbeddedServer(binary=binary, config=config))
        with redis.Redis.from_url(watcher.url) as raw:
            wait_until(lambda: raw.execute_command("SENTINEL REPLICAS main"))
        yield primary, watcher


async def test_a_sentinel_client_follows_a_failover(
    sentinel: tuple[EmbeddedServer, EmbeddedServer], setup: Setup, prefix: str
) -> None:
    primary, watcher = sentinel
    options: dict[str, Any] = {"prefix": prefix, "name": "test"}
    watching: Any
    client: Any
    if setup.client == "async":
        watching = AsyncSentinel([("127.0.0.1", watcher.port)])
        client = watching.master_for("main")
        store = AsyncStore(client, **options)
    else:
        watching = Sentinel([("127.0.0.1", watcher.port)])
        client = watching.master_for("main")
        store = as_async(Store(client, **options))
    chat = store.conversation("ada")
    await chat.append("before", turn_id="a")
    with redis.Redis.from_url(primary.url) as raw:
        await wait_until_async(lambda: raw.execute_command("WAIT 1 100") == 1)
    primary.kill()
    errors: list[ServerError] = []
    while True:
        try:
            await chat.append("after", turn_id="b")
            break
        except ServerError as error:  # no primary, or still a replica
            errors.append(error)
            await asyncio.sleep(0.1)
    assert errors, "the primary was gone, and nobody noticed"
    assert await said(chat) == ["before", "after"]
    if setup.client == "async":
        await client.aclose()
        for one in watching.sentinels:
            await one.aclose()
    else:
        client.close()
        for one in watching.sentinels:
            one.close()
