"""The server forgot the scripts, is busy with one, or one of ours is wrong."""

from __future__ import annotations

import shutil
import threading
from typing import TYPE_CHECKING

import pytest
import redis

from tests.failure.helping import said
from tests.invariants.raw import look
from tests.waiting import wait_until
from turnstore import ScriptError, UnavailableError, _scripts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import NewStore, OwnServer
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore import AsyncStore

pytestmark = pytest.mark.one_setup


async def test_the_scripts_are_flushed_between_all_calls(
    new_store: NewStore, own_server: OwnServer
) -> None:
    server = own_server()
    chat = new_store(at=server).conversation("ada")
    with redis.Redis.from_url(server.url) as raw:
        for content in "abcd":
            await chat.append(content)
            raw.script_flush()
        assert [turn.number for turn in await chat.turns()] == [1, 2, 3, 4]
        raw.script_flush()
        assert len(await chat.rewind()) == 1
        raw.script_flush()
        other = await chat.fork("other")
        raw.script_flush()
        assert await chat.trim(turns=1) == 2
        raw.script_flush()
        assert (await chat.stat()).turns == 1
        assert await said(other) == ["a", "b", "c"]
        assert look(raw, chat.key).contents == ["c"]


async def test_the_scripts_are_flushed_under_writers(
    new_store: NewStore, own_server: OwnServer
) -> None:
    server = own_server()
    chat = new_store(at=server).conversation("ada")
    ended = threading.Event()

    def flush() -> None:
        with redis.Redis.from_url(server.url) as raw:
            while not ended.is_set():
                raw.script_flush()

    flusher = threading.Thread(target=flush)
    flusher.start()
    try:
        for number in range(100):
            await chat.append(str(number))
    finally:
        ended.set()
        flusher.join()
    assert await said(chat) == [str(number) for number in range(100)]


async def test_a_known_script_is_sent_by_its_hash(
    new_store: NewStore, proxy: Proxy, server: Server
) -> None:
    chat = new_store(at=proxy).conversation("ada")
    await chat.append("a")
    proxy.clear()
    await chat.append("b")
    assert proxy.seen == ["EVALSHA"]
    assert look(server.raw, chat.key).contents == ["a", "b"]


async def test_another_script_keeps_the_server_busy(
    new_store: NewStore, own_server: OwnServer
) -> None:
    server = own_server(config={"lua-time-limit": "20"})
    chat = new_store(at=server).conversation("ada")
    await chat.append("before")
    with redis.Redis.from_url(server.url) as raw, redis.Redis.from_url(server.url) as other:

        def loop() -> None:
            with pytest.raises(redis.ResponseError, match="killed"):
                other.eval("while true do end", 0)

        looper = threading.Thread(target=loop)
        looper.start()
        wait_until(lambda: _is_busy(raw))
        with pytest.raises(UnavailableError, match="BUSY"):
            await chat.append("after", turn_id="a")
        with pytest.raises(UnavailableError, match="BUSY"):
            await chat.read()
        raw.script_kill()
        looper.join()
        assert not (await chat.append("after", turn_id="a")).duplicate
        assert look(raw, chat.key).contents == ["before", "after"]


def _is_busy(raw: redis.Redis) -> bool:
    try:
        raw.ping()
    except redis.ResponseError as error:
        return "BUSY" in str(error)
    return False


@pytest.fixture
def lua(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a copy of the scripts that a test may spoil."""
    folder = tmp_path / "lua"
    shutil.copytree(_scripts._folder(), folder)
    monkeypatch.setattr(_scripts, "_folder", lambda: folder)
    _scripts.load.cache_clear()
    yield folder
    _scripts.load.cache_clear()


@pytest.mark.parametrize("file", ["append.lua", "lib/head.lua"])
async def test_a_fault_in_a_script_names_its_file_and_line(
    store: AsyncStore, server: Server, lua: Path, file: str
) -> None:
    path = lua / file
    lines = path.read_text().splitlines()
    beginnings = ("local turns = KEYS[1]", 'local text = redis.call("LINDEX", key, 0)')
    place = next(i for i, line in enumerate(lines) if line.strip().startswith(beginnings))
    lines.insert(place, "  local spoilt = nil; spoilt = spoilt.field")
    path.write_text("\n".join(lines) + "\n")
    chat = store.conversation("ada")
    with pytest.raises(ScriptError, match=f"lua/{file}, line {place + 1}") as caught:
        await chat.append("hi")
    assert (caught.value.file, caught.value.line) == (file, place + 1)
    assert not server.raw.exists(chat.key)
