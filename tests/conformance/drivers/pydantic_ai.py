"""Agents of pydantic-ai with the capability `Memory`, on OpenAI's chat completions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openai import AsyncOpenAI
from pydantic_ai import Agent, Conversation, ModelRequest
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.conformance.driver import Driver, Limit
from turnstore.integrations.pydantic_ai import Memory
from turnstore.testing import Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

_MANY_RUNS = Limit(
    "a capability serves many runs, and takes no id of a turn",
    r"TypeError: .* unexpected keyword argument 'turn_id'",
)
_PAST = [ModelRequest.user_text_prompt("My name is Bob.")]


class PydanticAI(Driver):
    name = "pydantic-ai"
    kinds = ("async",)
    conflicts = (
        {"message_history": _PAST},
        {"conversation": Conversation(messages=[*_PAST])},
        {"model_settings": {"openai_previous_response_id": "r"}},
    )
    passes = (({"model_settings": {"openai_store": True}}, {"store": True}),)
    unfit = (Reply(refusal="No."), Reply("Wel", finish="content_filter"))
    odd = (Reply("Hi", fields={"zz": {"odd": [1.0, None]}}), "zz")
    cannot = {  # noqa: RUF012
        "test_what_the_model_said_is_kept_byte_for_byte": Limit(
            "pydantic-ai makes parts of its own of what a provider answers, and drops fields that "
            "it does not know before a memory sees them; what it made is kept as it is",
            r"the field zz was dropped",
        ),
        "test_a_turn_that_is_saved_is_not_asked_again": _MANY_RUNS,
        "test_serialize_gives_the_lease_back_where_the_turn_is_saved": _MANY_RUNS,
    }
    _opened: AsyncOpenAI | None = None

    def remember(self, chat: Any, **options: Any) -> Any:
        return Memory(chat, **options)

    def _agent(self, **options: Any) -> Agent:
        if self._opened is None:
            self._opened = AsyncOpenAI(base_url=self.url, api_key="none", max_retries=0)
        provider = OpenAIProvider(openai_client=self._opened)
        return Agent(OpenAIChatModel("m", provider=provider), **options)

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()

    async def say(self, memory: Any, text: str, *, system: str = "", **options: Any) -> str:
        agent = self._agent(instructions=system or None, capabilities=[memory])
        return str((await agent.run(text, **options)).output)

    async def stream(self, memory: Any, text: str) -> AsyncIterator[str]:
        async with self._agent().run_stream(text, capabilities=[memory]) as result:
            async for piece in result.stream_text(delta=True, debounce_by=None):
                yield piece

    async def use_tool(self, memory: Any, text: str, tool: Callable[[str], str]) -> str:
        agent = self._agent(capabilities=[memory])

        @agent.tool_plain
        def weather(city: str) -> str:
            return tool(city)

        return str((await agent.run(text)).output)


DRIVERS = [PydanticAI]
