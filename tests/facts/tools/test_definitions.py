from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import redis
from openai.types.chat import ChatCompletionMessageFunctionToolCall
from openai.types.responses import ResponseFunctionToolCall

from tests.facts.meaning.kit import embed
from tests.servers.found import needs
from turnstore import Store
from turnstore.facts import Block, Facts, MemoryTools, WorkingMemory
from turnstore.facts._tools.definitions import call_in, definitions

if TYPE_CHECKING:
    from collections.abc import Iterator

ALL = (
    "core_memory_append",
    "core_memory_replace",
    "archival_memory_insert",
    "archival_memory_search",
    "conversation_search",
)


@pytest.fixture
def tools() -> Iterator[MemoryTools]:
    with redis.Redis(port=1) as client:
        store = Store(client, name="test")
        facts = Facts(store, embed=embed, dimensions=64, embedder="words:1")
        memory = WorkingMemory(facts, [Block("human", "The user."), Block("plan")])
        chat = store.conversation("c1", owner="ada")
        yield MemoryTools(facts, "ada", conversation=chat, memory=memory)


def test_a_tool_is_there_where_it_can_do_something() -> None:
    human = [("human", "The user.")]
    assert [tool.name for tool in definitions(human, has_conversation=True)] == list(ALL)
    assert [tool.name for tool in definitions((), has_conversation=True)] == list(ALL[2:])
    assert [tool.name for tool in definitions((), has_conversation=False)] == list(ALL[2:4])


def test_each_provider_gets_its_own_shape(tools: MemoryTools) -> None:
    assert (list(tools), len(tools)) == (list(ALL), 5)
    assert "conversation_search" in tools
    assert "weather" not in tools
    by_provider = zip(
        tools.openai, tools.openai_responses, tools.anthropic, tools.schemas, strict=True
    )
    for chat, response, anthropic, plain in by_provider:
        assert chat == {"type": "function", "function": plain}
        assert response == {"type": "function", "strict": False, **plain}
        schema = anthropic.pop("input_schema")
        assert {**anthropic, "parameters": schema} == plain
        assert (schema["type"], schema["additionalProperties"]) == ("object", False)
        assert set(schema["required"]) <= set(schema["properties"])


def test_the_blocks_are_named_to_the_model(tools: MemoryTools) -> None:
    label = tools.schemas[0]["parameters"]["properties"]["label"]
    assert label["enum"] == ["human", "plan"]
    assert "human: The user.; plan" in label["description"]


def test_definitions_may_be_changed_by_who_gets_them(tools: MemoryTools) -> None:
    tools.openai[0]["function"]["parameters"]["properties"].clear()
    assert tools.openai[0]["function"]["parameters"]["properties"]


CALLS = [
    pytest.param(
        {"id": "call-1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},
        {"role": "tool", "tool_call_id": "call-1", "content": "said"},
        {"role": "tool", "tool_call_id": "call-1", "content": "said"},
        id="chat",
    ),
    pytest.param(
        ChatCompletionMessageFunctionToolCall.model_validate(
            {"id": "call-1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
        ),
        {"role": "tool", "tool_call_id": "call-1", "content": "said"},
        {"role": "tool", "tool_call_id": "call-1", "content": "said"},
        id="chat object",
    ),
    pytest.param(
        ResponseFunctionToolCall(
            type="function_call", call_id="call-1", id="fc-1", name="f", arguments='{"a": 1}'
        ),
        {"type": "function_call_output", "call_id": "call-1", "output": "said"},
        {"type": "function_call_output", "call_id": "call-1", "output": "said"},
        id="responses",
    ),
    pytest.param(
        {"type": "tool_use", "id": "call-1", "name": "f", "input": {"a": 1}},
        {"type": "tool_result", "tool_use_id": "call-1", "content": "said"},
        {"type": "tool_result", "tool_use_id": "call-1", "content": "said", "is_error": True},
        id="anthropic",
    ),
]


@pytest.mark.parametrize("given, result, failure", CALLS)
def test_a_call_is_read_and_answered_in_the_shape_of_its_provider(
    given: Any, result: dict[str, Any], failure: dict[str, Any]
) -> None:
    call = call_in(given)
    assert (call.name, call.id) == ("f", "call-1")
    assert call.arguments in ('{"a": 1}', {"a": 1})
    assert call.result("said", failed=False) == result
    assert call.result("said", failed=True) == failure


@pytest.mark.integrations
def test_a_call_may_be_an_object_of_anthropics_sdk() -> None:
    types = needs("anthropic.types")
    call = call_in(types.ToolUseBlock(type="tool_use", id="call-1", name="f", input={"a": 1}))
    assert (call.name, call.arguments, call.id) == ("f", {"a": 1}, "call-1")


@pytest.mark.parametrize("given", [None, "f", {}, {"type": "text"}, {"function": "f"}, [1]])
def test_what_is_no_call_is_refused(tools: MemoryTools, given: Any) -> None:
    with pytest.raises(TypeError, match="a call of a tool is"):
        tools.answer(given)
