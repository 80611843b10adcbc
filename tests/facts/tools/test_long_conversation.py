"""How far back a search of the conversation looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import NewStore
    from tests.facts.meaning.kit import Kit
    from turnstore import AsyncStore


@pytest.mark.servers("redis-7", "redis", "valkey", first=True)
@pytest.mark.one_setup
async def test_the_newest_2000_turns_are_searched(
    new_store: NewStore, new_kit: Callable[[AsyncStore], Kit]
) -> None:
    kit = new_kit(new_store(max_messages=None))
    await kit.chat.append("My first boat is Argo.")
    await kit.chat.append("My second boat is Beagle.")
    for number in range(1999):
        await kit.chat.append(f"Line {number}.")
    tools = kit.tools(conversation=kit.chat)
    found = await tools.call("conversation_search", {"query": "Argo Beagle"})
    assert found.endswith("user: My second boat is Beagle.")
    assert "Argo" not in found
