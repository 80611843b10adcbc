"""A turn whose block failed is entered again: it begins anew, with what is stored now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.store.talk import texts
from turnstore.context import Context

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.proxy import Proxy
    from turnstore import AsyncConversation, AsyncPendingTurn, AsyncStore
    from turnstore.context import Query

pytestmark = pytest.mark.one_setup


async def _fail(turn: AsyncPendingTurn) -> None:
    with pytest.raises(KeyError):  # noqa: PT012 - the block of the turn fails, not its end
        async with turn:
            turn.reply("lost")
            raise KeyError


@pytest.fixture
async def chat(store: AsyncStore) -> AsyncConversation:
    chat = store.conversation("ada")
    await chat.append(["one", "1"])
    return chat


@pytest.mark.parametrize("options", [{}, {"on_conflict": "serialize"}])
async def test_it_sends_what_was_saved_meanwhile(
    chat: AsyncConversation, options: dict[str, Any]
) -> None:
    turn = chat.turn("q", context=Context(sources=[lambda _: ["A fact."]]), **options)
    await _fail(turn)
    await chat.append(["two", "2"])
    async with turn:
        assert texts(turn.history) == ["one", "1", "two", "2"]
        assert texts(turn.messages)[1:] == ["one", "1", "two", "2", "q"]
        turn.reply("a")
    assert texts(await chat.read()) == ["one", "1", "two", "2", "q", "a"]


async def test_it_recalls_what_is_known_now(chat: AsyncConversation) -> None:
    known = ["Ada sails."]

    def source(_: Query) -> list[str]:
        return list(known)

    turn = chat.turn("q", context=Context(sources=[source]))
    await _fail(turn)
    assert "Ada sails." in str(turn.messages[0])
    known.clear()
    async with turn:
        assert turn.recalled == ()
        assert texts(turn.messages) == ["one", "1", "q"]


async def test_it_has_a_memory_again_when_the_server_has(
    new_store: Callable[..., AsyncStore], proxy: Proxy
) -> None:
    chat = new_store(at=proxy, redis={"retry": None}).conversation("ada")
    await chat.append(["one", "1"])
    both: tuple[dict[str, Any], ...] = ({}, {"on_conflict": "serialize"})
    for options in both:
        turn = chat.turn("q", on_load_error="continue", **options)
        proxy.go_down()
        await _fail(turn)
        assert turn.load_error is not None
        proxy.come_up()
        async with turn:
            assert turn.load_error is None
            assert texts(turn.messages)[:2] == ["one", "1"]
            turn.reply("a")
        assert turn.saved is not None
