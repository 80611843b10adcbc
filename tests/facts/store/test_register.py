"""The register of a store, which says where facts are: it outlives them, and is made again."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.meaning.kit import DIMENSIONS, Kit, Model
from tests.facts.store.raw import look, place_of
from tests.servers.facade import inner
from turnstore import EngineMismatchError, ServerError
from turnstore.facts import NewFact, Ranking, Search
from turnstore.facts._owner import new_ids
from turnstore.facts._storing.base import Base

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.facts.store.conftest import NewFacts
    from tests.servers.running import Server
    from turnstore._calls import Flow
    from turnstore.facts import AsyncFacts

pytestmark = pytest.mark.one_setup

HOUR_MS = 3_600_000
AN_ID = new_ids(1, 1)[0]


def register_of(facts: AsyncFacts) -> bytes:
    register: bytes = inner(facts)._base.ground.registry
    return register


async def test_it_lives_longer_than_facts(new_facts: NewFacts, server: Server) -> None:
    facts = new_facts()
    register = register_of(facts)
    await facts.add("ada", "Ada swims.")
    assert 3 * HOUR_MS < server.raw.pttl(register) <= 4 * HOUR_MS
    # A quarter of the time to live goes by.
    server.raw.pexpire(register, 60_000)
    inner(facts)._base._renewal -= HOUR_MS / 4000
    await facts.add("ada", "Ada reads.")
    assert server.raw.pttl(register) > 3 * HOUR_MS


async def test_facts_that_live_shorter_do_not_end_it(new_facts: NewFacts, server: Server) -> None:
    long, short = new_facts(), new_facts(ttl=timedelta(minutes=1))
    await long.add("ada", "Ada swims.")
    await short.add("bob", "Bob swims.")
    assert server.raw.pttl(register_of(long)) > 3 * HOUR_MS


@pytest.mark.keeps_keys
async def test_it_is_kept_as_long_as_facts_are_kept(new_facts: NewFacts, server: Server) -> None:
    hour, ever = new_facts(), new_facts(ttl=None)
    await hour.add("ada", "Ada swims.")
    await ever.add("bob", "Bob swims.")
    assert server.raw.pttl(register_of(ever)) == -1
    await new_facts().add("ada", "Ada reads.")
    assert server.raw.pttl(register_of(ever)) == -1


async def test_when_all_is_lost_it_is_made_again(new_facts: NewFacts, server: Server) -> None:
    facts = new_facts()
    await facts.add("ada", "Ada swims.")
    _lose_everything(server, facts)
    assert await facts.search("ada", "swims", min_score=None) == []
    added = await facts.add_many("ada", [NewFact(text="Ada reads."), NewFact(text="Omega")])
    hits = await facts.search("ada", "reads", min_score=None)
    assert {hit.fact.id for hit in hits} == {one.id for one in added}
    with pytest.raises(EngineMismatchError):
        await new_facts(embedder="words:2").add("bob", "Bob reads.")
    look(server, facts, "ada")


async def test_another_process_may_have_made_another_one(
    new_facts: NewFacts, server: Server
) -> None:
    facts, other = new_facts(), new_facts(embedder="words:2")
    await facts.add("ada", "Ada swims.")
    _lose_everything(server, facts)
    await other.add("bob", "Bob reads.")
    with pytest.raises(EngineMismatchError):
        await facts.add("ada", "Ada reads.")
    assert look(server, other, "ada").records == {}


@pytest.mark.servers("redis-8.2-search")
async def test_an_index_that_was_dropped_is_made_again(new_facts: NewFacts, server: Server) -> None:
    facts = new_facts(engine=Search(), ranking=Ranking(candidates=1))
    first = await facts.add("ada", "Ada swims.")
    place = place_of(facts, "ada")
    token = server.raw.hget(place.keys.postings, "#v").decode()
    server.raw.execute_command("FT.DROPINDEX", place.index(token))
    await facts.add_many("ada", [NewFact(text=f"Omega {n}") for n in range(4)])
    hits = await facts.search("ada", "swims", top_k=1, min_score=None)
    assert [hit.fact.id for hit in hits] == [first.id]
    assert server.raw.execute_command("FT.INFO", place.index(token))


def _lose_everything(server: Server, facts: AsyncFacts) -> None:
    """Do what FLUSHALL does, to the keys and the index of one test."""
    ground = inner(facts)._base.ground
    for key in server.lives(ground.prefix):
        server.raw.delete(key)
    space = inner(facts)._base._backend.space
    if space.engine == "search":
        server.raw.execute_command("FT.DROPINDEX", ground.index(space.digest))


@pytest.mark.parametrize(
    "wrong",
    [
        {"embedder": "words:1", "dimensions": DIMENSIONS + 1},
        {"embedder": "wrods:1", "embed": lambda _: 1 / 0},
    ],
    ids=["dimensions", "name"],
)
async def test_an_embedder_that_never_answered_decides_nothing(
    new_facts: NewFacts, server: Server, wrong: dict[str, Any]
) -> None:
    """The first settings are often not right, and there is nothing to be moved yet."""
    mistaken = new_facts(**wrong)
    for call in (
        lambda: mistaken.add("ada", "Ada swims."),
        lambda: mistaken.add_exchange("ada", "c", "t1", "user: I swim."),
        lambda: mistaken.search("ada", "swims"),
        lambda: mistaken.end("ada", AN_ID),
    ):
        with contextlib.suppress(ValueError, ZeroDivisionError):
            await call()
    assert (await mistaken.health()).facts == 0
    assert await mistaken.list("ada") == []
    left = {*server.lives(inner(mistaken)._base.ground.prefix)}
    assert left <= {place_of(mistaken, "ada").keys.generation}
    facts = new_facts()
    await facts.add("ada", "Ada swims.")
    assert [hit.fact.text for hit in await facts.search("ada", "Ada swims.")] == ["Ada swims."]
    with pytest.raises(EngineMismatchError):
        await mistaken.add("ada", "Ada reads.")
    assert len(look(server, facts, "ada").spaces) == 1


async def test_what_has_only_moved_a_cursor_decides_nothing(
    new_facts: NewFacts, new_store: NewStore, server: Server
) -> None:
    store = new_store()
    mistaken = Kit(store, new_facts(store, embedder="wrods:1"), Model([[]]))
    await mistaken.say("Hi.")
    assert (await mistaken.extraction().extract(mistaken.chat)).turns == 1
    assert not server.raw.exists(register_of(mistaken.facts))
    facts = new_facts(store)
    await facts.add("ada", "Ada swims.")
    assert [hit.fact.text for hit in await facts.search("ada", "Ada swims.")] == ["Ada swims."]
    assert (await Kit(store, facts, Model()).extraction().extract(mistaken.chat)).turns == 0


async def test_auto_goes_by_what_another_process_has_chosen_meanwhile(
    new_facts: NewFacts, engine: str
) -> None:
    other = {"search": "plain"}.get(engine, engine)  # and not what "auto" would choose
    facts = new_facts(engine="auto")
    assert await facts.search("ada", "swims") == []
    assert facts.engine == {"search": "search"}.get(engine, "plain")
    await new_facts(engine=other).add("ada", "Ada swims.")
    assert [hit.fact.text for hit in await facts.search("ada", "Ada swims.")] == ["Ada swims."]
    assert facts.engine == other
    await facts.add("bob", "Bob swims.")


async def test_who_knows_two_embedders_claims_the_space_of_what_is_written(
    new_facts: NewFacts, server: Server
) -> None:
    old = new_facts()
    await old.add("ada", "Ada swims.")
    server.raw.delete(register_of(old))
    both = new_facts(embedder="words:2", previous=old)
    assert len(await both.search("ada", "Ada swims.")) == 1
    assert not server.raw.exists(register_of(old)), "to search decides nothing"
    await both.add("ada", "Ada reads.")
    with pytest.raises(EngineMismatchError):
        await new_facts(embedder="words:2").search("ada", "Ada reads.")
    assert len(await new_facts().search("ada", "Ada reads.")) == 1


async def test_a_register_that_is_gone_is_written_with_the_next_fact(
    new_facts: NewFacts, server: Server
) -> None:
    facts = new_facts()
    await facts.add("ada", "Ada swims.")
    server.raw.delete(register_of(facts))
    inner(facts)._base._renewal -= HOUR_MS / 4000  # a quarter of the time to live goes by
    await facts.add("ada", "Ada reads.")
    with pytest.raises(EngineMismatchError):
        await new_facts(embedder="words:2").add("bob", "Bob reads.")
    assert 3 * HOUR_MS < server.raw.pttl(register_of(facts)) <= 4 * HOUR_MS


async def test_a_register_that_goes_at_once_is_an_error_of_ours(
    new_facts: NewFacts, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = new_facts()
    whole = Base.register

    def evicted(base: Base) -> Flow[dict[str, str]]:
        yield from whole(base)
        server.raw.delete(base.ground.registry)
        return {}

    monkeypatch.setattr(Base, "register", evicted)
    with pytest.raises(ServerError, match="is gone: the server evicts"):
        await facts.add("ada", "Ada swims.")
    monkeypatch.undo()
    assert await facts.list("ada") == []
    await facts.add("ada", "Ada swims.")
