"""Kinds of faults that users of other systems reported, by the groups of their list.

Most groups have their tests where the rule is tested: D in test_repeated.py, C in test_lives.py,
G in test_fidelity.py, K and L in test_store.py, the cost of E8 and K4 in test_round_trips.py,
J and I in tests/unit/test_compose.py. Here stands what needs several rules at once.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.store.talk import assistant, fill, texts, user
from turnstore import ConflictError, TurnConflictError, UnavailableError, Window

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from turnstore import AsyncStore

pytestmark = pytest.mark.one_setup


def asks(id_: str) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id_, "type": "function"}]}


def result(id_: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": "1"}


def whole(messages: list[dict[str, Any]]) -> bool:
    """Say whether every call has its result, and every result its call, as providers demand."""
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return False
            waiting.discard(message["tool_call_id"])
        elif waiting:
            return False
        waiting.update(call["id"] for call in message.get("tool_calls") or ())
    return not waiting


async def test_a_no_window_and_no_trim_parts_a_call_from_its_result(new_store: NewStore) -> None:
    chat = new_store(max_messages=20).conversation("c")
    for n in range(10):
        loop = [
            user("q"),
            asks(f"{n}.a"),
            result(f"{n}.a"),
            asks(f"{n}.b"),
            result(f"{n}.b"),
            assistant("a"),
        ]
        await chat.append(loop[: 6 if n % 3 else 3])
        for window in [Window(messages=m) for m in (1, 2, 3, 5, 7, 11, 19)] + [
            Window(turns=2),
            Window(),
        ]:
            assert whole(await chat.read(window))
        assert whole([message for turn in await chat.turns(3) for message in turn.messages])
    for keep in (17, 11, 5, 1):
        await chat.trim(keep)
        assert whole(await chat.read())


async def test_a_a_crash_between_call_and_result_blocks_nothing(store: AsyncStore) -> None:
    """A5, A6, A8: nothing of a turn is stored before it is finished."""
    chat = store.conversation("c")
    await chat.append([user("q0"), assistant("a0")])

    async def crash() -> None:
        async with chat.turn("q1") as turn:
            turn.reply(asks("1"))
            raise RuntimeError("crash")

    with pytest.raises(RuntimeError, match="crash"):
        await crash()
    async with chat.turn("q2") as turn:
        assert texts(turn.messages) == ["q0", "a0", "q2"]
        turn.reply("a2")
    assert whole(await chat.read())


async def test_a_what_was_imported_broken_is_not_sent(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await chat.append([user("q0"), asks("1")])
    await chat.append([result("9"), assistant("a")])
    await chat.append([user("q1"), assistant("a1")])
    async with chat.turn("q2") as turn:
        assert texts(turn.messages) == ["q1", "a1", "q2"]
        assert whole(turn.messages)
        turn.reply("a2")
    assert len(await chat.read()) == 8, "and nothing is thrown away"


async def test_b_the_order_is_the_order_of_appends(store: AsyncStore) -> None:
    """B1-B5: stamps that collide, sort keys of one tick, lists read the wrong way round."""
    chat = store.conversation("c")
    for n in range(40):  # many within a millisecond
        await chat.append([f"{n}.q", f"{n}.a"])
    expected = [f"{n}.{part}" for n in range(40) for part in "qa"]
    assert texts(await chat.read(Window())) == expected
    turns = await chat.turns(100)
    assert [turn.number for turn in turns] == list(range(1, 41))
    assert [turn.time for turn in turns] == sorted(turn.time for turn in turns)


async def test_b_the_newest_is_what_a_limit_keeps(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 120)
    assert texts(await chat.read())[-1] == "120.1"
    assert (await chat.turns())[-1].number == 120


async def test_d_a_caller_that_saves_everything_again_stores_it_once(store: AsyncStore) -> None:
    """D2, D5: the whole transcript comes back with each request."""
    chat = store.conversation("c")
    transcript: list[dict[str, Any]] = []
    for n in range(5):
        transcript.append(user(f"q{n}"))
        async with chat.turn(transcript) as turn:
            assert turn.messages == transcript
            turn.reply(f"a{n}")
        transcript.append(assistant(f"a{n}"))
    assert await chat.read() == transcript


async def test_d_a_worker_that_tries_again_stores_it_once(store: AsyncStore) -> None:
    """D3, D6: the same job runs twice, and gives its own id."""
    chat = store.conversation("c")
    for _ in range(3):
        async with chat.turn("q", turn_id="job-7") as turn:
            turn.reply("a")
    assert texts(await chat.read()) == ["q", "a"]


async def test_e_turns_never_interleave(store: AsyncStore) -> None:
    """E2, E3: user A, user B, answer A, answer B; or the last writer wins."""
    chat = store.conversation("c")

    async def talk(name: str) -> None:
        for n in range(4):
            async with chat.turn(f"{name}{n}") as turn:
                await asyncio.sleep(0)
                turn.reply([f"about {name}{n}", f"and more about {name}{n}"])

    await asyncio.gather(*map(talk, "abcdef"))
    said = texts(await chat.read(Window()))
    assert len(said) == 72
    for question, answer, more in zip(said[::3], said[1::3], said[2::3], strict=True):
        assert (answer, more) == (f"about {question}", f"and more about {question}")
    for name in "abcdef":
        assert [q for q in said[::3] if q[0] == name] == [f"{name}{n}" for n in range(4)]


async def test_e_who_wants_a_conflict_gets_one(store: AsyncStore) -> None:
    """E5: a revision comes with every read, and a save can demand it."""
    chat = store.conversation("c")
    history = await chat.read()
    async with chat.turn("other") as turn:
        turn.reply("first")
    with pytest.raises(ConflictError):
        await chat.append("late", expected_revision=history.revision)
    mine = chat.turn("mine", on_conflict="reject")
    await mine.__aenter__()
    await chat.append("came between")
    mine.reply("lost?")
    with pytest.raises(TurnConflictError):
        await mine.save()
    assert texts(await chat.read()) == ["other", "first", "came between"]


async def test_i_instructions_are_neither_stored_nor_trimmed_away(new_store: NewStore) -> None:
    """I1: the system prompt was the oldest message, and fell out of the window."""
    chat = new_store(max_messages=4).conversation("c")
    for n in range(8):
        async with chat.turn([{"role": "system", "content": "rule"}, user(f"{n}")]) as turn:
            assert texts(turn.messages)[0] == "rule"
            assert texts(turn.messages).count("rule") == 1
            turn.reply("a")
    assert "rule" not in texts(await chat.read())


async def test_i_what_is_new_can_be_told_from_what_was_put_in(store: AsyncStore) -> None:
    """I5: guardrails saw the whole history as if the user had just said it."""
    chat = store.conversation("c")
    await chat.append([user("old"), assistant("old")])
    async with chat.turn("new") as turn:
        assert texts(turn.new) == ["new"]
        assert texts(turn.history) == ["old", "old"]
        turn.reply("a")
        assert texts(turn.new) == ["new", "a"]


async def test_k_a_server_that_is_gone_is_not_an_empty_history(
    new_store: NewStore, proxy: Proxy
) -> None:
    """K9: an outage that reads as an empty conversation is how histories are lost."""
    chat = new_store(at=proxy, redis={"retry": None, "socket_timeout": 5}).conversation("c")
    await chat.append("a")
    proxy.go_down()
    for doing in (
        chat.read(),
        chat.turns(),
        chat.stat(),
        chat.rewind(),
        chat.trim(1),
        chat.append("b"),
    ):
        with pytest.raises(UnavailableError):
            await doing
    proxy.come_up()
    assert texts(await chat.read()) == ["a"]
