from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections import Counter
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.facts.meaning.kit import new, note
from tests.servers.facade import inner
from tests.waiting import wait_until, wait_until_async
from turnstore.context import Context
from turnstore.errors import TurnstoreError
from turnstore.facts._learning.cursors import read_cursor
from turnstore.facts._learning.runners import AsyncRunner, Runner
from turnstore.facts._learning.schedule import Pending, Trigger, due

if TYPE_CHECKING:
    from tests.facts.meaning.kit import Kit
    from tests.servers.running import Server
    from turnstore._place import Place

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis-7", "redis-8", "valkey")]

HOUR = timedelta(hours=1)


def quiet(_: str) -> str:
    return '{"facts": []}'


async def test_a_turn_is_read_in_the_background_when_enough_wait(kit: Kit) -> None:
    async with kit.extraction(every=3, idle=HOUR) as extraction:
        kit.model.answers = [[new("Ada sails.", 1, 2, 3)]]
        for number in range(3):
            assert kit.model.prompts == []
            await kit.say(f"I sail {number}.")
            assert await note(extraction, kit.chat)
        await wait_until_async(lambda: extraction.counts["extracted"])
        assert await kit.texts() == ["Ada sails."]
        assert extraction.counts == {"extracted": 1}


async def test_a_context_tells_it_of_each_turn(kit: Kit) -> None:
    async with kit.extraction(every=2, idle=HOUR) as extraction:
        context = Context(after=[inner(extraction)])
        kit.model.answers = [[new("Ada sails.", 1, 2)]]
        for _ in range(2):
            async with kit.chat.turn("I sail.", context=context) as turn:
                turn.reply("Nice.")
        await wait_until_async(lambda: extraction.counts["extracted"])
        assert await kit.texts() == ["Ada sails."]
        assert context.counts == {}


async def test_a_turn_of_nobody_is_told_in_vain(kit: Kit, caplog: pytest.LogCaptureFixture) -> None:
    async with kit.extraction(every=1) as extraction:
        context = Context(after=[inner(extraction)])
        async with kit.store.conversation("c1").turn("I sail.", context=context) as turn:
            turn.reply("Nice.")
        assert "the conversation has none" in caplog.text
        assert context.counts == {"after": 1}


async def test_turns_of_other_processes_count_too(kit: Kit) -> None:
    async with kit.extraction(every=3, idle=HOUR) as extraction:
        await kit.say("I sail.", "I bake.", "I paint.")  # of which only the last is noted here
        kit.model.answers = [[]]
        await note(extraction, kit.chat)
        await wait_until_async(lambda: extraction.counts["extracted"])
        assert "I sail." in kit.model.seen


async def test_a_turn_is_read_when_the_conversation_is_idle(kit: Kit) -> None:
    async with kit.extraction(every=100, idle=timedelta(milliseconds=200)) as extraction:
        kit.model.answers = [[new("Ada sails.")]]
        await kit.say("I sail.")
        await note(extraction, kit.chat)
        await wait_until_async(lambda: extraction.counts["extracted"])
        assert await kit.texts() == ["Ada sails."]


async def test_before_that_it_waits_and_a_flush_reads_it(kit: Kit) -> None:
    async with kit.extraction(every=100, idle=HOUR) as extraction:
        await kit.say("I sail.")
        await note(extraction, kit.chat)
        await kit.say("I bake.")
        await note(extraction, kit.chat)
        kit.model.answers = [[new("Ada sails."), new("Ada bakes.", 2)]]
        done = await extraction.flush(timeout=30)
        assert (done.turns, len(done.new)) == (2, 2)
        assert (await extraction.flush(timeout=30)).turns == 0
        assert await kit.texts() == ["Ada bakes.", "Ada sails."]


async def test_what_waits_when_it_is_closed_is_not_lost(kit: Kit) -> None:
    async with kit.extraction(every=100, idle=HOUR) as extraction:
        await kit.say("I sail.")
        await note(extraction, kit.chat)
    assert not await note(extraction, kit.chat)
    assert kit.model.prompts == []
    kit.model.answers = [[new("Ada sails.")]]
    assert (await kit.extraction().run("ada")).turns == 1


async def test_a_turn_does_not_wait_for_the_model(kit: Kit) -> None:
    go_on = threading.Event()
    asked = threading.Event()

    def model(_: str) -> str:
        asked.set()
        assert go_on.wait(60)
        return json.dumps([new("Ada sails.")])

    kit.model = model  # type: ignore[assignment]  # as said
    async with kit.extraction(every=1, deadline=60.0) as extraction:
        await kit.say("I sail.")
        await note(extraction, kit.chat)
        await wait_until_async(asked.is_set)
        await kit.say("And I bake.")  # while the model thinks
        go_on.set()
        await wait_until_async(lambda: extraction.counts["extracted"])


async def test_what_fails_is_logged_counted_and_tried_again_later(
    kit: Kit, caplog: pytest.LogCaptureFixture
) -> None:
    async with kit.extraction(every=1) as extraction:
        kit.model.answers = [ConnectionError("down"), "nonsense", "nonsense"]
        with caplog.at_level(logging.WARNING, "turnstore"):
            await kit.say("I sail.")
            await note(extraction, kit.chat)
            await wait_until_async(lambda: extraction.counts["failed"])
        assert "tried again later (ConnectionError: down)" in caplog.text
        assert "I sail" not in caplog.text
        # It is not asked again at once, though more is said.
        await kit.say("I bake.")
        await note(extraction, kit.chat)
        with pytest.raises(TurnstoreError, match="not JSON"):
            await extraction.flush(timeout=30)
        assert extraction.counts == {"failed": 1}
        health = await kit.facts.health("ada")
        assert (health.lag, health.dead_letters) == (2, 1)
        kit.model.answers = [[new("Ada sails.")], [new("Ada bakes.")]]
        assert (await extraction.extract(kit.chat)).turns == 2  # by hand: at once


async def test_an_answer_of_no_use_is_counted(kit: Kit) -> None:
    async with kit.extraction(every=1) as extraction:
        kit.model.answers = ["nonsense", "nonsense"]
        await kit.say("I sail.")
        await note(extraction, kit.chat)
        await wait_until_async(lambda: extraction.counts["unusable"])
        assert len(await extraction.dead_letters("ada")) == 1


async def test_beyond_the_queue_a_conversation_is_noted_and_read_after_another_one(
    kit: Kit, caplog: pytest.LogCaptureFixture
) -> None:
    go_on = threading.Event()
    asked = threading.Event()

    def model(_: str) -> str:
        asked.set()
        assert go_on.wait(60)
        return "[]"

    kit.model = model  # type: ignore[assignment]  # as said
    chats = [kit.store.conversation(f"c{number}", owner="ada") for number in range(3)]
    for chat in chats:
        await chat.append("I sail.")
    async with kit.extraction(every=1, queue=1, deadline=60.0) as extraction:
        assert await note(extraction, chats[0])
        await wait_until_async(asked.is_set)  # it is at work, and does not wait any more
        assert await note(extraction, chats[1])
        await kit.lag_is(2)
        assert await note(extraction, chats[2])
        await wait_until_async(lambda: extraction.counts["dropped"])
        assert "too many conversations wait" in caplog.text
        assert (await kit.facts.health("ada")).lag == 3
        go_on.set()
        await wait_until_async(lambda: extraction.counts["extracted"] == 3)
    assert (await kit.extraction().run("ada")).turns == 0


async def test_while_another_one_reads_it_waits(kit: Kit) -> None:
    go_on = threading.Event()
    asked = threading.Event()

    def model(prompt: str) -> str:
        asked.set()
        assert go_on.wait(60)
        return quiet(prompt)

    kit.model = model  # type: ignore[assignment]  # as said
    await kit.say("I sail.")
    async with (
        kit.extraction(every=1, deadline=60.0) as first,
        kit.extraction(every=1, deadline=60.0) as second,
    ):
        await note(first, kit.chat)
        await wait_until_async(asked.is_set)
        await note(second, kit.chat)
        await wait_until_async(lambda: second.counts["busy"])
        go_on.set()
        await wait_until_async(lambda: first.counts["extracted"])
        assert (await second.flush(timeout=30)).turns == 0


async def test_a_conversation_without_an_owner_cannot_be_noted(kit: Kit) -> None:
    async with kit.extraction() as extraction:
        with pytest.raises(ValueError, match="owner"):
            await note(extraction, kit.store.conversation("c1"))


async def test_it_ends_when_nothing_waits_and_begins_again(kit: Kit) -> None:
    loop = asyncio.get_running_loop()
    was_over: list[bool] = []

    def is_over() -> bool:
        tasks = [getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks(loop)]
        threads = [thread.name for thread in threading.enumerate()]
        return AsyncRunner._run.__qualname__ not in tasks and "turnstore-extraction" not in threads

    def answer(_: str) -> str:
        was_over.append(is_over())
        return '{"facts": []}'

    async with kit.extraction(every=1) as extraction:
        for number in range(1, 4):
            kit.model.answers = [answer]
            await kit.say(f"I sail {number}.")
            await note(extraction, kit.chat)
            await wait_until_async(partial(extraction.counts.__ge__, Counter(extracted=number)))
            await wait_until_async(is_over)
    assert was_over == [False] * 3, "a thread or a task is seen while it works"


async def test_turns_that_wait_are_seen_from_outside_before_they_are_read(kit: Kit) -> None:
    async with kit.extraction(every=100, idle=HOUR) as extraction:
        await kit.say("I sail.", "I bake.")
        assert (await kit.facts.health("ada")).lag == 0  # nobody is to read them
        await note(extraction, kit.chat)
        await kit.lag_is(2)


async def test_after_each_failure_it_is_tried_again_later(kit: Kit, server: Server) -> None:
    await kit.say("I sail.")
    facts = inner(kit.facts)
    owner = facts._base.ground.owner("ada")
    place = inner(kit.chat)._place
    trigger = Trigger(every=1, idle=0)

    for expected in (30, 60, 120):
        kit.model.answers = [ConnectionError("down")]
        with pytest.raises(ConnectionError):
            await kit.extraction().extract(kit.chat)
        assert expected / 2 < await kit.run(due(facts._base, place, trigger)) <= expected
        _, cursor = await kit.run(read_cursor(owner, place.keys.member))
        earlier = cursor._replace(tried_ms=cursor.tried_ms - expected * 1000)
        server.raw.hset(owner.keys.cursors, place.keys.member, str(earlier))
        assert await kit.run(due(facts._base, place, trigger)) == 0
    kit.model.answers = [[]]
    await kit.extraction().extract(kit.chat)
    assert await kit.run(due(facts._base, place, trigger)) is None


HOURS_OFF = pytest.mark.parametrize("hours", [-2, 2], ids=["behind", "ahead"])


def set_clock(monkeypatch: pytest.MonkeyPatch, hours: float) -> None:
    """Let this process have another time than the server."""
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + hours * 3600)


@HOURS_OFF
async def test_the_clock_of_the_process_does_not_matter(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, hours: float
) -> None:
    set_clock(monkeypatch, hours)
    async with kit.extraction(every=100, idle=timedelta(milliseconds=200)) as extraction:
        kit.model.answers = [[new("Ada sails.")]]
        await kit.say("I sail.")
        await note(extraction, kit.chat)
        await wait_until_async(lambda: extraction.counts["extracted"])
    assert await kit.texts() == ["Ada sails."]


@HOURS_OFF
async def test_what_waits_goes_by_the_clock_of_the_server(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, hours: float
) -> None:
    set_clock(monkeypatch, hours)
    base, place = inner(kit.facts)._base, inner(kit.chat)._place
    trigger = Trigger(every=100, idle=3600)
    await kit.say("I sail.")
    assert 1800 < await kit.run(due(base, place, trigger)) <= 3600
    kit.model.answers = [ConnectionError("down")]
    with pytest.raises(ConnectionError):
        await kit.extraction().extract(kit.chat)
    assert 15 < await kit.run(due(base, place, trigger)) <= 30


async def test_a_clock_that_was_set_back_holds_nothing_up(kit: Kit, server: Server) -> None:
    base, place = inner(kit.facts)._base, inner(kit.chat)._place
    await kit.say("I sail.")
    trigger = Trigger(every=100, idle=60)
    assert 30 < await kit.run(due(base, place, trigger)) <= 60
    (element,) = server.raw.lrange(place.keys.turns, 1, 1)
    row = json.loads(element)
    row[5] += 7_200_000  # when it was appended, the clock was two hours ahead
    server.raw.lset(place.keys.turns, 1, json.dumps(row, separators=(",", ":")))
    assert await kit.run(due(base, place, trigger)) == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_is_ended_from_within_does_not_stop_the_others() -> None:
    seen: list[str] = []
    ended = threading.Event()

    def work(place: Place) -> None:
        seen.append(str(place.keys))
        if str(place.keys) == "a":
            ended.set()
            raise SystemExit

    runner = Runner(work, 10)
    assert runner.put(place("a"))
    assert ended.wait(30)
    wait_until(lambda: runner.take_all(30) == [])
    assert runner.put(place("b"))
    wait_until(lambda: seen == ["a", "b"])
    runner.close(30)
    assert not runner.put(place("c"))


def test_what_is_to_be_finished_is_done_at_a_close_whatever_its_time() -> None:
    seen: list[str] = []
    go_on, begun = threading.Event(), threading.Event()

    def work(place: Place) -> float:
        begun.set()
        assert go_on.wait(60)
        seen.append(str(place.keys))
        return 3600.0  # which is not waited for

    runner = Runner(work, 10, finishes=True)
    assert runner.put(place("a"))
    assert begun.wait(60)
    for name in "bc":
        assert runner.put(place(name), 3600.0)
    runner.end()
    assert not runner.put(place("d"))
    go_on.set()
    runner.close(60)
    assert seen == ["a", "b", "c"]


# The queue alone


class Where:
    def __init__(self, name: str) -> None:
        self.keys = name


def place(name: str) -> Place:
    return Where(name)  # type: ignore[return-value]  # all that is looked at


def test_the_sooner_time_of_a_conversation_counts() -> None:
    pending = Pending(2)
    assert pending.put(place("a"), 10)
    assert pending.put(place("a"), 5)
    assert pending.put(place("a"), 20)
    assert len(pending) == 1
    assert pending.take(4) == (None, 1)
    found, _ = pending.take(5)
    assert found is not None
    assert str(found.keys) == "a"
    assert pending.take(100) == (None, None)


def test_no_more_wait_than_there_is_room_for() -> None:
    pending = Pending(2)
    assert [pending.put(place(name), time.monotonic()) for name in "abca"] == [
        True,
        True,
        False,
        True,
    ]
    assert {str(one.keys) for one in pending.take_all()} == {"a", "b"}
    assert len(pending) == 0
