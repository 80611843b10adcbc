"""Turns of one conversation at once, under each policy.

`append` and `reject` are here; `serialize` has its place at the end.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from tests.conformance.marks import ONE_SERVER
from tests.conformance.test_failures import spoken
from tests.conformance.views import stored
from tests.waiting import wait_until_async
from turnstore import TurnConflictError
from turnstore.testing import Reply

if TYPE_CHECKING:
    from tests.conformance.driver import Driver
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


# serialize: one owner at a time around the model call, waiters in order.
