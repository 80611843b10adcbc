"""The store itself: closing, URLs, the caller's client, names that share nothing (PAINS K, L)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import redis

from tests.servers.facade import as_async
from tests.store.talk import fill, texts
from tests.waiting import wait_until_async
from turnstore import AsyncStore, ClosedError, Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import NewStore
    from tests.servers.running import AsyncClient, Client, Server
    from tests.servers.setups import Setup

pytestmark = pytest.mark.one_setup


async def test_a_closed_store_sends_nothing(store: AsyncStore) -> None:
    """K7: a store that connects again after its end is a leak."""
    chat = store.conversation("c")
    turn = chat.turn("q")
    await chat.append("a")
    await store.close()
    await store.close()
    for doing in (
        chat.append("b"),
        chat.read(),
        chat.turns(),
        chat.stat(),
        chat.trim(1),
        chat.clear(),
    ):
        with pytest.raises(ClosedError, match="the store was closed; nothing was sent"):
            await doing
    with pytest.raises(ClosedError):
        await store.conversation("d").read()
    with pytest.raises(ClosedError):
        await turn.__aenter__()


def test_the_callers_client_stays_open(
    make_store: Callable[..., Store], redis_client: Client
) -> None:
    with make_store() as store:
        store.conversation("c").append("a")
    with pytest.raises(ClosedError):
        store.conversation("c").read()
    assert redis_client.ping()
    assert len(make_store().conversation("c").read()) == 1


async def test_the_callers_asyncio_client_stays_open(
    make_async_store: Callable[..., AsyncStore], async_redis_client: AsyncClient
) -> None:
    async with make_async_store() as store:
        await store.conversation("c").append("a")
    with pytest.raises(ClosedError):
        await store.conversation("c").read()
    assert await async_redis_client.ping()


def url_of(server: Server) -> str:
    host, port = server.addresses[0]
    return f"redis://{host}:{port}"


@pytest.mark.servers("redis-7", "redis-8", "valkey", "cluster")
async def test_from_url(server: Server, setup: Setup, prefix: str) -> None:
    # Options in the URL go to redis-py untouched.
    url = f"{url_of(server)}?protocol={setup.protocol}&decode_responses={setup.decode}"
    options: dict[str, Any] = {
        "name": "test",
        "prefix": prefix,
        "cluster": len(server.addresses) > 1,
    }
    if setup.client == "sync":
        store = as_async(Store.from_url(url, **options))
    else:
        store = AsyncStore.from_url(url, **options)
    async with store:
        chat = store.conversation("c")
        await fill(chat, 2)
        assert texts(await chat.read()) == ["1.1", "2.1"]
    with pytest.raises(ClosedError):
        await chat.read()


@pytest.mark.servers("redis-7", "redis-8", "valkey")
async def test_from_url_closes_its_own_client(server: Server, setup: Setup, prefix: str) -> None:
    name = f"client-{prefix}"
    url = f"{url_of(server)}?client_name={name}"
    if setup.client == "sync":
        store = as_async(Store.from_url(url, name="test", prefix=prefix))
    else:
        store = AsyncStore.from_url(url, name="test", prefix=prefix)

    def connected() -> int:
        return sum(client["name"] == name for client in server.raw.client_list())

    assert connected() == 0, "nothing is connected before it is needed"
    await store.conversation("c").append("a")
    assert connected() == 1
    await store.close()
    await wait_until_async(lambda: not connected())  # the server notices a moment later


# Isolation


async def test_names_prefixes_and_secrets_share_nothing(new_store: NewStore, prefix: str) -> None:
    stores = [
        new_store(name="a"),
        new_store(name="b"),
        new_store(name="A"),
        new_store(name="a "),
        new_store(name="a", prefix=f"{prefix}:x"),
        new_store(name="a", secret=b"0123456789abcdef"),
        new_store(name="a", secret=b"0123456789abcdeF"),
    ]
    for number, store in enumerate(stores):
        await store.conversation("c").append(f"{number}")
    for number, store in enumerate(stores):
        assert texts(await store.conversation("c").read()) == [f"{number}"]
        await store.conversation("c").clear()


async def test_equal_names_share_everything(new_store: NewStore) -> None:
    options: dict[str, Any] = {"name": "a", "secret": b"0123456789abcdef"}
    await new_store(**options).conversation("c").append("a")
    assert texts(await new_store(**options).conversation("c").read()) == ["a"]


IDS = [
    "a", "A", "a,b", "a|b", "a:b", "a}b", "{a}", "*", "a*", "?", "[a]", "\x00", "é", "e\u0301",
    "a-b", "-", " ", "\n", "x" * 5000,
]  # fmt: skip


async def test_ids_of_all_kinds_are_kept_apart(store: AsyncStore) -> None:
    """K2, K10, L1, L2: braces, separators, case, wildcards and lengths in ids."""
    await asyncio.gather(*(store.conversation(id_).append(id_) for id_ in IDS))
    for id_ in IDS:
        assert texts(await store.conversation(id_).read()) == [id_]


async def test_what_is_cleared_for_one_stays_for_the_others(store: AsyncStore) -> None:
    for id_ in IDS:
        await store.conversation(id_).append(id_)
    for id_ in IDS[:5]:
        assert await store.conversation(id_).clear()
    assert [len(await store.conversation(id_).read()) for id_ in IDS] == [0] * 5 + [1] * (
        len(IDS) - 5
    )


async def test_no_key_shows_an_id(new_store: NewStore, server: Server, prefix: str) -> None:
    """L5: keys can be listed; who reads them learns no name."""
    await new_store(name="hospital").conversation("ada@example.com").append("a")
    (key,) = server.lives(prefix)
    assert b"example" not in key  # letters that no digest has
    assert b"hospital" not in key


async def test_one_store_serves_many_conversations_at_once(store: AsyncStore) -> None:
    """E6: nothing is remembered in a handle that another could see."""

    async def talk(number: int) -> list[Any]:
        chat = store.conversation(f"{number}")
        for turn in range(4):
            async with chat.turn(f"{number}.{turn}") as pending:
                pending.reply(f"answer to {pending.messages[-1]['content']}")
        return texts(await chat.read())

    for number, said in enumerate(await asyncio.gather(*map(talk, range(12)))):
        assert said[::2] == [f"{number}.{turn}" for turn in range(4)]
        assert said[1::2] == [f"answer to {question}" for question in said[::2]]


# Clients with a cache of their own


@pytest.mark.servers("redis-8")  # redis-py caches with Redis 7.4 and later alone
def test_a_client_that_caches_never_reads_stale(server: Server, prefix: str) -> None:
    if redis.__version__.startswith("5."):
        pytest.skip("redis-py 5 has no cache, or one that hiredis knows nothing of")
    from redis.cache import CacheConfig  # noqa: PLC0415 - as said

    client = redis.Redis.from_url(url_of(server), protocol=3, cache_config=CacheConfig())
    other = redis.Redis.from_url(url_of(server), protocol=2)
    reading = Store(client, name="test", prefix=prefix).conversation("c")
    writing = Store(other, name="test", prefix=prefix).conversation("c")
    for number in range(50):
        writing.append(f"{number}")
        assert texts(reading.read())[-1] == f"{number}"
        assert reading.turns(1)[0].number == number + 1
        assert reading.stat().turns == number + 1
    client.close()
    other.close()
