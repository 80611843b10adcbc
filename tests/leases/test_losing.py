"""A lease is renewed while the model speaks; one that is lost saves over nobody's turn."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.leases.helping import SHORT, nobody_renews, said
from tests.leases.line import Queue
from tests.servers.proxy import Cut
from tests.store.talk import texts
from tests.waiting import wait_until_async
from turnstore import (
    ClosedError,
    Lease,
    LeaseError,
    LeaseLostError,
    SaveError,
    UnavailableError,
    WrongTypeError,
)

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore import AsyncConversation

pytestmark = pytest.mark.one_setup


async def test_it_is_renewed_while_the_turn_goes_on_and_no_longer(
    chat: AsyncConversation, queue: Queue
) -> None:
    # Long enough that a busy machine renews it in time.
    lease = Lease(ttl=timedelta(seconds=3))
    async with chat.turn("q", on_conflict="serialize", lease=lease) as turn:
        first = queue.line
        waiting = asyncio.create_task(said(chat, "next"))
        await wait_until_async(lambda: queue.line.until_ms > first.until_ms + 900)
        assert queue.line.number == first.number == turn.fence
        assert not waiting.done()
        turn.reply("a")
    assert await waiting == ["q", "a"]
    await wait_until_async(nobody_renews)


async def test_a_turn_that_fails_is_renewed_no_longer(chat: AsyncConversation) -> None:
    async def fail() -> None:
        async with chat.turn("q", on_conflict="serialize"):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    await wait_until_async(nobody_renews)


async def test_a_turn_that_lost_its_lease_saves_nothing_over_another(
    chat: AsyncConversation, queue: Queue
) -> None:
    turn = chat.turn("slow", on_conflict="serialize")
    await turn.__aenter__()
    queue.run_out()
    assert await said(chat, "quick") == []
    turn.reply("late", answer="the whole completion")
    with pytest.raises(LeaseLostError, match=r"the model answered, but .* ran out") as caught:
        await turn.__aexit__(None, None, None)
    error = caught.value
    assert isinstance(error, SaveError)
    assert isinstance(error, LeaseError)
    assert error.reply == "the whole completion"
    assert texts(await chat.read()) == ["quick", "re quick"]
    with pytest.raises(LeaseLostError):
        await turn.save()
    await chat.append(error.turn.new)
    assert texts(await chat.read()) == ["quick", "re quick", "slow", "late"]


async def test_while_another_turn_goes_on_nothing_is_saved_either(
    chat: AsyncConversation, queue: Queue
) -> None:
    slow = chat.turn("slow", on_conflict="serialize")
    await slow.__aenter__()
    queue.run_out()
    async with chat.turn("quick", on_conflict="serialize") as quick:
        slow.reply("late")
        with pytest.raises(LeaseLostError):
            await slow.save()
        assert queue.line.held, "the other's lease is left alone"
        quick.reply("in time")
    with pytest.raises(LeaseLostError):
        await slow.__aexit__(None, None, None)
    assert texts(await chat.read()) == ["quick", "in time"]


async def test_a_lease_that_ran_out_is_good_as_long_as_nobody_came(
    chat: AsyncConversation, queue: Queue
) -> None:
    async with chat.turn("slow", on_conflict="serialize") as turn:
        queue.run_out()
        turn.reply("late")
    assert texts(await chat.read()) == ["slow", "late"]


async def test_a_key_that_was_lost_is_refused_since_nobody_knows(
    chat: AsyncConversation, queue: Queue
) -> None:
    turn = chat.turn("q", on_conflict="serialize")
    await turn.__aenter__()
    queue.lose()
    turn.reply("a")
    with pytest.raises(LeaseLostError):
        await turn.__aexit__(None, None, None)
    assert await chat.read() == []
    assert await said(chat, "next") == []


async def test_a_renewal_that_finds_the_lease_lost_says_so_and_ends(
    chat: AsyncConversation, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    turn = chat.turn("q", on_conflict="serialize", lease=SHORT)
    with caplog.at_level(logging.WARNING):
        await turn.__aenter__()
        queue.lose()
        await wait_until_async(lambda: f"{chat.key} is lost" in caplog.text)
    await wait_until_async(nobody_renews)
    turn.reply("a")
    with pytest.raises(LeaseLostError):
        await turn.__aexit__(None, None, None)


async def test_a_renewal_that_fails_is_tried_again_and_told_at_the_save(
    new_store: NewStore, proxy: Proxy, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    chat = new_store(at=proxy).conversation("ada")
    turn = chat.turn("q", on_conflict="serialize", lease=SHORT)
    with caplog.at_level(logging.WARNING):
        await turn.__aenter__()
        proxy.next(Cut.NEVER, command="EVALSHA", answer="ERR out of order", times=10_000)
        await wait_until_async(lambda: caplog.text.count("was not renewed") >= 2)
    Queue(server, chat).lose()
    proxy.clear()
    turn.reply("a")
    with pytest.raises(LeaseLostError, match=r"The lease was not renewed: .*out of order"):
        await turn.__aexit__(None, None, None)


async def test_a_renewal_that_failed_once_does_not_hinder_the_save(
    new_store: NewStore, proxy: Proxy, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    chat = new_store(at=proxy).conversation("ada")
    queue = Queue(server, chat)
    with caplog.at_level(logging.WARNING):
        async with chat.turn("q", on_conflict="serialize", lease=SHORT) as turn:
            until_ms = queue.line.until_ms
            proxy.next(Cut.NEVER, command="EVALSHA", answer="ERR out of order")
            await wait_until_async(lambda: "was not renewed" in caplog.text)
            await wait_until_async(lambda: queue.line.until_ms > until_ms)
            turn.reply("a")
    assert texts(await chat.read()) == ["q", "a"]


async def test_a_key_that_is_not_ours_is_told_and_left(
    chat: AsyncConversation, queue: Queue, server: Server
) -> None:
    server.raw.rpush(queue.key, "mine")
    server.raw.pexpire(queue.key, 60_000)
    with pytest.raises(WrongTypeError, match="lease of"):
        await chat.turn("q", on_conflict="serialize").__aenter__()
    assert server.raw.lrange(queue.key, 0, -1) == [b"mine"]


async def test_no_redis_at_the_start_is_an_error_before_anything(
    new_store: NewStore, proxy: Proxy
) -> None:
    chat = new_store(at=proxy).conversation("ada")
    proxy.go_down()
    with pytest.raises(UnavailableError, match="lease of"):
        await chat.turn("q", on_conflict="serialize").__aenter__()
    await wait_until_async(nobody_renews)


async def test_going_on_without_memory_is_going_on_without_a_save(
    new_store: NewStore, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    chat = new_store(at=proxy).conversation("ada")
    await chat.append("before")
    proxy.go_down()
    with caplog.at_level(logging.WARNING):
        async with chat.turn("q", on_conflict="serialize", on_load_error="continue") as turn:
            assert texts(turn.messages) == ["q"]
            assert turn.fence is None
            proxy.come_up()
            turn.reply("a")
    assert turn.saved is None
    assert "had no lease" in caplog.text
    assert texts(await chat.read()) == ["before"]
    await wait_until_async(nobody_renews)


async def test_too_many_and_too_late_are_errors_also_without_memory(
    chat: AsyncConversation,
) -> None:
    async with chat.turn("q", on_conflict="serialize"):
        for lease in (Lease(waiters=0), Lease(wait=timedelta(0))):
            other = chat.turn("p", on_conflict="serialize", on_load_error="continue", lease=lease)
            with pytest.raises(LeaseError):
                await other.__aenter__()


async def test_a_save_that_failed_may_be_repeated_after_the_block(
    new_store: NewStore, proxy: Proxy
) -> None:
    chat = new_store(at=proxy).conversation("ada")
    turn = chat.turn("q", on_conflict="serialize")
    await turn.__aenter__()
    turn.reply("a")
    proxy.go_down()
    with pytest.raises(SaveError) as caught:
        await turn.__aexit__(None, None, None)
    assert not isinstance(caught.value, LeaseLostError)
    assert caught.value.reply == "a"
    proxy.come_up()
    await wait_until_async(nobody_renews)
    await turn.save()
    assert texts(await chat.read()) == ["q", "a"]


async def test_a_repeated_save_comes_too_late_where_another_turn_began(
    new_store: NewStore, proxy: Proxy, server: Server
) -> None:
    chat = new_store(at=proxy).conversation("ada")
    turn = chat.turn("q", on_conflict="serialize")
    await turn.__aenter__()
    turn.reply("a")
    proxy.go_down()
    with pytest.raises(SaveError):
        await turn.__aexit__(None, None, None)
    proxy.come_up()
    await wait_until_async(nobody_renews)
    Queue(server, chat).run_out()
    await said(chat, "next")
    with pytest.raises(LeaseLostError):
        await turn.save()
    assert texts(await chat.read()) == ["next", "re next"]


async def test_a_store_that_was_closed_meanwhile(new_store: NewStore, server: Server) -> None:
    store = new_store()
    chat = store.conversation("ada")
    turn = chat.turn("q", on_conflict="serialize", lease=SHORT)
    await turn.__aenter__()
    await store.close()
    await wait_until_async(nobody_renews)
    turn.reply("a")
    with pytest.raises(SaveError) as caught:
        await turn.__aexit__(None, None, None)
    assert isinstance(caught.value.__cause__, ClosedError)
    assert Queue(server, chat).line.held, "it runs out by itself"
