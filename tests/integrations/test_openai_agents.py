"""What is particular to the OpenAI Agents SDK: a session that is one unit of work."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from agents import Agent, Runner, SessionSettings, function_tool, set_tracing_disabled
from agents.memory import Session
from agents.testing import ScriptedModel, assistant_message, function_call

from tests.conformance.marks import ONE_SERVER
from turnstore import ConflictError, FormatError, Window
from turnstore.context import Context, Summary

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnstore import AsyncConversation, AsyncStore

pytestmark = ONE_SERVER
set_tracing_disabled(disabled=True)

CALL = function_call("weather", {"city": "Rome"}, call_id="c1")
Json = dict[str, Any]


@function_tool
def weather(city: str) -> str:
    """Say what the weather is."""
    return f"21 degrees in {city}"


@function_tool(needs_approval=True)
def order(what: str) -> str:
    """Order something."""
    return f"{what} ordered"


def agent(*steps: Any, **options: Any) -> tuple[Agent[Any], ScriptedModel]:
    model = ScriptedModel([[assistant_message(s)] if isinstance(s, str) else s for s in steps])
    return Agent(name="a", model=model, tools=[weather, order], **options), model


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def model(text: str) -> Json:
    return {"role": "assistant", "content": text}


@pytest.fixture
def chat(make_async_store: Callable[..., AsyncStore]) -> AsyncConversation:
    return make_async_store().conversation("ada")


async def kinds(chat: AsyncConversation) -> list[list[str]]:
    return [[str(m.get("type", m.get("role"))) for m in t.messages] for t in await chat.turns()]


LOOP = ["user", "function_call", "function_call_output", "message"]


def test_it_is_a_session_of_the_sdk(chat: AsyncConversation) -> None:
    session = chat.agents_session()
    assert isinstance(session, Session)
    assert session.session_id == chat.key


async def test_a_run_with_its_tools_is_one_turn(chat: AsyncConversation) -> None:
    ada, _ = agent([CALL], "21")
    async with chat.agents_session(turn_id="req-1", meta={"by": "ada"}) as session:
        await Runner.run(ada, "How warm is it?", session=session)
        assert await chat.turns() == []
    (turn,) = await chat.turns()
    assert (turn.id, turn.meta, turn.format) == ("req-1", {"by": "ada"}, "openai.responses")
    assert await kinds(chat) == [LOOP]


async def test_a_failed_run_leaves_nothing_behind(chat: AsyncConversation) -> None:
    ada, asked = agent("Hi", [CALL], RuntimeError("boom"), "Fine")
    async with chat.agents_session() as session:
        await Runner.run(ada, "Hello", session=session)
    with pytest.raises(RuntimeError, match="boom"):
        async with chat.agents_session() as session:
            await Runner.run(ada, "How warm is it?", session=session)
    async with chat.agents_session() as session:
        await Runner.run(ada, "And you?", session=session)
    assert [len(turn.messages) for turn in await chat.turns()] == [2, 2]
    assert "warm" not in str(asked.calls[-1].input)


async def test_an_error_in_the_block_undoes_a_run_that_succeeded(chat: AsyncConversation) -> None:
    ada, _ = agent("Hi")
    with pytest.raises(KeyError):  # noqa: PT012 - a block that fails at its end
        async with chat.agents_session() as session:
            await Runner.run(ada, "Hello", session=session)
            raise KeyError
    assert await chat.turns() == []


async def test_two_runs_in_one_block_are_one_turn(chat: AsyncConversation) -> None:
    ada, asked = agent("Hi", "Fine")
    async with chat.agents_session() as session:
        await Runner.run(ada, "Hello", session=session)
        await Runner.run(ada, "And you?", session=session)
    assert await kinds(chat) == [["user", "message"] * 2]
    assert len(asked.calls[-1].input) == 3


async def test_a_run_that_ends_with_a_tool_is_saved(chat: AsyncConversation) -> None:
    ada, _ = agent([CALL], tool_use_behavior="stop_on_first_tool")
    async with chat.agents_session() as session:
        await Runner.run(ada, "How warm is it?", session=session)
    assert await kinds(chat) == [LOOP[:3]]


async def test_a_stream_that_was_left_is_not_saved_though_its_tools_were_done(
    chat: AsyncConversation, caplog: pytest.LogCaptureFixture
) -> None:
    ada, _ = agent([CALL], "one two three")
    async with chat.agents_session() as session:
        running = Runner.run_streamed(ada, "How warm is it?", session=session)
        async for event in running.stream_events():
            if event.type == "run_item_stream_event" and event.name == "tool_output":
                break
    running.cancel()
    assert await chat.turns() == []
    assert "had not ended well" in caplog.text
    with pytest.raises(RuntimeError, match="block of this session has ended"):
        await session.add_items([user("late")])


async def test_a_stream_whose_failure_was_swallowed_is_not_saved(chat: AsyncConversation) -> None:
    ada, _ = agent([CALL], RuntimeError("boom"))
    async with chat.agents_session() as session:
        running = Runner.run_streamed(ada, "How warm is it?", session=session)
        with suppress(RuntimeError):
            async for _ in running.stream_events():
                pass
    assert await chat.turns() == []


async def test_an_approval_continues_the_turn_in_another_session(chat: AsyncConversation) -> None:
    ada, asked = agent([function_call("order", {"what": "tea"}, call_id="c1")], "Done", "Hi")
    async with chat.agents_session() as session:
        waiting = await Runner.run(ada, "Order tea", session=session)
    assert waiting.interruptions
    assert await kinds(chat) == [["user", "function_call"]]
    state = waiting.to_state()
    state.approve(waiting.interruptions[0])
    async with chat.agents_session() as session:
        await Runner.run(ada, state, session=session)
    assert await kinds(chat) == [LOOP]
    async with chat.agents_session() as session:
        await Runner.run(ada, "Thanks", session=session)
    assert [one.get("call_id") for one in asked.calls[-1].input].count("c1") == 2


async def test_a_call_that_was_never_approved_reaches_no_model(chat: AsyncConversation) -> None:
    ada, asked = agent([function_call("order", {"what": "tea"}, call_id="c1")], "Hi")
    for text in ("Order tea", "Hello"):
        async with chat.agents_session() as session:
            await Runner.run(ada, text, session=session)
    assert asked.calls[-1].input == [user("Hello")]


async def test_a_result_without_its_call_is_refused(chat: AsyncConversation) -> None:
    result = {"type": "function_call_output", "call_id": "c9", "output": "tea"}
    with pytest.raises(ValueError, match="c9"):
        async with chat.agents_session() as session:
            await session.add_items([result])


@pytest.mark.parametrize(
    "limit, kept", [(1, 4), (4, 4), (5, 4), (6, 6), (None, 6), (0, 0), (-1, 0)]
)
async def test_a_limit_cuts_whole_turns(
    chat: AsyncConversation, limit: int | None, kept: int
) -> None:
    ada, _ = agent("Hi", [CALL], "21")
    for text in ("Hello", "How warm is it?"):
        async with chat.agents_session() as session:
            await Runner.run(ada, text, session=session)
    session = chat.agents_session()
    assert len(await session.get_items(limit)) == kept
    session.session_settings = SessionSettings(limit=limit)
    assert len(await session.get_items()) == kept
    async with chat.agents_session() as unit:
        assert len(await unit.get_items(limit)) == kept


async def test_what_is_staged_counts_as_the_newest_turn(chat: AsyncConversation) -> None:
    await chat.append([user("a"), model("b")], format="openai.responses")
    async with chat.agents_session() as session:
        await session.add_items([user("c"), model("d"), model("e")])
        assert [len(await session.get_items(limit)) for limit in (1, 3, 4, 5)] == [3, 3, 3, 5]


async def test_a_window_holds_beside_it(chat: AsyncConversation) -> None:
    for n in range(3):
        await chat.append([user(f"{n}"), model("ok")], format="openai.responses")
    async with chat.agents_session(window=Window(turns=1)) as session:
        assert await session.get_items() == [user("2"), model("ok")]
        assert await session.get_items(100) == [user("2"), model("ok")]


async def test_pop_takes_back_what_is_staged_first(chat: AsyncConversation) -> None:
    await chat.append([user("a"), model("b")], format="openai.responses")
    async with chat.agents_session() as session:
        await session.add_items([user("c"), model("d")])
        assert await session.pop_item() == model("d")
        await session.add_items([model("e")])
    assert [turn.messages for turn in await chat.turns()] == [
        [user("a"), model("b")],
        [user("c"), model("e")],
    ]


async def test_pop_takes_a_stored_turn_apart_when_the_block_ends(chat: AsyncConversation) -> None:
    await chat.append([user("a"), model("b")], format="openai.responses")
    await chat.append([user("c"), model("d")], format="openai.responses")
    async with chat.agents_session() as session:
        assert await session.pop_item() == model("d")
        assert len(await chat.read()) == 4
        assert await session.get_items() == [user("a"), model("b"), user("c")]
        await session.add_items([model("e")])
    assert [turn.messages for turn in await chat.turns()] == [
        [user("a"), model("b")],
        [user("c"), model("e")],
    ]
    with pytest.raises(KeyError):  # noqa: PT012 - a block that fails at its end
        async with chat.agents_session() as session:
            await session.pop_item()
            raise KeyError
    assert len(await chat.read()) == 4


async def test_pop_to_the_end_and_beyond(chat: AsyncConversation) -> None:
    await chat.append([user("a"), model("b")], format="openai.responses")
    async with chat.agents_session() as session:
        popped = [await session.pop_item() for _ in range(3)]
    assert popped == [model("b"), user("a"), None]
    assert await chat.turns() == []


async def test_pop_does_not_undo_what_another_has_saved_meanwhile(chat: AsyncConversation) -> None:
    await chat.append([user("a"), model("b")], format="openai.responses")
    with pytest.raises(ConflictError):  # noqa: PT012 - it is raised where the block ends
        async with chat.agents_session() as session:
            await session.pop_item()
            await chat.append([user("c"), model("d")], format="openai.responses")
    assert len(await chat.turns()) == 2


async def test_pop_of_another_format_is_refused(chat: AsyncConversation) -> None:
    await chat.append("hi")
    async with chat.agents_session(on_other_format="text") as session:
        with pytest.raises(FormatError):
            await session.pop_item()
    assert len(await chat.turns()) == 1


async def test_clear_in_a_block_happens_when_it_ends(chat: AsyncConversation) -> None:
    await chat.append([user("a"), model("b")], format="openai.responses")
    with pytest.raises(KeyError):  # noqa: PT012 - a block that fails at its end
        async with chat.agents_session() as session:
            await session.clear_session()
            raise KeyError
    assert len(await chat.turns()) == 1
    async with chat.agents_session() as session:
        await session.clear_session()
        assert await session.get_items() == []
        assert await session.pop_item() is None
        await session.add_items([user("c"), model("d")])
    assert [turn.messages for turn in await chat.turns()] == [[user("c"), model("d")]]


async def test_without_a_block_the_steps_of_a_run_are_pieces_of_one_turn(
    chat: AsyncConversation,
) -> None:
    ada, _ = agent([CALL], "21", "Hi")
    session = chat.agents_session()
    await Runner.run(ada, "How warm is it?", session=session)
    await Runner.run(ada, "Hello", session=session)
    assert await kinds(chat) == [LOOP, ["user", "message"]]


async def test_without_a_block_a_failed_run_leaves_its_question(chat: AsyncConversation) -> None:
    ada, _ = agent(RuntimeError("boom"))
    with pytest.raises(RuntimeError):
        await Runner.run(ada, "Hello", session=chat.agents_session())
    assert await kinds(chat) == [["user"]]


async def test_without_a_block_runs_at_once_are_not_mixed(chat: AsyncConversation) -> None:
    session = chat.agents_session()

    async def run(text: str) -> None:
        ada, _ = agent([CALL], "21")
        await Runner.run(ada, text, session=session)

    await asyncio.gather(*(run(f"{n}") for n in range(4)))
    items = [item for turn in await chat.turns() for item in turn.messages]
    assert len(items) == 16
    for turn in await chat.turns():
        asked = [item for item in turn.messages if item.get("role") == "user"]
        assert len(asked) <= 1


async def test_without_a_block_pop_and_clear_happen_at_once(chat: AsyncConversation) -> None:
    session = chat.agents_session()
    await session.add_items([user("a"), model("b")])
    await session.add_items([])
    assert await session.pop_item() == model("b")
    assert await session.get_items() == [user("a")]
    await session.clear_session()
    assert await session.pop_item() is None


async def test_a_summary_is_sent_and_not_stored(chat: AsyncConversation) -> None:
    for n in range(4):
        await chat.append([user(f"{n}"), model("ok")], format="openai.responses")
    context = Context(Window(turns=1), summary=Summary(lambda _: "They counted.", when="before"))
    await chat.summarize(context)
    ada, asked = agent("Hi")
    async with chat.agents_session(context=context) as session:
        await Runner.run(ada, "Hello", session=session)
    sent = asked.calls[-1].input
    assert "They counted." in sent[0]["content"]
    assert [one["content"] for one in sent[1:]] == ["3", "ok", "Hello"]
    assert "counted" not in str(await chat.read(Window()))


async def test_serialize_makes_runs_wait_for_one_another(chat: AsyncConversation) -> None:
    async def run(text: str) -> int:
        ada, asked = agent("ok")
        async with chat.agents_session(on_conflict="serialize") as session:
            await Runner.run(ada, text, session=session)
        return len(asked.calls[-1].input)

    assert sorted(await asyncio.gather(*(run(f"{n}") for n in range(3)))) == [1, 3, 5]


async def test_what_is_refused(chat: AsyncConversation) -> None:
    with pytest.raises(ValueError, match="sources"):
        chat.agents_session(context=Context(sources=[lambda _: []]))
    with pytest.raises(ValueError, match="on_conflict"):
        chat.agents_session(on_conflict="no")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(RuntimeError, match="async with"):
        await chat.agents_session(on_conflict="reject").get_items()
    session = chat.agents_session()
    async with session:
        pass
    with pytest.raises(RuntimeError, match="one unit of work"):
        await session.__aenter__()
