from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import redis
from openai import AsyncOpenAI, OpenAI

from tests.facts.meaning.kit import embed
from turnstore import AsyncStore, Store
from turnstore.facts import (
    AsyncExtraction,
    AsyncFacts,
    Block,
    Exchanges,
    Extraction,
    Facts,
    MemoryTools,
    WorkingMemory,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def facts() -> Iterator[Facts]:
    """Give facts of a server that nothing is sent to."""
    with redis.Redis(port=1) as client:
        store = Store(client, name="test")
        yield Facts(store, embed=embed, dimensions=64, embedder="words:1")


def answer(prompt: str) -> str:
    return prompt


@pytest.mark.parametrize(
    "options, error",
    [
        ({"every": 0}, ValueError),
        ({"every": True}, TypeError),
        ({"turns": 51}, ValueError),
        ({"candidates": 0}, ValueError),
        ({"max_changes": "3"}, TypeError),
        ({"queue": 0}, ValueError),
        ({"idle": 3}, TypeError),
        ({"idle": timedelta(seconds=-1)}, ValueError),
        ({"zone": "Europe/Paris"}, TypeError),
        ({"deadline": None}, TypeError),
        ({"deadline": 0}, ValueError),
        ({"template": "no places"}, ValueError),
        ({"template": 7}, TypeError),
    ],
)
def test_settings_of_no_use_are_refused(
    facts: Facts, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        Extraction(facts, answer, **options)


def test_what_is_no_model_is_refused(facts: Facts) -> None:
    with OpenAI(base_url="http://localhost:1", api_key="none") as client:
        for ask in (None, "gpt-x", client):  # the client has no name of a model
            with pytest.raises(TypeError, match="Extraction"):
                Extraction(facts, ask)


async def test_an_async_model_is_refused_on_a_sync_store(facts: Facts) -> None:
    async def later(prompt: str) -> str:
        return prompt

    async with AsyncOpenAI(base_url="http://localhost:1", api_key="none") as client:
        for ask in (later, client):
            with pytest.raises(TypeError, match="is async, and this store is not; AsyncExtraction"):
                Extraction(facts, ask, model="small")


async def test_facts_of_the_other_kind_are_refused(facts: Facts) -> None:
    async with redis.asyncio.Redis(port=1) as client:
        store = AsyncStore(client, name="test")
        others = AsyncFacts(store, embed=embed, dimensions=64, embedder="words:1")
        with pytest.raises(TypeError, match="Extraction takes Facts, not AsyncFacts; AsyncExtr"):
            Extraction(others, answer)  # type: ignore[arg-type]  # as said
        with pytest.raises(TypeError, match="AsyncExtraction takes AsyncFacts, not Facts; Extr"):
            AsyncExtraction(facts, answer)  # type: ignore[arg-type]  # as said
        with pytest.raises(TypeError, match="Exchanges takes Facts, not AsyncFacts; AsyncExch"):
            Exchanges(others)  # type: ignore[arg-type]  # as said
        with pytest.raises(TypeError, match="MemoryTools takes Facts, not AsyncFacts; AsyncMem"):
            MemoryTools(others, "ada")  # type: ignore[arg-type]  # as said
    with pytest.raises(TypeError, match=r"^Extraction takes Facts, not NoneType$"):
        Extraction(None, answer)  # type: ignore[arg-type]  # as said
    with pytest.raises(TypeError, match=r"^WorkingMemory takes Facts, not str$"):
        WorkingMemory("facts")  # type: ignore[arg-type]  # as said
    with pytest.raises(TypeError, match=r"^Extraction takes Facts, not WorkingMemory$"):
        Extraction(WorkingMemory(facts), answer)  # type: ignore[arg-type]  # as said


@pytest.mark.parametrize("owner", ["", None, 7, b"ada"])
def test_tools_without_an_owner_are_refused(facts: Facts, owner: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="owner"):
        MemoryTools(facts, owner)


def test_tools_do_not_search_the_conversation_of_another_owner(facts: Facts) -> None:
    with redis.Redis(port=1) as client:
        store = Store(client, name="test")
        for chat in (store.conversation("c1", owner="bob"), store.conversation("c1")):
            with pytest.raises(ValueError, match="of this owner"):
                MemoryTools(facts, "ada", conversation=chat)
    with pytest.raises(TypeError, match="zone"):
        MemoryTools(facts, "ada", zone="UTC")  # type: ignore[arg-type]  # as said
    with pytest.raises(TypeError, match="conversation"):
        MemoryTools(facts, "ada", conversation="c1")  # type: ignore[arg-type]  # as said


@pytest.mark.parametrize(
    "blocks",
    [
        [],
        [Block("human"), Block("human")],
        ["human"],
    ],
)
def test_blocks_of_no_use_are_refused(facts: Facts, blocks: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="block"):
        WorkingMemory(facts, blocks)


@pytest.mark.parametrize(
    "options, error",
    [
        ({"label": ""}, ValueError),
        ({"label": "Human"}, ValueError),
        ({"label": "a b"}, ValueError),
        ({"label": "a" * 33}, ValueError),
        ({"label": 7}, TypeError),
        ({"label": "human", "about": None}, TypeError),
        ({"label": "human", "limit": 0}, ValueError),
        ({"label": "human", "limit": 20_001}, ValueError),
        ({"label": "human", "limit": None}, (TypeError, ValueError)),
        ({"label": "human", "limit": True}, TypeError),
    ],
)
def test_a_block_of_no_use_is_refused(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        Block(**options)
