"""When a load or a save fails: what is raised, what it carries, what can be done then."""

from __future__ import annotations

import asyncio
import logging
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.servers.proxy import Cut
from tests.store.talk import assistant, fill, raw, texts, user
from tests.waiting import wait_until_async
from turnstore import (
    AsyncStore,
    ClosedError,
    CorruptTurnError,
    FormatError,
    LimitError,
    SaveError,
    TurnConflictError,
    UnavailableError,
    WrongTypeError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from tests.servers.setups import Setup

pytestmark = pytest.mark.one_setup


def once(setup: Setup) -> Mapping[str, Any]:
    """Options for a client that sends each command once."""
    import redis.asyncio.retry  # noqa: PLC0415 - its name would hide that of the sync one

    kind: Any = Retry if setup.client == "sync" else redis.asyncio.retry.Retry
    return {"retry": kind(NoBackoff(), 0)}


async def failed_save(turn: Any) -> SaveError:
    with pytest.raises(SaveError) as found:
        await turn.save()
    return found.value


# One server of each kind: the faults are the connection's.
cutting = pytest.mark.servers("redis-8", "redis-url", "valkey")


@cutting
@pytest.mark.parametrize("cut", [Cut.BEFORE, Cut.REPLY_LOST, Cut.IN_REPLY])
async def test_a_failed_save_carries_the_reply_and_can_be_repeated(
    new_store: NewStore, proxy: Proxy, setup: Setup, cut: Cut
) -> None:
    chat = new_store(at=proxy, redis=once(setup)).conversation("c")
    await fill(chat, 1)
    async with chat.turn("q") as turn:
        turn.reply("a", answer="the whole completion")
        proxy.next(cut, command="EVALSHA")
        error = await failed_save(turn)
        assert error.reply == "the whole completion"
        assert error.turn.turn_id == turn.turn_id
        assert isinstance(error.__cause__, UnavailableError)
        assert error.__cause__.outcome_unknown
        saved = await turn.save()
        assert saved is not None
        assert saved.duplicate == (cut is not Cut.BEFORE)
    assert turn.saved == saved
    assert texts(await chat.read()) == ["1.1", "q", "a"]


@cutting
async def test_the_block_raises_it_on_a_clean_exit(
    new_store: NewStore, proxy: Proxy, setup: Setup
) -> None:
    chat = new_store(at=proxy, redis=once(setup)).conversation("c")
    await fill(chat, 1)
    turn = chat.turn("q")
    await turn.__aenter__()
    turn.reply("a")
    proxy.next(Cut.BEFORE, command="EVALSHA")
    with pytest.raises(SaveError, match="the model answered, but the turn was not saved") as found:
        await turn.__aexit__(None, None, None)
    again = pickle.loads(pickle.dumps(found.value))  # noqa: S301 - our own bytes
    assert (again.reply, again.turn) == ("a", None)
    await turn.save()
    assert texts(await chat.read()) == ["1.1", "q", "a"]


async def test_a_store_that_was_closed_meanwhile(store: AsyncStore) -> None:
    chat = store.conversation("c")
    turn = chat.turn("q")
    await turn.__aenter__()
    turn.reply("a")
    await store.close()
    error = await failed_save(turn)
    assert error.reply == "a"
    assert isinstance(error.__cause__, ClosedError)


async def test_a_turn_that_became_too_large(new_store: NewStore, server: Server) -> None:
    chat = new_store(max_turn_messages=2).conversation("c")
    async with chat.turn("q") as turn:
        turn.reply(["a", "b"])
        error = await failed_save(turn)
        assert error.reply == ["a", "b"]
        assert isinstance(error.__cause__, LimitError)
        turn._replies.clear()  # what a caller has no way to do: so that the block ends
    assert not server.raw.exists(chat.key)


@pytest.mark.parametrize("fault", [KeyError("x"), ZeroDivisionError()])
async def test_a_counter_that_fails(new_store: NewStore, fault: Exception) -> None:
    broken = True

    def count(_: Any) -> int:
        if broken:
            raise fault
        return 7

    chat = new_store(count_tokens=count).conversation("c")
    async with chat.turn("q") as turn:
        turn.reply("a")
        error = await failed_save(turn)
        assert error.reply == "a"
        assert error.__cause__ is fault
        broken = False
    assert turn.saved is not None
    assert turn.saved.tokens == 14


async def test_meta_that_became_no_json(store: AsyncStore) -> None:
    chat = store.conversation("c")
    async with chat.turn("q") as turn:
        turn.reply("a")
        turn.meta["usage"] = object()
        error = await failed_save(turn)
        assert (error.reply, type(error.__cause__)) == ("a", ValueError)
        turn.meta["usage"] = {"tokens": 1}
    assert (await chat.turns())[0].meta == {"usage": {"tokens": 1}}


async def test_a_key_of_another_type(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    async with chat.turn("q") as turn:
        turn.reply("a")
        server.raw.set(chat.key, "mine", px=60_000)
        error = await failed_save(turn)
        assert isinstance(error.__cause__, WrongTypeError)
        server.raw.delete(chat.key)
    assert texts(await chat.read()) == ["q", "a"]


# Conflicts


async def test_reject_raises_with_the_reply_and_writes_nothing(
    store: AsyncStore, server: Server
) -> None:
    chat = store.conversation("c")
    await fill(chat, 1)
    async with chat.turn("q", on_conflict="reject") as turn:
        await fill(chat, 1, start=2)
        turn.reply("a")
        before = raw(server, chat)
        error = await failed_save(turn)
        assert isinstance(error, TurnConflictError)
        assert (error.expected, error.actual, error.reply) == ("1-t1", "2-t2", "a")
        assert raw(server, chat) == before
        await chat.rewind()
    assert texts(await chat.read()) == ["1.1", "q", "a"], "once it is as it was read, it is saved"


async def test_reject_without_a_conflict_saves(store: AsyncStore) -> None:
    chat = store.conversation("c")
    for number in range(3):
        async with chat.turn(f"q{number}", on_conflict="reject") as turn:
            turn.reply("a")
    assert len(await chat.turns()) == 3


async def test_reject_of_two_that_began_together(store: AsyncStore) -> None:
    chat = store.conversation("c")
    turns = [chat.turn(f"q{n}", on_conflict="reject") for n in range(5)]
    for turn in turns:
        await turn.__aenter__()
        turn.reply("a")
    done = await asyncio.gather(*(turn.save() for turn in turns), return_exceptions=True)
    assert sum(isinstance(answer, TurnConflictError) for answer in done) == 4
    assert len(await chat.turns()) == 1


# Loads


@cutting
async def test_a_failed_load_is_an_error_by_default(
    new_store: NewStore, proxy: Proxy, setup: Setup
) -> None:
    chat = new_store(at=proxy, redis=once(setup)).conversation("c")
    await fill(chat, 1)
    proxy.next(Cut.BEFORE, command="LRANGE")
    with pytest.raises(UnavailableError):
        await chat.turn("q").__aenter__()
    assert texts(await chat.read()) == ["1.1"]


@cutting
async def test_on_without_memory_and_back_with_it(
    new_store: NewStore, proxy: Proxy, setup: Setup, caplog: pytest.LogCaptureFixture
) -> None:
    chat = new_store(at=proxy, redis=once(setup)).conversation("c")
    await fill(chat, 1)
    proxy.next(Cut.BEFORE, command="LRANGE")
    with caplog.at_level(logging.WARNING, "turnstore"):
        async with chat.turn("q", on_load_error="continue") as turn:
            assert texts(turn.messages) == ["q"]
            assert isinstance(turn.load_error, UnavailableError)
            turn.reply("a")
    assert "without memory" in caplog.text
    assert turn.saved is not None, "the server was back"
    assert texts(await chat.read()) == ["1.1", "q", "a"]


@cutting
async def test_on_without_memory_to_the_end(
    new_store: NewStore, proxy: Proxy, setup: Setup, caplog: pytest.LogCaptureFixture
) -> None:
    chat = new_store(at=proxy, redis=once(setup)).conversation("c")
    await fill(chat, 1)
    proxy.go_down()
    with caplog.at_level(logging.WARNING, "turnstore"):
        async with chat.turn("q", on_load_error="continue") as turn:
            turn.reply("a")
    assert turn.saved is None
    assert "was not saved" in caplog.text
    proxy.come_up()
    assert texts(await chat.read()) == ["1.1"]
    await turn.save()
    assert texts(await chat.read()) == ["1.1", "q", "a"]


@cutting
async def test_reject_without_memory_cannot_know(
    new_store: NewStore, proxy: Proxy, setup: Setup
) -> None:
    chat = new_store(at=proxy, redis=once(setup)).conversation("c")
    await fill(chat, 1)
    proxy.next(Cut.BEFORE, command="LRANGE")
    turn = chat.turn("q", on_load_error="continue", on_conflict="reject")
    await turn.__aenter__()
    turn.reply("a")
    error = await failed_save(turn)
    assert isinstance(error, TurnConflictError)
    assert error.reply == "a"
    assert texts(await chat.read()) == ["1.1"]


@pytest.mark.parametrize(
    "index, content, kind",
    [(0, b"hello", CorruptTurnError), (1, b"hello", CorruptTurnError), (1, b"[2,{}]", FormatError)],
)
async def test_what_cannot_be_read_is_not_written_over(
    store: AsyncStore, server: Server, index: int, content: bytes, kind: type[Exception]
) -> None:
    chat = store.conversation("c")
    await fill(chat, 2)
    server.raw.lset(chat.key, index, content)
    with pytest.raises(kind):
        await chat.turn("q").__aenter__()
    async with chat.turn("q", on_load_error="continue") as turn:
        assert texts(turn.messages) == ["q"]
        assert isinstance(turn.load_error, kind)
    assert server.raw.lindex(chat.key, index) == content


# Other formats


async def test_a_turn_of_another_format_is_not_sent_unasked(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await chat.append(
        [{"type": "message", "role": "user", "content": "q"}], format="openai.responses"
    )
    await chat.append(assistant("a"), format="my.own")
    with pytest.raises(FormatError, match=r"has the format openai.responses"):
        await chat.turn("q2").__aenter__()
    async with chat.turn("q2", on_other_format="text") as turn:
        assert turn.messages == [user("q"), assistant("a"), user("q2")]
        turn.reply("a2")
    assert [one.format for one in await chat.turns()] == [
        "openai.responses",
        "my.own",
        "openai.chat",
    ]


# Cancellation


@pytest.mark.servers("redis-8", "redis-url", "valkey", "cluster")
async def test_a_cancelled_save_is_whole(
    make_async_store: Callable[..., AsyncStore], new_store: NewStore, proxy: Proxy
) -> None:
    """The task is cancelled while the server's answer is held back."""
    chat = new_store(at=proxy).conversation("c")
    await fill(chat, 1)
    proxy.clear()
    proxy.next(Cut.NEVER, command="EVALSHA", delay_seconds=0.2)
    held = chat.turn("q")

    async def talk() -> None:
        async with held as turn:
            turn.reply("a")

    task = asyncio.create_task(talk())
    await wait_until_async(lambda: proxy.count("EVALSHA"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert held.saved is not None, "it was finished first"
    assert held.saved.messages == 3
    assert texts(await make_async_store().conversation("c").read()) == ["1.1", "q", "a"]
    assert texts(await chat.read()) == ["1.1", "q", "a"], "and the connection is as it was"


@pytest.mark.servers("redis-8", "redis-url", "valkey")
async def test_a_cancelled_save_that_fails_is_told_in_the_log(
    make_async_store: Callable[..., AsyncStore],
    new_store: NewStore,
    proxy: Proxy,
    setup: Setup,
    caplog: pytest.LogCaptureFixture,
) -> None:
    chat = new_store(at=proxy, redis=once(setup)).conversation("c")
    await fill(chat, 1)
    proxy.clear()
    proxy.next(Cut.REPLY_LOST, command="EVALSHA", delay_seconds=0.2)

    async def talk() -> None:
        async with chat.turn("q") as turn:
            turn.reply("a")

    task = asyncio.create_task(talk())
    await wait_until_async(lambda: proxy.count("EVALSHA"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError), caplog.at_level(logging.WARNING, "turnstore"):
        await task
    assert "cancelled during a save, which failed" in caplog.text
    assert texts(await make_async_store().conversation("c").read()) == ["1.1", "q", "a"]


@pytest.mark.servers("redis-8", "redis-url", "valkey", "fakeredis")
async def test_a_turn_cancelled_before_its_save_writes_nothing(
    make_async_store: Callable[..., AsyncStore], server: Server
) -> None:
    chat = make_async_store().conversation("c")
    asked = asyncio.Event()

    async def talk() -> None:
        async with chat.turn("q") as turn:
            turn.reply("a")
            asked.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(talk())
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not server.raw.exists(chat.key)
