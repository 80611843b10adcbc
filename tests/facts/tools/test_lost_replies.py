"""An answer is lost, redis-py sends the write again, and others have written meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.facts.meaning.kit import facts_in
from tests.failure.helping import load_scripts
from tests.servers.facade import as_async, inner
from tests.servers.proxy import Cut
from turnstore import Store
from turnstore.facts import Block, WorkingMemory

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.facts.meaning.kit import Kit
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore import AsyncStore
    from turnstore.facts import AsyncMemoryTools, AsyncWorkingMemory

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis")]

HUMAN = Block("human", "The user.")


class Change(NamedTuple):
    """One way to change a block that says "She sails.", what it answers, and what is left."""

    act: Callable[[AsyncWorkingMemory, AsyncMemoryTools], Awaitable[str]]
    answer: str
    left: str


@pytest.fixture
def kit(new_store: NewStore, new_kit: Callable[[AsyncStore], Kit], proxy: Proxy) -> Kit:
    return new_kit(new_store(at=proxy))


@pytest.fixture
def others(server: Server, prefix: str, engine: str) -> WorkingMemory:
    """Give the same blocks to another process, which the proxy is not in the way of."""
    store = Store(server.raw, name="test", prefix=prefix)
    facts = inner(facts_in(as_async(store), engine=engine))
    return WorkingMemory(facts, [HUMAN])


async def _tool(tools: AsyncMemoryTools, name: str, **arguments: str) -> str:
    return str(await tools.call(name, {"label": "human", **arguments}))


BOTH = "She sails.\nShe bakes."
CHANGES = {
    "append": Change(lambda memory, _: memory.append("ada", "human", "She bakes."), BOTH, BOTH),
    "replace": Change(
        lambda memory, _: memory.replace("ada", "human", "sails", "rows"), "She rows.", "She rows."
    ),
    "write": Change(
        lambda memory, _: memory.write("ada", "human", "She rows."), "She rows.", "She rows."
    ),
    "core_memory_append": Change(
        lambda _, tools: _tool(tools, "core_memory_append", content="She bakes."),
        f"human now says (21 of 2000 characters):\n{BOTH}",
        BOTH,
    ),
    "core_memory_replace": Change(
        lambda _, tools: _tool(tools, "core_memory_replace", old="sails", new="rows"),
        "human now says (9 of 2000 characters):\nShe rows.",
        "She rows.",
    ),
}


@pytest.mark.parametrize("writes", [1, 7])
@pytest.mark.parametrize("name", CHANGES)
async def test_a_change_of_a_block_is_done_once_though_others_wrote_meanwhile(  # noqa: PLR0913, PLR0917 - its fixtures
    kit: Kit, others: WorkingMemory, server: Server, proxy: Proxy, name: str, writes: int
) -> None:
    act, answer, left = CHANGES[name]
    memory = kit.memory(HUMAN)
    tools = kit.tools(memory=memory)
    await memory.write("ada", "human", "She sails.")
    await _tool(tools, "core_memory_append", content=" ")  # with which the tools have begun
    load_scripts(server, "any")

    def meanwhile() -> None:
        for number in range(writes):
            others.append("ada", "human", f"line {number}")

    proxy.clear()
    proxy.next(Cut.NEVER, command="EVALSHA")  # the first script reads, the second writes
    proxy.next(Cut.REPLY_LOST, command="EVALSHA", then=meanwhile)
    assert await act(memory, tools) == answer
    assert proxy.count("EVALSHA") == 3
    lines = [f"line {number}" for number in range(writes)]
    assert (await memory.read("ada"))["human"] == "\n".join([left, *lines])


async def test_a_block_remembers_a_few_writes_and_no_more(kit: Kit, server: Server) -> None:
    memory = kit.memory(HUMAN)
    for number in range(20):
        await memory.write("ada", "human", f"text {number}")
    key = inner(kit.facts)._base.ground.owner("ada").keys.memory
    assert len(server.raw.hget(key, "human") or b"") < 90
    assert await memory.read("ada") == {"human": "text 19"}
