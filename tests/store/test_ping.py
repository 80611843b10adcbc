"""Whether a store can be used: what a readiness check is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import redis

from turnstore import ClosedError, DeniedError, OutOfMemoryError, UnavailableError

if TYPE_CHECKING:
    from tests.conftest import NewStore, OwnServer
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore import AsyncStore

ONCE: dict[str, Any] = {"retry": None, "retry_on_error": []}


async def test_a_server_that_can_be_used(store: AsyncStore, server: Server, prefix: str) -> None:
    for _ in range(2):
        await store.ping()
        assert not server.lives(prefix), "nothing is written"
        await store.conversation("ping").append("hi")
        await store.ping()
        await store.conversation("ping").clear()


@pytest.mark.one_setup
@pytest.mark.servers("redis", "cluster")
async def test_it_is_one_command_for_a_key_of_the_store(new_store: NewStore, proxy: Proxy) -> None:
    store = new_store(at=proxy)
    await store.ping()
    proxy.clear()
    await store.ping()
    assert proxy.seen == ["EXISTS"]


@pytest.mark.one_setup
@pytest.mark.servers("redis", "valkey")
async def test_a_server_that_is_gone_and_comes_back(new_store: NewStore, proxy: Proxy) -> None:
    store = new_store(at=proxy, redis=ONCE)
    await store.ping()
    proxy.go_down()
    with pytest.raises(UnavailableError):
        await store.ping()
    proxy.come_up()
    await store.ping()


async def test_who_may_not_look_at_the_keys_is_told(
    new_store: NewStore, own_server: OwnServer
) -> None:
    server = own_server()
    with redis.Redis.from_url(server.url) as raw:
        raw.execute_command("ACL SETUSER app on >pw +@all ~mine:*")
    login = {"username": "app", "password": "pw"}
    await new_store(at=server, redis=login, prefix="mine").ping()
    for denied in (login, {"username": "app", "password": "wrong"}):
        with pytest.raises(DeniedError, match="ping"):
            await new_store(at=server, redis=denied).ping()


async def test_a_full_server_still_answers_and_refuses_saves(
    new_store: NewStore, own_server: OwnServer
) -> None:
    store = new_store(at=own_server(config={"maxmemory": "1"}))
    await store.ping()
    with pytest.raises(OutOfMemoryError):
        await store.conversation("c").append("hi")


async def test_a_closed_store_says_so(store: AsyncStore) -> None:
    await store.close()
    with pytest.raises(ClosedError):
        await store.ping()
