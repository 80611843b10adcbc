"""How many connections a store takes: one client's, however many conversations there are."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
import redis

from tests.store.talk import texts
from turnstore import AsyncStore, Store

if TYPE_CHECKING:
    from tests.conftest import NewStore, OwnServer
    from tests.servers.running import Server
    from tests.servers.setups import Setup

pytestmark = pytest.mark.one_setup


async def test_many_conversations_share_the_connections_of_a_client(
    new_store: NewStore, own_server: OwnServer
) -> None:
    """K4: one for each message, or for each run, exhausts a server."""
    server = own_server()
    store = new_store(at=server)
    await store.conversation("first").append("a")
    with redis.Redis.from_url(server.url) as raw:
        before = int(raw.info("stats")["total_connections_received"])
        for number in range(100):
            chat = store.conversation(f"{number}", owner=f"user {number % 7}")
            async with chat.turn("q") as turn:
                turn.reply("a")
            assert texts(await chat.read()) == ["q", "a"]
        after = int(raw.info("stats")["total_connections_received"])
    # On a sync store each call is made in some thread; those of a pool take one each at most.
    assert after - before < 20


@pytest.mark.servers("redis-7", "redis-8", "valkey", "cluster")
async def test_a_store_of_a_url_has_a_connection_for_each_operation(
    server: Server, setup: Setup, prefix: str
) -> None:
    """redis-py 8 gives a client a hundred by itself, and then an error."""
    together = 130
    (host, port), *others = server.addresses
    url = f"redis://{host}:{port}"
    with ExitStack() as stack:
        for at in server.addresses:
            raw = stack.enter_context(redis.Redis(host=at[0], port=at[1]))
            raw.client_pause(500, all=False)  # so that none is answered before all are sent
        if setup.client == "async":
            async with AsyncStore.from_url(
                url, name="test", prefix=prefix, cluster=bool(others)
            ) as astore:
                chats = [astore.conversation(str(number)) for number in range(together)]
                await asyncio.gather(*(chat.append("a") for chat in chats))
                assert [texts(await chat.read()) for chat in chats] == [["a"]] * together
            return
        with (
            Store.from_url(url, name="test", prefix=prefix, cluster=bool(others)) as store,
            ThreadPoolExecutor(together) as pool,
        ):
            all_there = threading.Barrier(together)

            def append(number: int) -> list[str]:
                all_there.wait()
                store.conversation(str(number)).append("a")
                return texts(store.conversation(str(number)).read())

            assert list(pool.map(append, range(together))) == [["a"]] * together
