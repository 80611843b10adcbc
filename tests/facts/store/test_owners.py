"""No owner ever sees what is another one's, whatever the ids are."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.facts.meaning.kit import embed
from tests.facts.store.raw import place_of
from tests.servers.facade import inner
from turnstore.facts import NewFact
from turnstore.facts._storing.record import stamp
from turnstore.facts.engines._engine import Filter

if TYPE_CHECKING:
    from tests.facts.store.conftest import NewFacts
    from tests.servers.running import Server
    from turnstore.facts import AsyncFacts

pytestmark = pytest.mark.one_setup

# Ids that have been taken for one another, for patterns or for a part of a query somewhere.
HOSTILE = [
    *("a", "A", "*", "?", "a,b", "b", "a|b", "a b", " a", "a ", "a\tb", "a\nb"),
    *("users.1", "users.10", "users", "users.1.", "al", "alice"),
    *("{a}", "}", "{", "{}", "a}b{c", "}:facts", "${a}", "$a", "@u:{a}", "a)=>[KNN 9 @emb $v]"),
    *("-a", "~a", "%a%", "'a'", '"a"', "a\\b", "a:b", ":", "a;b", "[a b]", "(a)", "a\x1fb"),
    *(
        "\u00e9",
        "e\u0301",
        "ß",
        "ss",
        "\u0130",
        "i\u0307",
        "日本",
        "\u200d",
        "👩",
        "\x00",
        "a\x00b",
        "\ufeffa",
    ),
    *("none", "None", "null", "0", "-1", "NaN", "x" * 4096, "x" * 4095 + "y"),
]


async def run(facts: AsyncFacts, flow: Any) -> Any:
    answer = inner(facts)._run(flow)
    return await answer if asyncio.iscoroutine(answer) else answer


async def test_hostile_ids_are_apart(new_facts: NewFacts) -> None:
    facts = new_facts()
    assert len(set(HOSTILE)) == len(HOSTILE)
    ids = {}
    for number, owner in enumerate(HOSTILE):
        added = await facts.add(owner, f"The secret of this one is {number}.", conversation=owner)
        ids[owner] = added.id
    for number, owner in enumerate(HOSTILE):
        mine = f"The secret of this one is {number}."
        hits = await facts.search(owner, "What is the secret?", top_k=50, min_score=None)
        assert [hit.fact.text for hit in hits] == [mine], owner
        for as_conversation in ("a", owner):
            hits = await facts.search(owner, "secret", min_score=None, conversation=as_conversation)
            wanted = [mine] if as_conversation == owner else []
            assert [hit.fact.text for hit in hits] == wanted, owner
        assert [fact.text for fact in await facts.list(owner)] == [mine]
        other = HOSTILE[number - 1]
        assert await facts.get(owner, ids[other]) is None
        assert not await facts.forget(owner, ids[other])
        assert await facts.update(owner, ids[other], pinned=True) is None
        assert not await facts.end(owner, ids[other])
        assert await facts.forget_conversation(owner, other) == 0
        assert await facts.forget_turns(owner, owner, ["t9"]) == 0
    for number, owner in enumerate(HOSTILE):
        if number % 2:
            assert (await facts.erase(owner)).parts == {"facts": 1}
    for number, owner in enumerate(HOSTILE):
        assert len(await facts.list(owner)) == (number + 1) % 2


async def test_an_engine_that_is_asked_for_all_finds_the_owners_own(new_facts: NewFacts) -> None:
    """A search of few facts needs no index; so this asks the engine itself."""
    facts = new_facts()
    own: dict[str, set[str]] = {}
    for owner in HOSTILE:
        new = [NewFact(text=f"The secret {n}.", conversation="c") for n in range(3)]
        own[owner] = {one.id for one in await facts.add_many(owner, new)}
    base = inner(facts)._base
    backend = base._backend
    vector = np.array(embed(["The secret"])[0], dtype=np.float32)
    vector /= np.linalg.norm(vector)
    later = stamp(datetime.now(UTC) + timedelta(hours=1))
    for owner in HOSTILE:
        place = place_of(facts, owner)
        for conversation in ("", place.conversation("c")):
            wanted = Filter(later, conversation=conversation)
            flow = backend.engine.nearest(place, backend.space, vector, 50, wanted, 60)
            assert set((await run(facts, flow)).ids) == own[owner], owner


@pytest.mark.parametrize("owner", [None, "", b"ada", 5, ["ada"], {"ada"}, "\ud800", object()])
async def test_what_is_no_owner_is_refused_before_anything_is_sent(
    new_facts: NewFacts, owner: Any
) -> None:
    def embed(texts: list[str]) -> Any:
        raise AssertionError(texts)

    facts = new_facts(embed=embed)
    calls = (
        lambda: facts.add(owner, "x"),
        lambda: facts.add_many(owner, [NewFact(text="x")]),
        lambda: facts.add_many(owner, []),
        lambda: facts.add_exchange(owner, "c", "t", "x"),
        lambda: facts.search(owner, "x"),
        lambda: facts.get(owner, "0" * 12),
        lambda: facts.list(owner),
        lambda: facts.update(owner, "0" * 12, text="x"),
        lambda: facts.end(owner, "0" * 12),
        lambda: facts.forget(owner, "0" * 12),
        lambda: facts.forget_conversation(owner, "c"),
        lambda: facts.forget_turns(owner, "c", []),
        lambda: facts.erase(owner),
        *((lambda: facts.retain(owner), lambda: facts.health(owner)) if owner is not None else ()),
    )
    for call in calls:
        with pytest.raises((TypeError, ValueError)):
            await call()


@pytest.mark.parametrize("conversation", [None, 5, b"c", "\ud800"])
async def test_what_is_no_conversation_is_refused(facts: AsyncFacts, conversation: Any) -> None:
    calls = (
        lambda: facts.add("ada", "x", conversation=conversation),
        lambda: facts.add_exchange("ada", conversation, "t", "x"),
        lambda: facts.search("ada", "x", conversation=conversation),
        lambda: facts.list("ada", conversation=conversation),
        lambda: facts.forget_conversation("ada", conversation),
        lambda: facts.forget_turns("ada", conversation, []),
    )
    for call in calls:
        with pytest.raises((TypeError, ValueError)):
            await call()
    for empty in (
        facts.add_exchange("ada", "", "t", "x"),
        facts.forget_conversation("ada", ""),
        facts.forget_turns("ada", "", ["t"]),
    ):
        with pytest.raises(ValueError, match="empty"):
            await empty


async def test_other_stores_secrets_and_prefixes_are_apart(
    new_facts: NewFacts, new_store: Any
) -> None:
    numbers = count()
    stores = [
        new_store(name="one"),
        new_store(name="two"),
        new_store(name="one", secret=b"x" * 16),
        new_store(name="one", secret=b"y" * 16),
    ]
    all_facts = [new_facts(store) for store in stores]
    for facts in all_facts:
        await facts.add("ada", f"The secret is {next(numbers)}.")
    for number, facts in enumerate(all_facts):
        hits = await facts.search("ada", "secret", top_k=10, min_score=None)
        assert [hit.fact.text for hit in hits] == [f"The secret is {number}."]
        assert (await facts.health()).facts == 1


async def test_owners_at_once_are_apart(facts: AsyncFacts) -> None:
    async def live(owner: str) -> None:
        for number in range(6):
            await facts.add(owner, f"{owner} says {number}")
            hits = await facts.search(owner, "says", top_k=50, min_score=None)
            assert {hit.fact.text.split()[0] for hit in hits} == {owner}

    await asyncio.gather(*(live(f"user{number}") for number in range(8)))


async def test_no_id_stands_in_a_key(facts: AsyncFacts, server: Server, prefix: str) -> None:
    await facts.add("ada-lovelace", "Ada swims.", conversation="secret-talk")
    await facts.search("ada-lovelace", "swims", min_score=None)
    keys = b" ".join(server.lives(prefix))
    assert keys
    assert b"ada-lovelace" not in keys
    assert b"secret-talk" not in keys
