"""AsyncStore has the same names, with `await` before what talks to Redis."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from turnstore import AsyncStore

pytestmark = pytest.mark.one_setup


async def test_the_same_with_await(make_async_store: Callable[..., AsyncStore]) -> None:
    chat = make_async_store().conversation("ada")

    await chat.append("My name is Ada.")
    async with chat.turn("What is my name?") as turn:
        turn.reply(f"There were {len(turn.messages)} messages.")

    history = await chat.read()
    assert history[-1]["content"] == "There were 2 messages."
