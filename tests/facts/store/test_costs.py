"""What each operation on facts costs, as its docstring says: commands, counted where they pass."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from inspect import iscoroutine
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.store.raw import place_of
from tests.failure.helping import load_scripts
from tests.servers.facade import inner
from turnstore.facts import NewFact
from turnstore.facts._storing.health import health

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.facts.store.conftest import NewFacts
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore._calls import Flow
    from turnstore.facts import AsyncFacts

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis", "valkey")]

Doing = Callable[["AsyncFacts", str], Awaitable[Any]]

SCRIPT = "EVALSHA"
INDEX = "FT.INFO"  # whether it could be indexed: only with a search index
DOCUMENTS = "FT.SEARCH"  # likewise: which documents an owner has
OF_DOCUMENTS = "EVALSHA of documents"  # likewise: to delete these
HUNDRED = [NewFact(text=f"Ada owns boat number {number}.") for number in range(100)]

# What is done with a fact of Ada's, whose id is given, and the commands that it takes.
OPERATIONS: dict[str, tuple[Doing, list[str]]] = {
    "add": (lambda facts, _: facts.add("ada", "Ada bakes."), [SCRIPT, SCRIPT, INDEX]),
    "the first fact of an owner": (
        lambda facts, id_: facts.add(f"owner of {id_}", "Bob bakes."),
        [SCRIPT, "HGETALL", SCRIPT, INDEX],
    ),
    "a duplicate": (lambda facts, _: facts.add("ada", "Ada sails."), [SCRIPT, SCRIPT]),
    "add_many": (lambda facts, _: facts.add_many("ada", HUNDRED), [SCRIPT, SCRIPT, INDEX]),
    "add_exchange": (
        lambda facts, _: facts.add_exchange("ada", "c", "t", "Hi. - Hello."),
        [SCRIPT, SCRIPT, INDEX],
    ),
    "search": (
        lambda facts, _: facts.search("ada", "Does Ada sail?", min_score=None),
        [SCRIPT, SCRIPT, SCRIPT],
    ),
    "search where nothing is": (lambda facts, _: facts.search("eve", "Who sails?"), [SCRIPT]),
    "get": (lambda facts, id_: facts.get("ada", id_), [SCRIPT]),
    "list": (lambda facts, _: facts.list("ada"), [SCRIPT]),
    "update": (
        lambda facts, id_: facts.update("ada", id_, text="Ada swims."),
        [SCRIPT, SCRIPT, SCRIPT, INDEX],
    ),
    "end": (lambda facts, id_: facts.end("ada", id_), [SCRIPT, SCRIPT, INDEX]),
    "forget": (lambda facts, id_: facts.forget("ada", id_), [SCRIPT, SCRIPT, SCRIPT]),
    "forget, and look": (
        lambda facts, id_: facts.forget("ada", id_, verify=True),
        ["HKEYS", SCRIPT, SCRIPT, SCRIPT, "SCAN", SCRIPT, DOCUMENTS],
    ),
    "forget_conversation": (
        lambda facts, _: facts.forget_conversation("ada", "c"),
        [SCRIPT, "HSCAN", SCRIPT, SCRIPT, "XRANGE"],
    ),
    "forget_turns": (
        lambda facts, _: facts.forget_turns("ada", "c", ["t"]),
        [SCRIPT, "HSCAN", SCRIPT, SCRIPT, SCRIPT],
    ),
    "forget_turns where nothing is": (
        lambda facts, _: facts.forget_turns("ada", "c", ["other"]),
        [SCRIPT, "HSCAN"],
    ),
    "forget_turns of none": (lambda facts, _: facts.forget_turns("ada", "c", []), []),
    "retain": (
        lambda facts, _: facts.retain("ada", most=1),
        [SCRIPT, "ZRANGE", SCRIPT, SCRIPT, SCRIPT],
    ),
    "erase": (
        lambda facts, _: facts.erase("ada"),
        # What there is of facts is looked at together, in one round trip.
        [
            *(SCRIPT, "HKEYS", "HGET", "HKEYS", "HLEN", "HLEN", "XLEN", "XLEN"),
            *(SCRIPT, OF_DOCUMENTS, SCRIPT, DOCUMENTS, SCRIPT, SCRIPT),
        ],
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
async def test_the_commands_of_an_operation(
    name: str, new_store: NewStore, new_facts: NewFacts, proxy: Proxy, engine: str
) -> None:
    doing, commands = OPERATIONS[name]
    facts = new_facts(new_store(at=proxy))
    seen: list[str] = []
    for _ in range(2):  # the first time, the server learns the scripts
        await facts.erase("ada")
        id_ = (await facts.add("ada", "Ada sails.", conversation="c")).id
        await facts.add("ada", "Ada has a cat.", conversation="c", sources=["t"])
        proxy.clear()
        await doing(facts, id_)
        seen = list(proxy.seen)
    has_index = engine == "search"
    of_index = {INDEX, DOCUMENTS, OF_DOCUMENTS}
    assert seen == [one.split()[0] for one in commands if has_index or one not in of_index]


async def test_the_commands_of_erasing_a_conversation(
    new_store: NewStore, new_facts: NewFacts, proxy: Proxy, engine: str
) -> None:
    store = new_store(at=proxy)
    facts = new_facts(store)
    chat = store.conversation("c", owner="ada")
    seen: list[str] = []
    for _ in range(2):  # the first time, the server learns the scripts
        await chat.append("I sail.")
        await facts.add("ada", "Ada sails.", conversation="c")
        proxy.clear()
        await chat.erase()
        seen = list(proxy.seen)
    facts_go = ["HKEYS", SCRIPT, "HSCAN", SCRIPT, SCRIPT, "XRANGE"]
    rest = ["HDEL", "XRANGE", "HGET", *([DOCUMENTS] if engine == "search" else []), SCRIPT]
    assert seen == [SCRIPT, *facts_go, *rest]


async def test_the_commands_of_health(
    new_store: NewStore, new_facts: NewFacts, proxy: Proxy, server: Server, engine: str
) -> None:
    """One for each conversation that was read for facts, gone or not, in one round trip."""
    store = new_store(at=proxy)
    facts = new_facts(store)
    place = place_of(facts, "ada")
    await facts.add("ada", "Ada sails.")
    for number in range(20):
        if number % 2:
            await store.conversation(f"c{number}", owner="ada").append("Hello")
        server.raw.hset(place.keys.cursors, place.conversation(f"c{number}"), "0 0")
    server.raw.pexpire(place.keys.cursors, 60_000)
    proxy.clear()
    assert (await facts.health("ada")).lag == 10
    vectors = {"plain": "HLEN", "vectorset": "VCARD", "search": "FT.SEARCH"}[engine]
    index = [INDEX] if engine == "search" else []
    first = ["HLEN", "HGET", "XLEN", "HGETALL"]
    assert proxy.seen == [*index, *first, vectors, *["LINDEX"] * 20]
    steps: list[object] = []

    def counted(flow: Flow[Any]) -> Flow[Any]:
        reply = None
        with suppress(StopIteration):
            while True:
                steps.append(step := flow.send(reply))
                reply = yield step

    base = inner(facts)._base
    running = inner(facts)._run(counted(health(base, "ada")))
    assert (await running if iscoroutine(running) else running) is None
    assert len(steps) == len(index) + 3


# A history alone, in a process of its own.
HISTORY: dict[str, str] = {
    "sync": """
from turnstore import Store
with Store.from_url({url!r}, name="test", prefix={prefix!r}) as store:
    for owner in (None, "ada"):
        chat = store.conversation("c", owner=owner)
        chat.append("I sail.")
        chat.read()
        with chat.turn("Where?") as turn:
            turn.reply("At sea.")
""",
    "async": """
import asyncio
from turnstore import AsyncStore
async def main():
    async with AsyncStore.from_url({url!r}, name="test", prefix={prefix!r}) as store:
        for owner in (None, "ada"):
            chat = store.conversation("c", owner=owner)
            await chat.append("I sail.")
            await chat.read()
            async with chat.turn("Where?") as turn:
                turn.reply("At sea.")
asyncio.run(main())
""",
}


@pytest.mark.servers("redis", "valkey", first=True)
@pytest.mark.parametrize("client", HISTORY)
def test_a_history_costs_no_more_where_facts_are_imported(
    server: Server, prefix: str, proxy: Proxy, client: str
) -> None:
    load_scripts(server, prefix)
    seen: list[list[str]] = []
    for first in ("", "import turnstore.facts"):
        code = first + HISTORY[client].format(url=proxy.url, prefix=prefix)
        code += f"import sys\nassert ('turnstore.facts' in sys.modules) is {bool(first)}"
        proxy.clear()
        subprocess.run([sys.executable, "-c", code], check=True, timeout=90)
        seen.append(proxy.seen)
    without_owner = [SCRIPT, "LRANGE", "LRANGE", SCRIPT]  # to append, to read, and for the turn
    with_owner = [SCRIPT, SCRIPT, "LRANGE", SCRIPT, "LRANGE", SCRIPT]
    assert seen == [without_owner + with_owner] * 2


async def test_where_no_facts_were_ever_kept_an_erasure_looks_for_them_twice(
    new_store: NewStore, proxy: Proxy
) -> None:
    store = new_store(at=proxy)
    chat = store.conversation("c", owner="ada")
    for _ in range(2):  # the first time, the server learns the scripts
        await chat.append("I sail.")
        proxy.clear()
        assert (await chat.erase()).parts == {}
        assert proxy.seen[-2:] == ["HKEYS", "EXISTS"]
        await chat.append("I sail.")
        proxy.clear()
        assert (await store.erase("ada")).parts == {}
    assert proxy.seen == [SCRIPT, SCRIPT, "HKEYS", "EXISTS", SCRIPT, SCRIPT]
