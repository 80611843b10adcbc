"""A turn: the history before, the reply after, and nothing where it was not finished."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from openai.types.chat import ChatCompletion

from tests.store.talk import assistant, fill, pttl, raw, texts, user
from turnstore import Window

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.running import Server
    from turnstore import AsyncConversation, AsyncStore

# test_setups.py of the store looks at a turn with every protocol and decoding.
pytestmark = pytest.mark.one_setup


async def test_request_and_reply_are_one_turn(store: AsyncStore) -> None:
    chat = store.conversation("c")
    async with chat.turn("q", turn_id="one", meta={"a": 1}) as turn:
        assert turn.messages == [user("q")]
        assert turn.saved is None
        turn.reply("a")
        turn.meta["b"] = 2
    assert turn.saved is not None
    assert (turn.saved.revision, turn.saved.turns, turn.saved.messages) == ("1-one", 1, 2)
    (stored,) = await chat.turns()
    assert (stored.id, stored.messages, stored.meta) == (
        "one",
        [user("q"), assistant("a")],
        {"a": 1, "b": 2},
    )


async def test_the_history_goes_before(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await chat.append([user("q0"), assistant("a0")], turn_id="zero")
    async with chat.turn("q1") as turn:
        assert texts(turn.messages) == ["q0", "a0", "q1"]
        assert texts(turn.history) == ["q0", "a0"]
        assert (turn.revision, turn.history.revision) == ("1-zero", "1-zero")
        turn.reply("a1")
        assert texts(turn.messages) == ["q0", "a0", "q1", "a1"]
        assert texts(turn.new) == ["q1", "a1"]
    assert texts(await chat.read()) == ["q0", "a0", "q1", "a1"]


async def test_the_window_limits_what_is_sent_and_not_what_is_stored(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 10)
    async with chat.turn("q", window=Window(turns=2)) as turn:
        assert texts(turn.messages) == ["9.1", "10.1", "q"]
        assert turn.history.has_older
        turn.reply("a")
    assert len(await chat.turns()) == 11


async def test_without_a_reply_nothing_is_written(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    async with chat.turn("q") as turn:
        pass
    assert turn.saved is None
    assert not server.raw.exists(chat.key)


class Stop(BaseException):
    """Not an Exception, like KeyboardInterrupt."""


async def test_a_request_that_cannot_be_stored_does_not_begin(
    store: AsyncStore, server: Server
) -> None:
    chat = store.conversation("c")
    for bad, said in ((float("nan"), "nan"), (b"x", "bytes"), (10**4300, "4,300 digits")):
        with pytest.raises(ValueError, match=f"message 0: .content: .*{said}.*nothing was written"):
            async with chat.turn({"role": "user", "content": bad}) as turn:
                pytest.fail(f"a model was asked {turn.messages}")
    assert not server.raw.exists(chat.key)


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), Stop(), KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()],
    ids=repr,
)
async def test_after_an_exception_nothing_is_written(
    store: AsyncStore, server: Server, error: BaseException
) -> None:
    chat = store.conversation("c")
    await chat.append("before")
    server.raw.pexpire(chat.key, 5_000)
    before = raw(server, chat)
    turn = chat.turn("q")
    await turn.__aenter__()
    turn.reply("a")
    await turn.__aexit__(type(error), error, None)  # as the block does where it raises
    assert turn.saved is None
    assert raw(server, chat) == before
    assert pttl(server, chat) <= 5_000


async def test_an_exception_goes_on_through_the_block(store: AsyncStore) -> None:
    chat = store.conversation("c")

    async def fail() -> None:
        async with chat.turn("q") as turn:
            turn.reply("a")
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    assert await chat.read() == []


async def test_a_turn_that_was_left_open_writes_nothing(store: AsyncStore, server: Server) -> None:
    """An abandoned generator, a task that is thrown away: nothing is saved by a finaliser."""
    chat = store.conversation("c")
    turn = chat.turn("q")
    await turn.__aenter__()
    turn.reply("a")
    del turn
    assert not server.raw.exists(chat.key)


async def test_a_turn_may_be_saved_before_its_end(store: AsyncStore) -> None:
    chat = store.conversation("c")
    async with chat.turn("q") as turn:
        turn.reply("a")
        saved = await turn.save()
        assert texts(await chat.read()) == ["q", "a"]
        assert await turn.save() == saved == turn.saved
    assert turn.saved == saved
    assert len(await chat.turns()) == 1


async def test_a_reply_after_the_save_is_refused_rather_than_lost(store: AsyncStore) -> None:
    chat = store.conversation("c")
    async with chat.turn("q") as turn:
        turn.reply("a")
        await turn.save()
        with pytest.raises(RuntimeError, match="saved already"):
            turn.reply("b")


async def test_a_save_without_a_reply_is_refused(store: AsyncStore) -> None:
    chat = store.conversation("c")
    async with chat.turn("q") as turn:
        with pytest.raises(RuntimeError, match="no reply yet"):
            await turn.save()
    assert await chat.read() == []


async def test_the_save_renews_the_time_to_live(new_store: NewStore, server: Server) -> None:
    chat = new_store(ttl=timedelta(hours=1)).conversation("c")
    await chat.append("a")
    server.raw.pexpire(chat.key, 5_000)
    async with chat.turn("q") as turn:
        assert pttl(server, chat) <= 5_000
        turn.reply("a")
    assert pttl(server, chat) > 3_500_000


# What may be a reply

COMPLETION = ChatCompletion.model_validate(
    {
        "id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "a"}}
        ],
    }
)  # fmt: skip


@pytest.mark.parametrize(
    "reply",
    [
        "a",
        assistant("a"),
        [assistant("a")],
        COMPLETION,
        COMPLETION.choices[0].message,
        ("a",),
    ],
    ids=["text", "dict", "list", "completion", "message", "tuple"],
)
async def test_what_may_be_a_reply(store: AsyncStore, reply: Any) -> None:
    chat = store.conversation("c")
    async with chat.turn("q") as turn:
        turn.reply(reply)
    assert await chat.read() == [user("q"), assistant("a")]


@pytest.mark.parametrize(
    "reply", [None, 1, b"a", {}, {"content": "a"}, [None], {"role": "assistant", "content": {1}}]
)
async def test_what_is_no_reply_is_not_added(store: AsyncStore, reply: Any) -> None:
    chat = store.conversation("c")
    async with chat.turn("q") as turn:
        with pytest.raises((TypeError, ValueError)):
            turn.reply(reply)
        assert turn.new == [user("q")]
        turn.reply("a")
    assert texts(await chat.read()) == ["q", "a"]


async def test_several_replies_are_one_turn(store: AsyncStore) -> None:
    chat = store.conversation("c")
    async with chat.turn("q") as turn:
        turn.reply("a")
        turn.reply([user("and?"), assistant("b")])
    assert [len(stored.messages) for stored in await chat.turns()] == [4]


async def test_what_the_caller_does_to_the_list_changes_nothing(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await chat.append("before")
    async with chat.turn("q") as turn:
        turn.messages.clear()
        turn.new.append(user("sneaked in"))
        turn.reply("a")
    assert texts(await chat.read()) == ["before", "q", "a"]


async def test_instructions_are_sent_and_not_stored(store: AsyncStore) -> None:
    chat = store.conversation("c")
    for number in range(3):
        rules = [{"role": "system", "content": "s"}, {"role": "developer", "content": "d"}]
        async with chat.turn([*rules, user(f"q{number}")]) as turn:
            assert texts(turn.messages)[:2] == ["s", "d"]
            turn.reply("a")
    assert set(texts(await chat.read())) == {"q0", "q1", "q2", "a"}


async def test_the_same_turn_id_stores_it_once(store: AsyncStore) -> None:
    chat = store.conversation("c")
    for expected in (False, True):
        async with chat.turn("q", turn_id="job") as turn:
            turn.reply("a")
        assert turn.saved is not None
        assert turn.saved.duplicate is expected
    assert texts(await chat.read()) == ["q", "a"]


async def test_turns_at_once_are_both_kept(store: AsyncStore) -> None:
    chat = store.conversation("c")
    async with chat.turn("q1") as one, chat.turn("q2") as two:
        two.reply("a2")
        one.reply("a1")
    assert texts(await chat.read()) == ["q2", "a2", "q1", "a1"], "in the order they finished"


async def test_many_turns_of_one_handle(store: AsyncStore) -> None:
    chat: AsyncConversation = store.conversation("c")

    async def talk(number: int) -> None:
        async with chat.turn(f"q{number}") as turn:
            turn.reply(f"a{number}")

    await asyncio.gather(*map(talk, range(20)))
    said = texts(await chat.read())
    assert len(said) == 40
    assert all(a == q.replace("q", "a") for q, a in zip(said[::2], said[1::2], strict=True))
