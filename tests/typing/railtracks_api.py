"""What type checkers make of the memory for Railtracks.

Not run: `make check` reads it with the types of the environment that has Railtracks.
"""

from __future__ import annotations

from typing import assert_type

import railtracks as rt
from pydantic import BaseModel
from railtracks.built_nodes.llm.response import StringResponse, StructuredResponse
from railtracks.llm import MessageHistory

from turnstore import AsyncStore, Store
from turnstore.integrations.railtracks import ConversationMemory


class City(BaseModel):
    name: str


async def memories(store: Store, async_store: AsyncStore) -> None:
    memory = ConversationMemory(store.conversation, "conv-1", max_messages=20)
    ConversationMemory(async_store.conversation, on_conflict="serialize")
    ConversationMemory(store.conversation, lambda: str(rt.context.get("chat")))
    ConversationMemory(store)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    ConversationMemory(store.conversation, on_conflict="wait")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]

    llm = rt.llm.EchoLLM()
    agent = rt.agent_node("Agent", llm=llm, middleware=[memory])
    flow = rt.Flow("flow", entry_point=agent)
    assert_type(flow.invoke("Hi"), StringResponse)
    assert_type(await flow.ainvoke("Hi"), StringResponse)

    structured = rt.agent_node("Agent", llm=llm, output_schema=City, middleware=[memory])
    answer: StructuredResponse[City] = rt.Flow("flow", entry_point=structured).invoke("Hi")
    assert_type(answer.structured, City)

    assert_type(await memory.get_history(), MessageHistory)
    assert_type(await memory.seed(MessageHistory()), bool)
    assert_type(await memory.clear(), bool)
    assert_type(memory.context_key, str)
