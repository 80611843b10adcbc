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
    from collections.abc import Iterator

    from turnstore import Conversation

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]

HEADING = "So far:"
Say = Any


def facts(query: Query) -> list[str]:
    return [f"A fact about {query.text}"]


def everything() -> Context:
    return Context(
        Window(turns=2), summary=Summary(lambda _: "They spoke.", heading=HEADING), sources=[facts]
    )


@pytest.fixture(params=["anthropic", "google"])
def sayer(request: pytest.FixtureRequest, model: ModelServer) -> Iterator[Any]:
    """Give what makes of a conversation and a context what says one thing to a client of them."""
    if request.param == "google":
        with client_of(model) as gemini:

            def google(chat: Conversation, context: Context) -> Say:
                wrapped = chat.wrap(gemini, context=context)
                return lambda what: ask(wrapped, what, system_instruction="Be kind.")

            yield google
    else:
        with Anthropic(base_url=model.url, api_key="none", max_retries=0) as base:

            def anthropic(chat: Conversation, context: Context) -> Say:
                wrapped = chat.wrap(base, context=context)
                return lambda what: wrapped.messages.create(
                    model="m",
                    max_tokens=9,
                    system="Be kind.",
                    messages=[{"role": "user", "content": what}],
                )

            yield anthropic


@pytest.fixture
def say(sayer: Any, chat: Conversation) -> Say:
    """Give what says one thing to a client with a memory and everything in its context."""
    return sayer(chat, everything())


def told(model: ModelServer) -> tuple[list[str], list[tuple[str, str]]]:
    """Give the instructions that reached the model, and who said what after them."""
    body = model.requests[-1].body
    system: Any = body["system"] if "system" in body else body["systemInstruction"]["parts"]
    spoken = [(one["role"], text_of(one)) for one in model.requests[-1].messages]
    own = [system] if isinstance(system, str) else [part["text"] for part in system]
    return own, spoken


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


# Where the model spoke first: neither API takes that, whatever is stored


@pytest.fixture
def past(request: pytest.FixtureRequest) -> Past:
    return Past(request.node.callspec.params["sayer"])


class Past:
    """Messages of the past, in the format of a provider."""

    def __init__(self, provider: str) -> None:
        self.is_google = provider == "google"
        self.format = "google.contents" if self.is_google else "anthropic.messages"

    def message(self, role: str, *parts: Any) -> dict[str, Any]:
        texts = [{"text": part} if isinstance(part, str) else part for part in parts]
        if self.is_google:
            return {"role": "model" if role == "assistant" else role, "parts": texts}
        blocks = [{"type": "text", **part} if "text" in part else part for part in texts]
        return {"role": role, "content": blocks}

    def loop(self, at: int) -> list[dict[str, Any]]:
        """A call of the model, and its result."""
        if self.is_google:
            call: Any = {"functionCall": {"name": "f", "args": {}}}
            result: Any = {"functionResponse": {"name": "f", "response": {"result": "1"}}}
        else:
            call = {"type": "tool_use", "id": f"t{at}", "name": "f", "input": {}}
            result = {"type": "tool_result", "tool_use_id": f"t{at}", "content": "1"}
        return [self.message("assistant", call), self.message("user", result)]

    def exchange(self, number: int) -> list[dict[str, Any]]:
        return [
            self.message("user", f"q{number}"),
            *self.loop(number),
            self.message("assistant", f"a{number}"),
        ]


def test_a_greeting_is_stored_and_not_sent(
    sayer: Any, chat: Conversation, model: ModelServer, past: Past
) -> None:
    greeting = past.message("assistant", "How can I help?")
    chat.append(greeting, format=past.format)
    say = sayer(chat, Context())
    say("q1")
    assert told(model)[1] == [("user", "q1")]
    say("q2")
    assert [text for _, text in told(model)[1]][::2] == ["q1", "q2"]
    assert chat.read()[0] == greeting
    assert len(chat.turns()) == 3


def test_a_history_that_begins_with_the_models_own_work(
    sayer: Any, chat: Conversation, model: ModelServer, past: Past
) -> None:
    """Imported: a greeting, calls with their results and an answer, then what users asked."""
    imported = [
        past.message("assistant", "I look it up."),
        *past.loop(0),
        past.message("assistant", "Here it is."),
    ]
    for turn in (imported, past.exchange(1), past.exchange(2)):
        chat.append(turn, format=past.format)
    sayer(chat, Context())("q3")
    spoken = told(model)[1]
    assert spoken[0] == ("user", "q1")
    assert len(spoken) == 4 + 4 + 1
    assert len(chat.read(Window())) == 4 + 4 + 4 + 2


@pytest.mark.parametrize("how", ["window", "trim", "fork"])
def test_a_window_that_begins_with_a_word_of_the_models(
    sayer: Any, chat: Conversation, model: ModelServer, past: Past, how: str
) -> None:
    chat.append(past.exchange(1), format=past.format)
    chat.append(past.message("assistant", "Are you still there?"), format=past.format)
    chat.append(past.exchange(2), format=past.format)
    window = Window(turns=2) if how == "window" else Window()
    if how != "window":
        chat.trim(turns=2)
    if how == "fork":
        chat = chat.fork("other")
    sayer(chat, Context(window))("q3")
    spoken = told(model)[1]
    assert spoken[0] == ("user", "q2")
    assert len(spoken) == 4 + 1


def test_results_of_calls_that_nobody_asked_for_are_the_providers_to_judge(
    sayer: Any, chat: Conversation, past: Past
) -> None:
    """What is still open is not left out: its results are in the request."""
    call, result = past.loop(0)
    chat.append(call, format=past.format)
    with pytest.raises(Exception, match=r"first (message|content)"):
        sayer(chat, Context())(result["content"] if "content" in result else result["parts"][0])
    assert len(chat.turns()) == 1
