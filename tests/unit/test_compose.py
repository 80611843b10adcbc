"""What a model is sent, and what of a request is new."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from tests.unit.histories import (
    asks,
    assistant,
    history,
    result,
    system,
    user,
)
from turnstore import FormatError, History
from turnstore._compose import Plan, compose
from turnstore.messages import format_named

Json = dict[str, Any]
EMPTY = history()


def plan(
    past: History,
    request: list[Json],
    *,
    rules: str = "openai.chat",
    other: Literal["raise", "text"] = "raise",
) -> Plan:
    return compose(past, request, format_named(rules), other)


PAST = history([user("q1"), assistant("a1")], [user("q2"), assistant("a2")])


def test_nothing_before() -> None:
    assert plan(EMPTY, [user("q")]) == ([user("q")], [user("q")], None)


def test_history_goes_before_the_new_messages() -> None:
    assert plan(PAST, [user("q3")]) == ([*PAST, user("q3")], [user("q3")], None)


def test_no_new_message_sends_the_history() -> None:
    assert plan(PAST, []) == ([*PAST], [], None)


# Instructions (group I): they pass through and are not stored.


@pytest.mark.parametrize("role", ["system", "developer"])
def test_instructions_go_first_and_are_not_stored(role: str) -> None:
    rule = {"role": role, "content": "be brief"}
    assert plan(PAST, [rule, user("q3")]) == ([rule, *PAST, user("q3")], [user("q3")], None)


def test_several_instructions_keep_their_order() -> None:
    rules = [system("a"), {"role": "developer", "content": "b"}]
    assert plan(PAST, [*rules, user("q3")]).send == [*rules, *PAST, user("q3")]


def test_an_instruction_in_the_middle_stays_there_and_is_not_stored() -> None:
    request = [user("q3"), system("now in French"), user("q4")]
    assert plan(PAST, request) == ([*PAST, *request], [user("q3"), user("q4")], None)


def test_instructions_alone() -> None:
    assert plan(PAST, [system("a")]) == ([system("a"), *PAST], [], None)


# Overlap: a caller that sends back what is stored.


def test_what_is_stored_already_is_neither_sent_nor_stored_twice() -> None:
    assert plan(PAST, [*PAST, user("q3")]) == ([*PAST, user("q3")], [user("q3")], None)


def test_the_end_of_the_history_is_enough() -> None:
    assert plan(PAST, [*PAST[2:], user("q3")]) == ([*PAST, user("q3")], [user("q3")], None)


def test_instructions_before_an_overlap_stay_and_those_inside_go() -> None:
    request = [system("s"), *PAST[:2], system("old"), *PAST[2:], user("q3")]
    assert plan(PAST, request) == ([system("s"), *PAST, user("q3")], [user("q3")], None)


def test_a_user_who_says_the_same_twice_says_it_twice() -> None:
    past = history([user("again"), assistant("ok")])
    assert plan(past, [user("again")]).new == [user("again")]


def test_user_messages_alone_are_no_overlap() -> None:
    past = history([user("a")], [user("b")])
    assert plan(past, [user("a"), user("b"), user("c")]).new == [user("a"), user("b"), user("c")]


def test_a_request_that_is_all_stored_is_new() -> None:
    """Without anything new behind it nobody can tell a repetition from a retry."""
    assert plan(PAST, [*PAST]).new == [*PAST]


def test_a_different_past_is_not_an_overlap() -> None:
    request = [user("q2"), assistant("another"), user("q3")]
    assert plan(PAST, request).new == request


def test_the_longest_overlap_counts() -> None:
    past = history([user("x"), assistant("y")], [user("x"), assistant("y")])
    assert plan(past, [*past, user("z")]).new == [user("z")]


def test_a_caller_with_a_longer_memory_than_the_store() -> None:
    """What is not there to be compared is not taken for stored: it could be lost."""
    longer = [user("q0"), assistant("a0"), *PAST, user("q3")]
    cut = history([user("q1"), assistant("a1")], [user("q2"), assistant("a2")], has_older=True)
    assert plan(cut, longer).new == longer
    assert plan(PAST, longer).new == longer


def test_the_reply_as_a_caller_rebuilt_it_is_recognised() -> None:
    stored = assistant("a", refusal=None, annotations=[], reasoning_content="long", audio=None)
    past = history([user("q"), stored])
    assert plan(past, [user("q"), assistant("a"), user("q2")]).new == [user("q2")]


@pytest.mark.parametrize(
    "rebuilt", [assistant("b"), assistant("a", name="x"), {"role": "assistant"}]
)
def test_a_reply_that_contradicts_is_not_recognised(rebuilt: Json) -> None:
    past = history([user("q"), assistant("a", reasoning_content="long")])
    request = [user("q"), rebuilt, user("q2")]
    assert plan(past, request).new == request


def test_a_call_is_recognised_by_its_ids() -> None:
    past = history([user("q"), asks("1", content=None)])
    rebuilt = asks("1", content="", extra="x")
    assert plan(past, [user("q"), rebuilt, result("1")]).new == [result("1")]


# Tool loops (groups A and D)


def test_results_continue_the_open_turn() -> None:
    past = history([user("q0"), assistant("a0")], [user("q"), asks("1", "2")])
    answers = [result("1"), result("2")]
    assert plan(past, answers) == ([*past, *answers], answers, [user("q"), asks("1", "2")])


def test_results_and_more_continue_it_too() -> None:
    past = history([user("q"), asks("1")])
    request = [result("1"), user("and be quick")]
    assert plan(past, request) == ([*past, *request], request, [*past])


def test_results_with_the_call_sent_again_continue_it() -> None:
    past = history([user("q"), asks("1")])
    assert plan(past, [user("q"), asks("1"), result("1")]) == (
        [*past, result("1")],
        [result("1")],
        [*past],
    )


def test_a_second_call_of_the_same_turn() -> None:
    past = history([[user("q"), asks("1")], [result("1"), asks("2")]])
    assert plan(past, [result("2")]) == ([*past, result("2")], [result("2")], [*past])


def test_an_open_turn_is_left_out_before_a_new_message() -> None:
    past = history([user("q0"), assistant("a0")], [user("q"), asks("1")])
    assert plan(past, [user("never mind")]).send == [
        user("q0"),
        assistant("a0"),
        user("never mind"),
    ]
    assert plan(past, [user("never mind")]).continued is None


def test_a_half_answered_turn_is_left_out() -> None:
    past = history([user("q"), asks("1", "2"), result("1")])
    assert plan(past, [user("next")]).send == [user("next")]


def test_an_open_turn_in_the_middle_is_left_out() -> None:
    past = history([user("q"), asks("1")], [user("q2"), assistant("a2")])
    assert plan(past, [user("q3")]).send == [user("q2"), assistant("a2"), user("q3")]


def test_a_result_without_its_call_is_left_out() -> None:
    past = history([result("9"), assistant("a")], [user("q2"), assistant("a2")])
    assert plan(past, [user("q3")]).send == [user("q2"), assistant("a2"), user("q3")]


def test_a_call_that_was_answered_twice_is_left_out() -> None:
    past = history([user("q"), asks("1"), result("1"), result("1")])
    assert plan(past, [user("q2")]).send == [user("q2")]


def test_results_that_were_appended_as_a_turn_of_their_own_belong_to_the_call() -> None:
    past = history([user("q"), asks("1")], [result("1"), assistant("a")])
    assert plan(past, [user("q2")]).send == [*past, user("q2")]


def test_a_loop_inside_one_turn_is_whole() -> None:
    past = history(
        [
            user("q"),
            asks("1"),
            result("1"),
            asks("2", "3"),
            result("3"),
            result("2"),
            assistant("a"),
        ]
    )
    assert plan(past, [user("q2")]).send == [*past, user("q2")]


def test_a_request_may_bring_its_own_call() -> None:
    request = [user("q"), asks("1"), result("1")]
    assert plan(PAST, request) == ([*PAST, *request], request, None)


@pytest.mark.parametrize(
    "past",
    [
        EMPTY,
        PAST,
        history([user("q"), asks("1")], [user("q2"), assistant("a2")]),
        history([user("q"), asks("2")]),
    ],
    ids=["empty", "closed", "another turn came between", "another call"],
)
def test_a_result_that_no_newest_turn_waits_for_is_refused(past: History) -> None:
    with pytest.raises(ValueError, match=r"tool result for .*; nothing was written"):
        plan(past, [result("1")])


def test_a_result_behind_another_message_is_refused() -> None:
    """A provider wants the results right behind the call."""
    past = history([user("q"), asks("1")])
    with pytest.raises(ValueError, match="tool result"):
        plan(past, [user("wait"), result("1")])


def test_the_older_function_calls() -> None:
    call: Json = {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "f", "arguments": "{}"},
    }
    answer: Json = {"role": "function", "name": "f", "content": "1"}
    past = history([user("q"), call])
    assert plan(past, [answer]).continued == [*past]
    assert plan(past, [user("q2")]).send == [user("q2")]


def test_responses_keep_reasoning_with_its_call() -> None:
    items = [
        user("q"),
        {"type": "reasoning", "id": "rs"},
        {"type": "function_call", "call_id": "1"},
    ]
    past = history(items, format_="openai.responses")
    output = {"type": "function_call_output", "call_id": "1", "output": "x"}
    assert plan(past, [output], rules="openai.responses") == ([*items, output], [output], items)
    assert plan(past, [user("n")], rules="openai.responses").send == [user("n")]


# What goes out


def test_nulls_of_stored_messages_are_dropped_and_those_of_the_request_stay() -> None:
    past = history([user("q"), assistant("a", tool_calls=None)])
    mine = user("q2", name=None)
    assert plan(past, [mine]).send == [user("q"), assistant("a"), mine]


def test_the_history_is_not_changed() -> None:
    before = [dict(message) for message in PAST]
    plan(PAST, [system("s"), user("q3")]).send.clear()
    assert before == PAST


# Other formats


def test_another_format_is_an_error_unless_asked_for_as_text() -> None:
    past = history([user("q"), assistant("a")], format_="other")
    with pytest.raises(
        FormatError, match=r'has the format other, and this client speaks openai.chat; .*"text"'
    ):
        plan(past, [user("q2")])
    assert plan(past, [user("q2")], other="text").send == [user("q"), assistant("a"), user("q2")]


def test_as_text_what_has_none_is_left_out() -> None:
    items = [
        system("be brief"),
        user([{"type": "input_text", "text": "a"}, {"type": "input_image"}]),
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "1"},
        {"type": "function_call_output", "call_id": "1", "output": "x"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b"}]},
    ]
    past = history(items, format_="openai.responses")
    assert plan(past, [user("q")], other="text").send == [user("a"), assistant("b"), user("q")]


def test_an_open_call_of_another_format_cannot_be_continued() -> None:
    past = history(
        [user("q"), {"type": "function_call", "call_id": "1"}], format_="openai.responses"
    )
    with pytest.raises(ValueError, match="tool result for 1"):
        plan(past, [result("1")], other="text")


@pytest.mark.parametrize("rules", ["anthropic.messages", "railtracks"])
def test_a_turn_of_another_format_is_not_gone_on_with(rules: str) -> None:
    """The messages of a turn are of one format: else nobody could read them together."""
    ours = history([user("q"), assistant("a")], format_=rules)
    assert plan(ours, [system("s")], rules=rules).continued == [user("q"), assistant("a")]
    theirs = history([user("q"), assistant("a")], format_="other")
    planned = plan(theirs, [system("s")], rules=rules, other="text")
    assert (planned.new, planned.continued) == ([], None)
    assert len(planned.send) == 3
