"""The connection is cut before, during and after a command, and redis-py sends it again.

With redis-py's default retry on, each operation has to end as if nothing had happened.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.failure.helping import load_scripts
from tests.invariants.raw import look
from tests.servers.proxy import Cut
from turnstore import Store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore import AsyncConversation

pytestmark = pytest.mark.one_setup

CUTS = pytest.mark.parametrize("cut", [cut for cut in Cut if cut is not Cut.NEVER], ids=str)


class Operation(NamedTuple):
    """One way to change a conversation of the turns a, b, c, and what is left of it then."""

    act: Callable[[AsyncConversation], Awaitable[object]]
    answers: object
    left: list[str]


async def _append(chat: AsyncConversation) -> object:
    done = await chat.append("d", turn_id="d")
    # Whether it says "duplicate" depends on which of the two commands was answered.
    return done.revision, done.turns


async def _append_expecting(chat: AsyncConversation) -> object:
    done = await chat.append("d", turn_id="d", expected_revision="3-c")
    return done.revision, done.turns


async def _append_continuing(chat: AsyncConversation) -> object:
    done = await chat.append("d", turn_id="d", continues=True)
    return done.revision, done.turns


async def _rewind(chat: AsyncConversation) -> object:
    return [turn.id for turn in await chat.rewind(2)]


async def _rewind_all(chat: AsyncConversation) -> object:
    return [turn.id for turn in await chat.rewind(10)]


async def _expire(chat: AsyncConversation) -> object:
    return await chat.expire(timedelta(hours=1))


async def _turn(chat: AsyncConversation) -> object:
    async with chat.turn("d", turn_id="d") as turn:
        turn.reply("e")
    assert turn.saved
    return turn.saved.revision, turn.saved.turns


async def _turn_rejecting(chat: AsyncConversation) -> object:
    async with chat.turn("d", turn_id="d", on_conflict="reject") as turn:
        turn.reply("e")
    assert turn.saved
    return turn.saved.revision, turn.saved.turns


async def _turn_replacing(chat: AsyncConversation) -> object:
    async with chat.turn("d", turn_id="d", replaces="b") as turn:
        turn.reply("e")
    assert turn.saved
    return turn.saved.revision, turn.saved.turns, turn.saved.replaced_ids


OPERATIONS = {
    "append": Operation(_append, ("4-d", 4), ["a", "b", "c", "d"]),
    "append-expecting": Operation(_append_expecting, ("4-d", 4), ["a", "b", "c", "d"]),
    "append-continuing": Operation(_append_continuing, ("4-d", 3), ["a", "b", "c", "d"]),
    "rewind": Operation(_rewind, ["b", "c"], ["a"]),
    "rewind-all": Operation(_rewind_all, ["a", "b", "c"], []),
    "expire": Operation(_expire, answers=True, left=["a", "b", "c"]),
    "turn": Operation(_turn, ("4-d", 4), ["a", "b", "c", "d", "e"]),
    "turn-reject": Operation(_turn_rejecting, ("4-d", 4), ["a", "b", "c", "d", "e"]),
    "turn-replacing": Operation(_turn_replacing, ("2-d", 2, ("b", "c")), ["a", "d", "e"]),
}


NEVER_RAN = (Cut.BEFORE, Cut.IN_COMMAND)


async def _abc(chat: AsyncConversation, server: Server) -> None:
    load_scripts(server, chat.key)
    for content in "abc":
        await chat.append(content, turn_id=content)


@CUTS
@pytest.mark.parametrize("name", OPERATIONS)
async def test_an_operation_happens_once(
    new_store: NewStore, proxy: Proxy, server: Server, name: str, cut: Cut
) -> None:
    operation = OPERATIONS[name]
    chat = new_store(at=proxy).conversation("ada")
    await _abc(chat, server)
    if name.startswith("rewind"):
        proxy.next(Cut.NEVER, command="EVALSHA")  # the first script reads, the second writes
    proxy.next(cut, command="EVALSHA")
    assert await operation.act(chat) == operation.answers
    assert look(server.raw, chat.key).contents == operation.left


@CUTS
async def test_a_trim_drops_no_more_but_may_not_know_what_it_dropped(
    new_store: NewStore, proxy: Proxy, server: Server, cut: Cut
) -> None:
    chat = new_store(at=proxy).conversation("ada")
    await _abc(chat, server)
    proxy.next(cut, command="EVALSHA")
    assert await chat.trim(turns=1) == (2 if cut in NEVER_RAN else 0)
    assert look(server.raw, chat.key).contents == ["c"]


@CUTS
async def test_a_clear_is_done_but_may_not_know_that_it_did_it(
    new_store: NewStore, proxy: Proxy, server: Server, cut: Cut
) -> None:
    chat = new_store(at=proxy).conversation("ada")
    await _abc(chat, server)
    proxy.next(cut, command="EVALSHA")
    assert await chat.clear() == (cut in NEVER_RAN)
    assert not server.raw.exists(chat.key)


@CUTS
@pytest.mark.parametrize("upto", [None, 2])
async def test_a_fork_is_made_once(
    new_store: NewStore, proxy: Proxy, server: Server, cut: Cut, upto: int | None
) -> None:
    chat = new_store(at=proxy).conversation("ada")
    await _abc(chat, server)
    proxy.next(Cut.NEVER, command="EVALSHA")
    proxy.next(cut, command="EVALSHA")
    other = await chat.fork("other", upto=upto)
    assert look(server.raw, other.key).contents == ["a", "b", "c"][:upto]
    assert look(server.raw, other.key).ttl_ms > 0
    await chat.fork("other", upto=upto)
    assert look(server.raw, other.key).contents == ["a", "b", "c"][:upto]


@CUTS
async def test_a_read_is_whole_or_asked_again(
    new_store: NewStore, proxy: Proxy, server: Server, cut: Cut
) -> None:
    chat = new_store(at=proxy).conversation("ada")
    await _abc(chat, server)
    proxy.next(cut, command="LRANGE")
    assert [message["content"] for message in await chat.read()] == ["a", "b", "c"]
    proxy.next(cut, command="EVALSHA")
    assert [turn.id for turn in await chat.turns()] == ["a", "b", "c"]
    proxy.next(cut, command="EVALSHA")
    assert (await chat.stat()).turns == 3


async def test_a_turn_id_is_known_for_32_turns(
    new_store: NewStore, proxy: Proxy, server: Server
) -> None:
    chat = new_store(at=proxy).conversation("ada")
    await _abc(chat, server)
    for number in range(30):
        await chat.append("later", turn_id=f"later-{number}")
    assert (await chat.append("b", turn_id="b")).duplicate
    assert (await chat.append("b", turn_id="b")).revision == "2-b"
    assert not (await chat.append("a", turn_id="a")).duplicate, "beyond the promise"


async def test_a_rewind_whose_answer_was_lost_spares_what_came_after(
    new_store: NewStore, proxy: Proxy, server: Server, prefix: str
) -> None:
    """Between the lost answer and the second command, another writer appends."""
    chat = new_store(at=proxy).conversation("ada")
    await _abc(chat, server)
    proxy.next(Cut.NEVER, command="EVALSHA")
    proxy.next(Cut.REPLY_LOST, command="EVALSHA", then=lambda: _append_behind(server, prefix))
    assert [turn.id for turn in await chat.rewind()] == ["c"]
    assert look(server.raw, chat.key).contents == ["a", "b", "x"]


@pytest.mark.parametrize("expected", [None, "3-c"])
async def test_a_rewind_to_nothing_spares_what_came_after(
    new_store: NewStore, proxy: Proxy, server: Server, prefix: str, expected: str | None
) -> None:
    chat = new_store(at=proxy).conversation("ada")
    await _abc(chat, server)
    proxy.next(Cut.NEVER, command="EVALSHA")
    proxy.next(Cut.REPLY_LOST, command="EVALSHA", then=lambda: _append_behind(server, prefix))
    undone = await chat.rewind(3, expected_revision=expected)
    assert [turn.id for turn in undone] == ["a", "b", "c"]
    assert look(server.raw, chat.key).contents == ["x"]


def _append_behind(server: Server, prefix: str) -> None:
    """Append a turn as another process would."""
    Store(server.raw, name="test", prefix=prefix).conversation("ada").append("x")
