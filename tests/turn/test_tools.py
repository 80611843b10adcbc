"""Tool loops: inside one turn, over several requests, and with another turn between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.store.talk import assistant, raw, texts, user
from turnstore import TurnConflictError, Window

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.running import Server
    from turnstore import AsyncStore

pytestmark = pytest.mark.one_setup

Json = dict[str, Any]


def asks(*ids: str) -> Json:
    calls = [
        {"id": id_, "type": "function", "function": {"name": "f", "arguments": "{}"}} for id_ in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(id_: str) -> Json:
    return {"role": "tool", "tool_call_id": id_, "content": "1"}


async def test_a_loop_inside_one_turn(store: AsyncStore) -> None:
    chat = store.conversation("c")
    async with chat.turn("q") as turn:
        turn.reply(asks("1", "2"))
        turn.reply([result("1"), result("2")])
        assert turn.messages == [user("q"), asks("1", "2"), result("1"), result("2")]
        turn.reply("a")
    (stored,) = await chat.turns()
    assert stored.messages == [user("q"), asks("1", "2"), result("1"), result("2"), assistant("a")]


async def test_results_in_the_next_request_continue_the_turn(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await chat.append([user("q0"), assistant("a0")])
    async with chat.turn("q") as turn:
        turn.reply(asks("1"))
    async with chat.turn(result("1")) as turn:
        assert turn.messages == [user("q0"), assistant("a0"), user("q"), asks("1"), result("1")]
        turn.reply(asks("2"))
    async with chat.turn(result("2")) as turn:
        turn.reply("a")
    stored = await chat.turns()
    assert [len(one.messages) for one in stored] == [2, 6]
    assert texts(await chat.read(Window(turns=1))) == ["q", None, "1", None, "1", "a"]


async def test_the_whole_loop_sent_again_is_stored_once(store: AsyncStore) -> None:
    """As hand-written loops do: the list grows, and all of it is sent each time."""
    chat = store.conversation("c")
    messages: list[Json] = [user("q")]
    for reply in (asks("1"), asks("2"), assistant("a")):
        async with chat.turn(messages) as turn:
            assert turn.messages == messages
            turn.reply(reply)
        messages.append(reply)
        messages += [result(call["id"]) for call in reply.get("tool_calls", [])]
    assert await chat.read() == messages
    assert len(await chat.turns()) == 1


async def test_an_open_turn_is_left_out_before_a_new_question(store: AsyncStore) -> None:
    chat = store.conversation("c")
    async with chat.turn("q1") as turn:
        turn.reply(asks("1"))
    async with chat.turn("q2") as turn:
        assert texts(turn.messages) == ["q2"]
        turn.reply("a2")
    assert texts(await chat.read()) == ["q1", None, "q2", "a2"], "it stays stored"
    async with chat.turn("q3") as turn:
        assert texts(turn.messages) == ["q2", "a2", "q3"]


async def test_another_turn_between_call_and_result(store: AsyncStore) -> None:
    """Pieces of a turn stand side by side, so the whole of it follows once more."""
    chat = store.conversation("c")
    async with chat.turn("q1") as turn:
        turn.reply(asks("1"))
    async with chat.turn(result("1")) as turn:
        await chat.append([user("other"), assistant("other")])
        turn.reply("a1")
    assert turn.saved is not None
    assert not turn.saved.duplicate
    async with chat.turn("q2") as turn:
        assert texts(turn.messages) == ["other", "other", "q1", None, "1", "a1", "q2"]
    assert [len(one.messages) for one in await chat.turns()] == [2, 2, 4]


async def test_another_turn_between_is_a_conflict_where_that_was_asked_for(
    store: AsyncStore,
) -> None:
    chat = store.conversation("c")
    async with chat.turn("q1") as turn:
        turn.reply(asks("1"))
    turn = chat.turn(result("1"), on_conflict="reject")
    await turn.__aenter__()
    await chat.append("other")
    turn.reply("a1")
    with pytest.raises(TurnConflictError) as found:
        await turn.__aexit__(None, None, None)
    assert found.value.reply == "a1"
    assert len(await chat.turns()) == 2


async def test_a_continued_save_sent_twice_is_one(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    async with chat.turn("q1") as turn:
        turn.reply(asks("1"))
    async with chat.turn(result("1"), turn_id="second") as turn:
        turn.reply("a1")
    before = raw(server, chat)
    turn.saved = None  # as if its answer had been lost
    saved = await turn.save()
    assert saved is not None
    assert saved.duplicate
    assert raw(server, chat) == before


async def test_a_result_that_nobody_waits_for_is_refused_before_the_model(
    store: AsyncStore,
) -> None:
    chat = store.conversation("c")
    with pytest.raises(ValueError, match="tool result for 1, and no stored turn waits for it"):
        await chat.turn(result("1")).__aenter__()
    async with chat.turn("q1") as turn:
        turn.reply(asks("1"))
    await chat.append("other")
    with pytest.raises(ValueError, match="another turn came between"):
        await chat.turn(result("1")).__aenter__()
    async with chat.turn([asks("1"), result("1")]) as turn:
        turn.reply("a1")
    assert len(await chat.read()) == 6


async def test_a_loop_cut_by_a_limit_stays_whole(new_store: NewStore) -> None:
    chat = new_store(max_messages=4).conversation("c")
    async with chat.turn("q") as turn:
        turn.reply(asks("0"))
    for number in range(5):
        async with chat.turn(result(f"{number}")) as turn:
            turn.reply(asks(f"{number + 1}"))
    (stored,) = await chat.turns()
    assert len(stored.messages) == 12
    async with chat.turn([result("5")], window=Window(messages=1)) as turn:
        assert len(turn.messages) == 13
        turn.reply("done")


# Formats

OUTPUT = {"type": "function_call_output", "call_id": "1", "output": "x"}
ITEMS: list[Json] = [
    {"type": "reasoning", "id": "rs", "encrypted_content": "e"},
    {"type": "function_call", "id": "fc", "call_id": "1", "name": "f", "arguments": "{}"},
]


async def test_responses_have_a_loop_of_items(store: AsyncStore) -> None:
    chat = store.conversation("c")
    async with chat.turn("q", format="openai.responses") as turn:
        turn.reply(ITEMS)
    async with chat.turn(OUTPUT, format="openai.responses") as turn:
        assert turn.messages == [user("q"), *ITEMS, OUTPUT]
        turn.reply({"type": "message", "role": "assistant", "content": []})
    assert len(await chat.turns()) == 1
    assert (await chat.turns())[0].format == "openai.responses"
