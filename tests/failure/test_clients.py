"""What the caller's client may be, and what may happen to it: parsers, forks, cancelling."""

from __future__ import annotations

import asyncio
import multiprocessing
from typing import TYPE_CHECKING

import pytest
import redis
import redis._parsers
import redis.asyncio

from tests.failure.helping import load_scripts, said
from tests.invariants.raw import look
from tests.servers.proxy import Cut
from tests.waiting import wait_until_async
from turnstore import AsyncStore, Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from tests.servers.setups import Setup
    from turnstore import AsyncConversation

PARSERS = {
    ("sync", 2): redis._parsers._RESP2Parser,
    ("sync", 3): redis._parsers._RESP3Parser,
    ("async", 2): redis._parsers._AsyncRESP2Parser,
    ("async", 3): redis._parsers._AsyncRESP3Parser,
}
SINGLE = pytest.mark.servers("redis", "valkey")


@SINGLE
async def test_without_hiredis_everything_is_read_alike(new_store: NewStore, setup: Setup) -> None:
    parser = PARSERS[setup.client, setup.protocol]
    chat = new_store(redis={"parser_class": parser}).conversation("ada")
    text = "line\r\nline $5 *3 é \U0001f600 \x00"
    await chat.append([text, "b"], turn_id="a")
    assert (await chat.append("again", turn_id="a")).duplicate
    assert await said(chat) == [text, "b"]
    assert (await chat.stat()).messages == 2
    assert [turn.id for turn in await chat.turns()] == ["a"]
    assert [turn.id for turn in await chat.rewind()] == ["a"]
    assert await said(chat) == []


@SINGLE
@pytest.mark.one_setup
@pytest.mark.parametrize("cut", [Cut.IN_REPLY, Cut.REPLY_LOST], ids=str)
async def test_without_hiredis_a_cut_reply_is_asked_again(
    new_store: NewStore, setup: Setup, proxy: Proxy, server: Server, cut: Cut
) -> None:
    parser = PARSERS[setup.client, setup.protocol]
    chat = new_store(at=proxy, redis={"parser_class": parser}).conversation("ada")
    await chat.append("a")
    proxy.next(cut, command="EVALSHA")
    await chat.append("b")
    proxy.next(cut, command="LRANGE")
    assert await said(chat) == ["a", "b"]
    assert look(server.raw, chat.key).contents == ["a", "b"]


def _append(store: Store, name: str) -> None:
    for number in range(20):
        store.conversation("ada").append(f"{name}-{number}")


@SINGLE
@pytest.mark.one_setup
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # a fork beside the threads of tests
def test_a_store_goes_on_in_forked_processes(
    make_store: Callable[..., Store], server: Server
) -> None:
    store = make_store()
    chat = store.conversation("ada")
    chat.append("parent before")  # the connection is open when the process forks
    context = multiprocessing.get_context("fork")
    children = [
        context.Process(target=_append, args=(store, f"child{number}")) for number in range(3)
    ]
    for child in children:
        child.start()
    _append(store, "parent")
    for child in children:
        child.join(30)
        assert child.exitcode == 0
    held = look(server.raw, chat.key).contents
    assert len(held) == len(set(held)) == 1 + 4 * 20
    assert len(chat.read()) == 81


# A cancellation in the moment in which redis-py 8 sends is lost on Python 3.11, where
# asyncio.wait_for swallows it; so these wait until the command is on its way.


@pytest.fixture
async def chat(
    server: Server, setup: Setup, prefix: str, proxy: Proxy
) -> AsyncIterator[AsyncConversation]:
    """Give a conversation through the proxy, for the asyncio client alone."""
    if setup.client == "sync":
        pytest.skip("a thread cannot be cancelled")
    client = server.async_client(setup, proxy)
    chat = AsyncStore(client, name="test", prefix=prefix).conversation("ada")
    load_scripts(server, chat.key)
    await chat.append("before")
    proxy.clear()
    yield chat
    await client.aclose()


@pytest.mark.servers("redis", "valkey", "cluster")
@pytest.mark.one_setup
@pytest.mark.drops_connections
async def test_a_cancelled_append_does_not_disturb_the_next(
    chat: AsyncConversation, server: Server, proxy: Proxy
) -> None:
    """The reply of a cancelled command is not taken for that of the next one."""
    for number in range(5):
        proxy.next(Cut.NEVER, command="EVALSHA", delay_seconds=0.05)
        task = asyncio.create_task(chat.append("cancelled", turn_id=f"c{number}"))
        await wait_until_async(lambda: proxy.count("EVALSHA"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        proxy.clear()
        revision = (await chat.read()).revision
        stat = await chat.stat()
        assert stat.turns == stat.messages
        assert revision in (stat.revision, f"{number + 1}-{revision.partition('-')[2]}")
        again = await chat.append("cancelled", turn_id=f"c{number}")
        assert again.revision == f"{number + 2}-c{number}"
    assert len(look(server.raw, chat.key).pieces) == 6


@pytest.mark.servers("redis", "valkey", "cluster")
@pytest.mark.one_setup
@pytest.mark.drops_connections
async def test_a_save_that_has_begun_is_finished_before_a_cancellation_goes_on(
    chat: AsyncConversation, server: Server, proxy: Proxy
) -> None:
    async def talk(name: str) -> None:
        async with chat.turn("hi", turn_id=name) as turn:
            turn.reply("hello")

    for number in range(5):
        proxy.next(Cut.NEVER, command="EVALSHA", delay_seconds=0.05)
        task = asyncio.create_task(talk(f"t{number}"))
        await wait_until_async(lambda: proxy.count("EVALSHA"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        proxy.clear()
        assert len(look(server.raw, chat.key).pieces) == number + 2


@pytest.mark.servers("redis", "valkey")
@pytest.mark.one_setup
@pytest.mark.drops_connections
async def test_a_turn_that_is_cancelled_before_its_save_saves_nothing(
    chat: AsyncConversation, server: Server
) -> None:
    entered = asyncio.Event()

    async def talk() -> None:
        async with chat.turn("hi") as turn:
            turn.reply("half an answer")
            entered.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(talk())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert look(server.raw, chat.key).contents == ["before"]
