"""Whatever a model calls, it is answered with text that can be sent to it, and nothing breaks."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.facts.meaning.kit import DIMENSIONS, embed
from turnstore import Store
from turnstore.facts import Facts, MemoryTools, WorkingMemory

if TYPE_CHECKING:
    from tests.facts.meaning.kit import Kit
    from tests.servers.running import Server
    from tests.servers.setups import Setup

HOUR = timedelta(hours=1)
NAMES = [
    "core_memory_append",
    "core_memory_replace",
    "archival_memory_insert",
    "archival_memory_search",
    "conversation_search",
]
FIELDS = ["label", "content", "old", "new", "query", "limit", "as_of", "role", "start_date"]
# Half letters too: json.loads makes them of an escape that a model may write.
TEXTS = st.text(st.characters(), max_size=20)
DATES = st.datetimes().map(lambda moment: moment.isoformat())
VALUES = st.one_of(
    st.sampled_from(["human", "persona", "user", "assistant", "", " ", "2024", "9999-12-31"]),
    DATES,
    TEXTS,
    st.integers(),
    st.none(),
    st.booleans(),
    st.floats(),
    st.lists(st.integers(), max_size=2),
)
ARGUMENTS = st.one_of(
    st.dictionaries(st.one_of(st.sampled_from([*FIELDS, "end_date"]), TEXTS), VALUES, max_size=5),
    st.fixed_dictionaries(
        {"query": st.just("boat")}, optional={"start_date": DATES, "end_date": DATES}
    ),
    VALUES,
)


@pytest.mark.servers("redis-7", "redis", "valkey", first=True)
@pytest.mark.one_setup
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(call=st.tuples(st.one_of(st.sampled_from(NAMES), TEXTS), ARGUMENTS, st.booleans()))
def test_any_call_is_answered(
    server: Server,
    setup: Setup,
    prefix: str,
    caplog: pytest.LogCaptureFixture,
    call: tuple[str, Any, bool],
) -> None:
    name, arguments, as_text = call
    client = server.client(setup)  # a sync one: hypothesis runs sync tests
    store = Store(client, name="test", prefix=prefix)
    options: dict[str, Any] = {"embedder": "words:1", "engine": "plain", "ttl": HOUR}
    facts = Facts(store, embed=embed, dimensions=DIMENSIONS, **options)
    chat = store.conversation("c", owner="ada")
    tools = MemoryTools(facts, "ada", conversation=chat, memory=WorkingMemory(facts))
    with caplog.at_level(logging.WARNING, "turnstore"):
        said = tools.call(name, json.dumps(arguments) if as_text else arguments)
    said.encode()
    assert len(said) < 5000
    assert caplog.records == [], "what a model does wrong is no fault of the memory"
    client.close()


async def test_a_time_of_day_with_all_its_digits_is_a_bound(kit: Kit) -> None:
    await kit.say("My boat is Beagle.")
    tools = kit.tools(conversation=kit.chat)
    for end, found in (("2020-05-03T10:00:00.999999", False), ("9999-12-31T23:59:59.999999", True)):
        said = await tools.call("conversation_search", {"query": "boat", "end_date": end})
        assert said.endswith("Beagle.") is found
        assert said.startswith("Nothing was found") is not found


async def test_a_name_that_nobody_can_send_is_said_so_that_one_can(kit: Kit) -> None:
    said = await kit.tools().call("archival_memory_insert", '{"content": "x", "\\ud83d": 1}')
    assert said.startswith("Error: archival_memory_insert takes content")
    said.encode()
    said = await kit.tools().call("x" * 100_000, {"y" * 100_000: 1})
    assert len(said) < 1000
