"""Summaries where models fail, workers meet, turns come meanwhile, and answers are lost."""

from __future__ import annotations

import asyncio
import logging
import threading
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
    part,
    say,
    stored,
)
from tests.failure.helping import load_scripts
from tests.servers.proxy import Cut
from tests.waiting import wait_until_async
from turnstore import ServerError, Window

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from tests.servers.setups import Setup
    from turnstore import AsyncConversation, AsyncStore
    from turnstore.context import Context

pytestmark = pytest.mark.one_setup


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def chat(store: AsyncStore) -> AsyncConversation:
    return store.conversation("c")


class Held(Echo):
    """A model that takes its time: it answers when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()
        self.release = threading.Event()

    def __call__(self, prompt: str) -> str:
        answer = super().__call__(prompt)
        self.asked.set()
        assert self.release.wait(30)
        return answer

    async def is_asked(self) -> None:
        await wait_until_async(self.asked.is_set)


# Models that fail


def raises(_: str) -> str:
    raise ConnectionError("the model is away")


@pytest.mark.parametrize(
    "model, why",
    [
        (raises, "the model is away"),
        (lambda _: "", "empty"),
        (lambda _: " \n", "empty"),
        (lambda _: None, "not text"),
        (lambda _: 7, "not text"),
        (lambda _: ["text"], "not text"),
    ],
    ids=["raises", "empty", "blank", "None", "7", "list"],
)
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_model_that_fails_changes_nothing(  # noqa: PLR0913, PLR0917 - fixtures
    chat: AsyncConversation,
    server: Server,
    echo: Echo,
    caplog: pytest.LogCaptureFixture,
    model: Callable[[str], Any],
    why: str,
    when: str,
) -> None:
    await fill(chat, 1, 6)
    await chat.summarize(echoing(echo))
    await fill(chat, 7, 7)
    context = echoing(model, when=when)
    sent = await say(chat, 8, context)
    assert carried(sent) == lines(1, 2), "what there was"
    assert as_lines(sent) == [*lines(4, 7), "user: q8"]
    assert stored(server, chat) == (2, lines(1, 2))
    assert context.counts == {"summary": 1}
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("turnstore", logging.WARNING)
    assert why in record.getMessage()
    assert lease(server, chat) == -2, "the next one may try at once"
    assert carried(await say(chat, 9, echoing(echo))) == lines(1, 4)


async def test_by_hand_the_failure_is_raised(chat: AsyncConversation, server: Server) -> None:
    await fill(chat, 1, 6)
    context = echoing(raises)
    with pytest.raises(ConnectionError, match="the model is away"):
        await chat.summarize(context)
    assert (stored(server, chat), lease(server, chat)) == (None, -2)
    with pytest.raises(ValueError, match="empty"):
        await chat.summarize(echoing(lambda _: ""))
    assert (stored(server, chat), lease(server, chat)) == (None, -2)


async def test_a_model_that_is_late_changes_nothing(
    chat: AsyncConversation, server: Server
) -> None:
    await fill(chat, 1, 6)
    held = Held()
    context = echoing(held, deadline=0.05)
    try:
        assert as_lines(await say(chat, 7, context)) == [*lines(3, 6), "user: q7"]
    finally:
        held.release.set()
    assert context.counts == {"summary": 1}
    assert (stored(server, chat), lease(server, chat)) == (None, -2)


async def test_a_failure_after_many_turns_keeps_what_was_folded(
    chat: AsyncConversation, server: Server, echo: Echo
) -> None:
    def model(prompt: str) -> str:
        if len(echo.prompts) == 2:
            raise ConnectionError
        return echo(prompt)

    await fill(chat, 1, 134)
    assert carried(await say(chat, 135, echoing(model))) == lines(1, 100)
    assert stored(server, chat) == (100, lines(1, 100))
    assert lease(server, chat) == -2
    assert carried(await say(chat, 136, echoing(echo))) == lines(1, 131)


async def test_a_sync_store_says_that_it_cannot_wait(chat: AsyncConversation, setup: Setup) -> None:
    async def model(prompt: str) -> str:
        return prompt.removeprefix("(none)\n")

    await fill(chat, 1, 6)
    if setup.client == "async":
        assert carried(await say(chat, 7, echoing(model))) == lines(1, 2)
    else:
        with pytest.raises(TypeError, match="use AsyncStore"):
            await say(chat, 7, echoing(model))


def never_answering() -> tuple[asyncio.Event, Callable[[str], Any]]:
    """Give a model that says when it is asked, and then nothing more."""
    asked = asyncio.Event()

    async def model(_: str) -> str:
        asked.set()
        return await asyncio.Future()

    return asked, model


async def test_a_cancelled_turn_changes_nothing_and_leaves_the_lease_to_others(
    make_async_store: Callable[..., AsyncStore], server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    chat = make_async_store().conversation("c")
    await fill(chat, 1, 6)
    asked, model = never_answering()
    context = echoing(model)
    task = asyncio.create_task(say(chat, 7, context))
    await asked.wait()
    assert lease(server, chat) > 0
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()
    assert (stored(server, chat), lease(server, chat)) == (None, -2)
    assert (await chat.stat()).turns == 6
    assert context.counts == {"summary": 1}
    (record,) = caplog.records
    assert "summary failed (CancelledError" in record.getMessage()
    other = make_async_store().conversation("c")
    assert carried(await say(other, 7, echoing(Echo()))) == lines(1, 2)


async def test_what_is_cancelled_again_while_it_gives_back_does_so_all_the_same(
    make_async_store: Callable[..., AsyncStore], server: Server
) -> None:
    chat = make_async_store().conversation("c")
    await fill(chat, 1, 6)
    asked, model = never_answering()
    task = asyncio.create_task(say(chat, 7, echoing(model)))
    await asked.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert lease(server, chat) == -2


async def test_a_model_that_was_cancelled_itself_is_one_that_failed(
    make_async_store: Callable[..., AsyncStore], server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Its HTTP client gave up a task of its own; nobody wants the turn to end."""
    chat = make_async_store().conversation("c")
    await fill(chat, 1, 6)

    async def model(_: str) -> str:
        raise asyncio.CancelledError

    context = echoing(model)
    assert as_lines(await say(chat, 7, context)) == [*lines(3, 6), "user: q7"]
    assert (context.counts, lease(server, chat)) == ({"summary": 1}, -2)
    assert "was cancelled" in caplog.text
    with pytest.raises(RuntimeError, match="model was cancelled"):
        await chat.summarize(context)
    assert (await chat.stat()).turns == 7


@pytest.mark.servers("redis", "valkey")
async def test_where_redis_fails_the_turn_goes_on_with_what_there_was(
    new_store: NewStore, proxy: Proxy, server: Server, echo: Echo
) -> None:
    chat = new_store(at=proxy).conversation("c")
    load_scripts(server, chat.key)
    await fill(chat, 1, 6)
    await chat.summarize(echoing(echo))
    await fill(chat, 7, 7)
    context = echoing(echo)
    proxy.next(Cut.BEFORE, command="EVALSHA", times=20)
    turn = chat.turn("q8", context=context)
    await turn.__aenter__()
    proxy.clear()
    assert carried(turn.messages) == lines(1, 2), "not even the lease could be had"
    turn.reply("a8")
    await turn.save()
    assert context.counts == {"summary": 1}
    # A store that needed no summary yet reads it by itself.
    chat = new_store(at=proxy).conversation("c")
    proxy.next(Cut.BEFORE, command="GET", times=20)
    async with chat.turn("q9", context=context) as turn:
        proxy.clear()
        assert as_lines(turn.messages)[0] == "user: q5"
    assert context.counts["summary"] >= 2
    proxy.next(Cut.BEFORE, command="EVALSHA", times=20)
    with pytest.raises(ServerError):
        await chat.summarize(context)
    proxy.clear()


async def test_a_summary_that_is_none_of_ours_leaves_the_turn_alone(
    chat: AsyncConversation, server: Server, echo: Echo, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where it is read together with the turns."""
    await fill(chat, 1, 6)
    await chat.summarize(echoing(echo))
    context = echoing(echo, when="manual")
    assert carried(await say(chat, 7, context)) == lines(1, 2)
    server.raw.delete(part(chat, "summary"))
    server.raw.rpush(part(chat, "summary"), "theirs")
    server.raw.pexpire(part(chat, "summary"), 60_000)
    sent = await say(chat, 8, context)
    assert (carried(sent), as_lines(sent)) == ([], [*lines(4, 7), "user: q8"])
    assert context.counts == {"summary": 1}
    assert "goes on without it" in caplog.text


# Workers that meet


async def test_two_workers_never_ask_for_the_same_turns(
    chat: AsyncConversation, store: AsyncStore, server: Server
) -> None:
    await fill(chat, 1, 6)
    held, second = Held(), Echo()
    first = asyncio.create_task(say(chat, 7, echoing(held)))
    await held.is_asked()
    others = [store.conversation("c") for _ in range(4)]
    met = await asyncio.gather(*(say(other, 7, echoing(second)) for other in others))
    assert second.prompts == [], "they go on with the window"
    assert all(carried(sent) == [] for sent in met)
    held.release.set()
    assert carried(await first) == lines(1, 2)
    assert len(held.prompts) == 1
    assert (stored(server, chat), lease(server, chat)) == ((2, lines(1, 2)), -2)


async def test_many_workers_at_once_fold_each_turn_once(
    chat: AsyncConversation, store: AsyncStore, server: Server, echo: Echo
) -> None:
    await fill(chat, 1, 4)
    for number in range(5, 65, 6):
        workers = [store.conversation("c") for _ in range(6)]
        numbers = range(number, number + 6)
        turns = [say(w, n, echoing(echo)) for w, n in zip(workers, numbers, strict=True)]
        await asyncio.gather(*turns)
    await chat.summarize(echoing(echo))
    held = [m["content"] for m in await chat.read(Window())]
    turn, told = stored(server, chat) or (0, [])
    assert turn == 60
    assert [line.split(": ")[1] for line in told] == held[:120]


async def test_of_two_that_fold_the_same_turns_one_is_taken(
    chat: AsyncConversation, store: AsyncStore, server: Server
) -> None:
    """The first one's lease ran out: its worker was away for too long."""
    await fill(chat, 1, 6)
    held = Held()
    first = asyncio.create_task(say(chat, 7, echoing(held)))
    await held.is_asked()
    server.raw.delete(part(chat, "lease"))
    sent = await say(store.conversation("c"), 7, echoing(lambda _: "the second"))
    assert carried(sent) == ["the second"]
    held.release.set()
    await first
    assert stored(server, chat) == (2, ["the second"])


async def test_one_who_comes_late_leaves_the_lease_of_another(
    chat: AsyncConversation, server: Server
) -> None:
    await fill(chat, 1, 6)
    held = Held()
    first = asyncio.create_task(say(chat, 7, echoing(held)))
    await held.is_asked()
    server.raw.set(part(chat, "lease"), "somebody else", px=60_000)
    held.release.set()
    await first
    assert server.raw.get(part(chat, "lease")) == b"somebody else"


async def test_the_lease_is_renewed_while_more_turns_follow(
    chat: AsyncConversation, server: Server
) -> None:
    left: list[int] = []

    def model(prompt: str) -> str:
        left.append(lease(server, chat))
        server.raw.pexpire(part(chat, "lease"), 10_000)
        return prompt[:10]

    await fill(chat, 1, 134)
    await say(chat, 135, echoing(model))
    assert [round(ms / 5_000) for ms in left] == [13, 13, 13]


# Turns that come, go and are replaced meanwhile


Meanwhile = Any


async def _meanwhile(chat: AsyncConversation, context: Context, held: Held, act: Meanwhile) -> Any:
    folding = asyncio.create_task(chat.summarize(context))
    await held.is_asked()
    await act()
    held.release.set()
    return await folding


async def test_turns_appended_meanwhile_are_untouched(
    chat: AsyncConversation, server: Server
) -> None:
    """M1: 229 of 231 messages appended during a compaction were destroyed."""
    await fill(chat, 1, 6)
    held = Held()
    await _meanwhile(chat, echoing(held), held, lambda: fill(chat, 7, 120))
    told = [f"{m['role']}: {m['content']}" for m in await chat.read(Window())]
    assert told == lines(1, 120)
    assert stored(server, chat) == (2, lines(1, 2))
    assert carried(await say(chat, 121, echoing(Echo()))) == lines(1, 116)


@pytest.mark.parametrize("left", [0, 1, 2, 3], ids=lambda left: f"{left} left")
async def test_a_rewind_meanwhile_below_what_is_folded_makes_it_void(
    chat: AsyncConversation, server: Server, left: int
) -> None:
    await fill(chat, 1, 6)
    held = Held()

    async def act() -> None:
        await chat.rewind(6 - left)
        for number in range(left + 1, 9):
            await chat.append(f"other {number}")

    await _meanwhile(chat, echoing(held), held, act)
    if left < 2:
        assert stored(server, chat) is None
    else:
        assert stored(server, chat) == (2, lines(1, 2)), "it stands"
    assert lease(server, chat) == -2


async def test_a_conversation_that_ends_meanwhile_leaves_no_summary(
    chat: AsyncConversation, server: Server
) -> None:
    for act in (chat.clear, lambda: asyncio.to_thread(server.raw.delete, chat.key)):
        await fill(chat, 1, 6)
        held = Held()
        await _meanwhile(chat, echoing(held), held, act)
        assert stored(server, chat) is None


async def test_turns_trimmed_meanwhile_are_folded_all_the_same(
    chat: AsyncConversation, server: Server
) -> None:
    await fill(chat, 1, 6)
    held = Held()
    await _meanwhile(chat, echoing(held), held, lambda: chat.trim(turns=1))
    assert stored(server, chat) == (2, lines(1, 2))


# Answers that are lost


@pytest.mark.parametrize("cut", [cut for cut in Cut if cut is not Cut.NEVER], ids=str)
@pytest.mark.parametrize("step", [0, 1, 2], ids=["begin", "page", "fold"])
async def test_a_lost_answer_changes_nothing(  # noqa: PLR0913, PLR0917 - fixtures
    new_store: NewStore, proxy: Proxy, server: Server, echo: Echo, cut: Cut, step: int
) -> None:
    chat = new_store(at=proxy).conversation("c")
    load_scripts(server, chat.key)
    await fill(chat, 1, 6)
    for _ in range(step):
        proxy.next(Cut.NEVER, command="EVALSHA")
    proxy.next(cut, command="EVALSHA")
    proxy.next(cut, command="GET")
    sent = await say(chat, 7, echoing(echo))
    assert carried(sent) == lines(1, 2)
    assert len(echo.prompts) == 1
    assert (stored(server, chat), lease(server, chat)) == ((2, lines(1, 2)), -2)
