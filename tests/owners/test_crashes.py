"""Erasures whose answers are lost, or whose server or process dies: repeated, they end it all."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import redis

from tests.owners.helping import NOTE, Owner
from tests.servers.facade import as_async
from tests.servers.proxy import Cut, Proxy
from tests.store.talk import texts
from turnstore import ErasedError, Erasure, Store, UnavailableError, _scripts

if TYPE_CHECKING:
    from tests.conftest import NewStore, OwnServer
    from tests.servers.running import Server

pytestmark = pytest.mark.one_setup

CUTS = pytest.mark.parametrize("cut", [cut for cut in Cut if cut is not Cut.NEVER], ids=str)

MANY = 130


def _fill(store: Store) -> None:
    for number in range(MANY):
        store.conversation(f"c{number}", owner="ada").append(["q", "r"])


@CUTS
@pytest.mark.parametrize("step", range(4))
async def test_a_receipt_is_right_also_where_an_answer_was_lost(  # noqa: PLR0913, PLR0917 - fixtures
    new_store: NewStore, proxy: Proxy, ada: Owner, behind: Store, cut: Cut, step: int
) -> None:
    ada.load_scripts()
    store = new_store(at=proxy)
    _fill(behind)
    for _ in range(step):
        proxy.next(Cut.NEVER, command="EVALSHA")
    proxy.next(cut, command="EVALSHA")
    receipt = await store.erase("ada")
    assert receipt == Erasure(
        conversations=MANY, turns=MANY, messages=2 * MANY, keys=MANY, verified=False
    )
    assert proxy.count("EVALSHA") == 5
    assert ada.stored == NOTE
    chat = store.conversation("c1", owner="ada")
    async with chat.turn("q") as turn:
        turn.reply("a")
    assert texts(await chat.read()) == ["q", "a"]


@pytest.mark.parametrize("step", range(4))
@pytest.mark.servers("redis", "valkey")
async def test_one_that_is_given_up_is_finished_by_the_next(
    new_store: NewStore, proxy: Proxy, ada: Owner, behind: Store, step: int
) -> None:
    """A process that dies, or a client that is told nothing and does not ask again."""
    ada.load_scripts()
    store = new_store(at=proxy, redis={"retry": None})
    _fill(behind)
    chat = behind.conversation("c1", owner="ada")
    older = chat.turn("older")
    older.__enter__()
    older.reply("a")
    for _ in range(step):
        proxy.next(Cut.NEVER, command="EVALSHA")
    proxy.next(Cut.REPLY_LOST, command="EVALSHA", times=9)
    with pytest.raises(UnavailableError, match="erase of"):
        await store.erase("ada")
    with pytest.raises(ErasedError):
        older.save()
    receipt = behind.erase("ada", verify=True)
    # The last step ended it: there was nothing left to be finished, nor to be counted.
    assert receipt.conversations == (MANY if step < 3 else 0)
    assert ada.stored == NOTE
    with pytest.raises(ErasedError):
        older.save()


@pytest.mark.servers("redis", "valkey")
async def test_one_that_is_never_finished_opens_by_itself(
    new_store: NewStore, proxy: Proxy, server: Server, ada: Owner, behind: Store
) -> None:
    ada.load_scripts()
    store = new_store(at=proxy, redis={"retry": None})
    behind.conversation("c", owner="ada").append("before")
    proxy.next(Cut.REPLY_LOST, command="EVALSHA", times=9)
    with pytest.raises(UnavailableError):
        await store.erase("ada")
    generation = ada.generation
    assert generation
    now = server.raw.time()
    left = generation.closed_until_ms - (now[0] * 1000 + now[1] // 1000)
    assert 0 < left <= 10_000
    chat = behind.conversation("c", owner="ada")
    with pytest.raises(ErasedError, match="just now"):
        chat.append("too early")
    ada.change(closed_until_ms=1)  # as if ten seconds had passed
    chat.append("later")
    assert texts(chat.read()) == ["before", "later"], "it did not say that it had erased it"
    assert behind.erase("ada").turns == 2


@pytest.mark.parametrize("step", [1, 2])
async def test_the_server_is_killed_in_the_middle(
    new_store: NewStore, own_server: OwnServer, prefix: str, step: int
) -> None:
    server = own_server(appendonly=True)
    with Proxy([("127.0.0.1", server.port)]) as proxy:
        store = new_store(at=server)
        with redis.Redis.from_url(server.url) as raw:
            _fill(Store(raw, name="test", prefix=prefix))
            for name in _scripts.names():
                raw.script_load(_scripts.load(name).source)
        chat = store.conversation("c1", owner="ada")
        older = chat.turn("older")
        await older.__aenter__()
        older.reply("a")
        client = redis.Redis.from_url(proxy.url)
        through = as_async(Store(client, name="test", prefix=prefix))
        for _ in range(step):
            proxy.next(Cut.NEVER, command="EVALSHA")
        proxy.next(Cut.REPLY_LOST, command="EVALSHA", then=server.kill)
        with pytest.raises(UnavailableError, match="erase of"):
            await through.erase("ada")
        client.close()
    await asyncio.to_thread(server.restart)
    with pytest.raises(ErasedError):
        await older.__aexit__(None, None, None)
    receipt = await store.erase("ada", verify=True)
    assert (receipt.conversations, receipt.messages) == (MANY, 2 * MANY)
    with redis.Redis.from_url(server.url) as raw:
        assert {key.rpartition(b":")[2] for key in raw.scan_iter()} == {b"generation"}
    with pytest.raises(ErasedError):
        await older.save()
    await chat.append("after")
    assert [info.id for info in await store.conversations("ada")] == ["c1"]
