"""The rules of Anthropic's messages, and what a request becomes under them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Literal

import pytest

from tests.unit.histories import assistant, history, system, user
from turnstore.clients._anthropic_messages import MessageFolding, joined, read, sending
from turnstore.messages import FORMATS, plain_messages

Json = dict[str, Any]
RULES = FORMATS["anthropic.messages"]


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def use(id_: str) -> Json:
    return {"type": "tool_use", "id": id_, "name": "f", "input": {}}


def result(id_: str) -> Json:
    return {"type": "tool_result", "tool_use_id": id_, "content": "1"}


def composed(past: list[list[list[Json]]], request: list[Json]) -> Any:
    from turnstore._compose import compose  # noqa: PLC0415 - beside its one use

    stored = history(*past, format_="anthropic.messages") if past else history()
    other: Literal["raise"] = "raise"
    return compose(stored, request, RULES, other)


def test_calls_and_results_are_blocks() -> None:
    assert RULES.calls(assistant([text("a"), use("1"), use("2")])) == ["1", "2"]
    assert RULES.calls(assistant([{"type": "server_tool_use", "id": "3"}])) == []
    assert RULES.calls(user([use("1")])) == []
    assert RULES.results(user([result("1"), text("and")])) == ["1"]
    assert RULES.calls(assistant("a")) == RULES.results(user("b")) == []


def test_an_empty_text_is_not_sent_back() -> None:
    thought = {"type": "thinking", "thinking": "", "signature": "s"}
    said = assistant([thought, text(" "), text("a")])
    assert RULES.outgoing(said) == assistant([thought, text("a")])
    kept = assistant([thought, text("a")])
    assert RULES.outgoing(kept) is kept
    alone = assistant([text("")])
    assert RULES.outgoing(alone) is alone
    assert RULES.outgoing(user("a")) == user("a")


def test_a_message_of_the_sdk_is_a_reply_without_its_other_fields() -> None:
    reply: Any = SimpleNamespace(id="m", role="assistant", stop_reason="end_turn", content=[])
    assert RULES.unpacked(reply) == assistant([])
    assert RULES.unpacked({**vars(reply), "usage": {}}) == assistant([])
    for known in (assistant([]), "text", {"stop_reason": "x"}):
        assert RULES.unpacked(known) is known


def test_what_is_no_message() -> None:
    for wrong in ({"role": "user"}, {"content": "a"}, {"role": 1, "content": "a"}):
        with pytest.raises(ValueError, match="role and content"):
            plain_messages(wrong, RULES)


def test_text_alone_is_the_same_as_one_block_of_text() -> None:
    past = [[[user("q"), assistant([{**text("a"), "citations": None}])]]]
    for again in (assistant("a"), assistant([{**text("a"), "parsed_output": {"x": 1}}])):
        send, new, continued = composed(past, [user("q"), again, user("r")])
        assert new == [user("r")]
        assert len(send) == 3
        assert continued is None


def test_results_continue_the_turn_of_their_calls() -> None:
    past = [[[user("q"), assistant([use("1"), use("2")])]]]
    request = [user([result("1"), result("2"), text("go on")])]
    send, new, continued = composed(past, request)
    assert (len(send), new) == (3, request)
    assert continued == past[0][0]


def test_a_model_that_goes_on_with_its_own_message_stays_in_its_turn() -> None:
    past = [[[user("q"), assistant([text("a")])]]]
    for request in ([], past[0][0]):
        send, new, continued = composed(past, request)
        assert (send, new, continued) == (past[0][0], [], past[0][0])
    assert composed([], [user("q"), assistant("a")]).new == [user("q"), assistant("a")]


def test_system_messages_go_into_the_option_only_from_the_front() -> None:
    messages = [system("a"), system("b"), user("q"), system("c")]
    body = sending({"model": "m", "system": "own"}, messages)
    assert body["system"] == [text("own"), text("a"), text("b")]
    assert body["messages"] == messages[2:]
    assert sending({}, [user("q")]) == {"messages": [user("q")]}
    assert sending({}, [system("a")])["messages"] == []
    tools = {"role": "system", "content": [{"type": "tool_addition"}]}
    assert sending({}, [tools, user("q")])["messages"] == [tools, user("q")]


def test_a_prefill_joins_text_with_text_alone() -> None:
    assert joined(assistant("A"), assistant([text("B"), use("1")])) == assistant(
        [text("AB"), use("1")]
    )
    assert joined(assistant("A"), assistant([use("1")])) == assistant([text("A"), use("1")])


def test_what_no_stop_reason_says() -> None:
    for reply in ({}, {"content": [text("a")]}, {"stop_reason": "end_turn"}):
        assert read(reply).unfit


def folded(*events: Json) -> MessageFolding:
    folding = MessageFolding()
    for event in events:
        folding.add(event)
    return folding


def delta(kind: str, index: int = 0, **said: Any) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **said}}


def start(block: Json, index: int = 0) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": block}


def test_events_are_folded() -> None:
    folding = folded(
        {"type": "message_start", "message": {"id": "m", "content": [], "usage": {"in": 1}}},
        {"type": "ping"},
        start({"type": "thinking", "thinking": "", "signature": ""}),
        delta("thinking_delta", thinking="a"),
        delta("thinking_delta", thinking="b"),
        delta("signature_delta", signature="sig"),
        start({"type": "tool_use", "id": "1", "name": "f", "input": {}}, 1),
        delta("input_json_delta", 1, partial_json=""),
        delta("input_json_delta", 1, partial_json='{"x": 1'),
        delta("input_json_delta", 1, partial_json=".0}"),
        start({"type": "compaction", "content": None}, 2),
        delta("compaction_delta", 2, content="short", encrypted_content="e"),
        start(text(""), 3),
        delta("citations_delta", 3, citation={"n": 1}),
        delta("text_delta", 3, text="t"),
        delta("text_delta", 9, text="of no block"),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"out": 2}},
    )
    assert not folding.complete
    folding.add({"type": "message_stop"})
    assert folding.complete
    assert folding.reply() == {
        "id": "m",
        "usage": {"in": 1, "out": 2},
        "stop_reason": "tool_use",
        "content": [
            {"type": "thinking", "thinking": "ab", "signature": "sig"},
            {"type": "tool_use", "id": "1", "name": "f", "input": {"x": 1.0}},
            {"type": "compaction", "content": "short", "encrypted_content": "e"},
            {"type": "text", "text": "t", "citations": [{"n": 1}]},
        ],
    }


def test_a_tool_whose_input_was_cut_is_not_kept() -> None:
    folding = folded(
        {"type": "message_start", "message": {"content": []}},
        start({"type": "tool_use", "id": "1", "name": "f", "input": {}}),
        delta("input_json_delta", partial_json='{"x": '),
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}},
        {"type": "message_stop"},
    )
    assert "max_tokens" in read(folding.reply()).unfit
