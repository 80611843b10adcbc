"""A fact that cannot be read: it is an error, and can be forgotten with all that has its id."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.facts.store.raw import look, place_of
from tests.facts.store.test_spaces import OTHER
from tests.servers.facade import inner
from turnstore import CorruptTurnError, FormatError
from turnstore.facts import NewFact

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.facts.store.conftest import NewFacts
    from tests.servers.running import Server
    from turnstore.facts import AsyncFacts

pytestmark = pytest.mark.one_setup

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "another value": lambda _: b"rubbish",
    "its end is cut off": lambda raw: raw[:-4],
    "its line is cut off": lambda raw: raw[:30],
    "its line lacks a word": lambda raw: raw.replace(b" 0 ", b" ", 1),
}
TEXTS = ["Ada sails, and sails, and Ada rows.", "Ada sails.", "Bob rows.", "…"]


async def damage(
    server: Server, facts: AsyncFacts, id_: str, how: Callable[[bytes], bytes]
) -> None:
    key = place_of(facts, "ada").keys.facts
    server.raw.hset(key, id_, how(server.raw.hget(key, id_)))


@pytest.mark.parametrize("text", range(len(TEXTS)))
@pytest.mark.parametrize("how", DAMAGES)
async def test_it_is_forgotten_with_all_that_has_its_id(
    facts: AsyncFacts, server: Server, how: str, text: int
) -> None:
    added = await facts.add_many("ada", [NewFact(text=one) for one in TEXTS])
    await facts.search("ada", TEXTS[text], min_score=None)  # when it was found, is noted
    its = added[text].id
    await damage(server, facts, its, DAMAGES[how])
    if how != "its line lacks a word":  # which scripts alone miss
        with pytest.raises(CorruptTurnError, match=rf"{its}.*forget\(\) removes it"):
            await facts.search("ada", TEXTS[text], min_score=None)
    assert await facts.forget("ada", its)
    assert not await facts.forget("ada", its)
    assert its not in look(server, facts, "ada").records, "all parts agree"
    hits = await facts.search("ada", "sails", min_score=None, top_k=10)
    assert len(hits) == len(TEXTS) - 1
    again = await facts.add("ada", TEXTS[text])
    assert not again.duplicate
    look(server, facts, "ada")


async def test_it_goes_from_each_space(new_facts: NewFacts, server: Server) -> None:
    old = new_facts()
    added = await old.add_many("ada", [NewFact(text=one) for one in TEXTS])
    new = new_facts(**OTHER, previous=inner(old))
    await new.migrate()
    await damage(server, new, added[1].id, DAMAGES["another value"])
    assert await new.forget("ada", added[1].id)
    raw = look(server, new, "ada")
    assert (len(raw.spaces), len(raw.records)) == (2, len(TEXTS) - 1)


async def test_what_a_later_version_has_written_stays(facts: AsyncFacts, server: Server) -> None:
    its = (await facts.add("ada", "Ada sails.")).id
    key = place_of(facts, "ada").keys.facts
    await damage(server, facts, its, lambda raw: b"2" + raw[1:])
    before = server.raw.hget(key, its)
    with pytest.raises(FormatError):
        await facts.forget("ada", its)
    assert server.raw.hget(key, its) == before


async def test_no_look_at_health_reads_it_but_a_retention_does(
    facts: AsyncFacts, server: Server
) -> None:
    its = (await facts.add("ada", "Ada sails.")).id
    await damage(server, facts, its, DAMAGES["another value"])
    assert (await facts.health()).is_well
    with pytest.raises(CorruptTurnError, match=its):
        await facts.retain(dry_run=True)
