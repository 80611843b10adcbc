"""Many workers at once: each turn sees all before it. And tasks that are cancelled."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.leases.helping import nobody_renews, said
from tests.leases.line import Queue
from tests.servers.facade import as_async
from tests.store.talk import texts
from tests.waiting import wait_until, wait_until_async
from turnstore import AsyncStore, Lease, Store, Window

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import NewStore
    from tests.servers.running import Server
    from tests.servers.setups import Setup
    from turnstore import AsyncConversation

pytestmark = pytest.mark.one_setup

WORKERS = 16
EACH = 4
LEASE = Lease(wait=timedelta(minutes=5))


async def work(chat: AsyncConversation, worker: int) -> None:
    """Take turns; each notes what it saw."""
    for number in range(EACH):
        options: dict[str, Any] = {"on_conflict": "serialize", "lease": LEASE, "window": Window()}
        async with chat.turn(f"{worker}-{number}", **options) as turn:
            turn.meta["saw"] = texts(turn.history)
            turn.meta["fence"] = turn.fence
            turn.reply(f"re {worker}-{number}")


async def check_serial(chat: AsyncConversation, queue: Queue) -> None:
    """Each turn saw all turns before it, and the fence grew."""
    turns = (await chat.read(Window())).turns
    assert len(turns) == WORKERS * EACH
    before: list[str] = []
    for turn in turns:
        assert turn.meta["saw"] == before
        before += texts(turn.messages)
    for worker in range(WORKERS):
        asked = [text for text in before if text.startswith(f"{worker}-")]
        assert asked == [f"{worker}-{number}" for number in range(EACH)]
    fences = [turn.meta["fence"] for turn in turns]
    assert fences == sorted(set(fences))
    assert queue.line.waiting == ()
    assert not queue.line.held


async def test_sixteen_workers_go_one_after_the_other(
    new_store: NewStore, chat: AsyncConversation, queue: Queue
) -> None:
    stores = [new_store() for _ in range(4)]
    chats = [stores[number % 4].conversation("ada") for number in range(WORKERS)]
    await asyncio.gather(*(work(one, number) for number, one in enumerate(chats)))
    await check_serial(chat, queue)


async def test_threads_and_tasks_go_one_after_the_other(
    server: Server, setup: Setup, prefix: str
) -> None:
    if setup.client == "sync":
        pytest.skip("both clients are used in one run")
    client, async_client = server.client(setup), server.async_client(setup)
    options: Any = {"name": "test", "prefix": prefix}
    threads = as_async(Store(client, **options)).conversation("ada")
    tasks = AsyncStore(async_client, **options).conversation("ada")
    chats = [(threads, tasks)[number % 2] for number in range(WORKERS)]
    await asyncio.gather(*(work(one, number) for number, one in enumerate(chats)))
    await check_serial(tasks, Queue(server, tasks))
    client.close()
    await async_client.aclose()


# A thread cannot be cancelled.


@pytest.fixture
def tasks(make_async_store: Callable[..., AsyncStore]) -> AsyncConversation:
    """Give a conversation of the asyncio store."""
    return make_async_store().conversation("ada")


async def test_a_cancelled_waiter_gives_up_its_place(
    tasks: AsyncConversation, server: Server
) -> None:
    queue = Queue(server, tasks)
    async with tasks.turn("first", on_conflict="serialize") as turn:
        waiters = []
        for number in range(3):
            waiters.append(asyncio.create_task(said(tasks, str(number))))
            await wait_until_async(lambda: queue.waiting == len(waiters))
        waiters[1].cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiters[1]
        assert queue.waiting == 2
        turn.reply("re first")
    assert await waiters[0] == ["first", "re first"]
    assert await waiters[2] == ["first", "re first", "0", "re 0"]
    await wait_until_async(nobody_renews)


async def test_a_cancelled_owner_gives_the_lease_back(
    tasks: AsyncConversation, server: Server
) -> None:
    queue = Queue(server, tasks)
    began = asyncio.Event()

    async def never_ends() -> None:
        async with tasks.turn("doomed", on_conflict="serialize") as turn:
            turn.reply("half")
            began.set()
            await asyncio.Event().wait()

    owner = asyncio.create_task(never_ends())
    await began.wait()
    waiter = asyncio.create_task(said(tasks, "next"))
    await wait_until_async(lambda: queue.waiting == 1)
    owner.cancel()
    with pytest.raises(asyncio.CancelledError):
        await owner
    assert await waiter == []
    await wait_until_async(nobody_renews)


async def test_a_cancellation_at_any_moment_leaves_nobody_behind(
    tasks: AsyncConversation, server: Server
) -> None:
    queue = Queue(server, tasks)
    for ticks in range(0, 60, 2):
        pair = [asyncio.create_task(said(tasks, f"{ticks}-{one}")) for one in range(2)]
        for _ in range(ticks):
            await asyncio.sleep(0)
        pair[ticks // 2 % 2].cancel()
        await asyncio.gather(*pair, return_exceptions=True)
        assert queue.waiting == 0
        assert not queue.line.held
    stored = texts(await tasks.read(Window()))
    assert stored[1::2] == [f"re {asked}" for asked in stored[::2]]
    await wait_until_async(nobody_renews)


async def test_a_turn_that_nobody_has_any_more_is_given_back(
    tasks: AsyncConversation, server: Server
) -> None:
    queue = Queue(server, tasks)
    turn = tasks.turn("q", on_conflict="serialize")
    await turn.__aenter__()
    assert queue.line.held
    del turn
    await wait_until_async(lambda: not queue.line.held)
    await wait_until_async(nobody_renews)


async def test_a_generator_that_is_left_gives_the_lease_back(
    chat: AsyncConversation, queue: Queue
) -> None:
    async def chunks() -> Any:
        async with chat.turn("q", on_conflict="serialize") as turn:
            for chunk in ("a", "b"):
                yield chunk
            turn.reply("ab")

    left = chunks()
    assert await anext(left) == "a"
    assert queue.line.held
    await left.aclose()
    await wait_until_async(lambda: not queue.line.held)
    assert await chat.read() == []


def test_a_sync_generator_that_is_left_gives_the_lease_back(
    make_store: Callable[..., Store], server: Server
) -> None:
    chat = make_store().conversation("ada")
    queue = Queue(server, chat)

    def chunks() -> Any:
        with chat.turn("q", on_conflict="serialize") as turn:
            yield from ("a", "b")
            turn.reply("ab")

    left = chunks()
    assert next(left) == "a"
    assert queue.line.held
    del left
    wait_until(lambda: not queue.line.held)
    wait_until(nobody_renews)


def is_renewed(queue: Queue, until_ms: int) -> bool:
    return queue.line.until_ms > until_ms


def test_a_stream_that_is_left_is_waited_for_no_more(
    make_store: Callable[..., Store], server: Server
) -> None:
    """The block goes on, with tools or another call: it keeps its lease."""
    chat = make_store().conversation("ada")
    queue = Queue(server, chat)
    lease = Lease(ttl=timedelta(seconds=1))
    with chat.turn("q", on_conflict="serialize", lease=lease) as turn:
        for _ in range(2):
            for chunk in turn.follow(iter(["a", "b"])):
                assert chunk == "a"
                break
            for _ in range(2):
                wait_until(partial(is_renewed, queue, queue.line.until_ms))
        turn.reply("ab")
    assert turn.saved is not None


async def test_an_async_stream_that_is_left_is_waited_for_no_more(
    tasks: AsyncConversation, server: Server
) -> None:
    queue = Queue(server, tasks)
    lease = Lease(ttl=timedelta(seconds=1))
    async with tasks.turn("q", on_conflict="serialize", lease=lease) as turn:
        for _ in range(2):
            stream: Any = turn.follow(aiter_of("a", "b"))
            assert await anext(stream) == "a"
            await stream.aclose()
            for _ in range(2):
                await wait_until_async(partial(is_renewed, queue, queue.line.until_ms))
        turn.reply("ab")
    assert turn.saved is not None


async def aiter_of(*chunks: str) -> Any:
    for chunk in chunks:
        yield chunk
