"""Several write at once: each change is made once, or its caller is told that it was not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.meaning.kit import embed, facts_in
from tests.facts.store.raw import Raw
from tests.servers.facade import as_async, inner
from turnstore import ConflictError
from turnstore.facts._storing import adding

if TYPE_CHECKING:
    from tests.facts.store.conftest import NewFacts
    from tests.servers.running import Server
    from turnstore import AsyncStore, Store
    from turnstore.facts import AsyncFacts

pytestmark = pytest.mark.one_setup

Look = Callable[..., Raw]


async def test_an_exchange_is_stored_once_by_many_at_once(facts: AsyncFacts, raw: Look) -> None:
    added = await asyncio.gather(
        *(facts.add_exchange("ada", "c1", "t1", "user: Hi\nassistant: Hello") for _ in range(8))
    )
    assert sorted(one.duplicate for one in added) == [False] + [True] * 7
    assert len({one.id for one in added}) == 1
    assert len(raw().records) == 1


@pytest.mark.servers("redis", "valkey", first=True)
async def test_what_is_tried_again_goes_over_the_same_connections(
    make_async_store: Callable[..., AsyncStore], server: Server
) -> None:
    facts = facts_in(make_async_store(), engine="plain")
    added = await facts.add("ada", "Ada swims.")
    opened = []
    for number in range(4):
        texts = [f"Ada swims {number} or {other}." for other in range(5)]
        await asyncio.gather(*(facts.update("ada", added.id, text=text) for text in texts))
        opened.append(server.raw.info("stats")["total_connections_received"])
    assert opened[1:] == opened[:1] * 3, "all were opened at the first time"


@pytest.mark.parametrize("tries", [1, 50])
async def test_a_fact_that_others_change_is_changed_at_last_or_a_conflict(  # noqa: PLR0913, PLR0917 - fixtures
    new_facts: NewFacts,
    make_store: Callable[..., Store],
    engine: str,
    monkeypatch: pytest.MonkeyPatch,
    raw: Look,
    tries: int,
) -> None:
    embedded: list[str] = []

    def meddling(texts: list[str]) -> Any:
        embedded.extend(texts)
        inner(rival).update("ada", added.id, meta={"by": "others"})
        return embed(texts)

    rival = facts_in(as_async(make_store()), engine=engine)
    added = await rival.add("ada", "Ada swims.")
    facts = new_facts(embed=meddling)
    monkeypatch.setattr(adding, "_MOST_CHANGING", tries)
    change = facts.update("ada", added.id, text="Ada dives.")
    if tries == 1:
        with pytest.raises(ConflictError, match="at each of 1 tries"):
            await change
    else:
        await change
    (fact,) = [record.fact for record in raw().records.values()]
    assert fact.meta == {"by": "others"}
    assert fact.text == ("Ada swims." if tries == 1 else "Ada dives.")
    assert embedded == ["Ada dives."], "once, however often it is tried"


async def test_changes_at_once_are_all_made(facts: AsyncFacts, raw: Look) -> None:
    added = await facts.add("ada", "Ada swims.")
    await asyncio.gather(
        facts.update("ada", added.id, pinned=True),
        facts.update("ada", added.id, meta={"a": 1}),
        facts.update("ada", added.id, text="Ada dives."),
    )
    fact = raw().records[added.id].fact
    assert (fact.pinned, fact.meta, fact.text) == (True, {"a": 1}, "Ada dives.")
