"""What began before an erasure is not stored after it, wherever in it that comes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.begun import MOST_CALLS, another, erase, facts_of, meanwhile
from tests.facts.meaning.kit import facts_in
from tests.facts.store.raw import kinds_of, look
from turnstore import ErasedError
from turnstore.facts import NewFact

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.facts.store.conftest import NewFacts
    from tests.servers.running import Server
    from turnstore.facts import AsyncFacts

pytestmark = pytest.mark.one_setup

Doing = Callable[["AsyncFacts", str], Awaitable[Any]]

LONG = [NewFact(text=f"{word} " * 4000, conversation="c1") for word in ("sailing", "rowing", "ski")]

# What is done, with the id of a fact that is there; an empty one where the owner has none yet.
NEW: dict[str, Doing] = {
    "add": lambda facts, _: facts.add("ada", "Ada sails.", conversation="c1"),
    "add_exchange": lambda facts, _: facts.add_exchange("ada", "c1", "t", "user: I sail."),
    "add_many": lambda facts, _: facts.add_many("ada", LONG),
    "add_many of a generator": lambda facts, _: facts.add_many("ada", (one for one in LONG[:1])),
}
KNOWN: dict[str, Doing] = {
    "update": lambda facts, id_: facts.update("ada", id_, text="Ada swims."),
    "end": lambda facts, id_: facts.end("ada", id_),
    "forget": lambda facts, id_: facts.forget("ada", id_),
    "add again": lambda facts, _: facts.add("ada", "Ada rows.", conversation="c1"),
}


def same(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return messages


@pytest.mark.parametrize("what", ["owner", "conversation"])
@pytest.mark.parametrize("redact", [None, same], ids=["as it is", "redacted"])
@pytest.mark.parametrize("name", [*NEW, *KNOWN])
async def test_nothing_of_it_is_there_after_an_erasure(  # noqa: PLR0913, PLR0917 - what it runs on
    new_store: NewStore,
    server: Server,
    prefix: str,
    engine: str,
    name: str,
    redact: Any,
    what: str,
) -> None:
    """The spaces of the owner become others, too: that lets what was begun begin anew."""
    store = new_store(redact=redact)
    facts = facts_in(store, engine=engine, ttl=timedelta(hours=1))
    with another(server, prefix) as other:
        others = facts_of(other, engine)
        chat = other.conversation("c1", owner="ada")

        def act() -> None:
            others.add("ada", "Ada reads.", conversation="c2")
            assert erase(other, what)

        at = 0
        for at in range(1, MOST_CALLS + 1):
            other.erase("ada")
            chat.append("Hello")
            id_ = ""
            if name in KNOWN:
                id_ = (await facts.add("ada", "Ada rows.", conversation="c1")).id
            doing = {**NEW, **KNOWN}[name]
            calls = await meanwhile(lambda: doing(facts, id_), facts, act, at)  # noqa: B023 - awaited here
            if calls < at:
                break  # it was done before it could be erased
            left = look(server, facts, "ada")
            assert [one.fact.text for one in left.records.values()] == (
                ["Ada reads."] if what == "conversation" else []
            ), f"erased after call {at} of {calls}"
            if what == "owner":
                kinds = kinds_of(server, facts, "ada")
                assert kinds <= {b"generation"}, f"erased after call {at} of {calls}"
        assert 2 < at < MOST_CALLS, "it was erased after each of its calls"


@pytest.mark.parametrize("what", ["owner", "conversation"])
async def test_nothing_that_is_being_redacted_or_produced_comes_back(
    new_store: NewStore, new_facts: NewFacts, server: Server, prefix: str, what: str
) -> None:
    with another(server, prefix) as other:
        chat = other.conversation("c1", owner="ada")
        erased: list[bool] = []

        def act() -> None:
            chat.append("Hello")
            erased.append(erase(other, what))

        def redact(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
            if "secret" in str(messages):
                act()
            return messages

        def produced() -> Any:
            act()
            yield NewFact(text="Ada sails.", conversation="c1")

        facts = new_facts(new_store(redact=redact))
        known = await facts.add("ada", "Ada swims.", conversation="c1")
        calls: list[Callable[[], Awaitable[Any]]] = [
            lambda: facts.update("ada", known.id, text="a secret"),
            lambda: facts.add("ada", "a secret", conversation="c1"),
            lambda: facts.add_exchange("ada", "c1", "t", "a secret"),
            lambda: facts.add_many("ada", [NewFact(text="a secret", conversation="c1")] * 2),
            lambda: facts.add_many("ada", produced()),
        ]
        for number, call in enumerate(calls, start=1):
            with suppress(ErasedError):
                assert await call() is None, "only an update finds nothing to be changed"
            assert len(erased) >= number
            assert erased.count(False) == 0
            assert await facts.list("ada", include_closed=True) == [], number
