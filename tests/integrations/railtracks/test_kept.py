"""What comes back is what was there: each kind of message, and what stands beside its content."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest
import railtracks as rt
from litellm.types.utils import Message as ProviderMessage
from railtracks.llm import (
    AssistantMessage,
    MessageHistory,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolResponse,
    UserMessage,
)
from railtracks.llm.content import ToolCalls

from tests.conformance.marks import ONE_SERVER
from tests.integrations.railtracks.model import Model, ask, heard
from tests.integrations.railtracks.test_like_theirs import agent
from turnstore import SaveError, Window
from turnstore.integrations.railtracks import ConversationMemory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from turnstore import AsyncStore

pytestmark = ONE_SERVER

CALL = ToolCall(identifier="c1", name="weather", arguments={"city": "Rome"})


def said(content: Any, **beside: Any) -> AssistantMessage[Any]:
    message = AssistantMessage(content)
    for name, value in beside.items():
        setattr(message, name, value)
    return message


@rt.function_node
def weather(city: str) -> str:
    """Tell the weather.

    Args:
        city (str): Where.
    """
    del city
    return "warm"


def wire(messages: Any) -> list[dict[str, Any]]:
    """Give what Railtracks sends a provider for them."""
    llm = rt.llm.OpenAICompatibleProvider("m", api_base="http://none.invalid", api_key="none")
    return [llm._to_litellm_message(message) for message in messages]


def raw(**fields: Any) -> ProviderMessage:
    calls = [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]
    return ProviderMessage(content=None, role="assistant", tool_calls=calls, **fields)


THINKING = [{"type": "thinking", "thinking": "hm", "signature": "x+/=", "zz": [1.0, 2**70]}]

ODD = {
    "text": said("\x00 \u2028 é"),
    "no text": said(None),
    "reasoning": said("Yes.", reasoning_content="hm", thinking_blocks=THINKING),
    "calls": said([CALL]),
    "odd arguments": said([CALL.model_copy(update={"arguments": {"zz": [1.0, None, 2**70]}})]),
    "calls and text": said(ToolCalls([CALL], text="I look it up."), thinking_blocks=THINKING),
    "calls and no text": said(ToolCalls([CALL], text="")),
    "a provider's message": said(
        [CALL],
        raw_litellm_message=raw(
            provider_specific_fields={"thought_signatures": ["a+/="], "nothing": None},
            reasoning_content="hm",
            unknown={"x": 1.0},
        ),
    ),
    "a dict for it": said([CALL], raw_litellm_message={"extra": {"x": 1.0}}),
    "what a later version has": said("Yes.", later={"x": [None]}),
    "instructions": SystemMessage("Be brief."),
}


@pytest.mark.parametrize("name", ODD)
async def test_a_message_is_sent_again_as_it_was(
    conversation: Callable[[str], Any], store: AsyncStore, name: str
) -> None:
    message = ODD[name]
    past: list[Any] = [UserMessage("Hi"), message]
    if message.tool_calls:
        past.append(ToolMessage(ToolResponse(identifier="c1", name="weather", result="warm")))
    await store.conversation("ada").append(past, format="railtracks")
    model = Model()
    await ask(agent(model, ConversationMemory(conversation, "ada")), "And?")
    assert [type(one) for one in model.asked[-1][:-1]] == [type(one) for one in past]
    back = model.asked[-1][1]
    assert wire(model.asked[-1][:-1]) == wire(past)
    assert [one.content for one in model.asked[-1][:-1]] == [one.content for one in past]
    assert getattr(back.content, "text", None) == getattr(message.content, "text", None)
    for field in ("raw_litellm_message", "reasoning_content", "thinking_blocks", "later"):
        assert getattr(back, field, None) == getattr(message, field, None)


async def test_what_a_provider_said_beside_its_calls_is_kept(
    conversation: Callable[[str], Any],
) -> None:
    provider = raw(provider_specific_fields={"thought_signatures": ["a+/="]})
    model = Model(said([CALL], raw_litellm_message=provider, thinking_blocks=THINKING))
    node = agent(model, ConversationMemory(conversation, "ada"), tool_nodes=[weather])
    await ask(node, "How warm?")
    first = wire(model.asked[-1])
    await ask(node, "Thanks")
    assert wire(model.asked[-1])[: len(first)] == first
    assert first[1]["provider_specific_fields"] == {"thought_signatures": ["a+/="]}


async def test_an_attachment_is_read_once(
    conversation: Callable[[str], Any], tmp_path: Path
) -> None:
    picture, letter = tmp_path / "a.png", tmp_path / "b.pdf"
    picture.write_bytes(b"png")
    letter.write_bytes(b"pdf")
    files = [str(picture), str(letter), f"data:image/png;base64,{b64encode(b'x').decode()}"]
    model, memory = Model(), ConversationMemory(conversation, "ada")
    question = UserMessage("What is this?", attachment=files)
    expected = wire([question])
    await ask(agent(model, memory), question)
    picture.unlink()
    letter.unlink()
    await ask(agent(model, memory), "And?")
    back = model.asked[-1][0]
    assert isinstance(back, UserMessage)
    assert back.attachment is not None
    assert question.attachment is not None
    assert [vars(one) for one in back.attachment] == [vars(one) for one in question.attachment]
    # LiteLLM does not know what this model can read, so that nothing is refused here.
    assert wire([back]) == expected


async def test_no_limit_parts_a_call_from_its_result(conversation: Callable[[str], Any]) -> None:
    loop = [
        ("user", "How warm?"),
        ("assistant", str(ToolCalls([CALL]))),
        ("tool", "weather -> warm"),
    ]
    for size, kept in ((1, 1), (2, 1), (5, 1), (6, 2), (9, 2), (10, 3)):
        model = Model([CALL], "Warm.", "Welcome.", [CALL], "Warm.")
        memory = ConversationMemory(conversation, f"ada-{size}", max_messages=size)
        node = agent(model, memory, tool_nodes=[weather])
        for text in ("How warm?", "Thanks", "How warm?", "Thanks"):
            await ask(node, text)
        turns = [[*loop, ("assistant", "Warm.")], [("user", "Thanks"), ("assistant", "Welcome.")]]
        turns.append(turns[0])
        assert model.heard == [one for turn in turns[-kept:] for one in turn] + [turns[1][0]]


async def test_what_has_no_json_form_is_an_error_with_the_answer(
    conversation: Callable[[str], Any], store: AsyncStore
) -> None:
    odd = ToolCall(identifier="c1", name="weather", arguments={"city": {"Rome"}})
    model, memory = Model([odd]), ConversationMemory(conversation, "ada")
    with pytest.raises(SaveError, match="set has no JSON form") as caught:
        await ask(agent(model, memory, tool_nodes=[weather]), "How warm?")
    assert caught.value.reply.text == "Yes."
    assert await store.conversation("ada").turns() == []


async def test_an_answer_without_a_word_is_not_saved(
    conversation: Callable[[str], Any],
    store: AsyncStore,
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer = await ask(agent(Model(""), ConversationMemory(conversation, "ada")), "Hi")
    assert answer.text == ""
    assert await store.conversation("ada").turns() == []
    assert "said nothing" in caplog.text


async def test_instructions_in_the_input_are_not_stored(
    conversation: Callable[[str], Any], store: AsyncStore
) -> None:
    model, memory = Model(), ConversationMemory(conversation, "ada")
    for _ in range(2):
        await ask(agent(model, memory), [SystemMessage("Be brief."), UserMessage("Hi")])
    assert [role for role, _ in model.heard] == ["system", "user", "assistant", "user"]
    assert "brief" not in str(await store.conversation("ada").read(Window()))


async def test_the_stored_json_says_what_it_is(
    conversation: Callable[[str], Any], store: AsyncStore
) -> None:
    model, memory = Model(ToolCalls([CALL], text="I look it up.")), None
    memory = ConversationMemory(conversation, "ada")
    await ask(agent(model, memory, tool_nodes=[weather]), "How warm?")
    (turn,) = await store.conversation("ada").turns()
    assert turn.format == "railtracks"
    assert turn.messages == [
        {"role": "user", "content": "How warm?"},
        {
            "role": "assistant",
            "content": [CALL.model_dump()],
            "text": "I look it up.",
        },
        {
            "role": "tool",
            "content": {
                "identifier": "c1",
                "name": "weather",
                "result": "warm",
            },
        },
        {"role": "assistant", "content": "Yes."},
    ]


async def test_messages_can_be_appended_as_they_are(
    conversation: Callable[[str], Any], store: AsyncStore
) -> None:
    past: Any = MessageHistory([UserMessage("Hi"), AssistantMessage("Hello.")])
    await store.conversation("ada").append(past, format="railtracks")
    history = await ConversationMemory(conversation, "ada").get_history()
    assert heard(history) == heard(past)
