"""The server cannot be reached, is too slow, or is not ready: what is known, and what is not."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis

from tests.failure.helping import load_scripts, said
from tests.invariants.raw import look
from tests.servers.proxy import Cut
from tests.waiting import wait_until
from turnstore import DeniedError, SaveError, UnavailableError

if TYPE_CHECKING:
    from tests.conftest import NewStore, OwnServer
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server

pytestmark = pytest.mark.one_setup

ONCE: dict[str, Any] = {"retry": None, "retry_on_error": []}
IMPATIENT: dict[str, Any] = {**ONCE, "socket_timeout": 0.1}
SINGLE = pytest.mark.servers("redis", "valkey")


@SINGLE
@pytest.mark.parametrize("cut", [cut for cut in Cut if cut is not Cut.NEVER], ids=str)
async def test_a_lost_answer_leaves_the_outcome_open(
    new_store: NewStore, proxy: Proxy, server: Server, cut: Cut
) -> None:
    """Without redis-py's retry, the caller repeats the append with the same turn id."""
    chat = new_store(at=proxy, redis=ONCE).conversation("ada")
    load_scripts(server, chat.key)
    proxy.next(cut, command="EVALSHA")
    with pytest.raises(UnavailableError, match="same turn id") as caught:
        await chat.append("hi", turn_id="a")
    assert caught.value.outcome_unknown
    assert isinstance(caught.value.__cause__, redis.RedisError | OSError)
    again = await chat.append("hi", turn_id="a")
    assert again.duplicate == (cut in (Cut.REPLY_LOST, Cut.IN_REPLY))
    assert look(server.raw, chat.key).contents == ["hi"]


@SINGLE
async def test_a_read_that_got_no_answer_changed_nothing(new_store: NewStore, proxy: Proxy) -> None:
    chat = new_store(at=proxy, redis=ONCE).conversation("ada")
    await chat.append("hi")
    proxy.next(Cut.REPLY_LOST, command="LRANGE")
    with pytest.raises(UnavailableError, match="nothing was changed") as caught:
        await chat.read()
    assert not caught.value.outcome_unknown
    assert await said(chat) == ["hi"]


@SINGLE
async def test_a_slow_server_times_out_and_the_turn_is_there(
    new_store: NewStore, proxy: Proxy, server: Server
) -> None:
    chat = new_store(at=proxy, redis=IMPATIENT).conversation("ada")
    load_scripts(server, chat.key)
    proxy.next(Cut.NEVER, command="EVALSHA", delay_seconds=0.3)
    with pytest.raises(UnavailableError, match=r"(?i)timeout") as caught:
        await chat.append("hi", turn_id="a")
    assert caught.value.outcome_unknown
    assert (await chat.append("hi", turn_id="a")).duplicate
    assert await said(chat) == ["hi"]


@SINGLE
async def test_a_slow_server_with_retries_stores_the_turn_once(
    new_store: NewStore, proxy: Proxy, server: Server
) -> None:
    chat = new_store(at=proxy, redis={"socket_timeout": 0.1}).conversation("ada")
    load_scripts(server, chat.key)
    proxy.next(Cut.NEVER, command="EVALSHA", delay_seconds=0.3)
    await chat.append("hi", turn_id="a")
    assert look(server.raw, chat.key).contents == ["hi"]


@SINGLE
async def test_a_turn_whose_save_got_no_answer_can_be_saved_again(
    new_store: NewStore, proxy: Proxy, server: Server
) -> None:
    chat = new_store(at=proxy, redis=ONCE).conversation("ada")
    load_scripts(server, chat.key)
    proxy.next(Cut.REPLY_LOST, command="EVALSHA")
    with pytest.raises(SaveError) as caught:
        async with chat.turn("hi") as turn:
            turn.reply("hello")
    assert caught.value.reply == "hello"
    saved = await turn.save()
    assert saved
    assert saved.duplicate
    assert look(server.raw, chat.key).contents == ["hi", "hello"]


async def test_a_server_that_is_gone_and_comes_back(
    new_store: NewStore, own_server: OwnServer
) -> None:
    server = own_server(appendonly=True)
    chat = new_store(at=server, redis=ONCE).conversation("ada")
    await chat.append("before")
    server.kill()
    for reading in (chat.read, chat.stat, chat.turns):
        with pytest.raises(UnavailableError, match=r"nothing was (changed|sent)"):
            await reading()
    for writing in (partial(chat.append, "lost"), partial(chat.trim, 1), chat.clear, chat.rewind):
        with pytest.raises(UnavailableError, match="refused; nothing was sent") as caught:
            await writing()
        assert not caught.value.outcome_unknown
    with pytest.raises(UnavailableError):
        async with chat.turn("hi"):
            raise AssertionError("the model must not be asked")
    server.restart()
    await chat.append("after")
    assert await said(chat) == ["before", "after"]


async def test_a_turn_may_go_on_without_memory(new_store: NewStore, own_server: OwnServer) -> None:
    server = own_server(appendonly=True)
    chat = new_store(at=server, redis=ONCE).conversation("ada")
    await chat.append("before")
    server.kill()
    async with chat.turn("hi", on_load_error="continue") as turn:
        assert [message["content"] for message in turn.messages] == ["hi"]
        turn.reply("hello")
    assert turn.saved is None
    server.restart()
    async with chat.turn("hi", on_load_error="continue") as turn:
        assert len(turn.messages) == 2
        turn.reply("hello")
    assert await said(chat) == ["before", "hi", "hello"]


@SINGLE
@pytest.mark.parametrize("word", ["LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY"])
async def test_a_server_that_is_not_ready_says_nothing_of_the_command_before(
    new_store: NewStore, proxy: Proxy, server: Server, word: str
) -> None:
    """The first answer was lost in a restart; the second command meets a server that loads."""
    chat = new_store(at=proxy).conversation("ada")
    load_scripts(server, chat.key)
    proxy.next(Cut.REPLY_LOST, command="EVALSHA")
    proxy.next(Cut.NEVER, command="EVALSHA", answer=f"{word} not now", times=6)
    with pytest.raises(UnavailableError, match=word) as caught:
        await chat.append("hi", turn_id="a")
    assert caught.value.outcome_unknown, "it was stored, though the server was not ready later"
    assert "nothing was written" not in str(caught.value)
    proxy.clear()
    assert (await chat.append("hi", turn_id="a")).duplicate
    proxy.next(Cut.NEVER, command="LRANGE", answer=f"{word} not now", times=6)
    with pytest.raises(UnavailableError, match=word) as caught:
        await chat.read()
    assert not caught.value.outcome_unknown
    proxy.clear()
    assert await said(chat) == ["hi"]


async def test_a_replica_is_demanded_and_there_is_none(
    new_store: NewStore, own_server: OwnServer
) -> None:
    server = own_server(config={"min-replicas-to-write": "1"})
    chat = new_store(at=server).conversation("ada")
    with pytest.raises(UnavailableError, match=r"nothing was written.*NOREPLICAS"):
        await chat.append("hi", turn_id="a")
    with redis.Redis.from_url(server.url) as raw:
        assert not raw.exists(chat.key)
        raw.config_set("min-replicas-to-write", 0)
    assert not (await chat.append("hi", turn_id="a")).duplicate


async def test_the_disk_fails(new_store: NewStore, own_server: OwnServer) -> None:
    server = own_server(config={"save": "3600 100000", "dbfilename": "blocked"})
    chat = new_store(at=server).conversation("ada")
    await chat.append("before")
    with redis.Redis.from_url(server.url) as raw:
        folder = raw.config_get("dir")["dir"]
        blocked = Path(folder) / "blocked"
        blocked.mkdir()  # no file can be renamed to it
        with pytest.raises(redis.ResponseError):
            raw.save()
        raw.bgsave()
        wait_until(lambda: raw.info("persistence")["rdb_last_bgsave_status"] == "err")
        with pytest.raises(UnavailableError, match=r"nothing was written.*MISCONF"):
            await chat.append("after")
        assert await said(chat) == ["before"]
        blocked.rmdir()
        raw.save()
        raw.bgsave()
        wait_until(lambda: raw.info("persistence")["rdb_last_bgsave_status"] == "ok")
    await chat.append("after")
    assert await said(chat) == ["before", "after"]


async def test_all_connections_are_taken(new_store: NewStore, own_server: OwnServer) -> None:
    server = own_server(config={"maxclients": "3"})
    chat = new_store(at=server, redis=ONCE).conversation("ada")
    with ExitStack() as stack:
        for _ in range(3):
            other = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            other.sendall(b"PING\r\n")
            assert other.recv(7)
        with pytest.raises(UnavailableError):
            await chat.append("hi", turn_id="a")
    with redis.Redis.from_url(server.url) as raw:
        wait_until(lambda: _alone(raw))
    await chat.append("hi", turn_id="a")
    assert await said(chat) == ["hi"]


def _alone(raw: redis.Redis) -> bool:
    try:
        return int(raw.info("clients")["connected_clients"]) == 1
    except redis.ConnectionError:
        return False


async def test_writes_are_paused(new_store: NewStore, own_server: OwnServer) -> None:
    server = own_server()
    chat = new_store(at=server, redis=IMPATIENT).conversation("ada")
    await chat.append("before")
    with redis.Redis.from_url(server.url) as raw:
        raw.execute_command("CLIENT PAUSE", 60_000, "WRITE")
        with pytest.raises(UnavailableError) as caught:
            await chat.append("hi", turn_id="a")
        assert caught.value.outcome_unknown
        assert await said(chat) == ["before"]
        raw.client_unpause()
        await chat.append("hi", turn_id="a")
        assert look(raw, chat.key).contents == ["before", "hi"]


@pytest.mark.parametrize("password", [None, "wrong"])
async def test_the_password_is_wrong(
    new_store: NewStore, own_server: OwnServer, password: str | None
) -> None:
    server = own_server(config={"requirepass": "right"})
    chat = new_store(at=server, redis={"password": password}).conversation("ada")
    said_so = "nothing was (sent|written)" if password is None else "nothing was sent"
    for denied in (chat.read, partial(chat.append, "hi"), partial(chat.expire, timedelta(hours=1))):
        with pytest.raises(DeniedError, match=rf"{said_so}.*\. Check the user"):
            await denied()
    chat = new_store(at=server, redis={"password": "right"}).conversation("ada")
    assert await said(chat) == []
    await chat.append("hi")
