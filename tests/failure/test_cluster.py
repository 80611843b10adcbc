"""A Cluster whose slots move, whose keys are half-way, and whose node dies."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import redis

from tests.failure.helping import said
from tests.invariants.raw import look
from tests.servers import found as finding
from tests.servers.cluster import start_cluster
from tests.servers.facade import as_async
from tests.servers.running import Clustered, Single
from tests.servers.setups import ONE, Setup
from turnstore import AsyncStore, Store, UnavailableError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

pytestmark = pytest.mark.drops_connections  # of nodes that moved a slot, or died


@pytest.fixture(scope="module")
def cluster() -> Iterator[Clustered]:
    """Give a Cluster of the tests' own, whose slots they may move."""
    if not finding.binaries():
        finding.lack("no server binary on this machine, and the test has to move slots")
    cluster = start_cluster(finding.binaries()[0])
    yield cluster
    cluster.close()


@pytest.fixture(params=ONE, ids=str)
async def own(cluster: Clustered, request: pytest.FixtureRequest) -> AsyncIterator[AsyncStore]:
    """Give a store on it, on both clients."""
    setup: Setup = request.param
    name = request.node.name
    if setup.client == "sync":
        client = cluster.client(setup)
        yield as_async(Store(client, name=name))
        client.close()
    else:
        client = cluster.async_client(setup)
        yield AsyncStore(client, name=name)
        await client.aclose()


class Mover:
    """Moves the slot of one key from the node that has it to another one."""

    def __init__(self, cluster: Clustered, key: str) -> None:
        self.slot = cluster.raw.keyslot(key)
        clients: list[Any] = [redis.Redis(host=host, port=port) for host, port in cluster.addresses]
        self.nodes = {client.execute_command("CLUSTER MYID").decode(): client for client in clients}
        cluster.raw.nodes_manager.initialize()
        owner = cluster.raw.get_node_from_key(key).port
        ports = {
            id_: client.connection_pool.connection_kwargs["port"]
            for id_, client in self.nodes.items()
        }
        self.source = next(id_ for id_, port in ports.items() if port == owner)
        self.target = next(id_ for id_ in ports if id_ != self.source)
        self.target_port = ports[self.target]

    def begin(self) -> None:
        """Declare the slot to be on its way: what the source lacks is asked of the target."""
        self.nodes[self.target].execute_command(
            "CLUSTER SETSLOT", self.slot, "IMPORTING", self.source
        )
        self.nodes[self.source].execute_command(
            "CLUSTER SETSLOT", self.slot, "MIGRATING", self.target
        )

    def carry(self, *keys: str) -> None:
        """Move keys."""
        self.nodes[self.source].execute_command(
            "MIGRATE", "127.0.0.1", self.target_port, "", 0, 5000, "KEYS", *keys
        )

    def end(self) -> None:
        """Give the slot to the target."""
        for id_ in (self.target, self.source, *self.nodes):
            self.nodes[id_].execute_command("CLUSTER SETSLOT", self.slot, "NODE", self.target)

    def close(self) -> None:
        for client in self.nodes.values():
            client.close()


async def test_a_slot_that_moved_is_followed(own: AsyncStore, cluster: Clustered) -> None:
    chat = own.conversation("moved")
    await chat.append("before")
    mover = Mover(cluster, chat.key)
    mover.begin()
    mover.carry(chat.key)
    mover.end()
    await chat.append("after")
    assert await said(chat) == ["before", "after"]
    assert (await chat.stat()).turns == 2
    mover.close()


async def test_while_a_slot_moves_reads_go_on_and_writes_wait(
    own: AsyncStore, cluster: Clustered
) -> None:
    """A script of two keys, one of which does not exist, is told to try again (TRYAGAIN)."""
    chat = own.conversation("asked")
    await chat.append("before", turn_id="a")
    mover = Mover(cluster, chat.key)
    mover.begin()
    assert await said(chat) == ["before"]
    with pytest.raises(UnavailableError):
        await chat.append("after", turn_id="b")
    mover.carry(chat.key)
    assert await said(chat) == ["before"], "the source says where it went (ASK)"
    with pytest.raises(UnavailableError):
        await chat.append("after", turn_id="b")
    mover.end()
    assert not (await chat.append("after", turn_id="b")).duplicate
    assert await said(chat) == ["before", "after"]
    mover.close()


async def test_writers_go_on_while_a_slot_moves(own: AsyncStore, cluster: Clustered) -> None:
    chat = own.conversation("writers")
    await chat.append("first")

    async def write(writer: int) -> None:
        for number in range(15):
            while True:
                try:
                    await chat.append(f"{writer}-{number}", turn_id=f"{writer}-{number}")
                    break
                except UnavailableError:
                    await asyncio.sleep(0.02)

    async def move() -> None:
        mover = Mover(cluster, chat.key)
        mover.begin()
        await asyncio.sleep(0.01)
        mover.carry(chat.key)
        await asyncio.sleep(0.01)
        mover.end()
        mover.close()

    await asyncio.gather(move(), *(write(writer) for writer in range(8)))
    cluster.raw.nodes_manager.initialize()
    contents = look(cluster.raw, chat.key).contents
    assert sorted(contents[1:]) == sorted(f"{w}-{n}" for w in range(8) for n in range(15))


async def test_a_plain_client_on_a_cluster_is_told_so(cluster: Clustered, own: AsyncStore) -> None:
    key = own.conversation("plain").key
    cluster.raw.nodes_manager.initialize()
    owner = cluster.raw.get_node_from_key(key).port
    port = next(port for _, port in cluster.addresses if port != owner)
    client: Any = Single(f"redis://127.0.0.1:{port}").client(ONE[0])
    store = Store(client, name="x")
    seen = set()
    for number in range(8):
        try:
            store.conversation(str(number)).append("hi")
        except UnsupportedError as error:
            assert "Cluster client" in str(error)  # noqa: PT017
            seen.add(type(error))
    assert seen, "three masters share the keys"
    client.close()


@pytest.mark.parametrize("setup", ONE, ids=str)
async def test_a_node_that_is_gone_is_unavailable(setup: Setup) -> None:
    if not finding.binaries():
        finding.lack("no server binary on this machine, and the test has to kill a node")
    cluster = start_cluster(finding.binaries()[0])
    options: dict[str, Any] = {"socket_timeout": 1, "socket_connect_timeout": 1}
    is_async = setup.client == "async"
    client = (cluster.async_client if is_async else cluster.client)(setup, **options)
    store: Any = AsyncStore(client, name="x") if is_async else as_async(Store(client, name="x"))
    try:
        chats = [store.conversation(str(number)) for number in range(12)]
        for chat in chats:
            await chat.append("before")
        host, port = cluster.addresses[2]
        lost = {chat.key for chat in chats if cluster.raw.get_node_from_key(chat.key).port == port}
        with redis.Redis(host=host, port=port) as node:
            node.shutdown(nosave=True)
        assert 0 < len(lost) < 12
        for chat in chats:
            if chat.key in lost:
                with pytest.raises(UnavailableError) as caught:
                    await chat.append("after", turn_id="after")
                assert caught.value.outcome_unknown, "a Cluster client may have sent it before"
    finally:
        await client.aclose() if is_async else client.close()
        cluster.close()
