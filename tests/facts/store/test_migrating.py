"""A move to another embedder, and its index: it is made, waited for, and has all in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.store.raw import look
from tests.facts.store.test_index import index_of, no_index_stays, told
from tests.facts.store.test_spaces import OTHER, TEXTS, finds
from tests.servers.facade import inner
from turnstore import ServerError
from turnstore.facts import NewFact, Search

if TYPE_CHECKING:
    from tests.facts.store.conftest import NewFacts
    from tests.servers.running import Server

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


async def test_an_index_that_another_process_has_dropped_is_made_again(
    new_facts: NewFacts, server: Server
) -> None:
    """Where this one has moved the facts before."""
    await new_facts(engine="plain").add_many("ada", [NewFact(text=text) for text in TEXTS])
    new = new_facts(**OTHER)
    await new.migrate()
    await new_facts(engine="plain").migrate(drop=True)
    assert index_of(new) not in server.raw.execute_command("FT._LIST")
    assert (await new.migrate()).facts == len(TEXTS)
    assert await finds(new) == ["Ada knows 7."]
    look(server, new, "ada")


async def test_the_second_name_moves_to_the_new_index(new_facts: NewFacts, server: Server) -> None:
    old = new_facts()
    await old.add("ada", "Ada swims.")
    new = new_facts(**OTHER)
    await new.migrate()
    alias = inner(new)._base.ground.alias
    assert index_of(new) != index_of(old)
    assert told(server, alias)[b"index_name"] == index_of(new)


@pytest.mark.parametrize("are_known", [True, False], ids=["same process", "fresh process"])
async def test_an_index_that_is_being_built_is_waited_for(
    new_facts: NewFacts, server: Server, *, are_known: bool
) -> None:
    """The documents are there, and the server begins to index them as the move begins."""
    many = 20
    for owner in range(many):
        await new_facts(engine="plain").add_many(
            f"u{owner}", [NewFact(text=text) for text in TEXTS]
        )
    new = new_facts(**OTHER)
    await new.migrate()
    await new_facts(engine="plain").migrate()
    server.raw.execute_command("FT.DROPINDEX", index_of(new))
    moved = await (new if are_known else new_facts(**OTHER)).migrate()
    assert (moved.facts, moved.embedded) == (many * len(TEXTS), 0)
    assert (await new_facts(**OTHER).health()).is_well
