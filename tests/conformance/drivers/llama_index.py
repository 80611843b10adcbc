"""LlamaIndex's simple chat engine and function agent, on the chat store."""

from __future__ import annotations

import asyncio
import json
import threading
import traceback
import warnings
from typing import TYPE_CHECKING, Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import ChatMessage, ChatResponse, LLMMetadata, TextBlock
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import FunctionTool
from openai import OpenAI

from tests.conformance.driver import Driver, Json, Limit
from turnstore.integrations.llama_index import ChatStore
from turnstore.testing import Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

_BEFORE = Limit(
    "LlamaIndex writes the question before it asks the model, so that it stays where the call does "
    "not succeed",
    r"AssertionError: assert (\[\{'role': 'us.* == \[\]|2 == 1\b)",
)
_APART = Limit(
    "question and answer are written apart, and nothing tells what came between",
    r"At index 0 diff: \['first'\] != |not enough values to unpack \(expected 2, got 1\)",
)
_OPTION = Limit(
    "a chat store only reads and writes messages: this is not an option of it",
    r"TypeError: .* unexpected keyword argument '(context|on_conflict|on_load_error)'",
)

_report = threading.excepthook


def _report_others(args: threading.ExceptHookArgs) -> None:
    """Keep still about a stream's thread: LlamaIndex tells its reader of the same error."""
    frames = traceback.walk_tb(args.exc_traceback)
    if all(frame.f_code.co_name != "write_response_to_history" for frame, _ in frames):
        _report(args)


threading.excepthook = _report_others


class Model(FunctionCallingLLM):
    """The least that talks to a server: LlamaIndex's own client wants an older `openai`."""

    url: str
    city: Json = {"type": "object", "properties": {"city": {"type": "string"}}}  # noqa: RUF012

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=True, is_function_calling_model=True)

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        with OpenAI(base_url=self.url, api_key="none", max_retries=0) as client:
            return _read(client.chat.completions.create(**_asked(messages, **kwargs)))

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return await asyncio.to_thread(self.chat, messages, **kwargs)

    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
        def pieces() -> Any:
            said = ""
            with OpenAI(base_url=self.url, api_key="none", max_retries=0) as client:
                asked = _asked(messages, stream=True, **kwargs)
                stream: Any = client.chat.completions.create(**asked)
                for chunk in stream:
                    delta = chunk.choices[0].delta.content or "" if chunk.choices else ""
                    said += delta
                    yield _piece(said, delta)

        return pieces()

    def _prepare_chat_with_tools(self, tools: Any, *_: Any, **kwargs: Any) -> Json:
        functions = [{"name": tool.metadata.name, "parameters": self.city} for tool in tools]
        described = [{"type": "function", "function": function} for function in functions]
        return {"messages": kwargs["chat_history"], "tools": described}

    def get_tool_calls_from_response(
        self, response: ChatResponse, *_: Any, **__: Any
    ) -> list[ToolSelection]:
        return [
            ToolSelection(
                tool_id=call["id"],
                tool_name=call["function"]["name"],
                tool_kwargs=json.loads(call["function"]["arguments"]),
            )
            for call in response.message.additional_kwargs.get("tool_calls", ())
        ]

    def complete(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    acomplete = stream_complete = astream_complete = astream_chat = complete


def _asked(messages: Sequence[ChatMessage], **options: Any) -> Json:
    sent = [
        {"role": one.role.value, "content": one.content, **one.additional_kwargs}
        for one in messages
    ]
    return {"model": "m", "messages": sent, **options}


def _read(reply: Any) -> ChatResponse:
    message = reply.choices[0].message
    calls = [call.model_dump() for call in message.tool_calls or ()]
    kept = {"tool_calls": calls} if calls else {}
    return ChatResponse(
        message=ChatMessage(role="assistant", content=message.content, additional_kwargs=kept)
    )


def _piece(said: str, delta: str) -> ChatResponse:
    message = ChatMessage(role="assistant", blocks=[TextBlock(text=said)])
    return ChatResponse(message=message, delta=delta)


class LlamaIndex(Driver):
    name = "llama-index"
    kinds = ("sync",)
    unfit = (Reply("Wel", finish="content_filter"),)
    odd = (Reply("Hi", fields={"zz": {"odd": [1.0, None]}}), "zz")
    cannot = {  # noqa: RUF012
        "test_one_load_and_one_save": Limit(
            "LlamaIndex writes question and answer apart", r"assert \(1, 2\) == \(1, 1\)"
        ),
        "test_a_window_limits_what_is_sent": Limit(
            "the question is stored before the history is read, and is the newest of its turns",
            r"\['number 2'\] == \['number 1', 'number 2'\]",
        ),
        "test_what_a_context_adds_is_sent_and_not_stored": _OPTION,
        "test_what_comes_after_a_save_is_given_each_turn_once": _OPTION,
        "test_an_exchange_is_recalled_in_another_conversation_of_its_owner": _OPTION,
        "test_going_on_without_memory": _OPTION,
        "test_reject_raises_the_answer_of_the_one_that_came_second": _OPTION,
        "test_serialize_lets_the_second_wait_and_see_the_first": _OPTION,
        "test_serialize_after_a_lost_lease_raises_the_answer": _OPTION,
        "test_a_turn_that_is_saved_is_not_asked_again": _OPTION,
        "test_serialize_gives_the_lease_back_where_the_turn_is_saved": _OPTION,
        "test_append_keeps_both_in_the_order_they_finished": _APART,
        "test_many_at_once_on_one_memory_lose_nothing": _APART,
        "test_what_the_model_said_is_kept_byte_for_byte": Limit(
            "a message of LlamaIndex has what its client for a provider read, and is kept as it is",
            r"the field zz was dropped",
        ),
        "test_options_in_conflict_are_refused_before_anything_is_asked": Limit(
            "a chat store does not see what the model is asked",
            r"a driver names what its SDK has",
        ),
        "test_a_model_that_fails_saves_nothing": _BEFORE,
        "test_an_answer_that_breaks_in_its_middle_saves_nothing": _BEFORE,
        "test_an_answer_that_did_not_succeed_is_not_saved": _BEFORE,
        "test_no_redis_at_the_save_raises_the_answer": Limit(
            "LlamaIndex writes the answer by itself, and what it raises does not carry it",
            r"UnavailableError: append of ",
        ),
        "test_an_abandoned_stream_saves_nothing_then_or_later": _BEFORE,
        "test_a_truncated_stream_saves_nothing": _BEFORE,
        "test_a_stream_whose_connection_breaks_saves_nothing": _BEFORE,
        "test_nothing_is_stored_while_the_model_speaks": _BEFORE,
        "test_a_tool_that_fails_leaves_nothing_that_the_model_would_refuse": Limit(
            "LlamaIndex does not raise what a tool raises: it tells the model",
            r"DID NOT RAISE ToolError",
        ),
    }

    _held: tuple[threading.Event | None, ...] = ()

    def script(self, *replies: Reply) -> None:
        self._held += tuple(reply.hold for reply in replies)
        super().script(*replies)

    async def close(self) -> None:
        for hold in filter(None, self._held):
            hold.set()  # for the thread of a stream that a test left in its middle

    def remember(self, chat: Any, **options: Any) -> Any:
        return ChatStore(lambda _: chat._inner, **options)

    def _memory(self, store: ChatStore) -> ChatMemoryBuffer:
        return ChatMemoryBuffer(chat_store=store, chat_store_key="ada", token_limit=100_000)

    def _engine(self, store: ChatStore, system: str = "") -> SimpleChatEngine:
        prefix = [ChatMessage(role="system", content=system)] if system else []
        model = Model(url=self.url)
        return SimpleChatEngine(llm=model, memory=self._memory(store), prefix_messages=prefix)

    async def say(self, memory: Any, text: str, *, system: str = "", **options: Any) -> str:
        engine = self._engine(memory, system)
        return str(await self.run(engine.chat, text, **options))

    async def stream(self, memory: Any, text: str) -> AsyncIterator[str]:
        engine = self._engine(memory)
        reply = await self.run(engine.stream_chat, text)
        try:
            async for piece in self.items(reply.response_gen):
                if piece:
                    yield piece
        finally:  # whoever leaves early would wait for the end of the stream
            reply.write_response_to_history_thread = None

    async def use_tool(self, memory: Any, text: str, tool: Callable[[str], str]) -> str:
        def weather(city: str) -> str:
            """Tell the weather."""
            return tool(city)

        with warnings.catch_warnings():  # it asks pydantic for something deprecated
            warnings.simplefilter("ignore", DeprecationWarning)
            agent = FunctionAgent(
                llm=Model(url=self.url),
                tools=[FunctionTool.from_defaults(weather)],
                streaming=False,
            )
            return str(await agent.run(user_msg=text, memory=self._memory(memory)))


DRIVERS = [LlamaIndex]
