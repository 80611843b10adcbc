"""Rolling summaries: what is folded when, and what is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.context.folds import (
    Echo,
    as_lines,
    carried,
    echoing,
    fill,
    lease,
    lines,
    say,
    stored,
)
from tests.servers.facade import inner
from turnstore import Window
from turnstore._calls import Together
from turnstore._carrying import load
from turnstore.context import Context, Summary

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore import AsyncConversation, AsyncStore

pytestmark = pytest.mark.one_setup


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def chat(store: AsyncStore) -> AsyncConversation:
    return store.conversation("c")


# What is sent


@pytest.mark.parametrize(
    "window",
    [
        Window(turns=1),
        Window(turns=4),
        Window(turns=4, step=0.5),
        Window(messages=7, step=0.3),
        Window(tokens=30),
        Window(tokens=30, step=0.5),
    ],
    ids=str,
)
async def test_nothing_is_ever_missing_nor_said_twice(
    new_store: NewStore, echo: Echo, window: Window
) -> None:
    chat = new_store(count_tokens=lambda _: 3).conversation("c")
    sent: list[dict[str, Any]] = []
    for number in range(1, 19):
        sent = await say(chat, number, echoing(echo, window))
        told = [*carried(sent), *as_lines(sent)]
        assert told == [*lines(1, number - 1), f"user: q{number}"]
    assert carried(sent), "the window did not hold all"


async def test_with_a_step_the_summary_stands_still_as_long_as_the_window(
    chat: AsyncConversation, echo: Echo
) -> None:
    context = echoing(echo, Window(turns=8, step=0.5))
    first = [(await say(chat, number, context))[0]["content"] for number in range(1, 22)]
    assert len(set(first)) == 4, "the first question, then one summary for each 4 turns"
    assert len(echo.prompts) == 3


async def test_the_earlier_summary_is_an_input(chat: AsyncConversation) -> None:
    prompts: list[str] = []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        return f"  summary {len(prompts)}\n"

    context = Context(Window(turns=1), summary=Summary(model, template="<{summary}> {transcript}"))
    await fill(chat, 1, 2)
    await say(chat, 3, context)
    sent = await say(chat, 4, context)
    assert prompts == [
        "<(none)> user: q1\nassistant: a1",
        "<summary 1> user: q2\nassistant: a2",
    ]
    assert sent[0]["content"].endswith("\nsummary 2"), "without blanks around it"


async def test_the_default_prompt_has_all_parts(chat: AsyncConversation) -> None:
    prompts: list[str] = []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        return "It {transcript} was {summary}."

    context = Context(Window(turns=1), summary=Summary(model))
    await fill(chat, 1, 3)
    await say(chat, 4, context)
    sent = await say(chat, 5, context)
    for kept in ("topics", "decisions", "preferences", "questions", "300 words"):
        assert kept in prompts[0]
    assert "user: q1\nassistant: a1\nuser: q2\nassistant: a2" in prompts[0]
    assert "It {transcript} was {summary}." in prompts[1], "braces of a model are text"
    assert prompts[1].count("q3") == 1
    heading, text = sent[0]["content"].split("\n")
    assert "ummary" in heading
    assert text == "It {transcript} was {summary}."


async def test_tools_instructions_and_parts_in_the_prompt(chat: AsyncConversation) -> None:
    prompts: list[str] = []
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    await chat.append(
        [
            {"role": "system", "content": "never"},
            {"role": "user", "content": [{"type": "text", "text": "look"}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
        ]
    )
    await chat.append({"role": "tool", "tool_call_id": "c1", "content": "21"}, continues=True)
    await chat.append({"role": "assistant", "content": "It is 21."}, continues=True)
    await chat.append("next")

    def model(prompt: str) -> str:
        prompts.append(prompt)
        return "s"

    await chat.summarize(
        Context(Window(turns=1), summary=Summary(model, template="{summary}{transcript}"))
    )
    assert prompts == ["(none)user: look\ntool: 21\nassistant: It is 21."]


# When


async def test_so_many_turns_are_let_out_before_they_are_folded(
    chat: AsyncConversation, echo: Echo
) -> None:
    context = echoing(echo, after_turns=3)
    folded = []
    for number in range(1, 16):
        sent = await say(chat, number, context)
        folded.append(len(carried(sent)) // 2)
    assert folded == [0] * 7 + [3] * 3 + [6] * 3 + [9] * 2


async def test_so_many_tokens_are_let_out_before_they_are_folded(
    new_store: NewStore, echo: Echo
) -> None:
    chat = new_store(count_tokens=lambda _: 10).conversation("c")
    context = echoing(echo, after_turns=None, after_tokens=50)
    folded = [len(carried(await say(chat, number, context))) // 2 for number in range(1, 13)]
    assert folded == [0] * 7 + [3] * 3 + [6] * 2


async def test_a_store_without_a_counter_counts_where_a_summary_waits_for_tokens(
    new_store: NewStore, echo: Echo, caplog: pytest.LogCaptureFixture
) -> None:
    chat = new_store().conversation("c")
    context = echoing(echo, Window(turns=1), after_turns=None, after_tokens=20)
    folded = [len(carried(await say(chat, number, context))) // 2 for number in range(1, 7)]
    assert [turn.tokens for turn in await chat.turns()] == [12] * 6, "from the first turn on"
    assert folded == [0, 0, 0, 2, 2, 4], "two turns of 12 tokens each"
    assert caplog.records == []


async def test_turns_that_nobody_counted_are_told_of_once(
    new_store: NewStore, echo: Echo, caplog: pytest.LogCaptureFixture
) -> None:
    chat = new_store().conversation("c")
    await fill(chat, 1, 3)
    context = echoing(echo, Window(turns=1), after_turns=None, after_tokens=40)
    sent = [await say(chat, number, context) for number in range(4, 12)][-1]
    (record,) = caplog.records
    assert "count_tokens='cl100k_base'" in record.getMessage()
    assert carried(sent)[:6] == lines(1, 3), "they are folded with the others all the same"


async def test_a_model_that_repeats_itself_and_adds_does_not_let_it_grow(
    chat: AsyncConversation, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    def parrot(prompt: str) -> str:
        return f"{prompt.partition(chr(10))[0]} Some more words."

    context = echoing(parrot, Window(turns=1), tokens=100)
    sizes: list[int] = []
    for number in range(1, 40):
        sent = await say(chat, number, context)
        sizes.append(len("\n".join(carried(sent))))
    assert 280 < max(sizes) <= 300, "a token for each 3 bytes"
    _, (text,) = stored(server, chat) or (0, [""])
    assert text.endswith("Some more words."), "no half sentence"
    assert context.counts["summary_cut"] > 10
    assert context.counts["summary"] == 0
    assert "is cut to 100 tokens" in caplog.text


@pytest.mark.parametrize(
    "text, kept",
    [
        ("word " * 100, "word word word word word word"),
        ("x" * 100, "x" * 30),
        ("First it rains. Then it is dry again.", "First it rains."),
        ("不" * 5 + "。" + "是" * 20, "不" * 5 + "。"),
        ("one line of words here\nand a second line", "one line of words here"),
    ],
)
async def test_where_a_summary_is_cut(chat: AsyncConversation, text: str, kept: str) -> None:
    await fill(chat, 1, 6)
    assert await chat.summarize(echoing(lambda _: text, tokens=10)) == kept
    await chat.clear()
    await fill(chat, 1, 6)
    whole = await chat.summarize(echoing(lambda _: text, tokens=None))
    assert whole == text.strip()


async def test_either_limit_is_enough(new_store: NewStore, echo: Echo) -> None:
    chat = new_store(count_tokens=lambda _: 10).conversation("c")
    context = echoing(echo, after_turns=2, after_tokens=10_000)
    folded = [len(carried(await say(chat, number, context))) // 2 for number in range(1, 9)]
    assert folded == [0] * 6 + [2] * 2


async def test_after_the_save_it_is_there_for_the_next_turn(
    chat: AsyncConversation, server: Server, echo: Echo
) -> None:
    context = echoing(echo, when="after")
    await fill(chat, 1, 6)
    async with chat.turn("q7", context=context) as turn:
        assert turn.messages[0]["content"] == "q3"
        assert echo.prompts == []
        turn.reply("a7")
    assert turn.saved is not None
    assert stored(server, chat) == (2, lines(1, 2))
    assert lease(server, chat) == -2
    assert carried(await say(chat, 8, context)) == lines(1, 2)
    assert stored(server, chat) == (3, lines(1, 3))


async def test_after_a_turn_that_was_not_saved_nothing_is_folded(
    chat: AsyncConversation, server: Server, echo: Echo
) -> None:
    await fill(chat, 1, 6)
    async with chat.turn("q7", context=echoing(echo, when="after")):
        pass
    assert (stored(server, chat), echo.prompts) == (None, [])


async def test_by_hand(chat: AsyncConversation, server: Server, echo: Echo) -> None:
    context = echoing(echo, when="manual")
    assert await chat.summarize(context) == "", "nothing is stored"
    await fill(chat, 1, 4)
    assert await chat.summarize(context) == "", "all of it is in the window"
    await fill(chat, 5, 6)
    assert carried(await say(chat, 7, context)) == []
    assert echo.prompts == []
    assert (await chat.summarize(context)).split("\n") == lines(1, 3)
    assert (await chat.summarize(context)).split("\n") == lines(1, 3)
    assert len(echo.prompts) == 1
    assert carried(await say(chat, 8, context)) == lines(1, 3)
    assert lease(server, chat) == -2


async def test_summarize_wants_a_summary(chat: AsyncConversation) -> None:
    for wrong in (Context(), None, Window(turns=1)):
        with pytest.raises(TypeError, match="summarize"):
            await chat.summarize(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options, error",
    [
        ({"ask": "a prompt"}, TypeError),
        ({"ask": None}, TypeError),
        ({"template": "{summary}"}, ValueError),
        ({"template": "{transcript}"}, ValueError),
        ({"after_turns": 0}, ValueError),
        ({"tokens": 0}, ValueError),
        ({"tokens": 9.5}, TypeError),
        ({"after_tokens": -1}, ValueError),
        ({"after_turns": 1.5}, TypeError),
        ({"when": "later"}, ValueError),
        ({"deadline": 0}, ValueError),
        ({"deadline": "1"}, TypeError),
    ],
)
@pytest.mark.servers("fakeredis")
def test_what_a_summary_cannot_be_made_of(
    server: Server, options: dict[str, Any], error: type[Exception]
) -> None:
    del server
    with pytest.raises(error):
        Summary(**{"ask": Echo(), **options})


# Long conversations, and those that were trimmed


async def test_many_turns_are_folded_in_several_steps(
    new_store: NewStore, server: Server, echo: Echo
) -> None:
    chat = new_store().conversation("c")
    await fill(chat, 1, 134)
    sent = await say(chat, 135, echoing(echo))
    assert carried(sent) == lines(1, 130)
    assert [prompt.count("user:") for prompt in echo.prompts] == [50, 100, 130]
    assert (stored(server, chat), lease(server, chat)) == ((130, lines(1, 130)), -2)


async def test_turns_that_were_dropped_before_are_passed_over(
    new_store: NewStore, echo: Echo
) -> None:
    chat = new_store(max_messages=40).conversation("c")
    await fill(chat, 1, 150)
    assert carried(await say(chat, 151, echoing(echo))) == lines(131, 146)
    assert len(echo.prompts) == 1


async def test_what_was_folded_may_be_dropped(new_store: NewStore, echo: Echo) -> None:
    """The store's limit is the store's business."""
    chat = new_store(max_messages=12).conversation("c")
    for number in range(1, 40):
        sent = await say(chat, number, echoing(echo))
        assert [*carried(sent), *as_lines(sent)][:-1] == lines(1, number - 1)
    await chat.trim(turns=1)
    sent = await say(chat, 40, echoing(echo))
    assert carried(sent) == lines(1, 34)
    assert as_lines(sent) == [*lines(39, 39), "user: q40"], "it was trimmed before it was folded"


async def test_where_nothing_older_is_held_nobody_is_asked(
    new_store: NewStore, proxy: Proxy, echo: Echo
) -> None:
    chat = new_store(at=proxy, max_messages=8).conversation("c")
    await fill(chat, 1, 10)
    proxy.clear()
    await say(chat, 11, echoing(echo))
    assert proxy.seen == ["LRANGE", "GET", "EVALSHA"]
    assert echo.prompts == []


# What it costs


async def test_the_commands_of_a_turn(new_store: NewStore, proxy: Proxy, echo: Echo) -> None:
    other = new_store().conversation("c")
    for number in range(1, 4):
        await say(other, number, echoing(echo, Window(turns=1)))  # the server learns the scripts
    await other.clear()
    chat = new_store(at=proxy).conversation("c")
    commands = []
    for number in range(1, 10):
        proxy.clear()
        await say(chat, number, echoing(echo, Window(turns=4, step=0.5)))
        commands.append(proxy.seen)
    plain = ["LRANGE", "EVALSHA"]
    read = ["LRANGE", "GET", "EVALSHA"]
    folding = ["LRANGE", "GET", "EVALSHA", "EVALSHA", "EVALSHA", "EVALSHA"]
    assert commands == [plain] * 5 + [folding, read] * 2


async def test_a_store_that_needed_a_summary_reads_it_together_with_the_turns(
    store: AsyncStore, chat: AsyncConversation, echo: Echo
) -> None:
    context = echoing(echo)

    def first_step() -> Any:
        return next(load(inner(chat)._place, context, begins=True))

    assert first_step().command == "lrange"
    for number in range(1, 7):
        await say(chat, number, context)
    step = first_step()
    assert isinstance(step, Together)
    assert [call.command for call in step.calls] == ["lrange"]
    assert step.beside is not None
    assert step.beside.command == "get"
    assert carried(await say(chat, 7, context)) == lines(1, 2)
    assert await say(store.conversation("new"), 1, context) == [{"role": "user", "content": "q1"}]


@pytest.mark.servers("cluster")
async def test_on_a_cluster_what_no_summary_is_needed_for_reads_none(
    new_store: NewStore, proxy: Proxy, echo: Echo
) -> None:
    store = new_store(at=proxy)
    for number in range(1, 7):
        await say(store.conversation("c"), number, echoing(echo))
    proxy.clear()
    await say(store.conversation("new"), 1, echoing(echo))
    assert proxy.seen == ["LRANGE", "EVALSHA"]
