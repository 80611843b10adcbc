"""How much one commit takes, so that it does not hold up the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.meaning.kit import embed
from tests.facts.store.raw import look, place_of
from turnstore import LimitError
from turnstore.facts import NewFact
from turnstore.facts._storing.commit import batches

if TYPE_CHECKING:
    from tests.facts.store.conftest import NewFacts
    from tests.servers.running import Server
    from turnstore.facts import AsyncFacts

pytestmark = pytest.mark.one_setup

HALF = 32_768


def counts(*texts: str) -> list[int]:
    divided = list(batches(texts, str))
    assert [one for batch in divided for one in batch] == list(texts)
    return [len(batch) for batch in divided]


def test_a_commit_has_so_many_facts_and_so_much_text() -> None:
    assert counts() == []
    assert counts(*"x" * 250) == [100, 100, 50]
    assert counts(*["x" * HALF] * 5) == [2, 2, 1]
    assert counts("x" * HALF, "x" * HALF, "y") == [2, 1]
    assert counts("y", "x" * HALF * 3, "y") == [1, 1, 1]
    assert counts(*["\u00fc" * (HALF // 2)] * 3) == [2, 1], "bytes count, not characters"


async def test_long_facts_are_stored_and_removed_in_parts(
    new_facts: NewFacts, server: Server
) -> None:
    sizes: list[int] = []

    def counting(texts: list[str]) -> Any:
        sizes.append(len(texts))
        return embed(texts)

    facts = new_facts(embed=counting)
    texts = [" ".join(f"w{n}x{word}" for word in range(3000)) for n in range(6)]
    added = await facts.add_many("ada", [NewFact(text=one, conversation="c1") for one in texts])
    assert sizes == [2, 2, 2]
    assert look(server, facts, "ada").records.keys() == {one.id for one in added}
    assert _commits(server, facts) == 3
    assert await facts.forget_conversation("ada", "c1") == 6
    assert look(server, facts, "ada").records == {}
    assert _commits(server, facts) == 6


def _commits(server: Server, facts: AsyncFacts) -> int:
    return int(server.raw.hget(place_of(facts, "ada").keys.postings, "#r"))


async def test_what_is_changed_has_no_more_meta_than_what_is_added(facts: AsyncFacts) -> None:
    added = await facts.add("ada", "Ada swims.", meta={"a": 1})
    with pytest.raises(LimitError, match="meta has"):
        await facts.update("ada", added.id, meta={"a": "x" * HALF})
    fact = await facts.get("ada", added.id)
    assert fact is not None
    assert fact.meta == {"a": 1}
