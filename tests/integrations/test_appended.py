"""What an SDK answered can be appended, or is refused: no object spoils a conversation.

The model server refuses what a provider refuses, so the wrapped call afterwards shows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from anthropic import Anthropic
from anthropic.types import Message, Usage
from google import genai
from google.genai import types
from openai import OpenAI

from turnstore.testing import ModelServer, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turnstore import Conversation

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]

QUESTION = {"role": "user", "content": "My name is Ada."}


@pytest.fixture
def openai(model: ModelServer) -> Iterator[OpenAI]:
    with OpenAI(base_url=model.base_url, api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture
def anthropic(model: ModelServer) -> Iterator[Anthropic]:
    with Anthropic(base_url=model.url, api_key="none", max_retries=0) as client:
        yield client


def _refused(chat: Conversation, answer: Any, format: str) -> None:  # noqa: A002 - as append's
    with pytest.raises(ValueError, match="nothing was written"):
        chat.append([QUESTION, answer], format=format)
    assert chat.read() == []


def test_of_chat_completions(chat: Conversation, openai: OpenAI) -> None:
    asked: Any = {"model": "m", "messages": [QUESTION]}
    completion = openai.chat.completions.create(**asked)
    _refused(chat, completion, "openai.chat")
    chat.append([QUESTION, completion.choices[0].message])
    parsed = openai.chat.completions.parse(**asked)
    chat.append([QUESTION, parsed.choices[0].message])
    client = chat.wrap(openai)
    asked["messages"] = [{"role": "user", "content": "What is my name?"}]
    assert client.chat.completions.create(**asked).choices[0].message.content == (
        "Your name is Ada."
    )


def test_of_responses(chat: Conversation, openai: OpenAI, model: ModelServer) -> None:
    response = openai.responses.create(model="m", input=[QUESTION])  # type: ignore[list-item]
    _refused(chat, response, "openai.responses")
    chat.append([QUESTION, *response.output], format="openai.responses")
    client = chat.wrap(openai)
    said = client.responses.create(model="m", input="What is my name?")
    assert said.output_text == "Your name is Ada."
    assert len(model.requests[-1].messages) == 3


@pytest.mark.parametrize("beta", [False, True])
@pytest.mark.parametrize("dumped", [False, True])
def test_of_anthropic(
    chat: Conversation, anthropic: Anthropic, model: ModelServer, *, beta: bool, dumped: bool
) -> None:
    """The answer is itself what is taken for the message: it has a role and content."""
    asked: Any = {"model": "m", "max_tokens": 9, "messages": [QUESTION]}
    api: Any = anthropic.beta.messages if beta else anthropic.messages
    thought = {"type": "thinking", "thinking": "Hm", "signature": "EqQB+/=="}
    model.script(Reply(fields={"content": [thought, {"type": "text", "text": "Hello Ada"}]}))
    message = api.create(**asked)
    with api.stream(**asked) as stream:
        streamed = stream.get_final_message()
    for answer in (message, streamed):
        given = answer.model_dump(mode="json") if dumped else answer
        chat.append([QUESTION, given], format="anthropic.messages")
    assert [sorted(one) for one in chat.read()] == [["content", "role"]] * 4
    assert chat.read()[1]["content"][0] == thought
    client: Any = chat.wrap(anthropic)
    asked["messages"] = [{"role": "user", "content": "What is my name?"}]
    assert client.messages.create(**asked).content[0].text == "Your name is Ada."
    assert model.requests[-1].messages[1]["content"][0] == thought
    # A hand-written loop that sends answers back, as they are, is recognised as well.
    asked["messages"] = [*chat.read()[-2:], {"role": "user", "content": "And again?"}]
    client.messages.create(**asked)
    assert len(model.requests[-1].messages) == 7


def test_of_a_message_that_somebody_made(chat: Conversation) -> None:
    usage = Usage(input_tokens=1, output_tokens=1)
    content: Any = [{"type": "text", "text": "Hello Ada"}]
    made = Message(
        id="m", type="message", role="assistant", model="m", content=content, usage=usage
    )
    chat.append([QUESTION, made], format="anthropic.messages")
    assert chat.read()[1] == {"role": "assistant", "content": content}


def test_of_gemini(chat: Conversation, model: ModelServer) -> None:
    options = types.HttpOptions(base_url=model.url)
    with genai.Client(api_key="none", http_options=options) as client:
        response = client.models.generate_content(model="m", contents="My name is Ada.")
        question = types.Content(role="user", parts=[types.Part(text="My name is Ada.")])
        with pytest.raises(ValueError, match="nothing was written"):
            chat.append([question, response], format="google.contents")
        assert chat.read() == []
        assert response.candidates
        content = response.candidates[0].content
        assert content is not None
        chat.append([question, content], format="google.contents")
        wrapped = chat.wrap(client)
        said = wrapped.models.generate_content(model="m", contents="What is my name?")
        assert said.text == "Your name is Ada."
        assert len(model.requests[-1].messages) == 3


def test_a_result_without_its_call_is_kept_and_left_out(
    chat: Conversation, openai: OpenAI, model: ModelServer
) -> None:
    chat.append([QUESTION, {"role": "assistant", "content": "Hello Ada."}])
    result = {"role": "tool", "tool_call_id": "gone", "content": "1"}
    chat.append(result)
    chat.append(["A sum, please.", result, {"role": "assistant", "content": "1"}])
    asked: Any = {"model": "m", "messages": [{"role": "user", "content": "What is my name?"}]}
    answer = chat.wrap(openai).chat.completions.create(**asked)
    assert answer.choices[0].message.content == "Your name is Ada."
    assert len(model.requests[-1].messages) == 3
    assert [message["role"] for message in chat.read()].count("tool") == 2
