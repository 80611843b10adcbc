"""A signal handler raises in the middle of a command: nobody is given the reply of another."""

from __future__ import annotations

import asyncio
import gc
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.asyncio
from redis.asyncio.connection import AbstractConnection as AsyncConnection
from redis.asyncio.connection import ConnectionPool as AsyncConnectionPool
from redis.connection import AbstractConnection, BlockingConnectionPool, ConnectionPool

from tests.servers.facade import as_async
from tests.store.talk import texts
from turnstore import AsyncStore, ConflictError, SaveError, Store, UnavailableError

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


class Broken(RuntimeError):  # noqa: N818 - as above
    """What a handler raises that fails itself."""


class Halt(BaseException):
    """What a handler raises so that nobody takes it for an error."""


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


@pytest.mark.servers("redis-8", "cluster")
@pytest.mark.parametrize("kind", [Broken, Halt])
async def test_whatever_is_raised(
    new_store: NewStore, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    await _check(new_store(redis={"retry": None}), Interruption(monkeypatch, kind), "turn")


@pytest.mark.servers("redis-8", "cluster")
@pytest.mark.parametrize("kind", [Broken, Halt])
def test_while_a_connection_is_made(
    redis_client: Any,
    make_store: Callable[..., Store],
    monkeypatch: pytest.MonkeyPatch,
    kind: type[BaseException],
) -> None:
    chat = make_store().conversation("c")
    chat.append("hi")
    interruption = Interruption(monkeypatch, kind)
    for nth in (1, 2):
        if isinstance(redis_client, redis.RedisCluster):
            cluster: Any = redis_client  # redis-py leaves its methods without types
            cluster.disconnect_connection_pools()
        else:
            redis_client.connection_pool.disconnect()
        interruption.left = nth
        with pytest.raises(kind):
            chat.read()
        assert [texts(chat.read()) for _ in range(3)] == [["hi"]] * 3


class Meanwhile:
    """Lets another read as soon as a connection was given back that was interrupted.

    Attributes:
        interruption: After it, the next connection that is given back is followed by a reading.
        read: What another thread, or task, reads then.
        found: What it found.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]) -> None:
        self.interruption = Interruption(monkeypatch, kind)
        self.read: Callable[[], Any] | None = None
        self.found: Any = None
        pools = (ConnectionPool, BlockingConnectionPool)
        for pool in [one for one in pools if "release" in vars(one)]:
            monkeypatch.setattr(pool, "release", self.follow(pool.release))
        arelease = self.afollow(AsyncConnectionPool.release)
        monkeypatch.setattr(AsyncConnectionPool, "release", arelease)

    def check(self, store: Store, owner: str = "o") -> None:
        """Have a command and a pipeline be interrupted, and a thread read just then."""
        mine, other = (store.conversation(name, owner=owner) for name in ("mine", "other"))
        mine.append("mine")
        other.append("other")
        for begin in (mine.read, mine.turn("q").__enter__):
            self.read, self.interruption.left = other.read, 1
            with pytest.raises(self.interruption.kind):
                begin()
            assert texts(self.found.result()) == ["other"]
            assert texts(other.read()) == ["other"]

    def follow(self, release: Callable[..., Any]) -> Callable[..., Any]:
        def followed(*args: Any) -> None:
            release(*args)
            read = self._due()
            if read is not None:
                with ThreadPoolExecutor(1) as threads:
                    self.found = threads.submit(read)

        return followed

    def afollow(self, release: Callable[..., Any]) -> Callable[..., Any]:
        async def followed(*args: Any) -> None:
            await release(*args)
            read = self._due()
            if read is not None:
                self.found = asyncio.create_task(read())
                await asyncio.wait({self.found})

        return followed

    def _due(self) -> Callable[[], Any] | None:
        if self.interruption.left or self.read is None:
            return None
        read, self.read = self.read, None
        return read


SHARED: dict[str, Callable[[str], Any]] = {
    "default": redis.Redis.from_url,
    "blocking": lambda url: redis.Redis(connection_pool=BlockingConnectionPool.from_url(url)),
    "single": lambda url: redis.Redis.from_url(url, single_connection_client=True),
}


@pytest.mark.servers("redis-8")
@pytest.mark.parametrize("kind", [TimeIsUp, KeyboardInterrupt])
@pytest.mark.parametrize("shared", SHARED)
def test_a_thread_that_takes_the_connection_at_once(
    server: Server,
    prefix: str,
    monkeypatch: pytest.MonkeyPatch,
    shared: str,
    kind: type[BaseException],
) -> None:
    meanwhile = Meanwhile(monkeypatch, kind)
    host, port = server.addresses[0]
    client = SHARED[shared](f"redis://{host}:{port}")
    if shared == "single":
        lock = client.single_connection_lock
        client.single_connection_lock = SimpleNamespace(
            acquire=lock.acquire, release=meanwhile.follow(lock.release)
        )
    meanwhile.check(Store(client, name="test", prefix=prefix))
    client.close()
    client.connection_pool.disconnect()


@pytest.mark.servers("redis-8")
@pytest.mark.parametrize("shared", ["default", "single"])
def test_an_interruption_of_the_closing(
    server: Server, prefix: str, monkeypatch: pytest.MonkeyPatch, shared: str
) -> None:
    host, port = server.addresses[0]
    client = SHARED[shared](f"redis://{host}:{port}")
    store = Store(client, name="test", prefix=prefix)
    mine, other = store.conversation("mine"), store.conversation("other")
    mine.append("mine")
    other.append("other")
    left = 0
    disconnect: Any = AbstractConnection.disconnect

    def interrupted(connection: Any, *args: Any, **options: Any) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            raise TimeIsUp
        disconnect(connection, *args, **options)

    interruption = Interruption(monkeypatch, TimeIsUp)
    monkeypatch.setattr(AbstractConnection, "disconnect", interrupted)
    left = interruption.left = 1
    with pytest.raises(TimeIsUp):
        mine.read()
    while left > 0:
        with pytest.raises(TimeIsUp):
            other.read()
    assert [texts(other.read()) for _ in range(2)] == [["other"]] * 2
    client.close()
    client.connection_pool.disconnect()


@pytest.mark.servers("cluster")
@pytest.mark.parametrize("kind", [TimeIsUp, KeyboardInterrupt])
def test_a_thread_that_takes_the_connection_to_a_node_at_once(
    server: Server, prefix: str, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    meanwhile = Meanwhile(monkeypatch, kind)
    host, port = server.addresses[0]
    client: Any = redis.RedisCluster(host=host, port=port)
    store = Store(client, name="test", prefix=prefix)
    meanwhile.check(store, "known")
    for node in client.get_nodes():  # as redis-py does where one was lost
        node.redis_connection.close()
        node.redis_connection = None
    meanwhile.check(store, "met anew")
    client.close()


@pytest.mark.servers("redis-8")
async def test_a_task_that_takes_the_connection_at_once(
    make_async_store: Callable[..., AsyncStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile = Meanwhile(monkeypatch, TimeIsUp)
    store = make_async_store()
    mine, other = store.conversation("mine"), store.conversation("other")
    await mine.append("mine")
    await other.append("other")
    for begin in (mine.read, mine.turn("q").__aenter__):
        meanwhile.read, meanwhile.interruption.left = other.read, 1
        with pytest.raises(TimeIsUp):
            await begin()
        assert texts(await meanwhile.found) == ["other"]


def _count_closed(monkeypatch: pytest.MonkeyPatch, kind: Any) -> list[object]:
    gc.collect()  # or it would count those of tests before
    closed: list[object] = []
    disconnect = kind.disconnect

    def counted(connection: object, *args: Any, **options: Any) -> Any:
        closed.append(connection)
        return disconnect(connection, *args, **options)

    monkeypatch.setattr(kind, "disconnect", counted)
    return closed


@pytest.mark.servers("redis-8", "cluster")
def test_an_error_that_is_handled_further_up_closes_nothing(
    make_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = make_store().conversation("c")
    chat.append("before")
    closed = _count_closed(monkeypatch, AbstractConnection)
    try:
        int("no number")
    except ValueError:
        chat.append("after")
        with chat.turn("q") as turn:
            turn.reply("a")
        with pytest.raises(ConflictError):  # which is an answer
            chat.append("late", expected_revision="1-a")
        assert len(chat.read()) == 4
        assert not closed


@pytest.mark.servers("redis-8")
async def test_nor_with_asyncio(
    make_async_store: Callable[..., AsyncStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = make_async_store().conversation("c")
    await chat.append("before")
    closed = _count_closed(monkeypatch, AsyncConnection)
    try:
        int("no number")
    except ValueError:
        await chat.append("after")
        async with chat.turn("q") as turn:
            turn.reply("a")
        with pytest.raises(ConflictError):  # which is an answer
            await chat.append("late", expected_revision="1-a")
        assert len(await chat.read()) == 4
        assert not closed


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
