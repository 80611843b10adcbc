"""What is particular to LlamaIndex's chat store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from llama_index.core.base.llms.types import ThinkingBlock, ToolCallBlock
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import ChatMessage, MockLLM
from llama_index.core.memory import ChatMemoryBuffer

from tests.servers.found import servers
from turnstore import AsyncStore, Store, Window
from turnstore.integrations.llama_index import ChatStore

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.servers(servers()[0].name), pytest.mark.one_setup]


@pytest.fixture
def store(make_store: Callable[..., Store]) -> Store:
    return make_store()


@pytest.fixture
def chats(store: Store) -> ChatStore:
    return ChatStore(store.conversation)


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


def model(text: str) -> ChatMessage:
    return ChatMessage(role="assistant", content=text)


def texts(messages: list[ChatMessage] | None) -> list[str | None]:
    return [message.content for message in messages or []]


def sizes(store: Store) -> list[int]:
    return [len(turn.messages) for turn in store.conversation("ada").turns()]


def test_messages_come_back_as_they_were(chats: ChatStore) -> None:
    said = [
        user("\x00 \u2028 é"),
        ChatMessage(
            role="assistant",
            blocks=[
                ThinkingBlock(content="hm", additional_information={"signature": "s/+="}),
                ToolCallBlock(tool_call_id="c", tool_name="t", tool_kwargs={"n": 2**70}),
            ],
            additional_kwargs={"zz": [1.0, None]},
        ),
        ChatMessage(role="tool", content="21", additional_kwargs={"tool_call_id": "c"}),
        model("Warm."),
    ]
    for message in said:
        chats.add_message("ada", message)
    assert chats.get_messages("ada") == said


def test_an_engine_makes_a_turn_of_two_writes(store: Store, chats: ChatStore) -> None:
    memory = ChatMemoryBuffer.from_defaults(
        chat_store=chats, chat_store_key="ada", token_limit=9000
    )
    engine = SimpleChatEngine.from_defaults(llm=MockLLM(), memory=memory)
    engine.chat("One")
    "".join(engine.stream_chat("Two").response_gen)
    assert sizes(store) == [2, 2]
    memory.reset()
    assert sizes(store) == []


async def test_an_async_engine_works_in_threads(store: Store, chats: ChatStore) -> None:
    memory = ChatMemoryBuffer.from_defaults(
        chat_store=chats, chat_store_key="ada", token_limit=9000
    )
    engine = SimpleChatEngine.from_defaults(llm=MockLLM(), memory=memory)
    await engine.achat("One")
    reply = await engine.astream_chat("Two")
    _ = [piece async for piece in reply.async_response_gen()]
    assert sizes(store) == [2, 2]
    assert len(await chats.aget_messages("ada")) == 4


def test_a_call_without_a_result_is_not_given_to_a_model(chats: ChatStore) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}
    chats.add_message("ada", user("One"))
    chats.add_message(
        "ada", ChatMessage(role="assistant", additional_kwargs={"tool_calls": [call]})
    )
    chats.add_message("ada", user("Two"))
    assert texts(chats.get_messages("ada")) == ["Two"]


def test_an_answer_without_a_question_is_a_turn(store: Store, chats: ChatStore) -> None:
    chats.add_message("ada", model("Welcome!"))
    chats.add_message("ada", user("Hi"))
    assert sizes(store) == [1, 1]


def test_replaced_and_deleted(store: Store, chats: ChatStore) -> None:
    chats.set_messages("ada", [user("1"), model("2"), user("3"), model("4"), user("5")])
    assert sizes(store) == [2, 2, 1]
    assert texts([chats.delete_message("ada", 2) or user("")]) == ["3"]
    assert texts(chats.get_messages("ada")) == ["1", "2", "4", "5"]
    assert sizes(store) == [2, 1, 1]
    last = chats.delete_last_message("ada")
    assert last is not None
    assert last.content == "5"
    assert chats.delete_message("ada", 9) is None
    chats.set_messages("ada", [user("new")])
    assert texts(chats.delete_messages("ada")) == ["new"]
    assert chats.delete_messages("ada") is None
    assert chats.delete_last_message("ada") is None


def test_a_window_keeps_whole_turns(store: Store) -> None:
    chats = ChatStore(store.conversation, window=Window(turns=2))
    chats.set_messages("ada", [user("1"), model("2"), user("3"), model("4"), user("5")])
    assert texts(chats.get_messages("ada")) == ["3", "4", "5"]


def test_what_is_refused(store: Store, chats: ChatStore) -> None:
    with pytest.raises(NotImplementedError, match="no list"):
        chats.get_keys()
    given: Any = store
    with pytest.raises(TypeError, match=r"store\.conversation"):
        ChatStore(given)
    other: Any = AsyncStore.from_url("redis://localhost:1", name="test").conversation
    with pytest.raises(TypeError, match="of a Store"):
        ChatStore(other).get_messages("ada")
