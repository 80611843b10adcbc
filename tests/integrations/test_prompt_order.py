"""The order of a prompt where instructions have a place of their own: Anthropic and Gemini.

`tests/context/test_prompt_order.py` has it for OpenAI's two endpoints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from anthropic import Anthropic

from tests.integrations.google.talking import ask, client_of
from turnstore import Window
from turnstore.context import Context, Query, Summary
from turnstore.testing import ModelServer, Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from turnstore import Conversation, Store

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]

HEADING = "So far:"
Say = Any


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def chat(make_store: Callable[..., Store]) -> Conversation:
    return make_store().conversation("ada")


def facts(query: Query) -> list[str]:
    return [f"A fact about {query.text}"]


def everything() -> Context:
    return Context(
        Window(turns=2), summary=Summary(lambda _: "They spoke.", heading=HEADING), sources=[facts]
    )


@pytest.fixture(params=["anthropic", "google"])
def say(request: pytest.FixtureRequest, chat: Conversation, model: ModelServer) -> Iterator[Say]:
    """Give what says one thing to a client with a memory and everything in its context."""
    if request.param == "google":
        with client_of(model) as gemini:
            google = chat.wrap(gemini, context=everything())
            yield lambda what: ask(google, what, system_instruction="Be kind.")
    else:
        with Anthropic(base_url=model.url, api_key="none", max_retries=0) as base:
            anthropic = chat.wrap(base, context=everything())

            def say(what: Any) -> None:
                messages: Any = [{"role": "user", "content": what}]
                anthropic.messages.create(
                    model="m", max_tokens=9, system="Be kind.", messages=messages
                )

            yield say


def told(model: ModelServer) -> tuple[list[str], list[tuple[str, str]]]:
    """Give the instructions that reached the model, and who said what after them."""
    body = model.requests[-1].body
    system: Any = body["system"] if "system" in body else body["systemInstruction"]["parts"]
    spoken = [(one["role"], text_of(one)) for one in model.requests[-1].messages]
    return [part["text"] for part in system], spoken


def text_of(message: Any) -> str:
    said = message.get("content", message.get("parts"))
    return said if isinstance(said, str) else "".join(part.get("text", "") for part in said)


def test_instructions_facts_summary_window_new_messages(
    say: Say, chat: Conversation, model: ModelServer
) -> None:
    for number in range(1, 6):
        say(f"q{number}")
    instructions, spoken = told(model)
    own, context = instructions
    assert own == "Be kind."
    assert context.index("A fact about q5") < context.index(HEADING)
    assert context.endswith(f"{HEADING}\nThey spoke.")
    theirs = "model" if "contents" in model.requests[-1].body else "assistant"
    assert [role for role, _ in spoken] == ["user", theirs, "user", theirs, "user"]
    assert [text for _, text in spoken][::2] == ["q3", "q4", "q5"]
    stored = str(chat.read(Window()))
    assert "fact" not in stored
    assert HEADING not in stored


def test_results_stand_directly_after_their_calls(
    say: Say, chat: Conversation, model: ModelServer
) -> None:
    """The server refuses anything else, as the provider would."""
    for number in range(1, 4):
        say(f"q{number}")
    model.script(Reply.tool_call("f", x=1))
    say("Use it")
    call = chat.read()[-1]
    if "parts" in call:
        say({"function_response": {"name": "f", "response": {"result": "sun"}}})
    else:
        use_id = call["content"][0]["id"]
        say([{"type": "tool_result", "tool_use_id": use_id, "content": "sun"}])
    instructions, spoken = told(model)
    assert len(instructions) == 2
    assert [text for _, text in spoken][-3] == "Use it"
    assert text_of(chat.read()[-1]) == "The tool says: sun"
    assert len(chat.turns()) == 4
