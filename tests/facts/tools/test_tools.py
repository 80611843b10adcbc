from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from tests.servers.facade import inner
from turnstore import OutOfMemoryError
from turnstore.facts import Block

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import NewStore
    from tests.facts.meaning.kit import Kit
    from tests.servers.proxy import Proxy
    from turnstore import AsyncStore
    from turnstore._calls import Flow
    from turnstore.facts._storing.commit import Began

pytestmark = pytest.mark.one_setup

HUMAN = Block("human", "The user.", limit=50)


async def test_a_model_changes_the_working_memory(kit: Kit) -> None:
    memory = kit.memory(HUMAN)
    tools = kit.tools(memory=memory)
    said = await tools.call("core_memory_append", {"label": "human", "content": "Ada sails."})
    assert said == "human now says (10 of 50 characters):\nAda sails."
    arguments = '{"label": "human", "old": "sails", "new": "rows"}'
    assert (await tools.call("core_memory_replace", arguments)).endswith("\nAda rows.")
    assert await memory.read("ada") == {"human": "Ada rows."}
    assert await memory.read("bob") == {}


async def test_a_model_keeps_facts_and_finds_them(kit: Kit) -> None:
    tools = kit.tools(conversation=kit.chat)
    assert await tools.call("archival_memory_insert", {"content": "Ada sails."}) == "It is kept."
    again = await tools.call("archival_memory_insert", {"content": " ada  sails. "})
    assert again == "It was kept already."
    (fact,) = await kit.facts.list("ada")
    assert (fact.text, fact.kind, fact.conversation) == ("Ada sails.", "fact", "c1")
    found = await tools.call("archival_memory_search", {"query": "Who sails?"})
    assert found == f"- Ada sails. (heard {fact.valid_from:%Y-%m-%d})"
    await kit.facts.add_exchange("ada", "c0", "t0", "user: Who sails?\nassistant: You.")
    assert await tools.call("archival_memory_search", {"query": "Who sails?"}) == found
    assert await kit.tools("bob").call("archival_memory_search", {"query": "Who sails?"}) == (
        "Nothing was found."
    )


async def test_the_archive_can_be_asked_for_another_time(kit: Kit) -> None:
    years = {"Paris": (2010, 2018), "Rome": (2018, 2024)}
    for city, (start, end) in years.items():
        await kit.facts.add(
            "ada",
            f"Ada lives in {city}.",
            valid_from=datetime(start, 1, 1, tzinfo=UTC),
            valid_to=datetime(end, 1, 1, tzinfo=UTC),
        )
    tools = kit.tools()
    asked = {"query": "Where does Ada live?"}
    assert await tools.call("archival_memory_search", asked) == "Nothing was found."
    found = await tools.call("archival_memory_search", {**asked, "as_of": "2015"})
    assert found == "- Ada lives in Paris. (since 2010-01-01; until 2018-01-01)"


async def test_a_search_gives_as_many_as_asked_for(kit: Kit) -> None:
    for number in range(25):
        # Of several words of their own, so that none is near to another one.
        own = " ".join(f"{word}{number}" for word in ("alpha", "beta", "gamma", "delta"))
        await kit.facts.add("ada", f"A boat {own}.")
    tools = kit.tools()
    for limit, expected in (({}, 5), ({"limit": 2}, 2), ({"limit": 99}, 20), ({"limit": None}, 5)):
        found = await tools.call("archival_memory_search", {"query": "boat", **limit})
        assert len(found.split("\n")) == expected


async def test_a_conversation_is_searched_by_its_words(kit: Kit) -> None:
    await kit.say("My boat is called Beagle.", "It is green.", "What is my boat called?")
    tools = kit.tools(conversation=kit.chat)
    found = (await tools.call("conversation_search", {"query": "Beagle"})).split("\n")
    (turn, *_) = await kit.chat.turns()
    assert found == [f"- {turn.time:%Y-%m-%d %H:%M} user: My boat is called Beagle."]
    assert len((await tools.call("conversation_search", {"query": "boat"})).split("\n")) == 2
    missing = await tools.call("conversation_search", {"query": "submarine"})
    assert missing == "Nothing was found."


async def test_of_a_conversation_only_one_side_and_one_time_can_be_searched(kit: Kit) -> None:
    await kit.chat.append(["boat one", {"role": "assistant", "content": "boat two"}])
    (turn,) = await kit.chat.turns()
    zone = ZoneInfo("Asia/Tokyo")
    day = turn.time.astimezone(zone)
    tools = kit.tools(conversation=kit.chat, zone=zone)

    async def found(**more: str) -> list[str]:
        text = await tools.call("conversation_search", {"query": "boat", **more})
        return [] if text == "Nothing was found." else [line[-8:] for line in text.split("\n")]

    assert sorted(await found()) == ["boat one", "boat two"]
    assert await found(role="user") == ["boat one"]
    assert await found(role="assistant") == ["boat two"]
    dates = {
        name: f"{day + timedelta(days=by):%Y-%m-%d}" for name, by in (("today", 0), ("next", 1))
    }
    yesterday = f"{day - timedelta(days=1):%Y-%m-%d}"
    assert len(await found(start_date=dates["today"], end_date=dates["today"])) == 2
    assert len(await found(start_date=yesterday, end_date=dates["next"])) == 2
    assert await found(start_date=dates["next"]) == []
    assert await found(end_date=yesterday) == []


async def test_what_tools_have_answered_is_not_found_again(kit: Kit) -> None:
    await kit.say("My boat is called Beagle.")
    tools = kit.tools(conversation=kit.chat)
    asked = {"query": "Beagle"}
    first = await tools.call("conversation_search", asked)
    call = {
        "id": "call-1",
        "type": "function",
        "function": {"name": "conversation_search", "arguments": json.dumps(asked)},
    }
    await kit.chat.append(
        [
            {"role": "user", "content": "What is it called?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            await tools.answer({**call, "function": {**call["function"]}}),  # type: ignore[dict-item]  # a dict
            {"role": "assistant", "content": "You told me once."},
        ]
    )
    assert await tools.call("conversation_search", asked) == first


@pytest.mark.parametrize("form", ["anthropic.messages", "openai.responses"])
async def test_in_any_format_tool_traffic_is_left_out(kit: Kit, form: str) -> None:
    if form == "anthropic.messages":
        use = {"type": "tool_use", "id": "1", "name": "f", "input": {"q": "Beagle"}}
        result = {"type": "tool_result", "tool_use_id": "1", "content": "Beagle"}
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": "My boat is called Beagle."},
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
        ]
    else:
        messages = [
            {"role": "user", "content": "My boat is called Beagle."},
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": "Beagle"},
            {"type": "function_call_output", "call_id": "1", "output": "Beagle"},
        ]
    await kit.chat.append(messages, format=form)
    found = await kit.tools(conversation=kit.chat).call("conversation_search", {"query": "Beagle"})
    assert len(found.split("\n")) == 1
    assert found.endswith("user: My boat is called Beagle.")


async def test_a_long_conversation_is_searched_to_its_beginning(kit: Kit) -> None:
    await kit.chat.append("My boat is called Beagle.")
    for number in range(220):
        await kit.chat.append(f"Line {number}.")
    found = await kit.tools(conversation=kit.chat).call("conversation_search", {"query": "Beagle"})
    assert found.endswith("Beagle.")


WRONG = [
    ("weather", {}, "there is no tool 'weather'"),
    ("core_memory_append", {"label": "human"}, '"content" is missing'),
    ("core_memory_append", {"label": "robot", "content": "x"}, '"label" is one of human'),
    ("core_memory_append", {"label": "human", "content": " "}, "nothing to add"),
    ("core_memory_append", {"label": "human", "content": "x" * 51}, "would have 51 of 50"),
    ("core_memory_append", {"label": "human", "content": 7}, '"content" is no text'),
    ("core_memory_append", {"label": "human", "content": "\ud83d"}, "half a letter"),
    ("core_memory_append", {"label": "human", "content": "x", "to": 1}, "and not 'to'"),
    ("core_memory_replace", {"label": "human", "old": "Bob", "new": ""}, "does not stand"),
    ("archival_memory_insert", {"content": "  "}, '"content" is empty'),
    ("archival_memory_insert", {"content": "x" * 2001}, "2000 are the most"),
    ("archival_memory_insert", "{content: x}", "no JSON"),
    ("archival_memory_insert", "[" * 100_000, "no JSON"),
    ("archival_memory_insert", '["x"]', "no JSON object"),
    ("archival_memory_insert", None, "no JSON object"),
    ("archival_memory_search", {"query": ""}, '"query" is empty'),
    ("archival_memory_search", {"query": "x", "limit": 0}, "whole number"),
    ("archival_memory_search", {"query": "x", "limit": "3"}, "whole number"),
    ("archival_memory_search", {"query": "x", "limit": True}, "whole number"),
    ("archival_memory_search", {"query": "x", "as_of": "soon"}, '"as_of" is a date'),
    ("conversation_search", {"query": "x", "role": "tool"}, '"role" is one of user'),
    ("conversation_search", {"query": "x", "end_date": "03/05"}, '"end_date" is a date'),
]


async def test_what_is_wrong_with_a_call_is_said_to_the_model(kit: Kit) -> None:
    tools = kit.tools(conversation=kit.chat, memory=kit.memory(HUMAN))
    for name, arguments, reason in WRONG:
        said = await tools.call(name, arguments)
        assert said.startswith("Error: ")
        assert reason in said
    assert await kit.facts.list("ada", include_closed=True) == []
    counts = inner(tools).counts
    assert sum(counts.values()) == len(WRONG)
    assert counts["core_memory_append"] == 7


async def test_a_memory_that_takes_no_writes_is_searched(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    await kit.facts.add("ada", "Ada sails.")
    await kit.say("I sail.")

    def full(*_: object) -> Flow[Began]:
        raise OutOfMemoryError("full")
        yield

    monkeypatch.setattr("turnstore.facts._tools.calling.begin", full)
    tools = kit.tools(conversation=kit.chat, memory=kit.memory(HUMAN))
    assert "Ada sails." in await tools.call("archival_memory_search", {"query": "Ada sails."})
    assert "I sail." in await tools.call("conversation_search", {"query": "sail"})
    said = await tools.call("archival_memory_insert", {"content": "Ada bakes."})
    assert "cannot be reached" in said
    await tools.call("x" * 10_000, {})
    assert inner(tools).counts == {"archival_memory_insert": 1, "unknown": 1}


async def test_a_memory_that_cannot_be_reached_is_said_to_the_model(
    new_store: NewStore,
    new_kit: Callable[[AsyncStore], Kit],
    proxy: Proxy,
    caplog: pytest.LogCaptureFixture,
) -> None:
    kit = new_kit(new_store(at=proxy))
    tools = kit.tools(conversation=kit.chat, memory=kit.memory(HUMAN))
    proxy.go_down()
    calls: list[tuple[str, dict[str, Any]]] = [
        ("core_memory_append", {"label": "human", "content": "Ada."}),
        ("archival_memory_insert", {"content": "Ada sails."}),
        ("archival_memory_search", {"query": "Ada"}),
        ("conversation_search", {"query": "Ada"}),
    ]
    with caplog.at_level(logging.WARNING, "turnstore"):
        for name, arguments in calls:
            said = await tools.call(name, arguments)
            assert said.startswith("The memory cannot be reached")
            assert f"the memory tool {name} failed" in caplog.text
    use = {"type": "tool_use", "id": "1", "name": "archival_memory_search", "input": {"query": "x"}}
    assert (await tools.answer(use))["is_error"] is True
    proxy.come_up()
    assert await tools.call("archival_memory_insert", {"content": "Ada sails."}) == "It is kept."


async def test_an_embedder_that_fails_is_said_to_the_model_and_not_how(kit: Kit) -> None:
    await kit.facts.add("ada", "Ada sails.")

    def broken(_: list[str]) -> Any:
        msg = "secret-host refused"
        raise ValueError(msg)

    inner(kit.facts)._base.embedder.given = broken
    said = await kit.tools().call("archival_memory_insert", {"content": "Ada bakes."})
    assert said.startswith("The memory cannot be reached")
    assert "secret" not in said


async def test_what_a_model_keeps_is_redacted(
    new_store: NewStore, new_kit: Callable[[AsyncStore], Kit]
) -> None:
    def redact(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**one, "content": one["content"].replace("4711", "****")} for one in messages]

    kit = new_kit(new_store(redact=redact))
    await kit.tools().call("archival_memory_insert", {"content": "Ada's number is 4711."})
    assert [fact.text for fact in await kit.facts.list("ada")] == ["Ada's number is ****."]


async def test_in_a_turn_that_began_before_an_erasure_nothing_is_kept(kit: Kit) -> None:
    memory = kit.memory(HUMAN)
    pending = kit.chat.turn("My secret is 42.")
    tools = kit.tools(memory=memory, conversation=kit.chat, turn=pending)
    calls = {
        "archival_memory_insert": {"content": "The secret is 42."},
        "core_memory_append": {"label": "human", "content": "The secret is 42."},
    }
    for name, arguments in calls.items():  # it has not begun
        assert (await tools.call(name, arguments)).startswith("The memory cannot be reached")
    async with pending:
        for name, arguments in calls.items():
            assert "erased" not in await tools.call(name, arguments)
        await kit.store.erase("ada", verify=True)
        for name, arguments in calls.items():
            assert (await tools.call(name, arguments)).startswith("The memory was erased")
    assert await kit.facts.list("ada") == []
    assert await memory.read("ada") == {}
    assert tools.counts == dict.fromkeys(calls, 2)
    with pytest.raises(ValueError, match="the turn is not"):
        kit.tools("bob", turn=pending)
    with pytest.raises(TypeError, match="conversation"):
        kit.tools(turn="t1")


@pytest.mark.parametrize("first", ["archival_memory_insert", "archival_memory_search"])
async def test_without_a_turn_nothing_erased_since_the_first_call_comes_back(
    kit: Kit, first: str
) -> None:
    """A model that has read something, and keeps it after it was erased."""
    memory = kit.memory(HUMAN)
    await kit.facts.add("ada", "The secret is 42.")
    said: dict[str, dict[str, Any]] = {
        "archival_memory_search": {"query": "the secret"},
        "archival_memory_insert": {"content": "Ada has a secret."},
        "core_memory_append": {"label": "human", "content": "The secret is 42."},
        "core_memory_replace": {"label": "human", "old": "42", "new": "43"},
    }
    tools = kit.tools(memory=memory)
    assert "erased" not in await tools.call(first, said[first])
    await kit.store.erase("ada", verify=True)
    for name in ("archival_memory_insert", "core_memory_append"):
        assert (await tools.call(name, said[name])).startswith("The memory was erased")
    assert await tools.call("archival_memory_search", said["archival_memory_search"]) == (
        "Nothing was found."
    )
    assert await kit.facts.list("ada") == []
    assert await memory.read("ada") == {}
    fresh = kit.tools(memory=memory)
    for name, arguments in said.items():
        assert "erased" not in await fresh.call(name, arguments)
    assert await memory.read("ada") == {"human": "The secret is 43."}


@pytest.mark.parametrize("name", [["x"], None, 5, b"x", {}])
async def test_what_is_no_name_of_a_tool_is_said_to_the_model(kit: Kit, name: Any) -> None:
    tools = kit.tools()
    said = await tools.call(name, {})
    assert said.startswith("Error: there is no tool ")
    assert list(tools.counts.values()) == [1]
