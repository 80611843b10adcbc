"""The processor over lists of each provider: trimmed and summarised, no call without its result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from anthropic import Anthropic
from anthropic.types import TextBlock
from google.genai import types as google
from hypothesis import given
from hypothesis import strategies as st

from tests.context.flows import Recorder
from tests.context.test_processor import LIMITS, MESSAGES, one
from tests.integrations.google.talking import ask, client_of
from tests.unit.histories import Json, asks, assistant, result, user
from turnstore.context import SUMMARY_HEADING, Processor
from turnstore.messages import FORMATS
from turnstore.testing import ModelServer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def as_responses(message: Json) -> list[Json]:
    if message["role"] == "tool":
        call = message["tool_call_id"]
        return [{"type": "function_call_output", "call_id": call, "output": "1"}]
    calls = [
        {"type": "function_call", "call_id": call["id"], "name": "f", "arguments": "{}"}
        for call in message.get("tool_calls", ())
    ]
    said = message["content"]
    return [*([{"role": message["role"], "content": said}] if said is not None else []), *calls]


def as_anthropic(message: Json) -> list[Json]:
    if message["role"] == "tool":
        call = message["tool_call_id"]
        block = {"type": "tool_result", "tool_use_id": call, "content": "1"}
        return [{"role": "user", "content": [block]}]
    calls = [
        {"type": "tool_use", "id": call["id"], "name": "f", "input": {}}
        for call in message.get("tool_calls", ())
    ]
    said = message["content"] or ""
    content = [*([{"type": "text", "text": said}] if said else []), *calls] if calls else said
    return [{"role": message["role"], "content": content}]


def as_google(message: Json) -> list[Json]:
    if message["role"] == "tool":
        name = message["tool_call_id"]
        response = {"functionResponse": {"name": name, "response": {"result": "1"}}}
        return [{"role": "user", "parts": [response]}]
    calls = [
        {"functionCall": {"name": call["id"], "args": {}}} for call in message.get("tool_calls", ())
    ]
    texts = [{"text": message["content"] or ""}]
    role = "model" if message["role"] == "assistant" else message["role"]
    return [{"role": role, "parts": calls or texts}]


AS: dict[str, Callable[[Json], list[Json]]] = {
    "openai.chat": lambda message: [message],
    "openai.responses": as_responses,
    "anthropic.messages": as_anthropic,
    "google.contents": as_google,
}
FORMATS_TRIED = pytest.mark.parametrize("name", AS)


def said(name: str, messages: Sequence[Json]) -> list[Json]:
    """Give messages of chat in another format, each with a mark of its own."""
    given = [other for message in messages for other in AS[name](message)]
    return [{**message, "mark": at} for at, message in enumerate(given)]


def orphans(name: str, messages: Sequence[Json]) -> int:
    """Count calls and results that lost each other, but for the calls of the end."""
    rules = FORMATS[name]
    waiting: list[tuple[str, int]] = []
    lost = 0
    for at, message in enumerate(messages):
        for id_ in rules.results(message):
            match = next((w for w in reversed(waiting) if w[0] == id_), None)
            if match is None:
                lost += 1
            else:
                waiting.remove(match)
        waiting += [(id_, at) for id_ in rules.calls(message)]
    # The newest that is no result; of calls that are items, those that were made at once.
    spoken = [at for at, m in enumerate(messages) if not rules.is_instruction(m)]
    last: set[int] = set()
    for at in reversed(spoken):
        if rules.results(messages[at]):
            if last:
                break
            continue
        last.add(at)
        if "role" in messages[at]:
            break
    return lost + sum(at not in last for _, at in waiting)


@FORMATS_TRIED
@given(messages=MESSAGES, exchanges=LIMITS, tokens=LIMITS)
def test_what_is_kept(
    name: str, messages: list[Json], exchanges: int | None, tokens: int | None
) -> None:
    given_ = said(name, messages)
    rules = FORMATS[name]

    def size(message: Json) -> int:
        return 1 + len(rules.text(message))

    processor = Processor(exchanges, tokens, format=name, count_tokens=size)
    kept = processor.process(given_)
    marks = [message["mark"] for message in kept]
    assert marks == sorted(marks)
    assert all(given_[message["mark"]] == message for message in kept)
    assert orphans(name, kept) == 0
    assert processor.process(kept) == kept
    assert [m for m in kept if rules.is_instruction(m)] == [
        m for m in given_ if rules.is_instruction(m)
    ]
    spoken = [message for message in kept if not rules.is_instruction(message)]
    alone = Processor(1, format=name).process(spoken) == spoken
    led = sum(not rules.is_reply(m) and not rules.results(m) for m in spoken)
    assert exchanges is None or led <= exchanges or alone
    assert tokens is None or sum(map(size, kept)) <= tokens or alone


@FORMATS_TRIED
@given(sizes=st.lists(st.integers(0, 3), min_size=1, max_size=12), most=st.integers(1, 4))
def test_each_exchange_is_kept_or_in_the_one_summary(
    name: str, sizes: list[int], most: int
) -> None:
    """A model that remembers all it was shown, over a conversation that goes on and on."""
    processor = Processor(
        most,
        format=name,
        use_summary=True,
        summarize=lambda prompt: " ".join(
            sorted({word for word in prompt.split() if word.startswith("q") and word[-1] == "."})
        ),
    )
    rules = FORMATS[name]
    history: list[Json] = []
    for number, loops in enumerate(sizes):
        turn = [user(f"q{number}.")]
        for loop in range(loops):
            turn += [asks(f"c{loop}"), result(f"c{loop}")]
        turn.append(assistant("ok"))
        history = processor.process([*history, *(o for m in turn for o in AS[name](m))])
    texts = [rules.text(message) for message in history]
    assert {f"q{number}." for number in range(len(sizes))} <= set(" ".join(texts).split())
    assert sum(text.startswith(SUMMARY_HEADING) for text in texts) == (len(sizes) > most)
    assert orphans(name, history) == 0
    assert "summary" not in processor.counts


def test_calls_of_responses_that_are_made_at_once_wait_together() -> None:
    items: list[Json] = [
        {"role": "user", "content": "q"},
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "f", "arguments": "{}"},
    ]
    processor = Processor(1, format="openai.responses")
    assert processor.process(items) == items
    answer = {"type": "function_call_output", "call_id": "b", "output": "1"}
    assert processor.process([*items, answer]) == [*items, answer]


def loop(name: str) -> list[Json]:
    turn = [user("q"), asks("c"), result("c"), assistant("a")]
    return [other for message in turn for other in AS[name](message)]


def test_anthropic_takes_what_is_left(model: ModelServer) -> None:
    """With the SDK's own objects among the messages."""
    processor = Processor(
        1, format="anthropic.messages", use_summary=True, summarize=Recorder("They spoke of q.")
    )
    answer = {"role": "assistant", "content": [TextBlock(type="text", text="fine")]}
    history: list[Any] = [*loop("anthropic.messages"), user("p"), answer, user("and now?")]
    kept: Any = processor.process(history)
    with Anthropic(base_url=model.url, api_key="none", max_retries=0) as client:
        client.messages.create(model="m", max_tokens=9, messages=kept)
    assert model.requests[-1].messages == [
        {"role": "user", "content": f"{SUMMARY_HEADING}\nThey spoke of q."},
        {"role": "user", "content": "and now?"},
    ]


def test_gemini_takes_what_is_left(model: ModelServer) -> None:
    processor = Processor(
        1, format="google.contents", use_summary=True, summarize=Recorder("They spoke of q.")
    )
    said_ = google.Content(role="model", parts=[google.Part(text="fine")])
    new = {"role": "user", "parts": [{"text": "and now?"}]}
    kept = processor.process([*loop("google.contents"), said_, new])
    with client_of(model) as client:
        ask(client, kept)
    assert [m["parts"][0]["text"] for m in model.requests[-1].messages] == [
        f"{SUMMARY_HEADING}\nThey spoke of q.",
        "and now?",
    ]


@pytest.mark.parametrize("name", ["anthropic.messages", "google.contents", "openai.responses"])
def test_messages_of_another_provider_are_refused_as_chat(name: str) -> None:
    with pytest.raises(ValueError, match=r"message \d.*"):
        Processor(1).process(loop(name))
    if name != "openai.responses":
        with pytest.raises(ValueError, match=f"is one of {name}; give Processor"):
            Processor(1, count_tokens=one).process(loop(name))


@pytest.mark.parametrize("name", ["", "openai", "langchain", None])
def test_formats_that_it_does_not_have(name: Any) -> None:
    with pytest.raises(ValueError, match=r"the formats are openai\.chat, "):
        Processor(1, format=name)
