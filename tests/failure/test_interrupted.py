"""A signal handler raises in the middle of a command: nobody is given the reply of another."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.asyncio
from redis.asyncio.connection import AbstractConnection as AsyncConnection
from redis.connection import AbstractConnection

from tests.servers.facade import as_async
from tests.store.talk import texts
from turnstore import AsyncStore, SaveError, Store, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.conftest import NewStore
    from tests.servers.running import Server

pytestmark = [
    pytest.mark.one_setup,
    pytest.mark.servers("redis-7", "redis-8", "valkey", "cluster"),
]


class TimeIsUp(Exception):  # noqa: N818 - as the time limits of jobs are named
    """What a handler raises."""


async def _say(store: AsyncStore, owner: str) -> None:
    async with store.conversation("c", owner=owner).turn("q") as turn:
        turn.reply("a")


WORK: dict[str, Callable[[AsyncStore, str], Awaitable[object]]] = {
    "read": lambda store, owner: store.conversation("c", owner=owner).read(),
    "turn": _say,
    "list": lambda store, owner: store.conversations(owner),
    "erase": lambda store, owner: store.erase(owner, verify=True),
}


class Interruption:
    """Raises after a command was sent, and before its reply is read.

    Attributes:
        left: After how many sendings it is.
        kind: What is raised.
        task: The only one whose sendings count; None is all.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]) -> None:
        self.left = 0
        self.kind = kind
        self.task: asyncio.Task[Any] | None = None
        real: Any = AbstractConnection.send_packed_command
        areal: Any = AsyncConnection.send_packed_command

        def send(connection: Any, *args: Any, **options: Any) -> None:
            real(connection, *args, **options)
            self._count()

        async def asend(connection: Any, *args: Any, **options: Any) -> None:
            await areal(connection, *args, **options)
            if self.task in (None, asyncio.current_task()):
                self._count()

        monkeypatch.setattr(AbstractConnection, "send_packed_command", send)
        monkeypatch.setattr(AsyncConnection, "send_packed_command", asend)

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise self.kind


@pytest.mark.parametrize("kind", [TimeIsUp, TimeoutError, OSError])
@pytest.mark.parametrize("name", WORK)
async def test_what_was_sent_is_answered_to_nobody_else(
    new_store: NewStore, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException], name: str
) -> None:
    store = new_store(redis={"retry": None})
    await _check(store, Interruption(monkeypatch, kind), name)


@pytest.mark.parametrize("name", WORK)
async def test_nor_where_the_process_was_to_end(
    make_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    await _check(as_async(make_store()), Interruption(monkeypatch, KeyboardInterrupt), name)


async def test_the_commands_of_other_tasks_are_left_alone(
    make_async_store: Callable[..., AsyncStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_async_store()
    await store.ping()
    interruption = Interruption(monkeypatch, TimeIsUp)

    async def write(writer: int) -> None:
        for number in range(200):
            await store.conversation(f"c{writer}").append(f"{number}")

    async def be_interrupted() -> None:
        interruption.task = asyncio.current_task()
        for _ in range(100):
            interruption.left = 1
            with pytest.raises(TimeIsUp):
                await store.conversation("c").read()

    await asyncio.gather(be_interrupted(), *(write(writer) for writer in range(6)))


async def _check(store: AsyncStore, interruption: Interruption, name: str) -> None:
    bob = store.conversation("c", owner="bob")
    await bob.append("of bob")
    interrupted = 0
    for nth in range(1, 12):
        owner = f"ada {nth}"
        await _say(store, owner)
        interruption.left = nth
        try:
            await WORK[name](store, owner)
        except (interruption.kind, SaveError, UnavailableError):
            interrupted += 1
        interruption.left = 0
        for _ in range(3):
            assert texts(await bob.read()) == ["of bob"], f"after an interruption in sending {nth}"
    assert interrupted, "nothing was interrupted"


@pytest.mark.servers("redis-7", "redis-8", first=True)
@pytest.mark.parametrize("kind", [TimeIsUp, TimeoutError])
@pytest.mark.parametrize(
    "client",
    [
        lambda url: redis.Redis.from_url(url, single_connection_client=True),
        lambda url: redis.Redis(connection_pool=redis.BlockingConnectionPool.from_url(url)),
        lambda url: redis.asyncio.Redis.from_url(url, single_connection_client=True),
        lambda url: redis.asyncio.Redis(
            connection_pool=redis.asyncio.BlockingConnectionPool.from_url(url)
        ),
    ],
    ids=["single", "blocking", "async single", "async blocking"],
)
async def test_clients_of_other_kinds(
    server: Server,
    prefix: str,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[BaseException],
    client: Callable[[str], Any],
) -> None:
    host, port = server.addresses[0]
    made = client(f"redis://{host}:{port}")
    is_async = isinstance(made, redis.asyncio.Redis)
    store = (
        AsyncStore(made, name="test", prefix=prefix)
        if is_async
        else as_async(Store(made, name="test", prefix=prefix))
    )
    await _check(store, Interruption(monkeypatch, kind), "turn")
    if is_async:
        await made.aclose()
        await made.connection_pool.disconnect()  # which is ours to close where we made it
    else:
        made.close()
        made.connection_pool.disconnect()
