"""Many writers on one conversation: nothing lost, doubled or torn, each writer's order kept."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import threading
from typing import TYPE_CHECKING

import pytest

from tests.failure.helping import load_scripts
from tests.invariants.raw import IDS_KEPT, Raw, look
from tests.servers.proxy import Cut
from turnstore import Store, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore import AsyncConversation

WRITERS = 32
EACH = 12
CUTS = [cut for cut in Cut if cut is not Cut.NEVER]

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis", "valkey", "cluster")]


def _name(writer: int, number: int) -> str:
    return f"{writer}-{number}"


async def _write(chat: AsyncConversation, writer: int) -> None:
    for number in range(EACH):
        name = _name(writer, number)
        messages = [f"{name}/{part}" for part in range(1 + (writer + number) % 4)]
        await _append(chat, messages, name)


async def _append(chat: AsyncConversation, messages: list[str], name: str) -> None:
    """Append a turn, and again where nobody knows whether it was."""
    while True:
        try:
            await chat.append(messages, turn_id=name)
        except UnavailableError as error:
            # A Cluster client that lost its nodes may fail before it sends.
            assert error.outcome_unknown or "nothing was sent" in str(error)  # noqa: PT017
        else:
            return


def _check(raw: Raw, *, all_held: bool = True, doubles: bool = False) -> None:
    ids = [piece.id for piece in raw.pieces]
    if doubles:
        ids = _without_late_doubles(ids)
    assert len(set(ids)) == len(ids), "doubled"
    if all_held:
        assert len(ids) == WRITERS * EACH, "lost"
    for piece in raw.pieces:
        writer, number = map(int, piece.id.split("-"))
        whole = tuple(f"{piece.id}/{part}" for part in range(1 + (writer + number) % 4))
        assert piece.contents == whole, "torn"
    for writer in range(WRITERS):
        own = [int(one.partition("-")[2]) for one in ids if one.startswith(f"{writer}-")]
        assert own == list(range(EACH))[EACH - len(own) :], "the order of a writer"


def _without_late_doubles(ids: list[str]) -> list[str]:
    """Leave out what came again after more than 32 others: that far, ids are not known.

    So many others come between a lost answer and its repetition only where the writers of
    one conversation store hundreds of turns a second; docs/explanation/failures.md says so.
    """
    last: dict[str, int] = {}
    kept = []
    for place, one in enumerate(ids):
        if one not in last or place - last[one] <= IDS_KEPT:
            kept.append(one)
        last[one] = place
    return kept


async def test_threads_or_tasks(new_store: NewStore, server: Server) -> None:
    chat = new_store(max_messages=None).conversation("ada")
    await asyncio.gather(*(_write(chat, writer) for writer in range(WRITERS)))
    raw = look(server.raw, chat.key)
    _check(raw)
    assert raw.head
    assert raw.head.no == WRITERS * EACH


async def test_threads_or_tasks_while_old_turns_are_dropped(
    new_store: NewStore, server: Server
) -> None:
    chat = new_store(max_messages=50).conversation("ada")
    await asyncio.gather(*(_write(chat, writer) for writer in range(WRITERS)))
    raw = look(server.raw, chat.key)
    _check(raw, all_held=False)
    assert raw.head
    assert raw.head.no == WRITERS * EACH
    assert 46 < len(raw.contents) <= 50


async def _cut_often(proxy: Proxy, ended: asyncio.Event) -> None:
    """Cut a connection every ten commands, in a random way."""
    dice = random.Random(7)
    struck = 0
    while not ended.is_set():
        if proxy.count("EVALSHA") >= 10 * struck:
            proxy.next(dice.choice(CUTS), command="EVALSHA")
            struck += 1
        await asyncio.sleep(0.001)


@pytest.mark.drops_connections
async def test_connections_are_cut_all_the_while(
    new_store: NewStore, proxy: Proxy, server: Server
) -> None:
    chat = new_store(at=proxy, max_messages=None).conversation("ada")
    ended = asyncio.Event()
    cutter = asyncio.create_task(_cut_often(proxy, ended))
    await asyncio.gather(*(_write(chat, writer) for writer in range(WRITERS)))
    ended.set()
    await cutter
    assert proxy.count("EVALSHA") > WRITERS * EACH, "no connection was cut"
    _check(look(server.raw, chat.key), doubles=True)


@pytest.mark.drops_connections
async def test_few_writers_whose_connections_are_cut_double_nothing(
    new_store: NewStore, proxy: Proxy, server: Server
) -> None:
    """Each waits for all others after each turn, so that 31 come between at the most."""
    chat = new_store(at=proxy, max_messages=50).conversation("ada")
    load_scripts(server, chat.key)
    dice = random.Random(7)
    for number in range(EACH):
        for _ in range(4):
            proxy.next(dice.choice(CUTS), command="EVALSHA")
        names = [_name(writer, number) for writer in range(WRITERS)]
        await asyncio.gather(*(_append(chat, [name], name) for name in names))
        proxy.clear()
    raw = look(server.raw, chat.key)
    assert raw.head
    assert raw.head.no == raw.head.messages == WRITERS * EACH
    assert len(raw.contents) == 50


def _write_in_process(make_client: Callable[[], object], prefix: str, writers: range) -> None:
    client = make_client()
    chat = Store(client, name="test", prefix=prefix).conversation("ada")  # type: ignore[arg-type]

    def write(writer: int) -> None:
        for number in range(EACH):
            name = _name(writer, number)
            count = 1 + (writer + number) % 4
            chat.append([f"{name}/{part}" for part in range(count)], turn_id=name)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.servers("redis-8", "cluster")
def test_processes_with_threads(server: Server, prefix: str, make_store: object) -> None:
    del make_store  # asks for the sync client alone
    context = multiprocessing.get_context("spawn")
    url = "redis://{}:{}".format(*server.addresses[0])
    children = [
        context.Process(
            target=_write_in_process, args=(_Maker(url), prefix, range(first, first + 8))
        )
        for first in range(0, WRITERS, 8)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    chat = Store(server.raw, name="test", prefix=prefix).conversation("ada")
    _check(look(server.raw, chat.key))


class _Maker:
    """Makes a client in another process."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self) -> object:
        import redis  # noqa: PLC0415 (in the other process)

        try:
            return redis.RedisCluster.from_url(self.url)
        except redis.exceptions.RedisClusterException:
            return redis.Redis.from_url(self.url)
