"""One turn at a time, in the order in which they came, with bounds."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.leases.helping import said
from tests.store.talk import texts
from tests.waiting import wait_until_async
from turnstore import Lease, LeaseError, LeaseQueueFullError, LeaseTimeoutError, TurnstoreError

if TYPE_CHECKING:
    from tests.leases.line import Queue
    from turnstore import AsyncConversation, AsyncStore

pytestmark = pytest.mark.one_setup


async def test_a_turn_alone(chat: AsyncConversation, queue: Queue) -> None:
    async with chat.turn("q", on_conflict="serialize") as turn:
        assert queue.line.held
        assert turn.fence == queue.line.number
        turn.reply("a")
    assert turn.saved
    assert not queue.line.held
    assert texts(await chat.read()) == ["q", "a"]


async def test_a_fence_grows(chat: AsyncConversation, queue: Queue) -> None:
    fences = []
    for lose in (False, True, False):
        async with chat.turn("q", on_conflict="serialize") as turn:
            fences.append(turn.fence or 0)
        if lose:
            queue.lose()
    assert all(fences)
    assert fences == sorted(set(fences))


async def test_a_turn_sees_the_one_it_waited_for(chat: AsyncConversation, queue: Queue) -> None:
    async with chat.turn("first", on_conflict="serialize") as turn:
        second = asyncio.create_task(said(chat, "second"))
        await wait_until_async(lambda: queue.waiting == 1)
        turn.reply("re first")
    assert await second == ["first", "re first"]
    assert texts(await chat.read()) == ["first", "re first", "second", "re second"]


async def test_waiters_are_served_in_the_order_they_came(
    chat: AsyncConversation, queue: Queue
) -> None:
    async with chat.turn("0", on_conflict="serialize") as turn:
        turn.reply("re 0")
        tasks = []
        for number in range(1, 9):
            tasks.append(asyncio.create_task(said(chat, str(number))))
            await wait_until_async(partial(queue.has_waiting, number))
    saw = await asyncio.gather(*tasks)
    assert [len(history) for history in saw] == [2 * number for number in range(1, 9)]
    assert texts(await chat.read())[::2] == [str(number) for number in range(9)]
    assert queue.line.waiting == ()


async def test_a_turn_that_fails_lets_the_next_one_go(
    chat: AsyncConversation, queue: Queue
) -> None:
    async def fail() -> None:
        async with chat.turn("first", on_conflict="serialize") as turn:
            turn.reply("half")
            second.append(asyncio.create_task(said(chat, "second")))
            await wait_until_async(lambda: queue.waiting == 1)
            raise ZeroDivisionError

    second: list[asyncio.Task[Any]] = []
    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await second[0] == []


async def test_a_turn_without_a_reply_gives_the_lease_back(
    chat: AsyncConversation, queue: Queue
) -> None:
    async with chat.turn("q", on_conflict="serialize"):
        pass
    assert not queue.line.held
    assert await said(chat, "next") == []


async def test_a_save_in_the_block_gives_the_lease_back(
    chat: AsyncConversation, queue: Queue
) -> None:
    async with chat.turn("q", on_conflict="serialize") as turn:
        turn.reply("a")
        await turn.save()
        assert not queue.line.held
        assert await said(chat, "next") == ["q", "a"]
    assert texts(await chat.read()) == ["q", "a", "next", "re next"]


async def test_a_turn_may_be_taken_again(chat: AsyncConversation) -> None:
    turn = chat.turn("q", on_conflict="serialize")
    async with turn:
        pass
    async with turn:
        turn.reply("a")
    assert texts(await chat.read()) == ["q", "a"]


async def test_the_wait_is_bounded(chat: AsyncConversation, queue: Queue) -> None:
    async with chat.turn("q", on_conflict="serialize") as turn:
        for wait in (timedelta(0), timedelta(milliseconds=50)):
            with pytest.raises(LeaseTimeoutError, match=f"{chat.key}.*was number 1") as caught:
                await said(chat, "other", Lease(wait=wait))
            assert isinstance(caught.value, LeaseError)
            assert queue.waiting == 0, "its place was given up"
        turn.reply("a")
    assert texts(await chat.read()) == ["q", "a"]


async def test_the_queue_is_bounded(chat: AsyncConversation, queue: Queue) -> None:
    two = Lease(waiters=2)
    async with chat.turn("0", on_conflict="serialize") as turn:
        turn.reply("re 0")
        with pytest.raises(LeaseQueueFullError, match=r"^lease of .*:queue: 0 turns wait"):
            await said(chat, "none", Lease(waiters=0))
        waiting = [asyncio.create_task(said(chat, str(number), two)) for number in (1, 2)]
        await wait_until_async(lambda: queue.waiting == 2)
        before = queue.line.waiting
        with pytest.raises(LeaseQueueFullError, match="2 turns wait"):
            await said(chat, "3", two)
        assert [token for token, _ in queue.line.waiting] == [token for token, _ in before]
    await asyncio.gather(*waiting)
    assert await said(chat, "none", Lease(waiters=0)), "a free lease needs no place"


async def test_it_waits_for_no_other_policy_and_no_other_conversation(
    store: AsyncStore, chat: AsyncConversation
) -> None:
    async with chat.turn("q", on_conflict="serialize") as turn:
        await chat.append("between")
        async with chat.turn("p") as other:
            other.reply("b")
        await said(store.conversation("bob"), "elsewhere")
        turn.reply("a")
    assert texts(await chat.read()) == ["between", "p", "b", "q", "a"]


async def test_the_whole_block_is_one_turn_with_its_tools(
    chat: AsyncConversation, queue: Queue
) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    async with chat.turn("q", on_conflict="serialize") as turn:
        turn.reply({"role": "assistant", "content": None, "tool_calls": [call]})
        turn.reply({"role": "tool", "tool_call_id": "c", "content": "1"})
        assert queue.line.held
        turn.reply("a")
    assert (await chat.stat()).turns == 1


async def test_between_a_tool_call_and_its_result_others_may_go(
    chat: AsyncConversation, queue: Queue
) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    reply = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c", "content": "1"}
    async with chat.turn("q", on_conflict="serialize") as turn:
        turn.reply(reply)
    await said(chat, "between")
    with pytest.raises(ValueError, match="another turn came between"):
        await chat.turn([result], on_conflict="serialize").__aenter__()
    assert not queue.line.held
    async with chat.turn(["q", reply, result], on_conflict="serialize") as turn:
        turn.reply("a")
    assert texts(await chat.read())[-4:] == ["q", None, "1", "a"]


async def test_a_continuation_joins_its_turn(chat: AsyncConversation) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    async with chat.turn("q", on_conflict="serialize") as turn:
        turn.reply({"role": "assistant", "content": None, "tool_calls": [call]})
    result = {"role": "tool", "tool_call_id": "c", "content": "1"}
    async with chat.turn([result], on_conflict="serialize") as turn:
        turn.reply("a")
    assert (await chat.stat()).turns == 1


@pytest.mark.parametrize("clear", [True, False])
async def test_what_others_do_to_the_conversation_is_no_conflict(
    chat: AsyncConversation, *, clear: bool
) -> None:
    await chat.append("old")
    async with chat.turn("q", on_conflict="serialize") as turn:
        await (chat.clear() if clear else chat.rewind())
        turn.reply("a")
    assert texts(await chat.read()) == ["q", "a"]


async def test_a_turn_that_cannot_be_saved_gives_the_lease_back(
    chat: AsyncConversation, queue: Queue
) -> None:
    with pytest.raises(TurnstoreError, match="max_turn_messages"):
        async with chat.turn("q", on_conflict="serialize") as turn:
            turn.reply([{"role": "assistant", "content": "a"}] * 1001)
    assert not queue.line.held
