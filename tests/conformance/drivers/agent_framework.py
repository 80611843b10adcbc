"""Agents of Microsoft's Agent Framework with a history provider, on OpenAI's chat completions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_framework import Agent, AgentSession
from agent_framework import tool as as_tool
from agent_framework.openai import OpenAIChatCompletionClient
from openai import AsyncOpenAI

from tests.conformance.driver import Driver, Limit
from turnstore.integrations.agent_framework import HistoryProvider
from turnstore.testing import Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

_NO_END = Limit(
    "the framework does not say that a run failed, so a lease would not be given back",
    r"ValueError: the framework does not say that a run failed",
)
_MANY_RUNS = Limit(
    "a provider of history serves many runs, and takes no id of a turn",
    r"TypeError: .* unexpected keyword argument 'turn_id'",
)


class AgentFramework(Driver):
    name = "agent-framework"
    kinds = ("async",)
    conflicts = (
        {"session": AgentSession(session_id="s", service_session_id="resp-1")},
        {"options": {"store": True}},
        {"options": {"conversation_id": "c"}},
    )
    unfit = (Reply(refusal="No."), Reply("Wel", finish="content_filter"))
    odd = (Reply("Hi", fields={"zz": {"odd": [1.0, None]}}), "zz")
    cannot = {  # noqa: RUF012
        "test_what_the_model_said_is_kept_byte_for_byte": Limit(
            "the framework makes contents of its own of what a provider answers, and drops fields "
            "that it does not know before a provider sees them; what it made is kept as it is",
            r"the field zz was dropped",
        ),
        "test_a_tool_that_fails_leaves_nothing_that_the_model_would_refuse": Limit(
            "the framework does not raise what a tool raises: it tells the model, and the run "
            "goes on",
            r"DID NOT RAISE ToolError",
        ),
        "test_serialize_lets_the_second_wait_and_see_the_first": _NO_END,
        "test_serialize_after_a_lost_lease_raises_the_answer": _NO_END,
        "test_a_turn_that_is_saved_is_not_asked_again": _MANY_RUNS,
        "test_serialize_gives_the_lease_back_where_the_turn_is_saved": _MANY_RUNS,
    }
    _opened: AsyncOpenAI | None = None

    def remember(self, chat: Any, **options: Any) -> Any:
        return HistoryProvider(lambda _: chat, **options)

    def _agent(self, memory: Any, **options: Any) -> Agent:
        if self._opened is None:
            self._opened = AsyncOpenAI(base_url=self.url, api_key="none", max_retries=0)
        client = OpenAIChatCompletionClient(model="m", async_client=self._opened)
        return Agent(client, context_providers=[memory], **options)

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()

    async def say(self, memory: Any, text: str, *, system: str = "", **options: Any) -> str:
        asked = {"session": AgentSession(session_id="s"), **options}
        answer = await self._agent(memory, instructions=system or None).run(text, **asked)
        return str(answer.text)

    async def stream(self, memory: Any, text: str) -> AsyncIterator[str]:
        agent = self._agent(memory)
        async for update in agent.run(text, session=AgentSession(session_id="s"), stream=True):
            if update.text:
                yield update.text

    async def use_tool(self, memory: Any, text: str, tool: Callable[[str], str]) -> str:
        @as_tool(approval_mode="never_require")
        def weather(city: str) -> str:
            """Tell the weather."""
            return tool(city)

        agent = self._agent(memory, tools=[weather])
        return (await agent.run(text, session=AgentSession(session_id="s"))).text


DRIVERS = [AgentFramework]
