"""Turns of one conversation at once, under each policy.

`tests/leases` has what a lease promises; here is that each adapter keeps to it.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from tests.conformance.marks import ONE_SERVER
from tests.conformance.test_failures import spoken
from tests.conformance.views import stored
from tests.leases.line import Queue
from tests.waiting import wait_until_async
from turnstore import LeaseLostError, TurnConflictError
from turnstore.testing import Reply

if TYPE_CHECKING:
    from tests.conformance.driver import Driver
    from tests.servers.running import Server
    from turnstore import AsyncConversation

pytestmark = ONE_SERVER


@pytest.mark.parametrize("stream", [False, True])
async def test_append_keeps_both_in_the_order_they_finished(
    driver: Driver, chat: AsyncConversation, *, stream: bool
) -> None:
    hold = threading.Event()
    driver.script(Reply("slow one", hold=hold), Reply("quick"))
    slow = asyncio.create_task(spoken(driver, driver.remember(chat), "first", stream=stream))
    await wait_until_async(lambda: driver.asked)
    await driver.say(driver.remember(chat), "second")
    hold.set()
    assert await slow == "slow one"
    assert await stored(chat) == [["second", "quick"], ["first", "slow one"]]


@pytest.mark.parametrize("stream", [False, True])
async def test_reject_raises_the_answer_of_the_one_that_came_second(
    driver: Driver, chat: AsyncConversation, *, stream: bool
) -> None:
    hold = threading.Event()
    driver.script(Reply("slow one", hold=hold), Reply("quick"))
    memory = driver.remember(chat, on_conflict="reject")
    slow = asyncio.create_task(spoken(driver, memory, "first", stream=stream))
    await wait_until_async(lambda: driver.asked)
    await driver.say(driver.remember(chat), "second")
    hold.set()
    with pytest.raises(TurnConflictError) as caught:
        await slow
    assert "slow one" in str(caught.value.reply)
    assert await stored(chat) == [["second", "quick"]]


async def test_many_at_once_on_one_memory_lose_nothing(
    driver: Driver, chat: AsyncConversation
) -> None:
    memory = driver.remember(chat)
    said = [f"I am number {n}." for n in range(8)]
    await asyncio.gather(
        *(spoken(driver, memory, text, stream=n % 2 == 1) for n, text in enumerate(said))
    )
    turns = await stored(chat)
    assert sorted(asked for asked, _ in turns) == sorted(said)
    assert all(answer.endswith(asked) for asked, answer in turns)


@pytest.mark.parametrize("stream", [False, True])
async def test_serialize_lets_the_second_wait_and_see_the_first(
    driver: Driver, chat: AsyncConversation, server: Server, *, stream: bool
) -> None:
    queue = Queue(server, chat)
    hold = threading.Event()
    driver.script(Reply("slow one", hold=hold), Reply("quick"))
    memory = driver.remember(chat, on_conflict="serialize")
    first = asyncio.create_task(spoken(driver, memory, "first", stream=stream))
    await wait_until_async(lambda: driver.asked)
    second = asyncio.create_task(spoken(driver, memory, "second", stream=stream))
    await wait_until_async(lambda: queue.waiting == 1)
    assert len(driver.asked) == 1
    hold.set()
    assert await first == "slow one"
    assert await second == "quick"
    assert len(driver.asked[1]) > len(driver.asked[0])
    assert await stored(chat) == [["first", "slow one"], ["second", "quick"]]
    assert not queue.line.held


async def test_serialize_after_a_lost_lease_raises_the_answer(
    driver: Driver, chat: AsyncConversation, server: Server
) -> None:
    hold = threading.Event()
    driver.script(Reply("slow one", hold=hold), Reply("quick"))
    memory = driver.remember(chat, on_conflict="serialize")
    slow = asyncio.create_task(spoken(driver, memory, "first", stream=False))
    await wait_until_async(lambda: driver.asked)
    Queue(server, chat).run_out()
    await driver.say(memory, "second")
    hold.set()
    with pytest.raises(LeaseLostError) as caught:
        await slow
    assert "slow one" in str(caught.value.reply)
    assert await stored(chat) == [["second", "quick"]]
