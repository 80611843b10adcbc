"""How long facts live, which of them are kept, and how they are."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.store.raw import backdate, keys_of, look, place_of
from tests.servers.facade import inner
from tests.waiting import wait_until
from turnstore.facts import Decay, Fact, NewFact
from turnstore.facts._storing.reading import Row
from turnstore.facts._storing.record import Record
from turnstore.facts._storing.retention import Rule, to_go

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.facts.store.conftest import NewFacts
    from tests.servers.running import Server
    from turnstore.facts import AsyncFacts

pytestmark = pytest.mark.one_setup

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
HOUR_MS = 3_600_000
NOW = datetime(2024, 5, 3, 12, tzinfo=UTC)


def lives(server: Server, facts: AsyncFacts) -> dict[str, int]:
    """Give how long each key of Ada's facts lives: the part behind the hash tag, and ms."""
    return {
        key.decode().rpartition("}:")[2]: ttl
        for key, ttl in keys_of(server, facts, "ada").items()
        if not key.endswith((b":generation", b":forgotten"))
    }


# The time to live


async def test_all_of_an_owner_lives_equally_long(new_facts: NewFacts, server: Server) -> None:
    facts = new_facts(ttl=HOUR)
    added = await facts.add("ada", "Ada swims.")
    await facts.search("ada", "swims", min_score=None)
    for key in keys_of(server, facts, "ada"):
        if not key.endswith(b":generation"):
            server.raw.pexpire(key, 60_000)
    await facts.end("ada", added.id)
    found = lives(server, facts)
    assert {"facts", "facts:order", "facts:postings", "facts:used"} <= found.keys()
    for part, ttl in found.items():
        assert HOUR_MS - 60_000 < ttl <= (2 * HOUR_MS if part.startswith(added.id) else HOUR_MS), (
            part
        )


@pytest.mark.keeps_keys
async def test_without_a_time_to_live_facts_are_kept(new_facts: NewFacts, server: Server) -> None:
    facts = new_facts(ttl=None)
    await facts.add("ada", "Ada swims.")
    assert set(lives(server, facts).values()) == {-1}


@pytest.mark.keeps_keys
async def test_a_time_to_live_may_be_given_and_taken_later(
    new_facts: NewFacts, server: Server
) -> None:
    ever, hour = new_facts(ttl=None), new_facts(ttl=HOUR)
    await ever.add_many("ada", [NewFact(text=f"Ada knows {number}.") for number in range(7)])
    await hour.add("ada", "Ada swims.")
    assert all(0 < ttl <= 2 * HOUR_MS for ttl in lives(server, hour).values())
    await ever.add("ada", "Ada reads.")
    assert set(lives(server, ever).values()) == {-1}
    look(server, ever, "ada")


async def test_documents_are_renewed_before_they_end(
    new_facts: NewFacts, server: Server, engine: str
) -> None:
    if engine != "search":
        pytest.skip("other engines have no documents")
    facts = new_facts(ttl=HOUR)
    await facts.add_many("ada", [NewFact(text=f"Ada knows {number}.") for number in range(700)])
    place = place_of(facts, "ada")
    token = server.raw.hget(place.keys.postings, "#v").decode()
    ids = [id_.decode() for id_ in server.raw.hkeys(place.keys.facts)]
    for id_ in ids:
        server.raw.pexpire(place.vector(token, id_), HOUR_MS // 2)
    ends = int(server.raw.hget(place.keys.postings, "#e"))
    server.raw.hset(place.keys.postings, "#e", ends - 2 * HOUR_MS + HOUR_MS // 2)
    await facts.add("ada", "Ada swims.")
    assert min(server.raw.pttl(place.vector(token, id_)) for id_ in ids) > 1.9 * HOUR_MS
    assert int(server.raw.hget(place.keys.postings, "#e")) >= ends
    look(server, facts, "ada")


# What is kept


def fact(number: int, **more: Any) -> Fact:
    given = {"created": NOW, "observed": NOW, "valid_from": NOW, **more}
    return Fact(id=f"{number:012}", text=f"fact {number}", **given)


def rows(*facts: Fact, used: dict[int, datetime] | None = None) -> list[Row]:
    return [
        Row(Record(one, "1", "", "-"), _ms((used or {}).get(int(one.id))), b"", "", "")
        for one in facts
    ]


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp() * 1000)


def test_what_has_ended_goes_some_time_after_its_end() -> None:
    given = rows(
        fact(1),
        fact(2, valid_to=NOW - 10 * DAY),
        fact(3, valid_to=NOW - 10 * DAY, expired=NOW - 2 * DAY),
        fact(4, valid_to=NOW + 10 * DAY, expired=NOW - 90 * DAY),
        fact(5, valid_to=NOW - 10 * DAY, pinned=True),
        fact(6, valid_to=NOW - 9 * DAY, expired=NOW - 8 * DAY),
    )
    assert to_go(given, Rule(closed_for=5 * DAY), NOW) == {
        given[1].record.fact.id: "closed",
        given[5].record.fact.id: "closed",
    }
    assert to_go(given, Rule(), NOW) == {}


def test_what_is_old_or_unused_goes() -> None:
    given = rows(
        fact(1, created=NOW - 10 * DAY, observed=NOW - 10 * DAY),
        fact(2, created=NOW - 10 * DAY, observed=NOW - DAY),
        fact(3, created=NOW - 10 * DAY, observed=NOW - 10 * DAY),
        fact(4, created=NOW - 10 * DAY, observed=NOW - 10 * DAY, pinned=True),
        fact(5),
        used={3: NOW - DAY},
    )
    ids = [one.record.fact.id for one in given]
    assert to_go(given, Rule(unused_for=5 * DAY), NOW) == {ids[0]: "unused"}
    assert to_go(given, Rule(older_than=10 * DAY), NOW) == dict.fromkeys(ids[:3], "old")
    assert to_go(given, Rule(older_than=10 * DAY + HOUR), NOW) == {}


def test_what_has_faded_goes() -> None:
    decay = Decay(half_life=10 * DAY, half_life_of_use=10 * DAY)
    given = rows(
        fact(1, created=NOW - 20 * DAY),
        fact(2, created=NOW - 20 * DAY),
        fact(3, created=NOW - 5 * DAY),
        used={2: NOW},
    )
    ids = [one.record.fact.id for one in given]
    assert to_go(given, Rule(fresh=0.3, decay=decay), NOW) == {ids[0]: "faded"}


def test_of_each_owner_the_freshest_are_kept() -> None:
    given = rows(
        *(fact(number, created=NOW - 30 * number * DAY) for number in range(1, 7)),
        fact(9, created=NOW - 999 * DAY, pinned=True),
        used={6: NOW},
    )
    gone = to_go(given, Rule(most=3), NOW)
    assert gone == {f"{number:012}": "most" for number in (2, 3, 4, 5)}
    assert set(to_go(given, Rule(most=1), NOW)) == {f"{number:012}" for number in range(1, 7)}
    both = to_go(given, Rule(most=4, older_than=150 * DAY), NOW)
    assert both == {"000000000005": "old", "000000000006": "old", "000000000004": "most"}


RULES: list[tuple[type[Exception], dict[str, Any]]] = [
    (TypeError, {"closed_for": 5}),
    (ValueError, {"unused_for": timedelta(0)}),
    (ValueError, {"older_than": -DAY}),
    (TypeError, {"fresh": "0.5"}),
    (ValueError, {"fresh": 0}),
    (ValueError, {"fresh": 1.5}),
    (ValueError, {"most": 0}),
    (TypeError, {"most": 1.5}),
    (TypeError, {"decay": 30}),
]


@pytest.mark.parametrize("error, options", RULES, ids=[str(one) for _, one in RULES])
def test_what_is_no_rule_is_refused(error: type[Exception], options: dict[str, Any]) -> None:
    with pytest.raises(error):
        Rule(**options)


async def test_retention_counts_first_and_removes_then(new_facts: NewFacts, server: Server) -> None:
    facts = new_facts()
    for owner in ("ada", "bob"):
        await facts.add_many(owner, [NewFact(text=f"{owner} {n}") for n in range(230)])
    kept = await facts.add("ada", "Ada swims.", pinned=True)
    ended = (await facts.list("ada", 100)).pop()
    await facts.end("ada", ended.id, valid_to=datetime.now(UTC) - DAY)
    known = datetime.now(UTC)
    looked = await facts.retain(most=100, dry_run=True)
    assert (looked.owners, looked.facts, looked.dry_run) == (2, 461, True)
    assert looked.removed == {"most": 131 + 130}
    assert len(look(server, facts, "ada").records) == 231
    done = await facts.retain("bob", most=100)
    assert (done.owners, done.facts, done.removed) == (1, 230, {"most": 130})
    assert len(look(server, facts, "ada").records) == 231
    wait_until(lambda: datetime.now(UTC) - known > timedelta(milliseconds=2))
    done = await facts.retain(closed_for=timedelta(milliseconds=1))
    assert done.removed == {"closed": 1}
    done = await facts.retain(most=100)
    assert done.removed == {"most": 130}
    raw = look(server, facts, "ada")
    assert len(raw.records) == 100
    assert kept.id in raw.records
    assert (await facts.retain(most=100)).removed == {}
    assert (await facts.retain("nobody", most=1)).owners == 0


async def test_retention_goes_by_end_and_age_and_use(new_facts: NewFacts, server: Server) -> None:
    facts = new_facts()

    async def removed(**rule: Any) -> dict[str, int]:
        return (await facts.retain("ada", **rule)).removed

    async def add(text: str, unused: timedelta | None = None, **more: Any) -> str:
        """Store a fact as if it had been stored 90 days ago."""
        id_ = (await facts.add("ada", text, **more)).id
        backdate(server, facts, id_, 90 * DAY, unused)
        return id_

    pinned = await add("Ada sails.", pinned=True)
    ended = datetime.now(UTC) - 10 * DAY
    await facts.add("ada", "Ada lived in Oslo.", valid_from=ended - DAY, valid_to=ended)
    assert await removed(closed_for=11 * DAY) == {}
    assert await removed(closed_for=9 * DAY, dry_run=True) == {"closed": 1}
    assert await removed(closed_for=9 * DAY) == {"closed": 1}
    await add("Ada swims.")
    assert await removed(older_than=91 * DAY) == {}
    assert await removed(older_than=89 * DAY) == {"old": 1}
    id_ = await add("Ada rows.", unused=10 * DAY)
    assert await removed(unused_for=11 * DAY) == {}
    assert await removed(unused_for=9 * DAY, dry_run=True) == {"unused": 1}
    backdate(server, facts, id_, 90 * DAY)
    assert await removed(unused_for=11 * DAY) == {"unused": 1}
    await add("Ada bakes.", unused=timedelta(0))
    assert await removed(fresh=0.6) == {}  # 3/5 for its use, and an eighth of 2/5 for its age
    assert await removed(fresh=0.7, decay=Decay(half_life=900 * DAY)) == {}
    assert await removed(fresh=0.7) == {"faded": 1}
    assert [fact.id for fact in await facts.list("ada", include_closed=True)] == [pinned]


async def test_one_that_is_changed_meanwhile_stays(new_facts: NewFacts, server: Server) -> None:
    facts = new_facts()
    added = await facts.add_many("ada", [NewFact(text=f"Ada knows {n}.") for n in range(5)])
    place = place_of(facts, "ada")
    from turnstore.facts._storing import forgetting  # noqa: PLC0415
    from turnstore.facts._storing.reading import read_records  # noqa: PLC0415

    async def do(flow: Any) -> Any:
        answer = inner(facts)._run(flow)
        return await answer if hasattr(answer, "__await__") else answer

    records = await do(read_records(place, [one.id for one in added]))
    await facts.update("ada", added[1].id, pinned=True)
    await facts.forget("ada", added[3].id)
    gone = await do(forgetting.remove(place, list(records.values()), "retain", unless_changed=True))
    assert gone == [added[0].id, added[2].id, added[4].id]
    assert look(server, facts, "ada").records.keys() == {added[1].id}


# How they are


async def test_health_counts_what_there_is(
    new_store: NewStore, new_facts: NewFacts, server: Server, engine: str
) -> None:
    store = new_store()
    facts = new_facts(store)
    empty = await facts.health()
    assert (empty.engine, empty.embedder, empty.dimensions) == (engine, "words:1", 64)
    assert (empty.owners, empty.facts, empty.vectors, empty.is_well) == (0, 0, 0, True)
    await facts.add_many("ada", [NewFact(text=f"Ada knows {n}.") for n in range(5)])
    await facts.add("bob", "Bob swims.")
    every, one = await facts.health(), await facts.health("ada")
    assert (every.owners, every.facts, every.vectors, every.is_well) == (2, 6, 6, True)
    assert (one.owners, one.facts, one.vectors, one.is_well) == (1, 5, 5, True)
    chat = store.conversation("c1", owner="ada")
    other = store.conversation("c2", owner="ada")
    for _ in range(4):
        await chat.append("Hello")
        await other.append("Hello")
    place = place_of(facts, "ada")
    for conversation, cursor in (("c1", "3 0"), ("c2", "1"), ("gone", "9")):
        server.raw.hset(place.keys.cursors, place.conversation(conversation), cursor)
    server.raw.xadd(place.keys.dead, {"conversation": place.conversation("c1"), "answer": "?"})
    server.raw.xadd(place.keys.dead, {"conversation": place.conversation("c2"), "answer": "?"})
    for key in (place.keys.cursors, place.keys.dead):
        server.raw.pexpire(key, 60_000)
    one = await facts.health("ada")
    assert (one.lag, one.dead_letters, one.is_well) == (1 + 3, 2, False)
    assert replace(one, dead_letters=0).is_well  # turns that wait are no failure
    await facts.forget_conversation("ada", "c1")
    assert (await facts.health("ada")).dead_letters == 1
