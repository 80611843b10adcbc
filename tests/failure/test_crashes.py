"""The server dies in the middle of a run of appends, and comes back from its append-only file."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import redis

from tests.failure.helping import said
from tests.invariants.raw import look
from tests.waiting import wait_until_async
from turnstore import UnavailableError

if TYPE_CHECKING:
    from tests.conftest import NewStore, OwnServer
    from turnstore import AsyncConversation

WRITERS = 6
EACH = 30
# A turn that is sent again is known among the newest 32. A writer may have to wait for seconds
# until it tries again; so that the others do not save so many meanwhile, they wait for the slowest.
AHEAD = 2


async def _write(
    chat: AsyncConversation, writer: int, acknowledged: list[str], done: list[int]
) -> None:
    """Append one turn after the other; repeat each with its turn id until it is acknowledged."""
    for number in range(EACH):
        name = f"{writer}-{number}"
        done[writer] = number
        await wait_until_async(partial(_is_near, done, number), seconds=120)
        while True:
            try:
                await chat.append([name, f"{name}-reply"], turn_id=name)
            except UnavailableError:
                await asyncio.sleep(0.01)
            else:
                acknowledged.append(name)
                break
    done[writer] = EACH


def _is_near(done: list[int], number: int) -> bool:
    return number - min(done) <= AHEAD


def _has(names: list[str], wanted: int) -> bool:
    return len(names) >= wanted


async def test_nothing_acknowledged_is_lost_and_nothing_doubled(
    new_store: NewStore, own_server: OwnServer
) -> None:
    server = own_server(appendonly=True)
    store = new_store(at=server)
    chat = store.conversation("ada")
    acknowledged: list[str] = []
    done = [0] * WRITERS
    writers = [
        asyncio.create_task(_write(chat, writer, acknowledged, done)) for writer in range(WRITERS)
    ]
    for crash in range(1, 4):
        wanted = crash * 30
        await wait_until_async(partial(_has, acknowledged, wanted), seconds=120)
        server.kill()
        known = list(acknowledged)
        await asyncio.to_thread(server.restart)
        with redis.Redis.from_url(server.url) as raw:
            held = {piece.id for piece in look(raw, chat.key).pieces}
        assert held.issuperset(known), "acknowledged before the crash, and gone after it"
    await asyncio.gather(*writers)
    with redis.Redis.from_url(server.url) as raw:
        pieces = look(raw, chat.key).pieces
    ids = [piece.id for piece in pieces]
    assert sorted(ids) == sorted(acknowledged)
    assert len(set(ids)) == WRITERS * EACH
    for piece in pieces:
        assert piece.contents == (piece.id, f"{piece.id}-reply")
    for writer in range(WRITERS):
        own = [name for name in ids if name.startswith(f"{writer}-")]
        assert own == [f"{writer}-{number}" for number in range(EACH)]


async def test_without_a_file_a_restart_is_an_empty_conversation(
    new_store: NewStore, own_server: OwnServer
) -> None:
    server = own_server()
    chat = new_store(at=server).conversation("ada")
    old = await chat.append("before")
    server.restart()
    assert await said(chat) == []
    new = await chat.append("after")
    assert new.revision.startswith("1-")
    assert new.revision != old.revision, "a new conversation is not taken for the old one"
