"""The adapters of frameworks, each behind one face: what the case `frameworks` measures.

A framework holds messages as objects of its own. *By hand* is what a user would write: the ideal
floor, and the framework's own way from its objects to JSON and back. For another framework, write
a class and name it in `FRAMEWORKS`; it imports its package when it is made, so that one which is
not installed is left out.
"""

# ruff: noqa: D102 (Framework says what the methods do)
# ruff: noqa: PLC0415 (each environment has some of these packages)

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from wrapped_clients import Responses

if TYPE_CHECKING:
    from harness import Kind
    from mix import Message, Turn

NEWEST = 50


class Framework:
    """One framework.

    Attributes:
        name: What a table calls it.
        kind: Which of turnstore's stores its adapter is for.
        format: The format of the adapter's turns.
        peers: The modules of peers/ that are the framework's own store on Redis, or a friend's.
    """

    name: ClassVar[str]
    kind: ClassVar[Kind] = "async"
    format: ClassVar[str]
    peers: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        """Import what is needed; ImportError where it is not there."""

    def native(self, turn: Turn) -> list[Any]:
        """A turn as the framework's objects."""
        raise NotImplementedError

    def dumped(self, turn: list[Any]) -> list[Message]:
        """Objects as the JSON that is stored."""
        raise NotImplementedError

    def loaded(self, messages: list[Message]) -> list[Any]:
        """The objects of what was stored."""
        raise NotImplementedError

    def turn(self, store: Any, window: Any, key: str, turn: list[Any]) -> Any:
        """Read the newest `NEWEST` and append a turn, by turnstore's adapter."""
        raise NotImplementedError

    def by_hand(self, floor: Any, key: str, turn: list[Any]) -> Any:
        """Do the same at the ideal floor."""
        if self.kind == "async":
            return self._by_hand_async(floor, key, turn)
        self.loaded(floor.read(key, NEWEST))
        return floor.append(key, self.dumped(turn))

    async def _by_hand_async(self, floor: Any, key: str, turn: list[Any]) -> Any:
        self.loaded(await floor.read(key, NEWEST))
        return await floor.append(key, self.dumped(turn))


class OpenAIAgents(Framework):
    """The OpenAI Agents SDK: a session. Its items are dicts."""

    name = "OpenAI Agents SDK"
    format = "openai.responses"
    peers = ("openai_agents_session",)

    def __init__(self) -> None:
        import agents  # noqa: F401 (whether it is there)

    def native(self, turn: Turn) -> list[Any]:
        return list(map(Responses.item, turn))

    def dumped(self, turn: list[Any]) -> list[Message]:
        return turn

    def loaded(self, messages: list[Message]) -> list[Any]:
        return messages

    async def turn(self, store: Any, window: Any, key: str, turn: list[Any]) -> None:
        async with store.conversation(key).agents_session(window=window) as session:
            await session.get_items()
            await session.add_items(turn)


class AgentFramework(Framework):
    """Microsoft's Agent Framework: a history provider."""

    name = "Microsoft Agent Framework"
    format = "agent_framework"
    peers = ("agent_framework_history",)

    def __init__(self) -> None:
        from agent_framework import Content, Message

        self._content: Any = Content
        self._message: Any = Message

    def native(self, turn: Turn) -> list[Any]:
        return list(map(self._object, turn))

    def _object(self, message: Message) -> Any:
        content, text = self._content, message["content"] or ""
        if message["role"] == "tool":
            result = content.from_function_result(message["tool_call_id"], result=text)
            return self._message("tool", [result])
        calls = [
            content.from_function_call(call["id"], **call["function"])
            for call in message.get("tool_calls", ())
        ]
        return self._message(message["role"], [content.from_text(text), *calls])

    def dumped(self, turn: list[Any]) -> list[Message]:
        return [message.to_dict() for message in turn]

    def loaded(self, messages: list[Message]) -> list[Any]:
        return list(map(self._message.from_dict, messages))

    async def turn(self, store: Any, window: Any, key: str, turn: list[Any]) -> None:
        from turnstore.integrations.agent_framework import HistoryProvider

        provider = HistoryProvider(store.conversation, window=window)
        await provider.get_messages(key)
        await provider.save_messages(key, turn)


class LangChain(Framework):
    """LangChain: a chat message history."""

    name = "LangChain"
    kind = "sync"
    format = "langchain"
    peers = ("langchain_community_history", "langchain_redis_history")

    def __init__(self) -> None:
        from langchain_core.messages import message_to_dict, messages_from_dict

        self._dump, self._load = message_to_dict, messages_from_dict

    def native(self, turn: Turn) -> list[Any]:
        from base import langchain_messages  # of the peers, beside which alone it is measured

        return langchain_messages(turn)

    def dumped(self, turn: list[Any]) -> list[Message]:
        return [self._dump(message) for message in turn]

    def loaded(self, messages: list[Message]) -> list[Any]:
        return self._load(messages)

    def turn(self, store: Any, window: Any, key: str, turn: list[Any]) -> None:
        # Its public module imports `langchain`, which the peers' environments do not have.
        from turnstore.integrations._langchain_history import ChatHistory

        history = ChatHistory(store.conversation(key), window=window)
        _ = history.messages
        history.add_messages(turn)


class LlamaIndex(Framework):
    """LlamaIndex: a chat store. Each message is an append, as its memory has it."""

    name = "LlamaIndex"
    kind = "sync"
    format = "llama_index"
    peers = ("llama_index_store",)

    def __init__(self) -> None:
        from llama_index.core.llms import ChatMessage

        self._message: Any = ChatMessage

    def native(self, turn: Turn) -> list[Any]:
        return [
            self._message(
                role=message["role"],
                content=message["content"],
                additional_kwargs={
                    name: value
                    for name, value in message.items()
                    if name not in ("role", "content")
                },
            )
            for message in turn
        ]

    def dumped(self, turn: list[Any]) -> list[Message]:
        return [message.model_dump(mode="json") for message in turn]

    def loaded(self, messages: list[Message]) -> list[Any]:
        return list(map(self._message.model_validate, messages))

    def by_hand(self, floor: Any, key: str, turn: list[Any]) -> None:
        self.loaded(floor.read(key, NEWEST))
        for message in self.dumped(turn):
            floor.append(key, [message])

    def turn(self, store: Any, window: Any, key: str, turn: list[Any]) -> None:
        from turnstore.integrations.llama_index import ChatStore

        chats = ChatStore(store.conversation, window=window)
        chats.get_messages(key)
        for message in turn:
            chats.add_message(key, message)


class PydanticAI(Framework):
    """pydantic-ai: a run of an agent with the capability, and with a history of one's own.

    A run is part of both figures: there is no interface below it that has a history.
    """

    name = "pydantic-ai (a run)"
    format = "pydantic_ai"

    def __init__(self) -> None:
        from pydantic_ai import Agent, ModelMessagesTypeAdapter
        from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart
        from pydantic_ai.models.function import FunctionModel

        self._request: Any = ModelRequest
        self._response, self._text = ModelResponse, TextPart
        self._adapter: Any = ModelMessagesTypeAdapter
        answer = self._response([TextPart("x" * 800)])
        self._agent: Any = Agent(FunctionModel(lambda *_: answer))

    def native(self, turn: Turn) -> list[Any]:
        text = [message["content"] or json.dumps(message) for message in turn]
        return [
            self._request.user_text_prompt(said)
            if message["role"] in ("user", "tool")
            else self._response([self._text(said)])
            for message, said in zip(turn, text, strict=True)
        ]

    def dumped(self, turn: list[Any]) -> list[Message]:
        return self._adapter.dump_python(turn, mode="json")

    def loaded(self, messages: list[Message]) -> list[Any]:
        return self._adapter.validate_python(messages)

    async def turn(self, store: Any, window: Any, key: str, turn: list[Any]) -> None:
        from turnstore.integrations.pydantic_ai import Memory

        memory = Memory(store.conversation(key), window=window)
        await self._agent.run(turn[0].parts[0].content, capabilities=[memory])

    async def _by_hand_async(self, floor: Any, key: str, turn: list[Any]) -> None:
        history = self.loaded(await floor.read(key, NEWEST))
        ran = await self._agent.run(turn[0].parts[0].content, message_history=history)
        await floor.append(key, self.dumped(ran.new_messages()))


FRAMEWORKS: tuple[type[Framework], ...] = (
    OpenAIAgents,
    AgentFramework,
    LangChain,
    LlamaIndex,
    PydanticAI,
)
