"""What is particular to LangChain: agents with the middleware, and the chat message history."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ModelRetryMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    message_to_dict,
    messages_from_dict,
)
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import SecretStr

from tests.conformance.marks import ONE_SERVER
from turnstore import AsyncStore, SaveError, Store, TurnConflictError, Window
from turnstore.context import Context
from turnstore.integrations.langchain import ChatHistory, MemoryMiddleware

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from turnstore import AsyncConversation, Conversation

pytestmark = ONE_SERVER

CALL = AIMessage(
    "", tool_calls=[{"name": "weather", "args": {"city": "Rome"}, "id": "c1", "type": "tool_call"}]
)


class Model(GenericFakeChatModel):
    """Says what it was told to, and keeps what it was asked."""

    heard: list[Any] = []  # noqa: RUF012 - pydantic copies it

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        del tools
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        self.heard.append(messages)
        return super()._generate(messages, *args, **kwargs)


def model(*said: str | AIMessage | Exception) -> Model:
    def steps() -> Iterator[str | AIMessage]:
        for one in said:
            yield one.model_copy() if isinstance(one, AIMessage) else str(one)

    return Model(messages=steps())


@tool
def weather(city: str) -> str:
    """Say what the weather is."""
    return f"21 degrees in {city}"


@pytest.fixture
def store(make_store: Callable[..., Store]) -> Store:
    return make_store()


@pytest.fixture
def chat(store: Store) -> Conversation:
    return store.conversation("ada")


def kinds(chat: Conversation) -> list[list[str]]:
    return [[message["type"] for message in turn.messages] for turn in chat.turns()]


def ask(agent: Any, text: str, **options: Any) -> list[BaseMessage]:
    return list(agent.invoke({"messages": [HumanMessage(text)]}, **options)["messages"])


def test_a_run_is_one_turn_and_its_result_is_this_run_alone(chat: Conversation) -> None:
    asked = model(CALL, "21", "You are welcome")
    agent = create_agent(asked, [weather], middleware=[MemoryMiddleware(chat, meta={"by": "ada"})])
    assert len(ask(agent, "How warm is it?")) == 4
    assert [one.type for one in ask(agent, "Thanks")] == ["human", "ai"]
    assert kinds(chat) == [["human", "ai", "tool", "ai"], ["human", "ai"]]
    assert chat.turns()[0].meta == {"by": "ada"}
    assert [one.type for one in asked.heard[-1]] == ["human", "ai", "tool", "ai", "human"]


def test_the_model_is_sent_what_was_stored(chat: Conversation) -> None:
    said = AIMessage(
        [{"type": "thinking", "thinking": "hm", "signature": "x+/=", "zz": 1.0}, "a"],
        id="run-1",
        additional_kwargs={"zz": [2**70]},
    )
    asked = model("ok")
    chat.append([HumanMessage("hi", id="1"), said], format="langchain")
    ask(create_agent(asked, middleware=[MemoryMiddleware(chat)]), "And?")
    assert asked.heard[-1][:2] == [HumanMessage("hi", id="1"), said]


def test_the_conversation_of_a_run_is_found_by_a_function(store: Store) -> None:
    @dataclass
    class Of:
        user: str

    memory = MemoryMiddleware(lambda runtime: store.conversation(runtime.context.user))
    agent: Any = create_agent(model("Hi", "Hi", "Hi"), middleware=[memory], context_schema=Of)
    for user in ("ada", "bob", "ada"):
        ask(agent, "Hello", context=Of(user))
    assert [len(store.conversation(user).turns()) for user in ("ada", "bob")] == [2, 1]


def test_a_checkpointer_beside_it_doubles_nothing(chat: Conversation) -> None:
    asked = model("1", "2", "3")
    memory = MemoryMiddleware(chat)
    agent: Any = create_agent(asked, middleware=[memory], checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "t"}}
    for text in ("a", "b", "c"):
        ask(agent, text, config=thread)
    assert [one.text for one in asked.heard[-1]] == ["a", "1", "b", "2", "c"]
    assert [turn.messages[0]["data"]["content"] for turn in chat.turns()] == ["a", "b", "c"]
    assert kinds(chat) == [["human", "ai"]] * 3


def test_a_run_that_waited_for_a_human_is_one_turn(chat: Conversation) -> None:
    saver, thread = InMemorySaver(), {"configurable": {"thread_id": "t"}}

    def agent(*said: str | AIMessage) -> Any:
        human = HumanInTheLoopMiddleware(interrupt_on={"weather": True})
        return create_agent(
            model(*said),
            [weather],
            middleware=[MemoryMiddleware(chat), human],
            checkpointer=saver,
        )

    agent(CALL).invoke({"messages": [HumanMessage("How warm is it?")]}, thread)
    assert chat.turns() == []
    resume: Any = Command(resume={"decisions": [{"type": "approve"}]})
    agent("21").invoke(resume, thread)
    assert kinds(chat) == [["human", "ai", "tool", "ai"]]


def test_instructions_in_the_request_are_not_stored(chat: Conversation) -> None:
    asked = model("1", "2")
    agent: Any = create_agent(asked, middleware=[MemoryMiddleware(chat)])
    for text in ("a", "b"):
        agent.invoke({"messages": [SystemMessage("Be brief."), HumanMessage(text)]})
    assert [one.text for one in asked.heard[-1]] == ["Be brief.", "a", "1", "b"]
    assert kinds(chat) == [["human", "ai"]] * 2


def test_a_retry_of_the_model_is_no_second_turn(chat: Conversation) -> None:
    class Failing(Model):
        def _generate(self, *args: Any, **kwargs: Any) -> Any:
            self.heard.append(1)
            if len(self.heard) == 1:
                raise ConnectionError
            return super()._generate(*args, **kwargs)

    for first in (True, False):
        memory = MemoryMiddleware(chat)
        retry = ModelRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)
        order: list[Any] = [memory, retry] if first else [retry, memory]
        ask(create_agent(Failing(messages=iter(["Hi"])), middleware=order), "Hello")
    assert kinds(chat) == [["human", "ai"]] * 2


def test_an_answer_that_is_no_json_is_in_the_error(chat: Conversation) -> None:
    @tool(response_format="content_and_artifact")
    def weather(city: str) -> tuple[str, object]:
        """Say what the weather is."""
        return city, object()

    agent = create_agent(model(CALL, "21"), [weather], middleware=[MemoryMiddleware(chat)])
    with pytest.raises(SaveError, match="artifact") as caught:
        ask(agent, "How warm is it?")
    assert caught.value.reply.text == "21"
    assert chat.turns() == []


async def test_each_kind_of_call_needs_its_kind_of_store(chat: Conversation) -> None:
    human = {"messages": [HumanMessage("Hi")]}
    agent: Any = create_agent(model("a"), middleware=[MemoryMiddleware(chat)])
    with pytest.raises(TypeError, match="AsyncStore"):
        await agent.ainvoke(human)
    async with AsyncStore.from_url("redis://localhost", name="test") as other:
        agent = create_agent(model("a"), middleware=[MemoryMiddleware(other.conversation("a"))])
        with pytest.raises(TypeError, match="a Store"):
            agent.invoke(human)


def test_serialize_gives_the_lease_back_after_a_failure(chat: Conversation) -> None:
    memory = MemoryMiddleware(chat, on_conflict="serialize")

    class Failing(Model):
        def _generate(self, *_: Any, **__: Any) -> Any:
            raise ConnectionError

    with pytest.raises(ConnectionError):
        ask(create_agent(Failing(messages=iter([])), middleware=[memory]), "Hello")
    ask(create_agent(model("Hi"), middleware=[memory]), "Hello")
    assert kinds(chat) == [["human", "ai"]]


def test_wrong_options_are_refused_at_once(chat: Conversation) -> None:
    with pytest.raises(TypeError, match="window"):
        MemoryMiddleware(chat, window=3)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(ValueError, match="serialize"):
        ChatHistory(chat, on_conflict="serialize")
    with pytest.raises(ValueError, match="sources"):
        ChatHistory(chat, context=Context(sources=[lambda _: []]))


@pytest.mark.parametrize("ending", ["complete", "truncated"])
def test_a_truncated_stream_of_openai_is_noticed(chat: Conversation, ending: Any) -> None:
    from turnstore.testing import ModelServer, Reply  # noqa: PLC0415 - for this test alone

    with ModelServer() as server:
        server.script(Reply("Hello you", ending=ending))
        real = ChatOpenAI(model="m", base_url=server.base_url, api_key=SecretStr("none"))
        agent: Any = create_agent(real, middleware=[MemoryMiddleware(chat)])
        for _ in agent.stream({"messages": [HumanMessage("Hi")]}, stream_mode="messages"):
            pass
    assert len(chat.turns()) == (1 if ending == "complete" else 0)


# The chat message history

SAID: list[BaseMessage] = [
    HumanMessage("hi", id="1", additional_kwargs={"zz": 1.0}),
    AIMessage([{"type": "thinking", "thinking": "hm", "signature": "x"}, "a"], tool_calls=[]),
]


def test_a_history_gives_back_what_it_was_given(chat: Conversation) -> None:
    history = ChatHistory(chat)
    assert history.messages == []
    history.add_messages(SAID)
    assert history.messages == SAID
    assert ChatHistory(chat).messages == SAID
    assert [message_to_dict(one) for one in SAID] == chat.read() == list(chat.turns()[0].messages)
    assert messages_from_dict(chat.read()) == SAID
    history.clear()
    assert history.messages == []


async def test_an_async_history(make_async_store: Callable[..., AsyncStore]) -> None:
    chat: AsyncConversation = make_async_store().conversation("ada")
    history = ChatHistory(chat)
    assert await history.aget_messages() == []
    await history.aadd_messages(SAID)
    assert await history.aget_messages() == SAID
    with pytest.raises(TypeError, match="give a Store"):
        _ = history.messages
    await history.aclear()
    await history.aadd_messages([HumanMessage("hi")])
    await history.aadd_messages([AIMessage("a")])
    assert [len(turn.messages) for turn in await chat.turns()] == [2]


async def test_a_sync_history_in_an_async_call(chat: Conversation) -> None:
    history = ChatHistory(chat)
    await history.aadd_messages(SAID)
    assert await history.aget_messages() == SAID
    await history.aclear()
    assert chat.read() == []


def test_messages_that_are_added_one_by_one_are_pieces_of_a_turn(chat: Conversation) -> None:
    history = ChatHistory(chat)
    for _ in range(2):
        history.add_user_message("hi")
        history.add_message(CALL)
        history.add_message(ToolMessage("21", tool_call_id="c1"))
        history.add_ai_message("a")
    history.add_messages([])
    assert kinds(chat) == [["human", "ai", "tool", "ai"]] * 2


def test_a_piece_after_another_turn_is_one_of_its_own(chat: Conversation) -> None:
    history = ChatHistory(chat)
    history.add_user_message("hi")
    ChatHistory(chat).add_messages(SAID)
    history.add_ai_message("a")
    assert kinds(chat) == [["human"], ["human", "ai"], ["ai"]]


def test_reject_raises_the_answer(chat: Conversation) -> None:
    history = ChatHistory(chat, on_conflict="reject")
    assert history.messages == []
    ChatHistory(chat).add_messages(SAID)
    with pytest.raises(TurnConflictError, match="another turn"):
        history.add_messages(SAID)


def test_what_was_refused_is_not_saved(chat: Conversation) -> None:
    said = AIMessage("", additional_kwargs={"refusal": "No."})
    ChatHistory(chat).add_messages([HumanMessage("hi"), said])
    assert chat.read() == []


def test_a_chunk_is_stored_as_the_message(chat: Conversation) -> None:
    ChatHistory(chat).add_messages([HumanMessage("hi"), AIMessageChunk(content="a")])
    assert ChatHistory(chat).messages == [HumanMessage("hi"), AIMessage("a")]


def test_a_turn_that_came_between_does_not_cost_the_question(chat: Conversation) -> None:
    """RunnableWithMessageHistory reads again at the end, and strips as many messages."""

    def answer(messages: list[BaseMessage]) -> AIMessage:
        ChatHistory(chat).add_messages(SAID)
        return AIMessage(f"{len(messages)}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chain = RunnableWithMessageHistory(
            RunnableLambda(answer),
            lambda session_id: ChatHistory(chat, window=Window(turns=2)),  # noqa: ARG005 - its name
        )
    chain.invoke([HumanMessage("mine")], {"configurable": {"session_id": "s"}})
    assert [turn.messages[0]["data"]["content"] for turn in chat.turns()] == ["hi", "mine"]
    assert kinds(chat) == [["human", "ai"]] * 2
