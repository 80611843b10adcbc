"""LangChain: an agent of `create_agent` with the middleware, and a runnable with a history.

The model is `ChatOpenAI` of langchain-openai, on OpenAI's chat completions.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import httpx2
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.tools import tool as as_tool
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from tests.conformance.driver import Driver, Limit
from turnstore.integrations.langchain import ChatHistory, MemoryMiddleware
from turnstore.testing import Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.conformance.driver import Json


def _weather(tool: Callable[[str], str]) -> Any:
    @as_tool
    def weather(city: str) -> str:
        """Say what the weather is."""
        return tool(city)

    return weather


_DROPPED = Limit(
    "langchain-openai makes a message of its own of what the provider answers, and drops fields "
    "that it does not know before a memory sees them; what it made is kept as it is",
    r"the field zz was dropped",
)


class _LangChain(Driver):
    unfit = (Reply(refusal="No."), Reply("Wel", finish="content_filter"))
    odd = (Reply("Hi", fields={"zz": {"odd": [1.0, None]}}), "zz")
    _responses = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Its own clients, which can be closed: those that it makes itself are kept for ever.
        self._http, self._async_http = httpx2.Client(), httpx2.AsyncClient()
        self._model = ChatOpenAI(
            model="m",
            base_url=self.url,
            api_key=SecretStr("none"),
            max_retries=0,
            use_responses_api=self._responses,
            http_client=self._http,
            http_async_client=self._async_http,
        )

    async def close(self) -> None:
        self._http.close()
        await self._async_http.aclose()


class _Settings(AgentMiddleware[Any, Any, Any]):
    def __init__(self, settings: Json) -> None:
        super().__init__()
        self._settings = settings

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(request.override(model_settings=self._settings))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return await handler(request.override(model_settings=self._settings))


class Agent(_LangChain):
    name = "langchain-agent"
    conflicts = ({"previous_response_id": "r"}, {"conversation": "c"}, {"background": True})
    passes = (({"store": True}, {"store": True}),)
    cannot: ClassVar[dict[str, Limit]] = {
        "test_what_the_model_said_is_kept_byte_for_byte": _DROPPED,
    }

    def remember(self, chat: Any, **options: Any) -> Any:
        return MemoryMiddleware(getattr(chat, "_inner", chat), **options)

    def _agent(self, memory: Any, settings: Json | None = None, **options: Any) -> Any:
        return create_agent(self._model, middleware=[_Settings(settings or {}), memory], **options)

    async def say(self, memory: Any, text: str, *, system: str = "", **options: Any) -> str:
        agent = self._agent(memory, options, system_prompt=system or None)
        return await self._ask(agent, text)

    async def _ask(self, agent: Any, text: str) -> str:
        ask = agent.invoke if self.kind == "sync" else agent.ainvoke
        ran = await self.run(ask, {"messages": [HumanMessage(text)]})
        return str(ran["messages"][-1].text)

    async def stream(self, memory: Any, text: str) -> AsyncIterator[str]:
        agent = self._agent(memory)
        stream = agent.stream if self.kind == "sync" else agent.astream
        chunks = stream({"messages": [HumanMessage(text)]}, stream_mode="messages")
        async for chunk, _ in self.items(chunks):
            if isinstance(chunk, AIMessageChunk) and chunk.text:
                yield chunk.text

    async def use_tool(self, memory: Any, text: str, tool: Callable[[str], str]) -> str:
        return await self._ask(self._agent(memory, tools=[_weather(tool)]), text)


class ResponsesAgent(Agent):
    """The same on OpenAI's responses, whose items are blocks of a message."""

    name = "langchain-agent-responses"
    cannot: ClassVar[dict[str, Limit]] = {}
    _responses = True
    _reasoning: ClassVar[Json] = {
        "id": "rs",
        "type": "reasoning",
        "summary": [],
        "encrypted_content": "x+/=",
    }
    _message: ClassVar[Json] = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
    }
    _response: ClassVar[Json] = {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": [_reasoning, _message],
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
    }
    odd = (Reply(body=_response), "x+/=")
    odd_streamed = Reply(
        events=[
            {"type": kind, "output_index": at, "item": item, "sequence_number": 0}
            for at, item in enumerate((_reasoning, _message))
            for kind in ("response.output_item.added", "response.output_item.done")
        ]
        + [{"type": "response.completed", "sequence_number": 0, "response": _response}]
    )


_SWALLOWED = "LangChain logs and swallows what a history raises at the end of a call"
_NO_RAISE = Limit(_SWALLOWED, r"DID NOT RAISE (SaveError|TurnConflictError)")
_NO_END = Limit(_SWALLOWED, r"ValueError: LangChain does not tell a history of a failure")
_NO_QUESTION = Limit(
    "a history is asked for its messages before it is told the question",
    r"ValueError: the history is asked for before the question is known",
)


class History(_LangChain):
    name = "langchain-history"
    cannot: ClassVar[dict[str, Limit]] = {
        "test_what_the_model_said_is_kept_byte_for_byte": _DROPPED,
        "test_options_in_conflict_are_refused_before_anything_is_asked": Limit(
            "a history does not see the options of a call",
            r"a driver names what its SDK has",
        ),
        "test_what_a_context_adds_is_sent_and_not_stored": _NO_QUESTION,
        "test_an_exchange_is_recalled_in_another_conversation_of_its_owner": _NO_QUESTION,
        "test_reject_raises_the_answer_of_the_one_that_came_second": _NO_RAISE,
        "test_no_redis_at_the_save_raises_the_answer": _NO_RAISE,
        "test_serialize_lets_the_second_wait_and_see_the_first": _NO_END,
        "test_serialize_after_a_lost_lease_raises_the_answer": _NO_END,
        "test_serialize_gives_the_lease_back_where_the_turn_is_saved": _NO_END,
    }

    def remember(self, chat: Any, **options: Any) -> Any:
        inner = getattr(chat, "_inner", chat)
        ChatHistory(inner, **options)
        return lambda: ChatHistory(inner, **options)

    def _chain(self, memory: Any, system: str = "", model: Any = None) -> Any:
        first = [SystemMessage(system)] if system else []
        ask: Any = RunnableLambda(lambda messages: [*first, *messages]) | (model or self._model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is deprecated
            return RunnableWithMessageHistory(
                ask,
                lambda session_id: memory(),  # noqa: ARG005 - it is called by this name
            )

    async def say(self, memory: Any, text: str, *, system: str = "", **options: Any) -> str:
        del options
        chain = self._chain(memory, system)
        ask = chain.invoke if self.kind == "sync" else chain.ainvoke
        return str((await self.run(ask, [HumanMessage(text)], _CONFIG)).text)

    async def stream(self, memory: Any, text: str) -> AsyncIterator[str]:
        chain = self._chain(memory)
        stream = chain.stream if self.kind == "sync" else chain.astream
        async for chunk in self.items(stream([HumanMessage(text)], _CONFIG)):
            if chunk.text:
                yield chunk.text

    async def use_tool(self, memory: Any, text: str, tool: Callable[[str], str]) -> str:
        weather = _weather(tool)

        def loop(messages: list[BaseMessage]) -> list[BaseMessage]:
            call = self._model.invoke(messages)
            result: BaseMessage = weather.invoke(call.tool_calls[0])
            return [call, result, self._model.invoke([*messages, call, result])]

        chain = self._chain(memory, model=RunnableLambda(loop))
        ask = chain.invoke if self.kind == "sync" else chain.ainvoke
        return str((await self.run(ask, [HumanMessage(text)], _CONFIG))[-1].text)


_CONFIG = {"configurable": {"session_id": "one"}}

DRIVERS = [Agent, ResponsesAgent, History]
