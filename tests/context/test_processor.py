"""A list of messages that lives elsewhere: trimmed, and carried on as a summary."""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage

from tests.context.flows import Recorder
from tests.unit.histories import Json, asks, assistant, result, system, user
from turnstore.context import SUMMARY_HEADING, Processor
from turnstore.messages import FORMATS

if TYPE_CHECKING:
    from collections.abc import Sequence

CHAT = FORMATS["openai.chat"]


def one(message: Json) -> int:
    """Count a token for each character of the text, and one for the message."""
    return 1 + len(message.get("content") or "")


def exchange(name: str) -> list[Json]:
    return [user(name), asks(f"call-{name}"), result(f"call-{name}"), assistant(name.upper())]


THREE = [system("be brief"), *exchange("a"), *exchange("b"), *exchange("c")]


def contents(messages: list[Json]) -> list[str]:
    return [message["content"] for message in messages if message["role"] in ("system", "user")]


def test_no_limit_leaves_the_list_as_it_is() -> None:
    assert Processor().process(THREE) == THREE
    assert Processor().process([]) == []


def test_exchanges_fall_out_whole_and_oldest_first() -> None:
    kept = Processor(max_exchanges=2).process(THREE)
    assert kept == [THREE[0], *exchange("b"), *exchange("c")]


def test_tokens_fall_out_by_exchanges_and_the_newest_stays() -> None:
    size = sum(map(one, exchange("c")))
    messages = [*exchange("a"), *exchange("b"), *exchange("c")]
    assert Processor(max_tokens=2 * size, count_tokens=one).process(messages) == messages[4:]
    assert Processor(max_tokens=2 * size - 1, count_tokens=one).process(messages) == messages[8:]
    assert Processor(max_tokens=1, count_tokens=one).process(messages) == messages[8:]


def test_instructions_stay_where_they_stand_and_count() -> None:
    messages = [
        system("first"),
        *exchange("a"),
        {"role": "developer", "content": "second"},
        *exchange("b"),
    ]
    kept = Processor(max_exchanges=1).process(messages)
    assert kept == [messages[0], messages[5], *exchange("b")]
    total = sum(map(one, messages))
    assert Processor(max_tokens=total, count_tokens=one).process(messages) == messages
    assert Processor(max_tokens=total - 1, count_tokens=one).process(messages) == kept


def test_a_greeting_before_the_first_question_goes_with_it() -> None:
    messages = [assistant("How can I help?"), *exchange("a"), *exchange("b")]
    assert Processor(max_exchanges=2).process(messages) == messages
    assert Processor(max_exchanges=1).process(messages) == exchange("b")


def test_two_questions_in_a_row_are_two_exchanges() -> None:
    messages = [user("a"), user("b"), assistant("B")]
    assert Processor(max_exchanges=1).process(messages) == messages[1:]


def test_a_result_after_the_next_question_keeps_both_exchanges() -> None:
    messages = [*exchange("z"), user("a"), asks("1"), user("b"), result("1"), user("c")]
    processor = Processor(max_exchanges=2)
    assert processor.process(messages) == [user("c")]
    assert processor.process(messages[:-1]) == messages[4:-1]


def test_calls_and_results_that_lost_each_other_are_left_out() -> None:
    messages = [
        result("lost"),
        user("a"),
        asks("1", "2"),
        result("1"),
        user("b"),
        assistant("B"),
    ]
    processor = Processor()
    assert processor.process(messages) == [user("a"), user("b"), assistant("B")]
    assert processor.counts == {"unpaired": 3}


def test_calls_at_the_end_wait_for_their_results() -> None:
    messages = [user("a"), asks("1", "2"), result("1")]
    assert Processor(max_exchanges=1).process(messages) == messages


def test_ids_may_come_again_in_each_reply() -> None:
    turn = [user("a"), asks("call_0"), result("call_0"), assistant("A")]
    assert Processor(max_exchanges=2).process(turn * 3) == turn * 2


def test_the_older_form_of_calls_is_paired_too() -> None:
    call = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}}
    messages = [user("a"), call, {"role": "function", "name": "f", "content": "1"}, user("b"), call]
    processor = Processor()
    assert processor.process(messages) == messages
    assert processor.process([*messages, user("c")]) == [*messages[:4], user("c")]


def test_objects_of_the_sdk_become_dicts_and_are_not_changed() -> None:
    reply = ChatCompletionMessage(role="assistant", content="A")
    given: list[Any] = [user("a"), reply]
    before = copy.deepcopy(given)
    assert Processor(max_exchanges=1).process(given) == [user("a"), assistant("A")]
    assert given == before


# -- summary -----------------------------------------------------------------------------


def test_what_falls_out_is_summarised_after_the_leading_instructions() -> None:
    model = Recorder("They spoke of a.")
    processor = Processor(max_exchanges=2, use_summary=True, summarize=model)
    kept = processor.process(THREE)
    summary = system(f"{SUMMARY_HEADING}\nThey spoke of a.")
    assert kept == [THREE[0], summary, *exchange("b"), *exchange("c")]
    (prompt,) = model.given
    assert "user: a\ntool: 1\nassistant: A" in prompt
    assert "(none)" in prompt
    assert "be brief" not in prompt


def test_the_summary_so_far_is_an_input_and_is_replaced() -> None:
    model = Recorder("one", "two")
    processor = Processor(max_exchanges=2, use_summary=True, summarize=model)
    kept = processor.process([*processor.process(THREE), *exchange("d")])
    assert [message for message in kept if message["role"] == "system"] == [
        THREE[0],
        system(f"{SUMMARY_HEADING}\ntwo"),
    ]
    assert "\none\n" in model.given[1]
    assert "user: b" in model.given[1]
    assert "user: a" not in model.given[1]


def test_nothing_falls_out_and_no_model_is_asked() -> None:
    model = Recorder("never")
    processor = Processor(max_exchanges=3, use_summary=True, summarize=model)
    assert processor.process(THREE) == THREE
    assert model.given == []


def test_where_nothing_was_said_no_model_is_asked() -> None:
    model = Recorder("never")
    picture = user([{"type": "image_url", "image_url": {"url": "data:,"}}])
    processor = Processor(max_exchanges=1, use_summary=True, summarize=model)
    assert processor.process([picture, user("b")]) == [user("b")]
    assert model.given == []


def test_a_template_without_a_place_for_the_summary_gets_it_before_the_messages() -> None:
    model = Recorder("one", "two")
    processor = Processor(
        max_exchanges=1,
        use_summary=True,
        summary_prompt_template="{json} Fold: {transcript}",
        summarize=model,
    )
    processor.process([*processor.process([*exchange("{summary}"), user("b")]), user("c")])
    assert model.given[0].startswith("{json} Fold: user: {summary}\n")
    assert model.given[1] == f"{{json}} Fold: {SUMMARY_HEADING}\none\n\nuser: b"


@pytest.mark.parametrize("answer", [RuntimeError("down"), "", "  \n", None, 7])
def test_a_summary_that_fails_leaves_the_trimmed_list(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    processor = Processor(max_exchanges=2, use_summary=True, summarize=Recorder(answer))
    kept = processor.process(THREE)
    assert kept == [THREE[0], *exchange("b"), *exchange("c")]
    assert processor.counts == {"summary": 1}
    assert "summary failed" in caplog.text


def test_the_earlier_summary_outlives_a_failure() -> None:
    model = Recorder("one", RuntimeError("down"))
    processor = Processor(max_exchanges=1, use_summary=True, summarize=model)
    kept = processor.process([*processor.process(THREE), user("d")])
    assert kept == [THREE[0], system(f"{SUMMARY_HEADING}\none"), user("d")]


def test_a_long_summary_makes_more_room_and_carries_what_that_costs() -> None:
    model = Recorder("x" * 60, "y" * 50)
    messages = [m for name in "abcdefgh" for m in exchange(name * 5)]
    budget = 8 * sum(map(one, exchange("aaaaa"))) - 1
    processor = Processor(max_tokens=budget, use_summary=True, summarize=model, count_tokens=one)
    kept = processor.process(messages)
    assert sum(map(one, kept)) <= budget
    folded = [name for name in "abcdefgh" if user(name * 5) not in kept]
    assert len(model.given) == 2
    assert all(f"user: {name * 5}" in "".join(model.given) for name in folded)
    assert "x" * 60 in model.given[1]


def test_a_summary_that_leaves_no_room_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    size = sum(map(one, exchange("c")))
    processor = Processor(
        max_tokens=size + 1, use_summary=True, summarize=Recorder("x" * 99), count_tokens=one
    )
    assert processor.process(THREE[1:]) == exchange("c")
    assert "no room" in caplog.text


async def test_aprocess_takes_async_and_sync_functions() -> None:
    async def summarize(prompt: str) -> str:
        await asyncio.sleep(0)
        return f"{len(prompt)} characters"

    async def fail(prompt: str) -> str:
        raise RuntimeError(prompt[:5])

    options: dict[str, Any] = {"max_exchanges": 1, "use_summary": True}
    kept = await Processor(**options, summarize=summarize).aprocess(THREE)
    assert kept[1]["content"].endswith("characters")
    kept = await Processor(**options, summarize=Recorder("fine")).aprocess(THREE)
    assert kept[1]["content"].endswith("fine")
    kept = await Processor(**options, summarize=fail).aprocess(THREE)
    assert kept == [THREE[0], *exchange("c")]


def test_process_refuses_an_async_function() -> None:
    async def summarize(prompt: str) -> str:
        return prompt

    processor = Processor(max_exchanges=1, use_summary=True, summarize=summarize)
    with pytest.raises(TypeError, match="use aprocess"):
        processor.process(THREE)


@pytest.mark.parametrize(
    "options, error, text",
    [
        ({"max_exchanges": 0}, ValueError, r"max_exchanges=0\): a limit is at least 1"),
        ({"max_exchanges": -1}, ValueError, "at least 1"),
        ({"max_tokens": 0}, ValueError, r"max_tokens=0\): a limit is at least 1"),
        ({"max_tokens": 1.5}, TypeError, "whole number"),
        ({"use_summary": True}, ValueError, "needs summarize="),
        ({"use_summary": True, "summarize": 7}, TypeError, "a function"),
        ({"summary_prompt_template": "Fold."}, ValueError, "no place for {transcript}"),
        ({"summary_prompt_template": None}, TypeError, "is text"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Processor(**options)


# -- whatever the list is ----------------------------------------------------------------

IDS = st.sampled_from(["1", "2", "3"])
TEXTS = st.text("xyz", max_size=12)
MESSAGES = st.lists(
    st.one_of(
        TEXTS.map(user),
        TEXTS.map(assistant),
        TEXTS.map(system),
        st.lists(IDS, min_size=1, max_size=2, unique=True).map(lambda ids: asks(*ids)),
        IDS.map(result),
        st.tuples(TEXTS, IDS).map(lambda t: asks(t[1], content=t[0])),
    ),
    max_size=30,
)
LIMITS = st.none() | st.integers(1, 60)


def orphans(messages: Sequence[Json]) -> int:
    """Count calls and results that lost each other; calls at the end may still wait."""
    waiting: list[tuple[str, int]] = []
    lost = 0
    others = [at for at, m in enumerate(messages) if m["role"] not in ("tool", "system")]
    newest = others[-1] if others else -1
    for at, message in enumerate(messages):
        for id_ in CHAT.results(message):
            match = next((w for w in reversed(waiting) if w[0] == id_), None)
            if match is None:
                lost += 1
            else:
                waiting.remove(match)
        waiting += [(id_, at) for id_ in CHAT.calls(message)]
    return lost + sum(at != newest for _, at in waiting)


def numbered(messages: list[Json]) -> list[Json]:
    """Give each message a mark of its own, so that none is taken for another."""
    return [{**message, "mark": at} for at, message in enumerate(messages)]


@given(MESSAGES, LIMITS, LIMITS)
def test_what_is_kept(messages: list[Json], exchanges: int | None, tokens: int | None) -> None:
    messages = numbered(messages)
    before = copy.deepcopy(messages)
    processor = Processor(exchanges, tokens, count_tokens=one)
    kept = processor.process(messages)

    assert messages == before
    marks = [message["mark"] for message in kept]
    assert marks == sorted(marks)
    assert all(messages[message["mark"]] == message for message in kept)
    assert [m for m in kept if m["role"] == "system"] == [
        m for m in messages if m["role"] == "system"
    ]
    assert orphans(kept) == 0
    assert processor.process(kept) == kept
    led = sum(message["role"] == "user" for message in kept)
    spoken = [message for message in kept if message["role"] != "system"]
    # Exchanges that a late result ties together are one: it is only the newest then.
    alone = Processor(1).process(spoken) == spoken
    assert exchanges is None or led <= exchanges or alone
    assert tokens is None or sum(map(one, kept)) <= tokens or alone


@given(MESSAGES, LIMITS, LIMITS, st.integers(0, 40))
def test_what_is_kept_beside_a_summary(
    messages: list[Json], exchanges: int | None, tokens: int | None, length: int
) -> None:
    processor = Processor(
        exchanges, tokens, use_summary=True, count_tokens=one, summarize=lambda _: "s" * length
    )
    kept = processor.process(messages)
    assert orphans(kept) == 0
    summaries = [m for m in kept if str(m["content"]).startswith(SUMMARY_HEADING)]
    assert len(summaries) <= 1
    assert [m for m in kept if m["role"] == "system" and m not in summaries] == [
        m for m in messages if m["role"] == "system"
    ]
    spoken = [message for message in kept if message["role"] != "system"]
    alone = Processor(1).process(spoken) == spoken
    assert tokens is None or sum(map(one, kept)) <= tokens or alone
    assert processor.process(kept) == kept


@given(st.lists(st.integers(1, 9), min_size=1, max_size=20), st.integers(1, 6))
def test_each_exchange_is_kept_or_in_a_summary(sizes: list[int], most: int) -> None:
    """A model that remembers all it was shown, over a conversation that goes on and on."""
    processor = Processor(
        most, use_summary=True, summarize=lambda prompt: " ".join(sorted(set(words(prompt))))
    )
    history: list[Json] = []
    for number, size in enumerate(sizes):
        history = processor.process([*history, user(f"q{number}."), *[assistant("ok")] * size])
    text = " ".join(str(message["content"]) for message in history)
    assert {f"q{number}." for number in range(len(sizes))} <= set(words(text))


def words(text: str) -> list[str]:
    return [word for word in text.split() if word.startswith("q") and word.endswith(".")]
