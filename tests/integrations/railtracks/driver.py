"""The driver of the conformance suite: agents with the middleware, and the model server.

Each call is a flow, as Railtracks wants it, and a stream is read in a node of its flow.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it asks the network
os.environ.setdefault("RAILTRACKS_DISABLE_EVENTS", "True")  # else each session writes a file

import railtracks as rt
from openai import OpenAI

from tests.conformance.driver import Driver, Limit
from turnstore.integrations.railtracks import ConversationMemory
from turnstore.testing import Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

_MANY_RUNS = Limit(
    "a middleware serves many runs, and takes no id of a turn",
    r"TypeError: .* unexpected keyword argument 'turn_id'",
)


class Railtracks(Driver):
    name = "railtracks"
    unfit = (Reply(refusal="No."), Reply("", finish="content_filter"))
    odd = (Reply("Hi", fields={"zz": {"odd": [1.0, None]}}), "zz")
    tool_named = 2
    cannot = {  # noqa: RUF012
        "test_options_in_conflict_are_refused_before_anything_is_asked": Limit(
            "a middleware does not see the options of a model",
            r"a driver names what its SDK has",
        ),
        "test_a_turn_that_is_saved_is_not_asked_again": _MANY_RUNS,
        "test_serialize_gives_the_lease_back_where_the_turn_is_saved": _MANY_RUNS,
        "test_what_the_model_said_is_kept_byte_for_byte": Limit(
            "Railtracks makes a message of its own of what a provider answers, and drops fields "
            "that it does not know before a middleware sees them; what it made is kept as it is",
            r"the field zz was dropped",
        ),
        "test_a_tool_that_fails_leaves_nothing_that_the_model_would_refuse": Limit(
            "Railtracks does not raise what a tool raises: it tells the model, and the run goes on",
            r"DID NOT RAISE ToolError",
        ),
        "test_an_abandoned_stream_saves_nothing_then_or_later": Limit(
            "a run of Railtracks does not wait for its reader: left alone, it goes on to its end",
            r"== \[\]",
        ),
        "test_a_truncated_stream_saves_nothing": Limit(
            "Railtracks takes the end of a stream for its success, and drops the finish reason",
            r"== \[\]",
        ),
    }

    _opened: OpenAI | None = None

    def remember(self, chat: Any, **options: Any) -> Any:
        inner = getattr(chat, "_inner", chat)
        return ConversationMemory(lambda _: inner, **options)

    def _agent(self, memory: Any, system: str = "", **options: Any) -> Any:
        if self._opened is None:
            self._opened = OpenAI(base_url=self.url, api_key="none")
        # LiteLLM would make clients of its own, and close none.
        llm = rt.llm.OpenAICompatibleProvider(
            "m", api_base=self.url, api_key="none", client=self._opened, max_retries=0
        )
        return rt.agent_node(
            "Agent", llm=llm, system_message=system or None, middleware=[memory], **options
        )

    async def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    async def say(self, memory: Any, text: str, *, system: str = "", **options: Any) -> str:
        del options
        flow: Any = rt.Flow("say", entry_point=self._agent(memory, system))
        return str((await flow.ainvoke(text)).text)

    async def stream(self, memory: Any, text: str) -> AsyncIterator[str]:
        agent, pieces = self._agent(memory), asyncio.Queue[str | None]()

        @rt.function_node
        async def talk(text: str) -> None:
            try:
                async for piece in rt.astream(agent, text):
                    pieces.put_nowait(piece)
            finally:
                pieces.put_nowait(None)

        running = asyncio.create_task(rt.Flow("stream", entry_point=talk).ainvoke(text))
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
        except asyncio.CancelledError:
            running.cancel()
            raise
        except GeneratorExit:  # it goes on all the same
            await running
            raise
        await running

    async def use_tool(self, memory: Any, text: str, tool: Callable[[str], str]) -> str:
        @rt.function_node
        def weather(city: str) -> str:
            """Tell the weather.

            Args:
                city (str): Where.
            """
            return tool(city)

        flow: Any = rt.Flow("tool", entry_point=self._agent(memory, tool_nodes=[weather]))
        return str((await flow.ainvoke(text)).text)


DRIVERS = [Railtracks]
