"""A move to another embedder stops where the new index has not taken all; searches stay right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.store.test_index import no_index_stays
from tests.facts.store.test_spaces import OTHER, TEXTS, finds
from turnstore import ServerError
from turnstore.facts import NewFact, Search

if TYPE_CHECKING:
    from tests.facts.store.conftest import NewFacts

__all__ = ["no_index_stays"]

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis-8.2-search")]


async def test_what_an_index_could_not_take_keeps_its_owner_where_it_was(
    new_facts: NewFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = new_facts()
    await old.add_many("ada", [NewFact(text=text) for text in TEXTS])
    whole, packed = Search.pack, 0

    def short(*args: Any) -> bytes:
        nonlocal packed
        packed += 1
        vector = whole(*args)
        return vector[:-4] if packed == 1 else vector

    monkeypatch.setattr(Search, "pack", short)
    new = new_facts(**OTHER)
    with pytest.raises(ServerError, match=r"has \d+ vectors for the \d+ facts .* was not moved"):
        await new.migrate()
    monkeypatch.undo()
    assert packed == len(TEXTS)
    assert await finds(new_facts()) == ["Ada knows 7."], "the old embedder goes on"
    health = await new_facts().health("ada")
    assert (health.facts, health.vectors) == (len(TEXTS), len(TEXTS))
