"""Going on without memory has an end where the request makes no sense without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from turnstore import ConflictError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.proxy import Proxy
    from turnstore import AsyncStore


@pytest.mark.one_setup
async def test_a_tool_result_needs_the_memory_of_its_call(
    new_store: Callable[..., AsyncStore], proxy: Proxy
) -> None:
    chat = new_store(at=proxy, redis={"retry": None}).conversation("ada")
    result: dict[str, Any] = {"role": "tool", "tool_call_id": "call-1", "content": "4"}
    proxy.go_down()
    with pytest.raises(UnavailableError):
        async with chat.turn([result], on_load_error="continue"):
            pass


@pytest.mark.one_setup
async def test_a_fork_up_to_a_turn_that_was_dropped_says_so(store: AsyncStore) -> None:
    chat = store.conversation("ada")
    for number in range(4):
        await chat.append(f"question {number}")
    await chat.trim(turns=2)
    with pytest.raises(ValueError, match="turn 1 is not held any more"):
        await chat.fork("eve", upto=1)
    assert await store.conversation("eve").read() == []
    await chat.fork("eve", upto=3)
    with pytest.raises(ConflictError):
        await chat.fork("eve")
