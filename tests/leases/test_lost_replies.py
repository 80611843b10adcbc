"""The connection is cut at each command of a turn, and redis-py sends it again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.failure.helping import load_scripts
from tests.leases.helping import SHORT, said
from tests.leases.line import Queue
from tests.servers.proxy import Cut
from tests.store.talk import texts
from tests.waiting import wait_until_async

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore import AsyncConversation

pytestmark = pytest.mark.one_setup
CUTS = pytest.mark.parametrize("cut", [cut for cut in Cut if cut is not Cut.NEVER], ids=str)


@pytest.fixture
def far(new_store: NewStore, proxy: Proxy, server: Server) -> AsyncConversation:
    """Give a conversation behind the proxy, on a server that knows the scripts."""
    chat = new_store(at=proxy).conversation("ada")
    load_scripts(server, chat.key)
    return chat


async def left(chat: AsyncConversation, queue: Queue, wanted: list[str]) -> None:
    """Check that the turns are stored once, and that nobody holds or waits."""
    assert texts(await chat.read()) == wanted
    assert not queue.line.held
    assert queue.line.waiting == ()
    assert await said(chat, "after") == wanted


@CUTS
@pytest.mark.parametrize("command", ["take", "read", "save"])
async def test_a_turn_is_taken_and_saved_once(
    far: AsyncConversation, proxy: Proxy, server: Server, cut: Cut, command: str
) -> None:
    queue = Queue(server, far)
    if command == "save":
        proxy.next(Cut.NEVER, command="EVALSHA")
    proxy.next(cut, command="LRANGE" if command == "read" else "EVALSHA")
    async with far.turn("q", on_conflict="serialize") as turn:
        assert turn.fence == queue.line.number
        turn.reply("a")
    await left(far, queue, ["q", "a"])


@CUTS
async def test_a_place_in_the_queue_is_taken_once(
    far: AsyncConversation, proxy: Proxy, server: Server, cut: Cut
) -> None:
    queue = Queue(server, far)
    async with far.turn("q", on_conflict="serialize") as turn:
        proxy.next(cut, command="EVALSHA", times=2)
        waiting = asyncio.create_task(said(far, "next"))
        await wait_until_async(lambda: queue.waiting)
        await wait_until_async(lambda: proxy.count("EVALSHA") > 4)
        assert queue.waiting == 1
        turn.reply("a")
    assert await waiting == ["q", "a"]
    await left(far, queue, ["q", "a", "next", "re next"])


@CUTS
async def test_a_renewal_is_sent_again(
    far: AsyncConversation, proxy: Proxy, server: Server, cut: Cut
) -> None:
    queue = Queue(server, far)
    async with far.turn("q", on_conflict="serialize", lease=SHORT) as turn:
        first = queue.line
        proxy.next(cut, command="EVALSHA")
        await wait_until_async(lambda: queue.line.until_ms > first.until_ms + 300)
        assert queue.line.number == first.number
        turn.reply("a")
    await left(far, queue, ["q", "a"])


@CUTS
async def test_a_release_is_sent_again(
    far: AsyncConversation, proxy: Proxy, server: Server, cut: Cut
) -> None:
    queue = Queue(server, far)
    async with far.turn("q", on_conflict="serialize"):
        proxy.next(cut, command="EVALSHA")
    await left(far, queue, [])


async def test_a_save_that_is_sent_again_after_the_next_turn_was_saved(
    far: AsyncConversation, proxy: Proxy, server: Server, new_store: NewStore
) -> None:
    """The append has given the lease back, and its answer is lost; then another turn goes."""
    near = new_store().conversation("ada")
    queue = Queue(server, far)
    loop = asyncio.get_running_loop()

    def meanwhile() -> None:
        asyncio.run_coroutine_threadsafe(said(near, "next"), loop).result(30)

    async with far.turn("q", on_conflict="serialize") as turn:
        proxy.next(Cut.REPLY_LOST, command="EVALSHA", then=meanwhile)
        turn.reply("a")
    assert turn.saved
    assert turn.saved.duplicate
    await left(near, queue, ["q", "a", "next", "re next"])


async def test_a_first_question_whose_answer_is_lost_for_good(
    far: AsyncConversation, proxy: Proxy, server: Server
) -> None:
    """Granted, but the turn never hears of it: it is called back, or runs out."""
    queue = Queue(server, far)
    proxy.next(Cut.REPLY_LOST, command="EVALSHA", then=proxy.go_down)
    with pytest.raises(Exception, match=r"no answer from the server|not ready"):
        await far.turn("q", on_conflict="serialize").__aenter__()
    proxy.come_up()
    queue.run_out()  # its time passes, where the server was not back for that
    assert await said(far, "q") == []
    await left(far, queue, ["q", "re q"])
