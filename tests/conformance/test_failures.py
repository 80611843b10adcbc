"""Failures before, in the middle of and after the call, of the model and of Redis."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.marks import ONE_SERVER
from tests.conformance.views import kept, stored
from tests.servers.proxy import Cut
from tests.waiting import wait_until_async
from turnstore import SaveError, UnavailableError
from turnstore.testing import Reply

if TYPE_CHECKING:
    from tests.conformance.driver import Driver
    from tests.servers.proxy import Proxy
    from turnstore import AsyncConversation

pytestmark = ONE_SERVER


async def spoken(driver: Driver, memory: Any, text: str, *, stream: bool) -> str:
    """Say something, plain or streamed."""
    if stream:
        return "".join([piece async for piece in driver.stream(memory, text)])
    return await driver.say(memory, text)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_model_that_fails_saves_nothing(
    driver: Driver, chat: AsyncConversation, *, stream: bool
) -> None:
    memory = driver.remember(chat)
    await driver.say(memory, "My name is Ada.")
    driver.script(Reply.error(400))
    with pytest.raises(Exception, match="scripted error"):
        await spoken(driver, memory, "Hello", stream=stream)
    assert len(await chat.turns()) == 1
    assert await spoken(driver, memory, "What is my name?", stream=stream) == "Your name is Ada."
    assert "Hello" not in str(driver.asked[-1])


async def test_an_answer_that_breaks_in_its_middle_saves_nothing(
    driver: Driver, chat: AsyncConversation
) -> None:
    driver.script(Reply("Hello you", ending="cut"))
    with pytest.raises(Exception, match=r"."):
        await driver.say(driver.remember(chat), "Hello")
    assert await kept(chat) == []


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_did_not_succeed_is_not_saved(
    driver: Driver, chat: AsyncConversation, *, stream: bool
) -> None:
    memory = driver.remember(chat)
    assert driver.unfit, "a driver names what its SDK has, or says in `cannot` why not"
    for reply in driver.unfit:
        driver.script(reply)
        with suppress(Exception):  # some SDKs raise for it
            await spoken(driver, memory, "Hello", stream=stream)
        assert await kept(chat) == []
    assert await driver.say(memory, "My name is Ada.")
    assert "Hello" not in str(driver.asked[-1])


@pytest.mark.parametrize("stream", [False, True])
async def test_no_redis_at_load_asks_no_model(
    driver: Driver, far: AsyncConversation, proxy: Proxy, *, stream: bool
) -> None:
    memory = driver.remember(far)
    proxy.go_down()
    with pytest.raises(UnavailableError):
        await spoken(driver, memory, "Hello", stream=stream)
    assert driver.asked == []


async def test_going_on_without_memory(
    driver: Driver, far: AsyncConversation, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    memory = driver.remember(far, on_load_error="continue")
    await driver.say(memory, "My name is Ada.")
    proxy.go_down()
    with caplog.at_level(logging.WARNING):
        answer = await driver.say(memory, "What is my name?")
    assert answer == "You have not told me your name."
    assert "without memory" in caplog.text
    proxy.come_up()
    assert await driver.say(memory, "What is my name?") == "Your name is Ada."
    assert len(await far.turns()) == 2


@pytest.mark.parametrize("stream", [False, True])
async def test_no_redis_at_the_save_raises_the_answer(
    driver: Driver, far: AsyncConversation, proxy: Proxy, *, stream: bool
) -> None:
    hold = threading.Event()
    driver.script(Reply("Hello Ada", hold=hold))
    memory = driver.remember(far)
    task = asyncio.create_task(spoken(driver, memory, "Hi", stream=stream))
    await wait_until_async(lambda: driver.asked)
    proxy.go_down()
    hold.set()
    with pytest.raises(SaveError) as caught:
        await task
    assert "Hello Ada" in str(caught.value.reply)
    proxy.come_up()
    assert await kept(far) == []
    for _ in range(2):  # the second changes nothing
        await _save(caught.value)
        assert await stored(far) == [["Hi", "Hello Ada"]]


async def _save(error: SaveError) -> None:
    save: Any = error.turn.save
    if inspect.iscoroutinefunction(save):
        await save()
    else:
        await asyncio.to_thread(save)


async def test_a_save_whose_answer_was_lost_is_not_doubled(
    driver: Driver, far: AsyncConversation, proxy: Proxy
) -> None:
    memory = driver.remember(far)
    await driver.say(memory, "Hello")
    proxy.next(Cut.REPLY_LOST, command="EVALSHA")
    await driver.say(memory, "Hello again")
    assert [turn[0] for turn in await stored(far)] == ["Hello", "Hello again"]
