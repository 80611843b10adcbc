"""The proxy: each fault strikes where it says."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
import redis

from tests.servers.proxy import Cut
from tests.servers.resp import command_name, frame_end
from tests.servers.setups import Setup
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.proxy import Proxy
    from tests.servers.running import Client, Server

pytestmark = pytest.mark.servers("redis")


@pytest.fixture(params=[2, 3])
def client(server: Server, proxy: Proxy, request: pytest.FixtureRequest) -> Iterator[Client]:
    """Give a client that goes through the proxy and sends each command once."""
    client = server.client(Setup("sync", request.param, decode=False), proxy, retry=None)
    yield client
    client.close()


@pytest.fixture
def key(prefix: str) -> str:
    return f"{prefix}:key"


@pytest.mark.parametrize(
    "cut_and_runs",
    [(Cut.BEFORE, 0), (Cut.IN_COMMAND, 0), (Cut.REPLY_LOST, 1), (Cut.IN_REPLY, 1)],
)
def test_a_cut_strikes_where_it_says(
    client: Client, proxy: Proxy, server: Server, key: str, cut_and_runs: tuple[Cut, int]
) -> None:
    cut, ran = cut_and_runs
    server.raw.set(key, 0, px=60_000)
    proxy.next(cut, command="INCRBY")
    with pytest.raises(redis.ConnectionError):
        client.incr(key)
    assert int(server.raw.get(key)) == ran
    assert client.incr(key) == ran + 1, "the next command works"
    assert proxy.count("INCRBY") == 2


def test_a_fault_strikes_as_often_as_it_says(client: Client, proxy: Proxy) -> None:
    proxy.next(Cut.BEFORE, times=2)
    for _ in range(2):
        with pytest.raises(redis.ConnectionError):
            client.ping()
    assert client.ping()


@pytest.mark.parametrize("after_bytes", [0, 1, 7, 10_000])
def test_a_reply_ends_after_so_many_bytes(client: Client, proxy: Proxy, after_bytes: int) -> None:
    proxy.next(Cut.IN_REPLY, command="ECHO", after_bytes=after_bytes)
    with pytest.raises(redis.ConnectionError):
        client.echo("a text of some length")
    assert client.echo("again") == b"again"


def test_one_command_of_a_pipeline_is_struck(
    client: Client, proxy: Proxy, server: Server, prefix: str
) -> None:
    key = f"{prefix}:list"
    proxy.next(Cut.REPLY_LOST, command="PEXPIRE")
    pipeline = client.pipeline(transaction=False)
    with pytest.raises(redis.ConnectionError):
        pipeline.rpush(key, "a").rpush(key, "b").pexpire(key, 60_000).execute()
    assert server.raw.lrange(key, 0, -1) == [b"a", b"b"]


def test_a_reply_is_held_back(client: Client, proxy: Proxy) -> None:
    proxy.next(Cut.NEVER, command="PING", delay_seconds=0.05)
    start = time.monotonic()
    assert client.ping()
    assert time.monotonic() - start >= 0.05


def test_a_proxy_that_is_down_takes_nobody(client: Client, proxy: Proxy) -> None:
    assert client.ping()
    proxy.go_down()
    with pytest.raises(redis.ConnectionError):
        client.ping()
    proxy.come_up()
    assert client.ping()


def test_large_values_pass_whole(client: Client, server: Server, prefix: str) -> None:
    value = bytes(range(256)) * 16_384  # 4 MiB, with line ends inside
    client.set(f"{prefix}:big", value, px=60_000)
    assert client.get(f"{prefix}:big") == value
    assert server.raw.get(f"{prefix}:big") == value


async def test_an_async_client_goes_through_it_too(
    server: Server, proxy: Proxy, prefix: str
) -> None:
    client = server.async_client(Setup("async", 3, decode=False), proxy, retry=None)
    proxy.next(Cut.REPLY_LOST, command="INCRBY")
    with pytest.raises(redis.ConnectionError):
        await client.incr(f"{prefix}:n")
    assert await client.incr(f"{prefix}:n") == 2
    await client.pexpire(f"{prefix}:n", 60_000)
    await client.aclose()


@pytest.mark.servers("cluster")
def test_a_cluster_is_reached_through_it_alone(server: Server, proxy: Proxy, prefix: str) -> None:
    client = server.client(Setup("sync", 2, decode=True), proxy)
    proxy.next(Cut.REPLY_LOST, command="SET")
    for number in range(12):
        client.set(f"{prefix}:{number}", number, px=60_000)
    assert len(server.lives(prefix)) == 12
    assert proxy.count("SET") == 13, "twelve, and the one whose reply was lost again"
    client.close()


def test_what_was_sent_can_be_read_and_forgotten(client: Client, proxy: Proxy) -> None:
    client.ping()
    wait_until(lambda: proxy.seen)
    assert proxy.seen == ["PING"]
    proxy.clear()
    assert proxy.seen == []


@pytest.mark.parametrize(
    "frame",
    [
        b"+OK\r\n",
        b"-ERR no\r\n",
        b":1\r\n",
        b"$-1\r\n",
        b"$0\r\n\r\n",
        b"$4\r\n\r\n\r\n\r\n",
        b"*-1\r\n",
        b"*0\r\n",
        b"*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
        b"_\r\n",
        b"#t\r\n",
        b",1.5\r\n",
        b"(12345678901234567890\r\n",
        b"!5\r\nERR x\r\n",
        b"=7\r\ntxt:abc\r\n",
        b"%1\r\n+a\r\n*1\r\n:1\r\n",
        b"~2\r\n+a\r\n+b\r\n",
        b"|1\r\n+ttl\r\n:1\r\n+OK\r\n",
        b">2\r\n+message\r\n+a\r\n",
    ],
)
def test_the_end_of_each_kind_of_frame_is_found(frame: bytes) -> None:
    assert frame_end(frame + b"+next\r\n") == len(frame)
    assert [frame_end(frame[:size]) for size in range(len(frame))] == [None] * len(frame)


def test_a_command_has_a_name() -> None:
    assert command_name(b"*2\r\n$4\r\nincr\r\n$1\r\na\r\n") == "INCR"
