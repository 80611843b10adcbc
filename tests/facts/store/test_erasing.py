"""An erasure leaves nothing of an owner's facts, and what began before it never comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.facts.meaning.kit import embed
from tests.facts.store.raw import keys_of, look, place_of
from tests.servers.facade import inner
from tests.servers.setups import Setup
from turnstore import ErasedError, Store
from turnstore.facts import NewFact
from turnstore.facts._storing.commit import Add, Close, CursorMove, Remove, Replace, Seen
from turnstore.facts._storing.reading import read_records
from turnstore.facts._storing.record import moment

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.facts.store.conftest import NewFacts
    from tests.servers.running import Server
    from turnstore.facts import AsyncFacts

pytestmark = pytest.mark.one_setup


@pytest.fixture
def other(server: Server, prefix: str) -> Iterator[Store]:
    """Give the store of another process, which knows nothing of facts; sync."""
    client = server.client(Setup("sync", 2, decode=False))
    yield Store(client, name="test", prefix=prefix)
    client.close()


async def fill(facts: AsyncFacts, owner: str) -> None:
    await facts.add_many(
        owner, [NewFact(text=f"{owner} knows {number}.", conversation="c1") for number in range(30)]
    )
    await facts.add_exchange(owner, "c1", "t1", "user: Hi\nassistant: Hello")
    first, second = await facts.list(owner, 2)
    await facts.end(owner, first.id)
    await facts.update(owner, second.id, text="changed")
    await facts.search(owner, "knows", min_score=None)
    await facts.forget_conversation(owner, "c2")


def left(server: Server, facts: AsyncFacts, owner: str) -> list[bytes]:
    """Give what is left of an owner, but for the note that there was an erasure."""
    return [key for key in keys_of(server, facts, owner) if not key.endswith(b"}:generation")]


async def test_nothing_is_left_but_other_owners(facts: AsyncFacts, server: Server) -> None:
    await fill(facts, "ada")
    await fill(facts, "bob")
    receipt = await facts.erase("ada")
    assert receipt.parts == {"facts": 30, "exchanges": 1}
    assert left(server, facts, "ada") == []
    assert await facts.list("ada", include_closed=True) == []
    assert await facts.search("ada", "knows", min_score=None) == []
    assert len(look(server, facts, "bob").records) == 31
    assert (await facts.erase("ada")).parts == {}
    verified = await facts.erase("bob", verify=True)
    assert (verified.verified, verified.parts) == (True, {"facts": 30, "exchanges": 1})
    assert left(server, facts, "bob") == []


async def test_an_erased_owner_begins_anew(facts: AsyncFacts, server: Server) -> None:
    await fill(facts, "ada")
    await facts.erase("ada")
    added = await facts.add("ada", "ada knows 1.")
    assert not added.duplicate
    assert look(server, facts, "ada").records.keys() == {added.id}
    assert len(await facts.search("ada", "knows", min_score=None)) == 1


async def test_the_store_erases_facts_and_facts_erase_conversations(
    new_store: NewStore, new_facts: NewFacts, server: Server
) -> None:
    store = new_store()
    facts = new_facts(store)
    again = new_facts(store)
    for erase in (store.erase, facts.erase, again.erase):
        await fill(facts, "ada")
        chat = store.conversation("c1", owner="ada")
        await chat.append("Hello")
        receipt = await erase("ada")
        assert (receipt.turns, receipt.parts) == (1, {"facts": 30, "exchanges": 1})
        assert left(server, facts, "ada") == []
        assert await chat.read() == []


@pytest.mark.parametrize("verify", [False, True])
async def test_a_process_without_facts_erases_them_too(
    facts: AsyncFacts, server: Server, other: Store, *, verify: bool
) -> None:
    await fill(facts, "ada")
    await fill(facts, "bob")
    other.conversation("c1", owner="ada").append("Hello")
    receipt = other.erase("ada", verify=verify)
    assert (receipt.turns, receipt.verified) == (1, verify)
    assert left(server, facts, "ada") == []
    assert await facts.search("ada", "knows", min_score=None) == []
    assert len(look(server, facts, "bob").records) == 31


async def test_vectors_of_earlier_spaces_go_too(new_facts: NewFacts, server: Server) -> None:
    facts = new_facts()
    await fill(facts, "ada")
    moved = new_facts(embedder="words:2", previous=inner(facts))
    await moved.migrate()
    assert len(look(server, moved, "ada").spaces) == 2
    await moved.erase("ada")
    assert left(server, moved, "ada") == []


# What an erasure meets in the middle of


Erasing = Callable[[list[str]], Any]


async def refused(
    new_facts: NewFacts, act: Callable[[Any], Any], meanwhile: Callable[[], object]
) -> None:
    """Do something whose embedder takes so long that something else happens meanwhile."""

    def slowly(texts: list[str]) -> list[list[float]]:
        meanwhile()
        return embed(texts)

    with pytest.raises(ErasedError):
        await act(new_facts(embed=slowly))


ACTS: dict[str, Callable[[Any], Any]] = {
    "add": lambda facts: facts.add("ada", "Ada swims.", conversation="c1"),
    "exchange": lambda facts: facts.add_exchange("ada", "c1", "t9", "Ada swims."),
    "many": lambda facts: facts.add_many(
        "ada", [NewFact(text=f"new {number}", conversation="c1") for number in range(150)]
    ),
}


@pytest.mark.parametrize("act", ACTS)
async def test_what_is_being_stored_is_refused(
    new_facts: NewFacts, server: Server, other: Store, act: str
) -> None:
    facts = new_facts()
    await fill(facts, "ada")
    await refused(new_facts, ACTS[act], lambda: other.erase("ada", verify=True))
    assert left(server, facts, "ada") == []


async def test_what_is_being_changed_is_refused(
    new_facts: NewFacts, server: Server, other: Store
) -> None:
    facts = new_facts()
    added = await facts.add("ada", "Ada swims.")
    await refused(
        new_facts,
        lambda slow: slow.update("ada", added.id, text="Ada dives."),
        lambda: other.erase("ada", verify=True),
    )
    assert left(server, facts, "ada") == []


async def test_a_search_that_is_under_way_brings_nothing_back(
    new_facts: NewFacts, server: Server, other: Store
) -> None:
    facts = new_facts()
    await fill(facts, "ada")

    def slowly(texts: list[str]) -> list[list[float]]:
        other.erase("ada", verify=True)
        return embed(texts)

    assert await new_facts(embed=slowly).search("ada", "knows", min_score=None) == []
    assert left(server, facts, "ada") == []


async def test_a_migration_that_is_under_way_brings_nothing_back(
    new_facts: NewFacts, server: Server, other: Store
) -> None:
    facts = new_facts()
    await fill(facts, "ada")

    def slowly(texts: list[str]) -> list[list[float]]:
        other.erase("ada", verify=True)
        return embed(texts)

    moved = new_facts(embed=slowly, embedder="words:2", previous=inner(facts))
    await moved.migrate()  # who is erased is passed over
    assert left(server, facts, "ada") == []
    assert (await moved.migrate()).facts == 0
    assert left(server, facts, "ada") == []


async def test_every_change_that_began_before_is_refused(
    facts: AsyncFacts, server: Server, other: Store
) -> None:
    """Also where the owner is there again, with the same facts."""
    await facts.add("ada", "Ada swims.")
    base, run = inner(facts)._base, inner(facts)._run

    async def do(flow: Any) -> Any:
        answer = run(flow)
        return await answer if asyncio.iscoroutine(answer) else answer

    place = place_of(facts, "ada")
    (fact,) = await facts.list("ada")
    (record,) = (await do(read_records(place, [fact.id]))).values()
    began = await do(base.begin(place, (), "test"))
    vector = embed([fact.text])[0]
    unit = np.array(vector, dtype=np.float32)
    now = datetime.now(UTC)
    changes = [
        Add(fact, unit),
        Replace(record, fact, None),
        Close(fact.id, now, now),
        Seen(fact.id, ("t1",), now),
        Remove(record),
    ]
    other.erase("ada", verify=True)
    again = await facts.add("ada", "Ada swims.")
    before = look(server, facts, "ada")
    for change in changes:
        with pytest.raises(ErasedError):
            await do(base.commit(place, began, [change], operation="test"))
    move = CursorMove("c" * 32, "", "5")
    with pytest.raises(ErasedError):
        await do(base.commit(place, began, [], operation="test", cursor=move))
    assert look(server, facts, "ada").records == before.records
    assert before.records.keys() == {again.id}


@pytest.mark.parametrize("act", ACTS)
async def test_what_is_drawn_from_a_conversation_that_is_forgotten_is_refused(
    new_facts: NewFacts, server: Server, act: str
) -> None:
    facts = new_facts()
    forgetting = new_facts()
    await facts.add("ada", "Ada reads.", conversation="c2")
    loop = asyncio.get_running_loop()

    def forget() -> None:
        coroutine = forgetting.forget_conversation("ada", "c1")
        asyncio.run_coroutine_threadsafe(coroutine, loop).result(30)

    await refused(new_facts, ACTS[act], forget)
    assert len(look(server, facts, "ada").records) == 1
    await ACTS[act](facts)
    assert len(look(server, facts, "ada").records) > 1


async def test_what_is_drawn_from_another_conversation_is_not_concerned(
    new_facts: NewFacts, server: Server
) -> None:
    forgetting = new_facts()
    loop = asyncio.get_running_loop()

    def slowly(texts: list[str]) -> list[list[float]]:
        coroutine = forgetting.forget_conversation("ada", "c1")
        asyncio.run_coroutine_threadsafe(coroutine, loop).result(30)
        return embed(texts)

    added = await new_facts(embed=slowly).add("ada", "Ada swims.", conversation="c2")
    assert look(server, forgetting, "ada").records.keys() == {added.id}


@pytest.mark.parametrize("how", ["clear", "erase"])
async def test_what_is_drawn_from_a_conversation_that_is_cleared_is_refused(
    new_facts: NewFacts, server: Server, other: Store, how: str
) -> None:
    chat = other.conversation("c1", owner="ada")
    chat.append("Hello")
    await refused(new_facts, ACTS["add"], getattr(chat, how))
    assert look(server, new_facts(), "ada").records == {}


# Many at once


async def test_writers_and_erasers_at_once(new_facts: NewFacts, server: Server) -> None:
    """Nothing that began before an erasure is there after it; what is there is whole."""
    all_facts = [new_facts() for _ in range(3)]
    key = place_of(all_facts[0], "ada").keys.facts
    refusals = 0

    def now() -> datetime:
        """Read the clock by which facts are dated."""
        where = {"target_nodes": server.raw.get_node_from_key(key.decode())} if cluster else {}
        seconds, microseconds = server.raw.time(**where)
        return moment(seconds * 1000 + microseconds // 1000)

    cluster = hasattr(server.raw, "get_node_from_key")

    async def write(writer: int) -> None:
        nonlocal refusals
        facts = all_facts[writer % 3]
        for number in range(12):
            text = f"writer {writer} says {number}"
            try:
                if number % 3:
                    added = await facts.add("ada", text, conversation="c1")
                    if number % 4 == 1:
                        await facts.end("ada", added.id)
                    if number % 4 == 2:
                        await facts.search("ada", "says", min_score=None)
                else:
                    await facts.add_exchange("ada", f"c{writer}", f"t{number}", text)
            except ErasedError:
                refusals += 1

    async def erase(eraser: int) -> None:
        for _ in range(4):
            start = now()
            await all_facts[eraser % 3].erase("ada")
            there = await all_facts[0].list("ada", 1000, include_closed=True)
            assert all(fact.created >= start for fact in there)
            await asyncio.sleep(0.01)

    await asyncio.gather(*(write(writer) for writer in range(6)), erase(0), erase(1))
    look(server, all_facts[0], "ada")
    await all_facts[0].erase("ada")
    assert left(server, all_facts[0], "ada") == []
