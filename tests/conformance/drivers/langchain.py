"""LangChain: an agent of `create_agent` with the middleware, and a runnable with a history.

The model is a chat model of our own, which answers as the model server does.
"""

from __future__ import annotations

import warnings
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    message_to_dict,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.tools import tool as as_tool

from tests.conformance.driver import Driver, Limit
from turnstore.integrations.langchain import ChatHistory, MemoryMiddleware
from turnstore.testing import Reply
from turnstore.testing._answers import answer
from turnstore.testing._replies import pieces

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from tests.conformance.driver import Json

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}


class _Heard(dict[str, Any]):
    """A stored message that says who said what as any other does."""

    def get(self, key: str, default: Any = None) -> Any:
        if key == "role":
            return _ROLES[self["type"]]
        return self["data"].get(key, default)


class _Script:
    def __init__(self) -> None:
        self._replies: list[Reply] = []
        self._lock = Lock()
        self.asked: list[list[Json]] = []

    def extend(self, replies: tuple[Reply, ...]) -> None:
        self._replies += replies

    def next(self, messages: list[BaseMessage]) -> Reply:
        # A provider is not told the name of the tool again with its result.
        sent = [
            one.model_copy(update={"name": None}) if one.type == "tool" else one for one in messages
        ]
        heard: list[Json] = [_Heard(message_to_dict(one)) for one in sent]
        with self._lock:
            self.asked.append(heard)
            reply = self._replies.pop(0) if self._replies else None
        plain = [{"role": one.get("role"), "content": one.get("content")} for one in heard]
        reply = reply or Reply(answer(plain))
        if reply.status >= 400:
            raise RuntimeError(reply.text)
        return reply


_FROM = {"model_provider": "openai"}  # as langchain-openai puts it into each chunk


class _Model(BaseChatModel):
    desk: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        del tools
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        reply = self.desk.next(messages)
        if reply.hold is not None:
            reply.hold.wait(20)
        if reply.ending == "cut":
            raise ConnectionError("the connection broke")
        message = AIMessage(**_fields(reply))
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self, messages: list[BaseMessage], *_: Any, **__: Any
    ) -> Iterator[ChatGenerationChunk]:
        reply = self.desk.next(messages)
        fields = _fields(reply)
        if reply.body is not None or reply.tool_calls:
            yield ChatGenerationChunk(message=AIMessageChunk(**fields))
            return
        for number, piece in enumerate(pieces(fields["content"])):
            yield ChatGenerationChunk(
                message=AIMessageChunk(content=piece, response_metadata=_FROM)
            )
            if number == 0 and reply.hold is not None:
                reply.hold.wait(20)
        if reply.ending == "cut":
            raise ConnectionError("the connection broke")
        if reply.ending == "complete":
            del fields["response_metadata"]["model_provider"]  # merging would say it twice
            yield ChatGenerationChunk(message=AIMessageChunk(**{**fields, "content": ""}))


def _fields(reply: Reply) -> Json:
    if reply.body is not None:
        return dict(reply.body)
    calls = [
        {"name": call.name, "args": dict(call.arguments), "id": call.id or "c1"}
        for call in reply.tool_calls
        if not isinstance(call.arguments, str)
    ]
    return {
        "content": reply.text or "",
        "tool_calls": calls,
        "additional_kwargs": {"refusal": reply.refusal} if reply.refusal else {},
        "response_metadata": {**_FROM, "finish_reason": reply.finish_reason},
    }


def _weather(tool: Callable[[str], str]) -> Any:
    @as_tool
    def weather(city: str) -> str:
        """Say what the weather is."""
        return tool(city)

    return weather


class _LangChain(Driver):
    unfit = (Reply(refusal="No."), Reply("Wel", finish="content_filter"))
    _odd: ClassVar[Json] = {
        "id": "run-1",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "x+/=", "zz": [1.0, 2**70]},
            {"type": "text", "text": "\x00 \u2028 é", "nothing": None},
        ],
        "additional_kwargs": {"zz": {"x": 1.0}},
        "response_metadata": {"finish_reason": "stop"},
    }
    odd = (Reply(body=_odd), [message_to_dict(AIMessage(**_odd))])

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._script = _Script()
        self._model = _Model(desk=self._script)

    def script(self, *replies: Reply) -> None:
        self._script.extend(replies)

    @property
    def asked(self) -> list[list[Json]]:
        return self._script.asked


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

DRIVERS = [Agent, History]
