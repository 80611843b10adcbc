"""Appending: what is taken, what is answered, and what is there afterwards."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.store.talk import assistant, fill, numbered, raw, texts, user
from turnstore import Appended, LimitError, Window

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.running import Server
    from turnstore import AsyncStore

pytestmark = pytest.mark.one_setup


async def test_text_is_a_message_of_the_user(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await chat.append("hi")
    assert await chat.read() == [user("hi")]


async def test_the_answer(store: AsyncStore) -> None:
    chat = store.conversation("c")
    first = await chat.append([user("a"), assistant("b")], turn_id="one")
    assert first == Appended("1-one", duplicate=False, turns=1, messages=2, tokens=0, dropped=0)
    second = await chat.append("c", turn_id="two")
    assert second == Appended("2-two", duplicate=False, turns=2, messages=3, tokens=0, dropped=0)


async def test_a_list_of_anything_is_one_turn(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await chat.append(["a", assistant("b"), "c"])
    assert await chat.read() == [user("a"), assistant("b"), user("c")]
    assert [len(turn.messages) for turn in await chat.turns()] == [3]


async def test_a_generator_is_read_once(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await chat.append(f"{n}" for n in range(3))
    assert texts(await chat.read()) == ["0", "1", "2"]


@pytest.mark.parametrize("nothing", [[], (), iter(())], ids=["list", "tuple", "iterator"])
async def test_nothing_writes_nothing(store: AsyncStore, server: Server, nothing: Any) -> None:
    chat = store.conversation("c")
    assert await chat.append(nothing) == Appended("0", False, 0, 0, 0, 0)  # noqa: FBT003 - as printed
    assert not server.raw.exists(chat.key)
    await chat.append("a", turn_id="one")
    before = raw(server, chat)
    assert (await chat.append(nothing, turn_id="two")).revision == "1-one"
    assert (await chat.append(nothing, turn_id="one")).duplicate is False
    assert raw(server, chat) == before


async def test_an_empty_text_is_a_message(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await chat.append("")
    assert await chat.read() == [user("")]


async def test_unknown_fields_and_the_order_of_keys_are_kept(store: AsyncStore) -> None:
    chat = store.conversation("c")
    message: dict[str, Any] = {
        "x_new": [{"b": 1, "a": None}],
        "role": "assistant",
        "content": None,
        "": {},
    }
    await chat.append(message)
    (back,) = await chat.read()
    assert list(back.items()) == list(message.items())


async def test_a_message_that_is_not_json_leaves_nothing(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    for bad in (math.nan, b"x", {1}, object()):
        with pytest.raises(ValueError, match="message 1"):
            await chat.append(["fine", user([bad])])
    assert not server.raw.exists(chat.key)


async def test_what_the_caller_changes_later_is_not_stored(store: AsyncStore) -> None:
    chat = store.conversation("c")
    message = user(["a"])
    await chat.append(message)
    message["content"].append("b")
    (await chat.read())[0]["content"].append("c")
    assert await chat.read() == [user(["a"])]


async def test_a_handle_has_no_state(store: AsyncStore) -> None:
    await store.conversation("c").append("a")
    await store.conversation("c").append("b")
    assert texts(await store.conversation("c").read()) == ["a", "b"]


async def test_the_time_is_the_servers(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    before = server.raw.time()
    await chat.append("a")
    after = server.raw.time()
    (turn,) = await chat.turns()
    assert turn.time.tzinfo is UTC
    early, late = (
        datetime.fromtimestamp(s + us // 1000 / 1000, UTC) for s, us in times(before, after)
    )
    assert early <= turn.time <= late


def times(*answers: Any) -> list[tuple[int, int]]:
    """Read TIME, of which a cluster gives one for each node."""
    return [(min(a.values()) if isinstance(a, dict) else a) for a in answers]


async def test_random_turn_ids_differ(store: AsyncStore) -> None:
    chat = store.conversation("c")
    for _ in range(5):
        await chat.append("same")
    turns = await chat.turns()
    assert len({turn.id for turn in turns}) == 5
    assert len(await chat.read()) == 5


@pytest.mark.parametrize("turn_id", ["a", "!" * 64, "a-b", "1-1", "0", "{}", "%d", "(.*)", "~"])
async def test_turn_ids_of_any_visible_letters(store: AsyncStore, turn_id: str) -> None:
    chat = store.conversation("c")
    appended = await chat.append("a", turn_id=turn_id)
    assert appended.revision == f"1-{turn_id}"
    assert (await chat.append("b", expected_revision=appended.revision)).turns == 2
    assert (await chat.append("a", turn_id=turn_id)).revision == f"1-{turn_id}"
    assert (await chat.turns())[0].id == turn_id


# Meta and formats


async def test_meta_is_kept_with_the_turn(store: AsyncStore) -> None:
    chat = store.conversation("c")
    meta = {"model": "m", "usage": {"n": 2**70}, "": None}
    await chat.append("a", meta=meta)
    await chat.append("b")
    assert [turn.meta for turn in await chat.turns()] == [meta, {}]
    assert [turn.meta for turn in (await chat.read()).turns] == [meta, {}]
    assert texts(await chat.read()) == ["a", "b"]


async def test_the_format_is_kept_with_the_turn(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await chat.append({"type": "reasoning"}, format="openai.responses")
    await chat.append({"anything": 1}, format="my.own!")
    await chat.append("a")
    formats = ["openai.responses", "my.own!", "openai.chat"]
    assert [turn.format for turn in await chat.turns()] == formats
    assert await chat.read() == [{"type": "reasoning"}, {"anything": 1}, user("a")]


# Limits


async def test_a_turn_as_large_as_it_may_be(new_store: NewStore) -> None:
    chat = new_store(max_turn_messages=3, max_turn_bytes=200).conversation("c")
    await chat.append(["a", "b", "c"])
    overhead = len('[{"role":"user","content":""}]')
    await chat.append("x" * (200 - overhead))
    for too_much in (["a"] * 4, "x" * (201 - overhead), "é" * 100):
        with pytest.raises(LimitError, match="nothing was written"):
            await chat.append(too_much)
    assert len(await chat.turns()) == 2


async def test_no_limits(new_store: NewStore) -> None:
    store = new_store(max_messages=None, max_turn_messages=None, max_turn_bytes=None)
    chat = store.conversation("c")
    assert (await chat.append(["a"] * 1001)).messages == 1001
    assert (await chat.append("x" * 2_000_000)).turns == 2
    assert len(await chat.read(Window())) == 1002


async def test_the_oldest_turns_go_beyond_max_messages(new_store: NewStore) -> None:
    chat = new_store(max_messages=5).conversation("c")
    await fill(chat, 2, size=2)
    assert (await chat.append(["3.1", "3.2"])).dropped == 1
    assert texts(await chat.read()) == numbered(2, 3, size=2)
    assert (await chat.append("4.1")).dropped == 0
    assert (await chat.append(["5.1", "5.2", "5.3"])).dropped == 2
    assert texts(await chat.read()) == ["4.1", *numbered(5, size=3)]


async def test_a_turn_larger_than_the_limit_stays_whole(new_store: NewStore) -> None:
    chat = new_store(max_messages=3).conversation("c")
    await fill(chat, 3)
    appended = await chat.append([f"{n}" for n in range(10)])
    assert (appended.turns, appended.messages, appended.dropped) == (1, 10, 3)
    assert len(await chat.read()) == 10
    assert (await chat.append("next")).dropped == 1
    assert texts(await chat.read()) == ["next"]


async def test_numbers_and_revisions_go_on_after_a_drop(new_store: NewStore) -> None:
    chat = new_store(max_messages=2).conversation("c")
    await fill(chat, 20)
    assert (await chat.read()).revision == "20-t20"
    assert [turn.number for turn in await chat.turns()] == [19, 20]


# Tokens


async def test_tokens_are_counted_once_and_summed(new_store: NewStore) -> None:
    counted: list[dict[str, Any]] = []

    def count(message: dict[str, Any]) -> int:
        counted.append(message)
        return len(str(message["content"]))

    chat = new_store(count_tokens=count).conversation("c")
    assert (await chat.append(["ab", "c"])).tokens == 3
    assert (await chat.append("defg")).tokens == 7
    history = await chat.read()
    assert [turn.tokens for turn in history.turns] == [3, 4]
    assert [turn.tokens for turn in await chat.turns()] == [3, 4]
    assert (await chat.stat()).tokens == 7
    assert counted == history, "reads count nothing"


async def test_tokens_of_dropped_turns_are_not_counted(new_store: NewStore) -> None:
    chat = new_store(max_messages=2, count_tokens=lambda m: int(m["content"])).conversation("c")
    assert [(await chat.append(tokens)).tokens for tokens in ("1", "10", "100")] == [1, 11, 110]
    assert [turn.tokens for turn in (await chat.read(Window(turns=1))).turns] == [100]
    assert [turn.tokens for turn in (await chat.read()).turns] == [10, 100]
    await chat.trim(1)
    assert (await chat.stat()).tokens == 100
    assert [turn.tokens for turn in (await chat.read()).turns] == [100]
