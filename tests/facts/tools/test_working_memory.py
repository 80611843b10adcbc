from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.meaning.kit import Kit, facts_in
from tests.servers.facade import as_async, inner
from turnstore import Store
from turnstore.context import Context
from turnstore.errors import CorruptTurnError, ErasedError, FormatError
from turnstore.facts import Block

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import NewStore
    from tests.servers.running import Server
    from turnstore import AsyncStore

pytestmark = pytest.mark.one_setup

HUMAN = Block("human", "The user.", limit=50)


def key(kit: Kit, owner: str = "ada") -> bytes:
    return bytes(inner(kit.facts)._base.ground.owner(owner).keys.memory)


async def test_blocks_are_appended_to_replaced_and_written(kit: Kit) -> None:
    memory = kit.memory(HUMAN, Block("plan"))
    assert await memory.read("ada") == {}
    assert await memory.append("ada", "human", " Her name is Ada. ") == "Her name is Ada."
    assert await memory.append("ada", "human", "She sails.") == "Her name is Ada.\nShe sails."
    assert await memory.replace("ada", "human", "sails", "rows") == "Her name is Ada.\nShe rows."
    assert await memory.replace("ada", "human", "Her name is Ada.", "") == "She rows."
    assert await memory.write("ada", "plan", "Paris") == "Paris"
    assert await memory.read("ada") == {"human": "She rows.", "plan": "Paris"}
    assert await memory.write("ada", "plan", "") == ""
    assert await memory.read("ada") == {"human": "She rows."}


async def test_each_owner_has_blocks_of_their_own(kit: Kit) -> None:
    memory = kit.memory(HUMAN)
    await memory.append("ada", "human", "Ada.")
    for owner in ("Ada", "ada ", "a", "ada,bob", "*", "{ada}"):
        assert await memory.read(owner) == {}
        await memory.append(owner, "human", "Somebody else.")
    assert await memory.read("ada") == {"human": "Ada."}


@pytest.mark.parametrize("owner", ["", None, 7])
async def test_without_an_owner_nothing_is_sent(kit: Kit, owner: Any) -> None:
    memory = kit.memory(HUMAN)
    for call in (memory.read(owner), memory.append(owner, "human", "x")):
        with pytest.raises((TypeError, ValueError), match="owner"):
            await call


@pytest.mark.parametrize(
    "act, reason",
    [
        (lambda memory: memory.append("ada", "robot", "x"), "no block 'robot'"),
        (lambda memory: memory.append("ada", "human", "  "), "nothing to add"),
        (lambda memory: memory.append("ada", "human", "x" * 51), "would have 64 of 50"),
        (lambda memory: memory.write("ada", "human", "x" * 51), "would have 51 of 50"),
        (lambda memory: memory.replace("ada", "human", "Bob", "x"), "does not stand in human"),
        (lambda memory: memory.replace("ada", "human", "a", "x"), "stands 2 times in human"),
        (lambda memory: memory.replace("ada", "human", " ", "x"), "is empty"),
    ],
)
async def test_what_cannot_be_changed_so_stays(
    kit: Kit, act: Callable[[Any], Any], reason: str
) -> None:
    memory = kit.memory(HUMAN)
    await memory.append("ada", "human", "Ada, a nurse")
    before = {"human": "Ada, a nurse"}
    with pytest.raises(ValueError, match=reason):
        await act(memory)
    assert await memory.read("ada") == before


async def test_the_limit_counts_characters_and_not_bytes(kit: Kit) -> None:
    memory = kit.memory(HUMAN)
    text = "日本語😀é" * 10
    assert await memory.append("ada", "human", text) == text
    assert await memory.read("ada") == {"human": text}
    with pytest.raises(ValueError, match="52 of 50"):
        await memory.append("ada", "human", "x")


async def test_changes_at_the_same_time_all_count(kit: Kit) -> None:
    memory = kit.memory(Block("human", limit=2000))
    lines = [f"line {number}" for number in range(5)]
    await asyncio.gather(*(memory.append("ada", "human", line) for line in lines))
    assert sorted((await memory.read("ada"))["human"].split("\n")) == lines


async def test_it_is_in_every_prompt_of_its_owner(kit: Kit) -> None:
    memory = kit.memory(HUMAN, Block("plan", "What comes next."))
    await memory.append("ada", "human", "Her name is Ada.")
    context = Context(sources=[inner(memory)])
    async with kit.chat.turn("Hello.", context=context) as turn:
        first, hello = turn.messages
        turn.reply("Hello, Ada.")
    assert first["role"] == "system"
    assert first["content"].endswith(
        "Your working memory of this user:\n"
        "[human] The user. (16 of 50 characters)\nHer name is Ada."
    )
    assert hello["content"] == "Hello."
    assert len(await kit.chat.read()) == 2
    async with kit.store.conversation("c1", owner="bob").turn("Hi.", context=context) as turn:
        assert len(turn.messages) == 1
        turn.reply("Hi.")


async def test_in_a_conversation_without_an_owner_it_says_nothing(
    kit: Kit, caplog: pytest.LogCaptureFixture
) -> None:
    memory = kit.memory(HUMAN)
    await memory.append("ada", "human", "Her name is Ada.")
    context = Context(sources=[inner(memory)])
    with caplog.at_level(logging.WARNING, "turnstore"):
        async with kit.store.conversation("c1").turn("Hello.", context=context) as turn:
            assert len(turn.messages) == 1
            turn.reply("Hello.")
    assert "has no owner" in caplog.text
    assert inner(memory).failures == 1


async def test_a_working_memory_that_is_strict_fails_the_turn(kit: Kit) -> None:
    context = Context(sources=[inner(kit.memory(HUMAN, strict=True))])
    with pytest.raises(ValueError, match="has no owner"):
        async with kit.store.conversation("c1").turn("Hello.", context=context):
            pass


async def test_it_is_erased_with_its_owner(kit: Kit) -> None:
    memory = kit.memory(HUMAN)
    await memory.append("ada", "human", "Her name is Ada.")
    await kit.store.erase("ada")
    assert await memory.read("ada") == {}
    await memory.append("ada", "human", "Anew.")
    assert await memory.read("ada") == {"human": "Anew."}


async def test_an_erasure_beats_a_change_that_is_at_work(
    new_store: NewStore,
    new_kit: Callable[[AsyncStore], Kit],
    server: Server,
    prefix: str,
    engine: str,
) -> None:
    others = Store(server.raw, name="test", prefix=prefix)
    facts_in(as_async(others), engine=engine)
    erases: list[object] = []

    def redact(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if not erases:  # between the reading and the writing of the block
            erases.append(others.erase("ada"))
        return messages

    kit = new_kit(new_store(redact=redact))
    memory = kit.memory(HUMAN)
    with pytest.raises(ErasedError):
        await memory.append("ada", "human", "Her name is Ada.")
    assert await memory.read("ada") == {}
    assert server.raw.exists(key(kit)) == 0


async def test_what_is_stored_is_redacted(
    new_store: NewStore, new_kit: Callable[[AsyncStore], Kit]
) -> None:
    def redact(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**one, "content": one["content"].replace("4711", "****")} for one in messages]

    kit = new_kit(new_store(redact=redact))
    memory = kit.memory(HUMAN)
    assert await memory.append("ada", "human", "Number 4711.") == "Number ****."
    assert await memory.read("ada") == {"human": "Number ****."}


async def test_it_lives_as_long_as_the_facts(kit: Kit, server: Server) -> None:
    memory = kit.memory(HUMAN)
    await memory.append("ada", "human", "Her name is Ada.")
    assert 0 < server.raw.pttl(key(kit)) <= timedelta(hours=1) / timedelta(milliseconds=1)
    server.raw.pexpire(key(kit), 60_000)
    await kit.facts.add("ada", "Ada sails.")
    assert server.raw.pttl(key(kit)) > 60_000


@pytest.mark.parametrize(
    "raw, error", [(b"a text of somebody", CorruptTurnError), (b"2 abc text", FormatError)]
)
async def test_what_is_not_ours_is_left_as_it_is(
    kit: Kit, server: Server, raw: bytes, error: type[Exception]
) -> None:
    memory = kit.memory(HUMAN)
    server.raw.hset(key(kit), "human", raw)
    server.raw.expire(key(kit), 60)
    for call in (memory.read("ada"), memory.append("ada", "human", "x")):
        with pytest.raises(error):
            await call
    assert server.raw.hget(key(kit), "human") == raw
