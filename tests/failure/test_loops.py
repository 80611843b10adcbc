"""An AsyncStore in a second event loop: its connections belong to the first.

redis-py sends a command there, and fails before its answer; so it is refused before.
"""

from __future__ import annotations

import asyncio
import warnings
from typing import TYPE_CHECKING, Any

import pytest

from tests.failure.helping import said
from turnstore import AsyncStore, SaveError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.running import Server
    from tests.servers.setups import Setup

pytestmark = [
    pytest.mark.servers("redis", "valkey", "cluster"),
    pytest.mark.one_setup,
    pytest.mark.drops_connections,
]


@pytest.fixture
def loops() -> Iterator[list[asyncio.AbstractEventLoop]]:
    """Give three event loops, all of them alive."""
    opened = [asyncio.new_event_loop() for _ in range(3)]
    yield opened
    for loop in opened:
        loop.close()


@pytest.fixture
def client(server: Server, setup: Setup, loops: list[asyncio.AbstractEventLoop]) -> Iterator[Any]:
    """Give an asyncio client that belongs to no loop yet."""
    if setup.client == "sync":
        pytest.skip("a sync client knows no event loop")
    made: Any = server.async_client(setup)
    yield made
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loops[0].run_until_complete(made.aclose())


def test_it_is_refused_and_nothing_sent(
    client: Any, prefix: str, loops: list[asyncio.AbstractEventLoop]
) -> None:
    first, second, _ = loops
    chat = AsyncStore(client, name="test", prefix=prefix).conversation("ada")
    first.run_until_complete(chat.append("first"))
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"nothing was sent: .* another event loop"):
            second.run_until_complete(chat.append("second"))
        with pytest.raises(RuntimeError, match="Make one in each loop"):
            second.run_until_complete(chat.read())
    assert first.run_until_complete(said(chat)) == ["first"]


def test_so_it_is_after_the_end_of_the_first(server: Server, prefix: str, setup: Setup) -> None:
    if setup.client == "sync":
        pytest.skip("a sync client knows no event loop")
    chat = AsyncStore(server.async_client(setup), name="test", prefix=prefix).conversation("ada")
    asyncio.run(chat_append(chat, "first"))
    with pytest.raises(RuntimeError, match=r"nothing was sent: .* another event loop"):
        asyncio.run(chat_append(chat, "second"))

    async def afresh() -> list[str]:
        other = server.async_client(setup)
        found = await said(AsyncStore(other, name="test", prefix=prefix).conversation("ada"))
        await other.aclose()
        return found

    assert asyncio.run(afresh()) == ["first"]


async def chat_append(chat: Any, text: str) -> None:
    await chat.append(text)


def test_going_on_without_memory_is_not_meant(
    client: Any, prefix: str, loops: list[asyncio.AbstractEventLoop]
) -> None:
    first, second, _ = loops
    chat = AsyncStore(client, name="test", prefix=prefix).conversation("ada")
    first.run_until_complete(chat.append("first"))

    async def turn() -> None:
        async with chat.turn("second", on_load_error="continue"):
            pytest.fail("the model would have been asked")

    with pytest.raises(RuntimeError, match="another event loop"):
        second.run_until_complete(turn())


def test_a_turn_that_ends_in_another_loop_keeps_its_answer(
    client: Any, prefix: str, loops: list[asyncio.AbstractEventLoop]
) -> None:
    first, second, _ = loops
    chat = AsyncStore(client, name="test", prefix=prefix).conversation("ada")
    turn = chat.turn("question")
    first.run_until_complete(turn.__aenter__())
    turn.reply("answer")
    with pytest.raises(SaveError, match="nothing was sent") as caught:
        second.run_until_complete(turn.save())
    assert caught.value.reply == "answer"
    first.run_until_complete(caught.value.turn.save())
    assert first.run_until_complete(said(chat)) == ["question", "answer"]


def test_a_client_that_was_closed_goes_on_in_the_next_loop(
    client: Any, prefix: str, loops: list[asyncio.AbstractEventLoop]
) -> None:
    for number, loop in enumerate(loops):
        chat = AsyncStore(client, name="test", prefix=prefix).conversation("ada")
        assert loop.run_until_complete(chat.append("hi")).turns == number + 1
        loop.run_until_complete(client.aclose())


@pytest.mark.servers("redis", "valkey")
def test_a_client_that_others_have_used_in_another_loop(
    client: Any, prefix: str, loops: list[asyncio.AbstractEventLoop]
) -> None:
    """Nobody could know before; so the error says that it may have been written."""
    first, second, _ = loops
    first.run_until_complete(client.ping())
    chat = AsyncStore(client, name="test", prefix=prefix).conversation("ada")
    with pytest.raises(UnavailableError, match="one of another event loop") as caught:
        second.run_until_complete(chat.append("hi", turn_id="one"))
    assert caught.value.outcome_unknown
    assert caught.value.turn_id == "one"
    second.run_until_complete(chat.append("hi", turn_id="one"))
    assert second.run_until_complete(said(chat)) == ["hi"]
    second.run_until_complete(client.aclose())


@pytest.mark.servers("redis", "valkey")
def test_a_turn_of_an_owner_with_a_client_that_others_have_used_in_another_loop(
    client: Any, prefix: str, loops: list[asyncio.AbstractEventLoop]
) -> None:
    first, second, _ = loops
    first.run_until_complete(client.ping())
    chat = AsyncStore(client, name="test", prefix=prefix).conversation("c", owner="ada")

    async def turn() -> None:
        async with chat.turn("hi"):
            pytest.fail("the model would have been asked")

    with pytest.raises(UnavailableError, match="one of another event loop"):
        second.run_until_complete(turn())
    second.run_until_complete(client.aclose())
