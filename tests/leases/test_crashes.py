"""A process dies: the one that holds the lease, or one that waits for it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.leases.helping import said
from tests.store.talk import texts
from tests.waiting import wait_until_async

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.leases.line import Queue
    from tests.servers.running import Server
    from turnstore import AsyncConversation

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis", "valkey", "cluster")]

_OTHER = """
import sys
from datetime import timedelta
from turnstore import Lease, Store

url, cluster, prefix, ttl_ms = sys.argv[1:]
store = Store.from_url(url, cluster=cluster == "1", name="test", prefix=prefix)
lease = Lease(ttl=timedelta(milliseconds=int(ttl_ms)), wait=timedelta(minutes=5))
with store.conversation("ada").turn("doomed", on_conflict="serialize", lease=lease) as turn:
    turn.reply("never saved")
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(server: Server, prefix: str) -> Iterator[Callable[[int], subprocess.Popen[str]]]:
    """Start processes that take a turn and never end it."""
    if not server.addresses:
        pytest.skip("another process cannot get there")
    host, port = server.addresses[0]
    cluster = "1" if len(server.addresses) > 1 else "0"
    started: list[subprocess.Popen[str]] = []

    def start(ttl_ms: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", _OTHER, f"redis://{host}:{port}", cluster, prefix]
        process = subprocess.Popen(
            [*command, str(ttl_ms)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


async def test_the_owner_dies(
    chat: AsyncConversation, queue: Queue, other: Callable[[int], subprocess.Popen[str]]
) -> None:
    owner = other(1500)
    await wait_until_async(lambda: queue.line.held, seconds=60)
    until_ms = queue.line.until_ms
    await wait_until_async(lambda: queue.line.until_ms > until_ms, seconds=60)
    waiting = asyncio.create_task(said(chat, "next"))
    await wait_until_async(lambda: queue.waiting == 1)
    assert queue.line.held
    owner.kill()
    assert await waiting == []
    assert texts(await chat.read()) == ["next", "re next"]


async def test_a_waiter_dies(
    chat: AsyncConversation, queue: Queue, other: Callable[[int], subprocess.Popen[str]]
) -> None:
    async with chat.turn("first", on_conflict="serialize") as turn:
        turn.reply("re first")
        waiter = other(60_000)
        await wait_until_async(lambda: queue.waiting == 1, seconds=60)
        dead, _ = queue.line.waiting[0]
        waiting = asyncio.create_task(said(chat, "third"))
        await wait_until_async(lambda: queue.waiting == 2)
        waiter.kill()
        waiter.wait()
    queue.forget_waiters()  # its place is kept for five seconds, which need not pass here
    assert await waiting == ["first", "re first"]
    assert dead not in [token for token, _ in queue.line.waiting]
    assert texts(await chat.read()) == ["first", "re first", "third", "re third"]
