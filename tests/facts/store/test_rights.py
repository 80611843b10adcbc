"""The rights that the guide names: with these all works, and without those of an engine nothing."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis

from tests.facts.meaning.kit import Kit, Model, embed, facts_in, new
from tests.servers.facade import inner
from tests.servers.found import search_module
from turnstore import DeniedError
from turnstore.facts import Block, ExtractionError, NewFact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import NewStore, OwnServer
    from turnstore.server import EmbeddedServer

    Login = Callable[..., Kit]

# A Redis before 7 cannot be asked what an ACL allows.
pytestmark = [pytest.mark.servers("redis-7", "redis-8", "valkey"), pytest.mark.one_setup]

GUIDE = (Path(__file__).parents[3] / "docs/guides/facts.md").read_text()
_, _, SECTION = GUIDE.partition("\n## What an ACL has to allow\n")
(ALWAYS,) = re.findall(r"```\n(\+.+)\n```", SECTION.partition("\n## ")[0])
OF_ENGINE: dict[str, str] = dict(re.findall(r'^\| `"(\w+)"` \| `?([^`|]*)', SECTION, re.MULTILINE))


def half(texts: list[str]) -> list[list[float]]:
    return [vector[:32] for vector in embed(texts)]


@pytest.fixture
def guarded(own_server: OwnServer, engine: str) -> EmbeddedServer:
    return own_server(config={"loadmodule": str(search_module())} if engine == "search" else {})


@pytest.fixture
def admin(guarded: EmbeddedServer) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(guarded.url) as raw:
        yield raw


@pytest.fixture
def login(
    new_store: NewStore, guarded: EmbeddedServer, admin: Any, prefix: str
) -> Callable[..., Kit]:
    """Keep facts as a user who has these rights, and the keys of the store alone."""

    def make(rights: str, **options: Any) -> Kit:
        admin.execute_command(f"ACL SETUSER app reset on >pw ~{prefix}:* {rights}")
        store = new_store(at=guarded, redis={"username": "app", "password": "pw"})
        return Kit(store, facts_in(store, **options), Model())

    return make


async def test_those_that_the_guide_names_suffice(login: Login, engine: str) -> None:
    kit = login(f"{ALWAYS} {OF_ENGINE[engine]}", engine=engine)
    facts, owner = kit.facts, "ada"
    await facts.add_many(owner, [NewFact(text=f"Ada has boat {n}.") for n in range(120)])
    hits = await facts.search(owner, "boat 7", top_k=1, min_score=None)
    assert [hit.fact.text for hit in hits] == ["Ada has boat 7."]
    first, second, *_ = await facts.list(owner)
    await facts.update(owner, first.id, text="Ada rows.")
    await facts.end(owner, first.id)
    assert (await facts.forget(owner, second.id, verify=True)).verified
    await facts.add_exchange(owner, "c1", "t1", "User: I row.")
    assert await facts.forget_turns(owner, "c1", ["t1"]) == 1
    await facts.add(owner, "Ada dives.", conversation="c1")
    assert await facts.forget_conversation(owner, "c1") == 1
    await _draws(kit)
    memory = kit.memory(Block("human", "The user."))
    await memory.append(owner, "human", "Her name is Ada.")
    assert (await facts.retain(older_than=timedelta(days=1))).removed == {}
    assert (await facts.health()).is_well
    other = facts_in(
        kit.store,
        engine=engine,
        embed=half,
        dimensions=32,
        embedder="half:1",
        previous=inner(facts),
    )
    assert (await other.migrate(drop=True)).owners == 1
    kept = facts_in(kit.store, engine=engine, ttl=None, previous=inner(other))
    assert (await kept.migrate(drop=True)).owners == 1
    await kept.add(owner, "Ada sings.")
    assert (await kit.store.erase(owner, verify=True)).verified


async def _draws(kit: Kit) -> None:
    extraction = kit.extraction()
    await kit.say("I sail.")
    kit.model.answers = [[new("Ada sails.")]]
    await extraction.extract(kit.chat)
    await kit.say("I sail.")
    kit.model.answers = ["no JSON"] * 3
    with pytest.raises(ExtractionError):
        await extraction.extract(kit.chat)
    for letter in await extraction.dead_letters("ada"):
        await extraction.skip("ada", letter.id)
    (operation,) = await extraction.operations("ada")
    await extraction.undo("ada", operation.id)
    kit.model.answers = [[new("Ada sails.")]] * 3
    await extraction.run("ada")


async def test_without_one_that_its_engine_needs_nothing_is_chosen_in_its_place(
    login: Login, admin: Any, engine: str, prefix: str
) -> None:
    if engine == "plain":
        pytest.skip("it needs none")
    asked_for = [{"engine": engine}, *([{"engine": "auto"}] if engine == "search" else [])]
    for options in asked_for:
        kit = login(ALWAYS, **options)
        with pytest.raises(DeniedError, match=rf"The engine {engine} runs .*{_first(engine)}"):
            await kit.facts.add("ada", "Ada rows.")
        keys: Any = admin.keys(f"{prefix}:*")
        assert [key for key in keys if not key.endswith(b":generation")] == []
    kit = login(f"{ALWAYS} {OF_ENGINE[engine]}", engine=engine)
    await kit.facts.add("ada", "Ada rows.")


@pytest.mark.usefixtures("engine")
async def test_auto_goes_on_with_what_was_there(login: Login) -> None:
    kit = login(ALWAYS, engine="plain")
    await kit.facts.add("ada", "Ada rows.")
    again = facts_in(kit.store, engine="auto")
    hits = await again.search("ada", "rows", min_score=None)
    assert (again.engine, len(hits)) == ("plain", 1)


def _first(engine: str) -> str:
    command: str = OF_ENGINE[engine].split()[0]
    return re.escape(command.removeprefix("+").upper())
