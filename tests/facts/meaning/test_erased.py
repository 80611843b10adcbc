"""Everything that there can be of an owner goes at once, and no two owners share any of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.meaning.kit import new
from tests.facts.store.raw import keys_of, kinds_of, place_of
from tests.facts.store.test_owners import HOSTILE
from tests.servers.facade import as_async, inner
from turnstore import Store, Window
from turnstore.context import Context, Summary
from turnstore.facts import (
    AsyncExchanges,
    AsyncExtraction,
    Block,
    Exchanges,
    Extraction,
    ExtractionError,
    Recall,
)

if TYPE_CHECKING:
    from tests.facts.meaning.kit import Kit
    from tests.servers.running import Server

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis-7", "redis-8", "valkey")]

HUMAN = Block("human", "What you know of the user.")
# Every kind of key that a user's data lies in, by its end; documents of an index have none.
KINDS = (
    *(b"turns", b"summary", b"queue", b"conversations", b"lives", b"names", b"cleared"),
    *(b"facts", b"order", b"norms", b"postings", b"used", b"uses", b"cursors", b"lease", b"ops"),
    *(b"dead", b"memory", b"forgotten"),
)


def exchanges_in(kit: Kit) -> Any:
    facts: Any = inner(kit.facts)
    return Exchanges(facts) if isinstance(inner(kit.store), Store) else AsyncExchanges(facts)


async def fill(kit: Kit) -> None:
    """Leave something of Ada's under each key that there is."""
    context = Context(
        Window(turns=1),
        summary=Summary(lambda _: "Ada's secret is 42.", after_turns=1),
        after=[exchanges_in(kit)],
    )
    for _ in range(3):
        chat = kit.chat
        async with chat.turn("My secret is 42.", context=context, on_conflict="serialize") as turn:
            turn.reply("I keep it.")
    await kit.chat.set_title("A secret")
    kit.model.answers = [[new("Ada has the secret 42.")]]
    await kit.extraction().extract(kit.chat)
    await kit.say("And another one.")
    kit.model.answers = ["42", "42"]
    with pytest.raises(ExtractionError):
        await kit.extraction().extract(kit.chat)
    await kit.tools(memory=kit.memory(HUMAN)).call(
        "core_memory_append", {"label": "human", "content": "The secret is 42."}
    )
    await kit.facts.search("ada", "the secret 42", min_score=None)
    cleared = kit.store.conversation("cleared", owner="ada")
    await cleared.append("42")
    await cleared.clear()
    await kit.facts.forget_conversation("ada", "never")


@pytest.mark.parametrize("verify", [False, True])
async def test_nothing_is_left_of_any_kind(kit: Kit, server: Server, *, verify: bool) -> None:
    await fill(kit)
    kinds = kinds_of(server, kit.facts, "ada")
    assert kinds.issuperset(KINDS), f"not filled: {set(KINDS) - kinds}"
    receipt = await kit.store.erase("ada", verify=verify)
    assert (receipt.conversations, receipt.turns, receipt.verified) == (1, 4, verify)
    assert receipt.parts == {
        "summaries": 1,
        "facts": 1,
        "exchanges": 3,
        "memory": 1,
        "cursors": 1,
        "dead_letters": 1,
        "operations": 1,
    }
    left = keys_of(server, kit.facts, "ada")
    assert [key.rpartition(b":")[2] for key in left] == [b"generation"], "found by a scan of all"
    (note,) = left
    assert all(word.isdigit() for word in server.raw.get(note).split()[1:]), "numbers alone"
    health = await kit.facts.health("ada")
    assert (health.facts, health.vectors, health.lag, health.dead_letters) == (0, 0, 0, 0)
    assert await kit.facts.list("ada", include_closed=True) == []
    assert await kit.extraction().operations("ada") == []
    assert await kit.extraction().dead_letters("ada") == []
    assert await kit.memory(HUMAN).read("ada") == {}
    assert await kit.store.conversations("ada") == []


@pytest.mark.servers("redis-8.2-search")
async def test_the_index_counts_none_of_an_erased_owner(kit: Kit, server: Server) -> None:
    await fill(kit)
    place = place_of(kit.facts, "ada")
    backend = inner(kit.facts)._base._backend
    index = place.index(backend.space.token)
    query = ("@u:{$u}", "PARAMS", 2, "u", place.digest, "LIMIT", 0, 0, "DIALECT", 2)

    def count() -> int:
        reply: Any = server.raw.execute_command("FT.SEARCH", index, *query)
        return int(reply[b"total_results"] if isinstance(reply, dict) else reply[0])

    assert count() == 4
    await kit.store.erase("ada")
    assert count() == 0


async def test_hostile_ids_are_apart_in_all_that_is_made_of_facts(kit: Kit) -> None:
    """Of extractions, exchanges, recall, the working memory, and tools."""
    facts: Any = inner(kit.facts)
    is_sync = isinstance(inner(kit.store), Store)
    owners = [owner for owner in HOSTILE if len(owner) < 4096] + ["x" * 4096]
    made: Any = (Extraction if is_sync else AsyncExtraction)(facts, kit.model)
    extraction: Any = as_async(made) if is_sync else made
    context = Context(
        sources=[Recall(facts, min_score=None, exchange_min_score=None, deadline=None, top_k=50)],
        after=[exchanges_in(kit)],
    )
    memory, noting = kit.memory(HUMAN), Context(after=context.after)
    for number, owner in enumerate(owners):
        chat = kit.store.conversation("c", owner=owner)
        async with chat.turn(f"My secret is s{number}e.", context=noting) as t:
            t.reply("I see.")
        kit.model.answers = [[new(f"The drawn secret is s{number}e.")]]
        assert len((await extraction.extract(chat)).new) == 1
        await memory.append(owner, "human", f"The written secret is s{number}e.")
    for number, owner in enumerate(owners):
        mine = f"s{number}e"
        async with kit.store.conversation("d", owner=owner).turn("secret?", context=context) as t:
            sent = t.messages[0]["content"]
        assert sent.count("secret is s") == sent.count(mine) == 2, owner
        assert await memory.read(owner) == {"human": f"The written secret is {mine}."}
        tools = kit.tools(owner)
        said = await tools.call("archival_memory_search", {"query": "secret", "limit": 20})
        assert said.count("secret is s") == said.count(mine) == 1, owner
