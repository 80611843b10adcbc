"""What single turns have said is removed, and what other turns say too stays."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.meaning.kit import embed, facts_in
from tests.facts.store.raw import look
from tests.servers.facade import as_async, inner
from tests.servers.proxy import Cut
from turnstore import ErasedError, Store, UnavailableError
from turnstore.facts import NewFact
from turnstore.facts._storing import forgetting, reading

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.facts.store.conftest import NewFacts
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore.facts import AsyncFacts

pytestmark = pytest.mark.one_setup


async def texts(facts: AsyncFacts, owner: str = "ada") -> list[str]:
    return sorted(fact.text for fact in await facts.list(owner, 1000, include_closed=True))


async def test_exchanges_and_facts_of_turns_go(facts: AsyncFacts, server: Server) -> None:
    for turn_id in ("t1", "t2", "t3"):
        await facts.add_exchange("ada", "c1", turn_id, f"said in {turn_id}")
        await facts.add(
            "ada", f"drawn from {turn_id}", conversation="c1", sources=[turn_id], meta={"a": 1}
        )
    closed = await facts.add("ada", "closed", conversation="c1", sources=["t2", "t3"])
    await facts.end("ada", closed.id)
    assert await facts.forget_turns("ada", "c1", ["t2", "t3", "t4"]) == 5
    assert await texts(facts) == ["drawn from t1", "said in t1"]
    assert len(look(server, facts, "ada").records) == 2
    hits = await facts.search("ada", "drawn said in t2", min_score=None)
    assert sorted(hit.fact.text for hit in hits) == ["drawn from t1", "said in t1"]
    assert await facts.forget_turns("ada", "c1", iter(["t2", "t3", "t4"])) == 0


async def test_other_conversations_and_owners_are_not_concerned(facts: AsyncFacts) -> None:
    for owner, conversation in (("ada", "c1"), ("ada", "c2"), ("bob", "c1")):
        await facts.add(owner, f"in {conversation}", conversation=conversation, sources=["t1"])
        await facts.add_exchange(owner, conversation, "t1", f"exchange of {conversation}")
    await facts.add("ada", "in none", sources=["t1"])
    await facts.add("ada", "without sources", conversation="c1")
    assert await facts.forget_turns("ada", "c1", ["t1"]) == 2
    assert await texts(facts) == ["exchange of c2", "in c2", "in none", "without sources"]
    assert await texts(facts, "bob") == ["exchange of c1", "in c1"]


async def test_what_other_turns_say_too_only_loses_these_sources(facts: AsyncFacts) -> None:
    added = await facts.add("ada", "Ada sails.", conversation="c1", sources=["t1", "t2", "t3"])
    before = await facts.get("ada", added.id)
    assert await facts.forget_turns("ada", "c1", ["t1", "t3"]) == 0
    fact = await facts.get("ada", added.id)
    assert fact is not None
    assert before is not None
    assert fact.sources == ("t2",)
    assert (fact.text, fact.observed, fact.valid_to) == (before.text, before.observed, None)
    assert await facts.forget_turns("ada", "c1", ["t2"]) == 1
    assert await texts(facts) == []


async def test_what_is_pinned_stays_as_it_is(facts: AsyncFacts) -> None:
    added = await facts.add("ada", "Ada sails.", conversation="c1", sources=["t1"])
    await facts.update("ada", added.id, pinned=True)
    before = await facts.get("ada", added.id)
    assert await facts.forget_turns("ada", "c1", ["t1"]) == 0
    assert await facts.get("ada", added.id) == before


async def test_a_fact_that_is_closed_loses_sources_too(facts: AsyncFacts) -> None:
    first = await facts.add("ada", "Ada sails.", conversation="c1", sources=["t1", "t2"])
    await facts.end("ada", first.id)
    second = await facts.add("ada", "Ada sails.", conversation="c1", sources=["t1", "t3"])
    assert not second.duplicate
    assert await facts.forget_turns("ada", "c1", ["t1"]) == 0
    assert {fact.sources for fact in await facts.list("ada", include_closed=True)} == {
        ("t2",),
        ("t3",),
    }


async def test_many_go_in_parts(facts: AsyncFacts) -> None:
    new = [
        NewFact(text=f"Boat {n}.", conversation="c1", sources=("t1",) if n % 2 else ("t1", "t2"))
        for n in range(230)
    ]
    await facts.add_many("ada", new)
    assert await facts.forget_turns("ada", "c1", ["t1"]) == 115
    left = await facts.list("ada", 1000)
    assert len(left) == 115
    assert {fact.sources for fact in left} == {("t2",)}


async def test_turns_are_taken_as_a_rewind_gives_them_with_all_their_pieces(
    new_store: NewStore, new_facts: NewFacts
) -> None:
    store = new_store()
    facts = new_facts(store)
    chat = store.conversation("c1", owner="ada")
    await chat.append("I bake.", turn_id="t1")
    await chat.append("I sail.", turn_id="t2")
    await chat.append("A lot.", turn_id="t3", continues=True)
    await facts.add("ada", "Ada bakes.", conversation="c1", sources=["t1"])
    await facts.add("ada", "Ada sails.", conversation="c1", sources=["t2", "t3"])
    await facts.add("ada", "Ada is at sea.", conversation="c1", sources=["t2"])
    assert await facts.forget_turns("ada", "c1", await chat.rewind()) == 2
    assert await texts(facts) == ["Ada bakes."]


@pytest.mark.parametrize("turns", ["t1", None, 5, [5], [None], [b"t1"], [""], ["a b"]])
async def test_what_is_no_turn_is_refused(facts: AsyncFacts, turns: Any) -> None:
    await facts.add("ada", "Ada sails.", conversation="c1", sources=["t1"])
    with pytest.raises((TypeError, ValueError)):
        await facts.forget_turns("ada", "c1", turns)
    assert await texts(facts) == ["Ada sails."]


async def test_an_exchange_that_is_being_stored_is_refused_and_a_later_one_is_not(
    new_facts: NewFacts,
) -> None:
    """Where the turn comes again under its id, it began later."""
    forgetful = new_facts()
    loop = asyncio.get_running_loop()

    def slowly(texts: list[str]) -> list[list[float]]:
        coroutine = forgetful.forget_turns("ada", "c1", ["t1"])
        assert asyncio.run_coroutine_threadsafe(coroutine, loop).result(30) == 0
        return embed(texts)

    slow = new_facts(embed=slowly)
    with pytest.raises(ErasedError) as caught:
        await slow.add_exchange("ada", "c1", "t1", "undone")
    assert caught.value.reason == "conversation"
    assert not (await slow.add_exchange("ada", "c1", "t2", "of another turn")).duplicate
    assert not (await forgetful.add_exchange("ada", "c1", "t1", "again")).duplicate
    assert await texts(forgetful) == ["again", "of another turn"]


async def test_a_fact_that_is_heard_again_meanwhile_stays(
    new_facts: NewFacts, server: Server, prefix: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = new_facts()
    others: Any = inner(
        facts_in(as_async(Store(server.raw, name="test", prefix=prefix)), engine=engine)
    )
    added = await facts.add("ada", "Ada sails.", conversation="c1", sources=["t1"])
    read = reading.read_records
    heard: list[bool] = []

    def read_and_hear(*args: Any) -> Any:
        records = yield from read(*args)
        if not heard:
            again = others.add("ada", "Ada sails.", conversation="c1", sources=["t2"])
            heard.append(again.duplicate)
        return records

    monkeypatch.setattr(forgetting, "read_records", read_and_hear)
    assert await facts.forget_turns("ada", "c1", ["t1"]) == 0
    assert heard == [True]
    fact = await facts.get("ada", added.id)
    assert fact is not None
    assert fact.sources == ("t2",)


async def test_one_that_breaks_off_says_that_a_part_was_done(
    new_store: NewStore, new_facts: NewFacts, proxy: Proxy
) -> None:
    store = new_store(at=proxy, redis={"retry": None})
    facts = new_facts(store)
    await facts.add("ada", "Ada sails.", conversation="c1", sources=["t1"])
    chat = store.conversation("c1", owner="ada")
    # The server learns the scripts.
    assert await facts.forget_turns("ada", "c2", ["t1"]) == 0
    assert (await store.conversation("c2", owner="ada").erase()).parts == {}
    for takes_away in (
        lambda: facts.forget_turns("ada", "c1", ["t1"]),
        lambda: facts.forget_conversation("ada", "c1"),
        chat.erase,
    ):
        proxy.clear()
        proxy.next(Cut.NEVER, command="EVALSHA")
        proxy.next(Cut.NEVER, times=99, answer="LOADING not yet")
        with pytest.raises(
            UnavailableError, match=r"A part .* was done before: do it again"
        ) as why:
            await takes_away()
        assert why.value.outcome_unknown
        proxy.clear()
        assert await texts(facts) == ["Ada sails."]
    assert (await chat.erase(verify=True)).parts == {"facts": 1}
