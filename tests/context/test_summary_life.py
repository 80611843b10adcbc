"""How long a summary lives, what makes it void, and what becomes of it in a copy."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.context.folds import NEVER, Echo, carried, echoing, fill, lines, part, say, stored
from turnstore import Window

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.running import Server
    from turnstore import AsyncConversation, AsyncStore

pytestmark = pytest.mark.one_setup


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def chat(store: AsyncStore) -> AsyncConversation:
    return store.conversation("c")


async def test_it_lives_as_long_as_the_turns(
    new_store: NewStore, server: Server, echo: Echo
) -> None:
    chat = new_store(ttl=timedelta(hours=1)).conversation("c")

    def both() -> tuple[int, int]:
        """Give what is left to the two, in minutes."""
        lives = (server.raw.pttl(chat.key), server.raw.pttl(part(chat, "summary")))
        first, second = (round(int(life) / 60_000) for life in lives)
        return first, second

    await fill(chat, 1, 6)
    await chat.expire(timedelta(minutes=30))
    await chat.summarize(echoing(echo))
    assert both() == (30, 30), "it takes over what is left"
    await chat.append("more")
    assert both() == (60, 60), "an append renews both"
    await chat.expire(timedelta(minutes=10))
    assert both() == (10, 10)
    await chat.expire(None)
    assert server.raw.pttl(chat.key) == server.raw.pttl(part(chat, "summary")) == -1
    await fill(chat, 8, 9)
    assert both() == (60, 60)
    forever = new_store(ttl=None).conversation("c")
    await say(forever, 10, echoing(echo))
    assert server.raw.pttl(chat.key) == server.raw.pttl(part(chat, "summary")) == -1
    await chat.summarize(echoing(echo, Window(turns=1)))
    assert server.raw.pttl(part(chat, "summary")) == -1
    assert await chat.clear()
    assert stored(server, chat) is None


# What makes it void


async def test_a_rewind_below_makes_it_void(
    chat: AsyncConversation, server: Server, echo: Echo
) -> None:
    await fill(chat, 1, 8)
    await chat.summarize(echoing(echo))
    await chat.rewind(4)
    assert stored(server, chat) == (4, lines(1, 4)), "just what it covers is left"
    await chat.rewind(1)
    assert stored(server, chat) is None
    await fill(chat, 4, 9)
    assert carried(await say(chat, 10, echoing(echo))) == lines(1, 5)


async def test_clearing_and_a_rewind_to_nothing_take_it_along(
    chat: AsyncConversation, server: Server, echo: Echo
) -> None:
    for end in (chat.clear, lambda: chat.trim(0), lambda: chat.rewind(100)):
        await fill(chat, 1, 6)
        await chat.summarize(echoing(echo))
        assert stored(server, chat)
        await end()
        assert stored(server, chat) is None


async def test_a_new_conversation_after_an_eviction_knows_nothing(
    chat: AsyncConversation, server: Server, echo: Echo
) -> None:
    await fill(chat, 1, 6)
    await chat.summarize(echoing(echo))
    server.raw.delete(chat.key)
    assert carried(await say(chat, 1, echoing(echo))) == []
    assert stored(server, chat) is None
    await fill(chat, 2, 6)
    assert carried(await say(chat, 7, echoing(echo))) == lines(1, 2)


async def test_an_evicted_summary_is_made_of_what_is_held(
    chat: AsyncConversation, server: Server, echo: Echo
) -> None:
    await fill(chat, 1, 6)
    await chat.summarize(echoing(echo))
    server.raw.delete(part(chat, "summary"))
    assert carried(await say(chat, 7, echoing(echo))) == lines(1, 2)


@pytest.mark.parametrize(
    "value",
    ["", "hello", "[1]", '[2,1,1,1,"x"]', '[1,1,"1",1,"x"]', "[1,1,1,1,7]", "7", "{}", b"\xff"],
)
async def test_a_damaged_summary_is_left_aside_and_made_anew(
    chat: AsyncConversation, server: Server, echo: Echo, value: str | bytes
) -> None:
    await fill(chat, 1, 6)
    server.raw.set(part(chat, "summary"), value, px=60_000)
    context = echoing(echo)
    assert carried(await say(chat, 7, context)) == lines(1, 2)
    assert stored(server, chat) == (2, lines(1, 2))


# Copies


async def test_a_copy_begins_without_one(
    store: AsyncStore, chat: AsyncConversation, server: Server, echo: Echo
) -> None:
    await fill(chat, 1, 8)
    await chat.summarize(echoing(echo))
    copy = await chat.fork("d", upto=6)
    assert (stored(server, copy), stored(server, chat)) == (None, (4, lines(1, 4)))
    assert carried(await say(copy, 7, echoing(echo))) == lines(1, 2)
    assert stored(server, chat) == (4, lines(1, 4))
    await copy.clear()
    server.raw.set(part(copy, "summary"), '[1,9,9,9,"of another time"]', px=60_000)
    await chat.fork("d")
    assert stored(server, store.conversation("d")) is None


async def test_each_conversation_has_its_own(store: AsyncStore, echo: Echo) -> None:
    for name in "ab":
        await fill(store.conversation(name), 1, 6)
    assert carried(await say(store.conversation("a"), 7, echoing(echo))) == lines(1, 2)
    never = echoing(echo, after_turns=NEVER)
    assert carried(await say(store.conversation("b"), 7, never)) == []
