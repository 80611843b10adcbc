"""What happens seldom: odd data, other hands, long turns."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.meaning.kit import new
from tests.servers.facade import inner
from tests.waiting import wait_until_async
from turnstore import Appended
from turnstore._calls import Ask
from turnstore._element import Element
from turnstore.context import SavedTurn
from turnstore.errors import ConflictError, CorruptTurnError
from turnstore.facts import Block, _aextraction
from turnstore.facts import extraction as _extraction
from turnstore.facts._learning.cursors import START, Cursor
from turnstore.facts._learning.telling import tell
from turnstore.facts._scoring.repetition import is_repetition
from turnstore.facts._storing.record import stamp
from turnstore.facts._tools.blocks import change

if TYPE_CHECKING:
    from tests.facts.meaning.kit import Kit
    from tests.servers.running import Server
    from turnstore import Store

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis-7", "redis", "valkey", first=True)]


def saved(kit: Kit) -> SavedTurn:
    place = inner(kit.chat)._place
    done = Appended("1-t1", duplicate=False, turns=1, messages=1, tokens=0, dropped=0)
    return SavedTurn(place.identifier, place.owner, "t1", [], "openai.chat", done)


def keys(kit: Kit) -> Any:
    return inner(kit.facts)._base.ground.owner("ada").keys


async def test_a_cursor_that_is_not_ours_is_left_as_it_is(kit: Kit, server: Server) -> None:
    await kit.say("I sail.")
    member = inner(kit.chat)._place.keys.member
    server.raw.hset(keys(kit).cursors, member, "somebody's")
    server.raw.expire(keys(kit).cursors, 60)
    with pytest.raises(CorruptTurnError, match="cursor"):
        await kit.extraction().extract(kit.chat)
    assert server.raw.hget(keys(kit).cursors, member) == b"somebody's"


def test_a_cursor_is_read_as_it_was_written() -> None:
    for cursor in (START, Cursor(7, 9, 'a"turn:id', 1_796_002_682_001, 3, 1_796_002_682_364, 4)):
        assert Cursor.of(str(cursor)) == cursor
    assert Cursor.of("") == START


async def test_a_cursor_that_is_moved_by_hand_meanwhile_is_gone_by(
    kit: Kit, server: Server
) -> None:
    await kit.say("I sail.", "I bake.")
    member = inner(kit.chat)._place.keys.member

    def move(_: str) -> str:
        (turn, *_rest) = inner_turns
        server.raw.hset(keys(kit).cursors, member, f"1 1 {turn.id} {stamp(turn.time)} 0 0 0")
        server.raw.expire(keys(kit).cursors, 60)
        return '{"facts": []}'

    inner_turns = await kit.chat.turns()
    kit.model.answers = [move, [new("Ada bakes.")]]
    done = await kit.extraction().extract(kit.chat)
    assert done.turns == 1
    assert "I sail." not in kit.model.seen
    assert await kit.texts() == ["Ada bakes."]


async def test_a_block_that_others_change_without_pause_is_given_up(
    kit: Kit, server: Server
) -> None:
    owner = inner(kit.facts)._base.ground.owner("ada")
    written = 0

    def clean(text: str) -> Any:
        nonlocal written
        written += 1
        server.raw.hset(owner.keys.memory, "human", f"1 rev{written} theirs")
        server.raw.expire(owner.keys.memory, 60)
        yield from ()
        return text

    flow = change(owner, Block("human"), lambda _: "ours", clean, 60_000)
    with pytest.raises(ConflictError, match="without pause"):
        await kit.run(flow)
    assert server.raw.hget(owner.keys.memory, "human") == b"1 rev10 theirs"


async def test_what_is_no_text_is_refused(kit: Kit) -> None:
    memory = kit.memory(Block("human"))
    with pytest.raises(TypeError, match="says text, not int"):
        await memory.write("ada", "human", 7)  # type: ignore[arg-type]  # as said
    with pytest.raises(TypeError, match="letter is text, not int"):
        await kit.extraction().retry("ada", 7)  # type: ignore[arg-type]  # as said
    assert repr(inner(memory)).endswith("WorkingMemory(human)")


async def test_what_is_erased_while_the_background_reads_it_is_counted(kit: Kit) -> None:
    async with kit.extraction(every=1) as extraction:
        await kit.say("I sail.")
        generation = keys(kit).generation

        def lose(_: str) -> str:
            # As an erasure leaves it: what began before is refused.
            lost.append(generation)
            go_on.wait(60)
            return '{"facts": []}'

        lost: list[bytes] = []
        go_on = threading.Event()
        kit.model.answers = [lose]
        await extraction.__call__(saved(kit))
        await wait_until_async(lambda: lost)
        await kit.store.erase("ada")
        go_on.set()
        await wait_until_async(lambda: extraction.counts["erased"])


async def test_where_the_store_is_closed_the_background_ends(make_store: Any) -> None:
    from tests.facts.meaning.kit import facts_in  # noqa: PLC0415 - beside its use
    from turnstore.facts import Extraction  # noqa: PLC0415 - as above

    store: Store = make_store()
    extraction = Extraction(inner(facts_in(store, engine="plain")), lambda _: "[]", every=1)  # type: ignore[arg-type]  # a store
    place = store.conversation("c1", owner="ada")._place
    store.close()
    done = Appended("1-t1", duplicate=False, turns=1, messages=1, tokens=0, dropped=0)
    extraction(SavedTurn(place.identifier, place.owner, "t1", [], "openai.chat", done))
    await wait_until_async(lambda: extraction._reader._thread is None)
    assert extraction.counts == {}
    extraction.close()


async def test_a_flush_waits_no_longer_than_it_is_told(kit: Kit) -> None:
    go_on, asked = threading.Event(), threading.Event()

    def model(_: str) -> str:
        asked.set()
        assert go_on.wait(60)
        return '{"facts": []}'

    kit.model = model  # type: ignore[assignment]  # as said
    async with kit.extraction(every=1, deadline=60.0) as extraction:
        await kit.say("I sail.")
        await extraction.__call__(saved(kit))
        await wait_until_async(asked.is_set)
        assert (await extraction.flush(timeout=0.01)).turns == 0
        go_on.set()
        await wait_until_async(lambda: extraction.counts["extracted"])


async def test_a_flush_has_one_time_for_all_that_it_waits_for(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, asked, given = threading.Event(), threading.Event(), list[float]()

    def hang() -> None:
        asked.set()
        assert go_on.wait(60)

    def due(*_: Any) -> Any:
        yield Ask(hang, ())

    for module in (_extraction, _aextraction):
        monkeypatch.setattr(module, "due", due)
    async with kit.extraction(every=1) as extraction:
        await kit.say("I sail.")
        await extraction.__call__(saved(kit))
        await wait_until_async(asked.is_set)
        for runner in (inner(extraction)._noter, inner(extraction)._reader):

            def take_all(timeout: float, take: Any = runner.take_all) -> Any:
                given.append(timeout)
                return take(timeout)

            runner.take_all = take_all
        assert (await extraction.flush(timeout=0.2)).turns == 0
        go_on.set()
    assert given[0] == pytest.approx(0.2)
    assert given[1] < 0.1, "the first one took all of it"


def piece(no: int, turn: int, text: str) -> Element:
    message = {"role": "user", "content": text}
    return Element(1, no, turn, no, 0, no, 1, "openai.chat", f"t{no}", "", [message])


def test_long_turns_are_read_one_by_one_and_the_middle_of_long_messages_not_at_all() -> None:
    told = tell([piece(number, number, f"{number} " * 4000) for number in range(1, 10)])
    assert len(told.shown) == 5
    assert all(4000 < len(text) < 4020 for text in told.texts)
    assert (told.first.no, told.last.no) == (1, 5)


def test_a_turn_is_never_read_in_part() -> None:
    told = tell([piece(number, 1, "x" * 4000) for number in range(1, 10)] + [piece(10, 2, "y")])
    assert [shown.ids for shown in told.shown] == [tuple(f"t{number}" for number in range(1, 10))]
    assert told.last.no == 9


def test_the_pieces_of_a_turn_are_one_turn() -> None:
    told = tell([piece(1, 1, "one"), piece(2, 1, "two"), piece(3, 2, "three")])
    assert told.texts == ["user: one\nuser: two", "user: three"]
    assert [shown.ids for shown in told.shown] == [("t1", "t2"), ("t3",)]


def test_a_text_may_end_in_the_middle_of_a_duration() -> None:
    assert is_repetition("That is how they are.", "That is how they are")
    assert not is_repetition("That is how they are.", "That is how they")


async def test_a_conversation_whose_id_is_lost_is_not_read_under_another_one(
    kit: Kit, server: Server
) -> None:
    await kit.say("I sail.")
    kit.model.answers = [[]]
    extraction = kit.extraction()
    await extraction.extract(kit.chat)
    await kit.say("I bake.")
    owner = inner(kit.chat)._place.keys.owner
    for key in (owner.conversations, owner.names, owner.lives):
        server.raw.delete(key)
    assert (await extraction.run("ada")).turns == 0  # it would be drawn from a conversation ""
    assert kit.model.answers == []
    kit.model.answers = [[new("Ada bakes.")]]
    assert (await extraction.extract(kit.chat)).turns == 1
