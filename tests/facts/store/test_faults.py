"""Answers are lost and servers die: nothing is stored twice, and nothing in part."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.facts.store.raw import Raw, kinds_of, look, place_of
from tests.failure.helping import load_scripts
from tests.servers.found import search_module
from tests.servers.proxy import Cut
from tests.servers.running import Single
from tests.waiting import wait_until_async
from turnstore import UnavailableError
from turnstore.facts import NewFact

if TYPE_CHECKING:
    from tests.conftest import NewStore, OwnServer
    from tests.facts.store.conftest import NewFacts
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore.facts import AsyncFacts

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis")]


class Operation(NamedTuple):
    """One way to change facts, the texts that are left of it, and how many scripts it takes."""

    act: Callable[[AsyncFacts, str], Awaitable[object]]
    answer: object
    left: list[str]
    scripts: int


async def _add(facts: AsyncFacts, _: str) -> object:
    # Whether it says "duplicate" depends on which of the two commands was answered.
    return bool((await facts.add("ada", "Ada reads.")).id)


async def _add_again(facts: AsyncFacts, _: str) -> object:
    return (await facts.add("ada", "ada swims.", sources=["t2"])).duplicate


async def _add_many(facts: AsyncFacts, _: str) -> object:
    return len(await facts.add_many("ada", [NewFact(text="a1"), NewFact(text="b1")]))


async def _exchange(facts: AsyncFacts, _: str) -> object:
    return bool((await facts.add_exchange("ada", "c", "t", "Hi")).id)


async def _update(facts: AsyncFacts, id_: str) -> object:
    fact = await facts.update("ada", id_, text="Ada dives.")
    return fact and fact.text


async def _end(facts: AsyncFacts, id_: str) -> object:
    return await facts.end("ada", id_)


async def _forget(facts: AsyncFacts, id_: str) -> object:
    return bool(await facts.forget("ada", id_))


async def _conversation(facts: AsyncFacts, _: str) -> object:
    return await facts.forget_conversation("ada", "c1")


async def _turns(facts: AsyncFacts, _: str) -> object:
    return await facts.forget_turns("ada", "c1", ["t1"])


async def _search(facts: AsyncFacts, _: str) -> object:
    return len(await facts.search("ada", "swims", min_score=None))


OPERATIONS = {
    "add": Operation(_add, answer=True, left=["Ada reads.", "Ada swims."], scripts=2),
    "add again": Operation(_add_again, answer=True, left=["Ada swims."], scripts=2),
    "add many": Operation(_add_many, answer=2, left=["Ada swims.", "a1", "b1"], scripts=2),
    "exchange": Operation(_exchange, answer=True, left=["Ada swims.", "Hi"], scripts=2),
    "update": Operation(_update, answer="Ada dives.", left=["Ada dives."], scripts=3),
    "end": Operation(_end, answer=True, left=["Ada swims."], scripts=2),
    "forget": Operation(_forget, answer=True, left=[], scripts=3),
    "conversation": Operation(_conversation, answer=1, left=[], scripts=3),
    "turns": Operation(_turns, answer=1, left=[], scripts=4),
    "search": Operation(_search, answer=1, left=["Ada swims."], scripts=3),
}
CUTS = [cut for cut in Cut if cut is not Cut.NEVER]


@pytest.mark.parametrize("cut", CUTS, ids=str)
@pytest.mark.parametrize("name", OPERATIONS)
async def test_an_operation_happens_once(  # noqa: PLR0913, PLR0917 - what it runs on
    new_store: NewStore, new_facts: NewFacts, proxy: Proxy, server: Server, name: str, cut: Cut
) -> None:
    operation = OPERATIONS[name]
    for place in range(operation.scripts):
        facts = new_facts(new_store(at=proxy, name=f"test-{place}"))
        load_scripts(server, str(place_of(facts, "ada").keys))
        added = await facts.add("ada", "Ada swims.", conversation="c1", sources=["t1"])
        proxy.clear()
        for _ in range(place):
            proxy.next(Cut.NEVER, command="EVALSHA")
        proxy.next(cut, command="EVALSHA")
        answer = await operation.act(facts, added.id)
        assert answer == operation.answer, place
        assert proxy.count("EVALSHA") > operation.scripts, "it was sent again"
        raw = look(server, facts, "ada")
        assert sorted(one.fact.text for one in raw.records.values()) == operation.left, place
        _nothing_is_immortal(raw)


def _nothing_is_immortal(raw: Raw) -> None:
    assert [key for key, ttl in raw.keys.items() if ttl < 0] == []


@pytest.mark.parametrize("cut", CUTS, ids=str)
async def test_an_erasure_is_made_whatever_is_lost(
    new_store: NewStore, new_facts: NewFacts, proxy: Proxy, server: Server, cut: Cut
) -> None:
    for place in range(4):
        facts = new_facts(new_store(at=proxy, name=f"test-{place}"))
        load_scripts(server, str(place_of(facts, "ada").keys))
        await facts.add("ada", "Ada swims.")
        proxy.clear()
        for _ in range(place):
            proxy.next(Cut.NEVER, command="EVALSHA")
        proxy.next(cut, command="EVALSHA")
        await facts.erase("ada")
        assert kinds_of(server, facts, "ada") <= {b"generation"}


@pytest.mark.parametrize("cut", CUTS, ids=str)
async def test_a_conversation_is_erased_whatever_is_lost(
    new_store: NewStore, new_facts: NewFacts, proxy: Proxy, server: Server, cut: Cut
) -> None:
    for place in range(5):
        store = new_store(at=proxy, name=f"test-{place}")
        facts = new_facts(store)
        load_scripts(server, str(place_of(facts, "ada").keys))
        await facts.add("ada", "Ada swims.", conversation="c1")
        await facts.add("ada", "Ada reads.", conversation="c2")
        proxy.clear()
        for _ in range(place):
            proxy.next(Cut.NEVER, command="EVALSHA")
        proxy.next(cut, command="EVALSHA")
        receipt = await store.conversation("c1", owner="ada").erase(verify=True)
        assert receipt.verified
        (left,) = look(server, facts, "ada").records.values()
        assert left.fact.text == "Ada reads."


async def test_a_dead_server_is_an_error_and_never_an_empty_answer(
    new_store: NewStore, new_facts: NewFacts, proxy: Proxy
) -> None:
    facts = new_facts(new_store(at=proxy, redis={"retry": None}))
    added = await facts.add("ada", "Ada swims.")
    proxy.go_down()
    for call in (
        lambda: facts.search("ada", "swims"),
        lambda: facts.get("ada", added.id),
        lambda: facts.list("ada"),
        lambda: facts.add("ada", "Ada reads."),
        lambda: facts.forget("ada", added.id),
        lambda: facts.health("ada"),
        lambda: facts.retain("ada", most=1),
    ):
        with pytest.raises(UnavailableError):
            await call()
    proxy.come_up()
    assert len(await facts.list("ada")) == 1


async def test_a_search_survives_that_its_use_cannot_be_noted(
    new_store: NewStore, new_facts: NewFacts, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    facts = new_facts(new_store(at=proxy, redis={"retry": None}))
    await facts.add("ada", "Ada swims.")
    for times in (1, 2):
        for _ in range(2):
            proxy.next(Cut.NEVER, command="EVALSHA")
        proxy.next(Cut.BEFORE, command="EVALSHA")
        assert len(await facts.search("ada", "swims", min_score=None)) == 1
        assert facts.counts["touch"] == times
    assert caplog.text.count("could not be noted") == 1


EACH, WRITERS = 12, 4


async def _write(facts: AsyncFacts, writer: int, acknowledged: list[str]) -> None:
    """Store one exchange after the other; repeat each until it is acknowledged."""
    for number in range(EACH):
        name = f"w{writer}n{number}"
        while True:
            try:
                await facts.add_exchange("ada", "c1", name, f"turn {name} of Ada")
            except UnavailableError:
                await asyncio.sleep(0.01)
            else:
                acknowledged.append(f"turn {name} of Ada")
                break


def _has(names: list[str], wanted: int) -> bool:
    return len(names) >= wanted


@pytest.mark.keeps_keys
async def test_what_was_acknowledged_outlives_a_killed_server(
    new_store: NewStore, new_facts: NewFacts, own_server: OwnServer, engine: str
) -> None:
    config = {"loadmodule": str(search_module())} if engine == "search" else {}
    server = own_server(appendonly=True, config=config)
    facts = new_facts(new_store(at=server))
    acknowledged: list[str] = []
    writers = [asyncio.create_task(_write(facts, one, acknowledged)) for one in range(WRITERS)]
    for crash in (1, 2):
        await wait_until_async(partial(_has, acknowledged, crash * 10), seconds=30)
        server.kill()
        known = set(acknowledged)
        await asyncio.to_thread(server.restart)
        there = await facts.list("ada", 1000)
        assert {fact.text for fact in there} >= known, "acknowledged before, and gone after it"
    await asyncio.gather(*writers)
    behind = Single(server.url)
    raw = look(behind, facts, "ada")
    assert len(raw.records) == EACH * WRITERS
    texts = sorted(one.fact.text for one in raw.records.values())
    assert texts == sorted(f"turn w{w}n{n} of Ada" for w in range(WRITERS) for n in range(EACH))
    hits = await facts.search("ada", "turn w2n3", top_k=1, min_score=None)
    assert [hit.fact.text for hit in hits] == ["turn w2n3 of Ada"]
    behind.close()
