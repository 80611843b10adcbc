"""Streams: saved when they were read to a good end, and never else."""

from __future__ import annotations

import asyncio
import gc
import threading
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.conformance.marks import ONE_SERVER
from tests.conformance.views import kept, stored
from tests.waiting import wait_until_async
from turnstore.testing import Reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from tests.conformance.driver import Driver
    from turnstore import AsyncConversation, AsyncStore

pytestmark = ONE_SERVER


async def test_a_stream_is_one_turn(driver: Driver, chat: AsyncConversation) -> None:
    memory = driver.remember(chat)
    answer = ""
    for text in ("My name is Ada.", "What is my name?"):
        answer = "".join([piece async for piece in driver.stream(memory, text)])
        assert (await stored(chat))[-1] == [text, answer]
    assert answer == "Your name is Ada."


async def test_pieces_arrive_while_the_model_speaks(
    driver: Driver, chat: AsyncConversation
) -> None:
    hold = threading.Event()
    driver.script(Reply("Hello you", hold=hold))
    said = []
    async for piece in driver.stream(driver.remember(chat), "Hi"):
        said.append(piece)
        hold.set()  # the model goes on once its first piece has arrived
    assert "".join(said) == "Hello you"
    assert len(said) > 1
    assert await stored(chat) == [["Hi", "Hello you"]]


async def test_nothing_is_stored_while_the_model_speaks(
    driver: Driver, chat: AsyncConversation
) -> None:
    hold = threading.Event()
    driver.script(Reply("Hello you", hold=hold))
    while_it_speaks = None
    async for _ in driver.stream(driver.remember(chat), "Hi"):
        if while_it_speaks is None:
            while_it_speaks = await kept(chat)
            hold.set()
    assert while_it_speaks == []


async def test_an_abandoned_stream_saves_nothing_then_or_later(
    driver: Driver, chat: AsyncConversation
) -> None:
    memory = driver.remember(chat)
    stream = cast("AsyncGenerator[str]", driver.stream(memory, "Hello"))
    async with aclosing(stream) as pieces:
        async for _ in pieces:
            break
    del stream, pieces
    gc.collect()
    assert await kept(chat) == []
    await driver.say(memory, "My name is Ada.")
    assert "Hello" not in str(driver.asked[-1])
    assert len(await chat.turns()) == 1


async def test_a_truncated_stream_saves_nothing(driver: Driver, chat: AsyncConversation) -> None:
    driver.script(Reply("Hello you", ending="truncated"))
    with suppress(Exception):  # some SDKs notice, and say so in their own way
        async for _ in driver.stream(driver.remember(chat), "Hello"):
            pass
    assert await kept(chat) == []


async def test_a_stream_whose_connection_breaks_saves_nothing(
    driver: Driver, chat: AsyncConversation
) -> None:
    driver.script(Reply("Hello you", ending="cut"))
    with pytest.raises(Exception, match=r"."):
        async for _ in driver.stream(driver.remember(chat), "Hello"):
            pass
    assert await kept(chat) == []


@pytest.mark.parametrize("moment", ["waiting for the answer", "in the stream"])
async def test_a_cancelled_call_saves_nothing(
    make_async_store: Callable[..., AsyncStore], driver: Driver, moment: str
) -> None:
    chat = make_async_store().conversation("ada")
    memory: Any = driver.remember(chat)
    hold, begun = threading.Event(), asyncio.Event()
    driver.script(Reply("Hello you", hold=hold))

    async def talk() -> None:
        if moment == "in the stream":
            async for _ in driver.stream(memory, "Hi"):
                begun.set()
        else:
            await driver.say(memory, "Hi")

    task = asyncio.create_task(talk())
    if moment == "in the stream":
        await asyncio.wait_for(begun.wait(), 20)
    else:
        await wait_until_async(lambda: driver.asked)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    hold.set()
    assert await kept(chat) == []
