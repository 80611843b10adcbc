"""The OpenAI Agents SDK, through a session; the model is the SDK's own for Responses."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from agents import (
    Agent,
    ModelSettings,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    UserError,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

from tests.conformance.driver import Driver, Limit
from turnstore.testing import Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

set_tracing_disabled(disabled=True)  # it would send traces to OpenAI


_NO_QUESTION = Limit(
    "a session gives its history before it is told the question",
    r"ValueError: the history is asked for before the question is known",
)


class Agents(Driver):
    name = "openai-agents"
    kinds = ("async",)
    conflicts = (
        {"previous_response_id": "r"},
        {"conversation_id": "c"},
        {"auto_previous_response_id": True},
    )
    passes = (
        ({"run_config": RunConfig(model_settings=ModelSettings(store=True))}, {"store": True}),
    )
    unfit = (Reply(refusal="No."),)
    # In the order of the SDK's own fields; it puts those it does not know behind them.
    _odd = (
        {"id": "rs", "summary": [], "type": "reasoning", "encrypted_content": "x+/=", "zz": 1.0},
        {
            "id": "m",
            "content": [
                {
                    "annotations": [],
                    "text": "\x00 \u2028 é",
                    "type": "output_text",
                    "zz": [1.0, 2**70, {"x": None}],
                }
            ],
            "role": "assistant",
            "status": "completed",
            "type": "message",
        },
    )
    odd = (Reply(body={"id": "r", "status": "completed", "output": _odd}), list(_odd))
    odd_streamed = Reply(
        events=[
            {
                "type": "response.completed",
                "sequence_number": 0,
                "response": {
                    "id": "r",
                    "object": "response",
                    "status": "completed",
                    "output": _odd,
                },
            }
        ]
    )
    cannot = {  # noqa: RUF012
        "test_what_a_context_adds_is_sent_and_not_stored": _NO_QUESTION,
        "test_an_exchange_is_recalled_in_another_conversation_of_its_owner": _NO_QUESTION,
    }
    _opened: AsyncOpenAI | None = None

    def remember(self, chat: Any, **options: Any) -> Any:
        chat.agents_session(**options)
        return partial(chat.agents_session, **options)

    def _agent(self, system: str = "", **options: Any) -> Any:
        if self._opened is None:
            self._opened = AsyncOpenAI(base_url=self.url, api_key="none", max_retries=0)
        model = OpenAIResponsesModel("m", self._opened)
        return Agent(name="a", instructions=system or None, model=model, **options)

    async def say(self, memory: Any, text: str, *, system: str = "", **options: Any) -> str:
        try:
            async with memory() as session:
                ran = await Runner.run(self._agent(system), text, session=session, **options)
        except UserError as error:  # the SDK refuses these by itself
            raise ValueError(str(error)) from error
        return str(ran.final_output)

    async def stream(self, memory: Any, text: str) -> AsyncIterator[str]:
        async with memory() as session:
            running = Runner.run_streamed(self._agent(), text, session=session)
            try:
                async for event in running.stream_events():
                    if event.type == "raw_response_event":
                        data: Any = event.data
                        if data.type == "response.output_text.delta":
                            yield data.delta
            finally:
                running.cancel()

    async def use_tool(self, memory: Any, text: str, tool: Callable[[str], str]) -> str:
        raised: list[Exception] = []

        @function_tool(failure_error_function=None)
        def weather(city: str) -> str:
            try:
                return tool(city)
            except Exception as error:
                raised.append(error)
                raise

        try:
            async with memory() as session:
                ran = await Runner.run(self._agent(tools=[weather]), text, session=session)
        except UserError as error:  # what the SDK makes of an error in a tool
            raise (raised or [error])[-1] from error
        return str(ran.final_output)

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()


DRIVERS = [Agents]
