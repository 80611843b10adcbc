"""Whatever of an owner is at work while the owner is erased, it leaves nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.begun import MOST_CALLS, another, erase, facts_of, meanwhile
from tests.facts.meaning.kit import Kit, Model, new, news
from tests.facts.store.raw import kinds_of
from turnstore import ErasedError
from turnstore.facts import Block, ExtractionError, WorkingMemory

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.running import Server
    from turnstore import AsyncStore

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis-7", "redis-8", "valkey")]

HUMAN = Block("human", "The user.")


async def extracted(kit: Kit) -> str:
    """Let an extraction change something, and give its id."""
    await kit.facts.add("ada", "Ada rows.", slot="hobby", conversation="c1")
    kit.model.answers = [[news("supersedes", 0, "Ada sails.", slot="hobby"), new("Ada swims.")]]
    await kit.extraction().extract(kit.chat)
    return (await kit.extraction().operations("ada"))[0].id


async def failed(kit: Kit) -> str:
    """Let an extraction fail, and give the letter."""
    kit.model.answers = ["?", "?"]
    with pytest.raises(ExtractionError):
        await kit.extraction().extract(kit.chat)
    return (await kit.extraction().dead_letters("ada"))[0].id


async def nothing(_: Kit) -> str:
    return ""


Doing = Callable[[Any, str], Awaitable[Any]]

OPERATIONS: dict[str, tuple[Callable[[Kit], Awaitable[str]], Doing]] = {
    "run": (nothing, lambda made, _: made.run("ada")),
    "undo": (extracted, lambda made, id_: made.undo("ada", id_)),
    "retry": (failed, lambda made, id_: made.retry("ada", id_)),
    "skip": (failed, lambda made, id_: made.skip("ada", id_)),
}


@pytest.mark.parametrize("what", ["owner", "conversation"])
@pytest.mark.parametrize("name", OPERATIONS)
async def test_an_extraction_leaves_nothing(  # noqa: PLR0913, PLR0917 - what it runs on
    kit: Kit, server: Server, prefix: str, engine: str, name: str, what: str
) -> None:
    before, doing = OPERATIONS[name]
    with another(server, prefix) as other:
        others = facts_of(other, engine)

        def act() -> None:
            others.add("ada", "Ada reads.", conversation="c2")
            assert erase(other, what)

        at = 0
        for at in range(1, MOST_CALLS + 1):
            other.erase("ada")
            await kit.say("I sail.")
            id_ = await before(kit)
            kit.model.answers = [[new("Ada sails.")]]
            extraction = kit.extraction()
            try:
                calls = await meanwhile(lambda: doing(extraction, id_), extraction, act, at)  # noqa: B023 - awaited here
            except LookupError:
                calls = at  # it was erased before it was looked for
            if calls < at:
                break  # it was done before it could be erased
            if what == "owner":
                kinds = kinds_of(server, kit.facts, "ada")
                assert kinds <= {b"generation"}, f"erased after call {at} of {calls}"
            else:
                assert await kit.texts(include_closed=True) == ["Ada reads."], at
                assert await extraction.operations("ada") == [], at
                assert await extraction.dead_letters("ada") == [], at
        assert 4 < at < MOST_CALLS, "it was erased after each of its calls"


@pytest.mark.parametrize("is_redacted", [False, True])
async def test_a_change_of_the_working_memory_is_of_the_number_of_its_first_try(
    new_store: NewStore,
    new_kit: Callable[[AsyncStore], Kit],
    server: Server,
    prefix: str,
    *,
    is_redacted: bool,
) -> None:
    def redact(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if is_redacted and "secret" in str(messages) and not erased:
            act()
        return messages

    kit = new_kit(new_store(redact=redact))
    kit.model = Model()
    erased: list[bool] = []
    with another(server, prefix) as other:
        others = WorkingMemory(facts_of(other, "plain"), [HUMAN])

        def act() -> None:
            erased.append(True)
            assert erase(other, "owner")
            others.append("ada", "human", "Ada reads.")

        memory = kit.memory(HUMAN)
        await memory.append("ada", "human", "Ada sails.")
        if is_redacted:
            with pytest.raises(ErasedError):
                await memory.append("ada", "human", "a secret")
        else:
            await meanwhile(lambda: memory.append("ada", "human", "a secret"), memory, act, 1)
        assert erased
        assert await memory.read("ada") == {"human": "Ada reads."}
