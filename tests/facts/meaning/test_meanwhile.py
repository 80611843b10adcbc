"""What others do while an extraction is at work: other workers, an erasure, whoever ends it."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.meaning.kit import Kit, Model, facts_in, new, news
from tests.facts.store.raw import kinds_of
from tests.servers.facade import as_async, inner
from tests.waiting import wait_until_async
from turnstore import Store
from turnstore._calls import Call
from turnstore._scripts import Script
from turnstore.errors import ErasedError, LeaseError, LeaseLostError, TurnstoreError
from turnstore.facts import AsyncExtraction, ExtractionError
from turnstore.facts._learning.schedule import Trigger, due

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.running import Server
    from turnstore.facts._learning.extracting import Session

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis-7", "redis-8", "valkey")]

SAILS = "Ada sails."


async def test_two_workers_never_read_the_same_turns(kit: Kit) -> None:
    await kit.say(*(f"I own boat number {number}." for number in range(1, 7)))
    asked = threading.Lock()
    seen: list[str] = []

    def model(prompt: str) -> str:
        with asked:
            turns = prompt.partition("The new turns:\n")[2]
            numbers = [number for number in range(1, 7) if f"number {number}." in turns]
            seen.extend(map(str, numbers))
            facts = [
                new(f"Ada owns boat number {number}.", turn)
                for turn, number in enumerate(numbers, start=1)
            ]
            return json.dumps(facts)

    kit.model = model  # type: ignore[assignment]  # as said
    workers = [kit.extraction(turns=2) for _ in range(4)]
    done = await asyncio.gather(*(worker.extract(kit.chat) for worker in workers))
    assert sum(one.turns for one in done) == 6
    assert seen == ["1", "2", "3", "4", "5", "6"]
    assert len(await kit.texts()) == 6


def started(kit: Kit, **options: Any) -> tuple[Any, Session]:
    """Begin an extraction up to the question to the model, as a process that then dies."""
    given: Any = inner(kit.extraction(**options))
    session = given._session(inner(kit.chat)._place, waits=False)
    return given, session


async def step(extraction: Any, flow: Any, reply: Any = None) -> Any:
    """Go on with a flow until it asks the model, and give the question."""
    from turnstore._calls import Ask  # noqa: PLC0415 - beside its use

    asks = flow.send(reply)
    while not (
        isinstance(asks, Ask) and asks.function is next(extraction._options.question("")).function
    ):
        wanted = asks

        def one(wanted: Any = wanted) -> Any:
            return (yield wanted)

        try:
            given = extraction._run(one())
            reply = await given if asyncio.iscoroutine(given) else given
        except Exception as error:  # noqa: BLE001 - as the loop of `_io` does
            asks = flow.throw(error)
        else:
            asks = flow.send(reply)
    return asks


async def test_a_worker_that_dies_between_model_and_commit_loses_and_doubles_nothing(
    kit: Kit,
) -> None:
    await kit.say("I sail.")
    extraction, session = started(kit)
    dying = session.run()
    await step(extraction, dying)  # … and here it dies, with the lease
    other, second = started(kit)
    with pytest.raises(LeaseError):
        await step(other, second.run())
    # Its lease runs out, and another one reads the same turns.
    assert await kit.run_out()
    kit.model.answers = [[new(SAILS, slot="hobby")]]
    assert (await kit.extraction().extract(kit.chat)).turns == 1
    # Should it not be dead after all, it is too late.
    with pytest.raises(LeaseLostError):
        await step(extraction, dying, json.dumps([new("Ada sails a lot.")]))
    assert await kit.texts(include_closed=True) == [SAILS]


async def test_what_is_cancelled_gives_its_lease_back(make_async_store: Any, engine: str) -> None:
    store = make_async_store()
    kit = Kit(store, facts_in(store, engine=engine), Model())
    await kit.say("I sail.")
    asked = asyncio.Event()

    async def model(_: str) -> str:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    extraction = AsyncExtraction(kit.facts, model, deadline=60)
    task = asyncio.create_task(extraction.extract(kit.chat))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await kit.reads_it_later()


# Erased, cleared, forgotten meanwhile


class Others:
    """What somebody else does at the same time, with a client of their own."""

    def __init__(self, server: Server, prefix: str, engine: str) -> None:
        self.store = Store(server.raw, name="test", prefix=prefix)
        self.facts: Any = inner(facts_in(as_async(self.store), engine=engine))

    def does(self, act: Callable[[], object], answer: list[dict[str, Any]]) -> Callable[[str], str]:
        def model(_: str) -> str:
            act()
            return json.dumps(answer)

        return model


@pytest.fixture
def others(server: Server, prefix: str, engine: str) -> Others:
    return Others(server, prefix, engine)


async def test_an_erasure_beats_an_extraction_that_is_at_work(kit: Kit, others: Others) -> None:
    await kit.say("I sail.")
    await kit.facts.add("ada", "Ada lives in Paris.")
    act = others.does(lambda: others.store.erase("ada"), [new(SAILS)])
    kit.model.answers = [act]
    with pytest.raises(ErasedError):
        await kit.extraction().extract(kit.chat)
    assert await kit.texts(include_closed=True) == []
    assert await kit.extraction().operations("ada") == []
    assert (await kit.facts.health("ada")).is_well
    kit.model.answers = [[new("Ada bakes.")]]
    await kit.say("I bake.")
    assert (await kit.extraction().extract(kit.chat)).turns == 1
    assert await kit.texts() == ["Ada bakes."]


async def test_an_erasure_beats_the_note_of_a_failure(kit: Kit, others: Others) -> None:
    await kit.say("I sail.")

    def model(_: str) -> str:
        others.store.erase("ada")
        return "nonsense"

    kit.model.answers = [model, "nonsense"]
    extraction = kit.extraction()
    with pytest.raises(ExtractionError):
        await extraction.extract(kit.chat)
    assert await extraction.dead_letters("ada") == []
    assert inner(extraction).counts == {"unnoted": 1}


async def test_a_conversation_that_is_cleared_meanwhile_leaves_no_facts(
    kit: Kit, others: Others
) -> None:
    await kit.say("I sail.")
    clear = others.store.conversation("c1", owner="ada").clear
    kit.model.answers = [others.does(clear, [new(SAILS)])]
    with pytest.raises(ErasedError):
        await kit.extraction().extract(kit.chat)
    assert await kit.texts(include_closed=True) == []
    assert (await kit.extraction().extract(kit.chat)).turns == 0


async def test_a_conversation_that_is_erased_meanwhile_leaves_nothing(
    kit: Kit, others: Others, server: Server
) -> None:
    await kit.say("I sail.")
    chat = others.store.conversation("c1", owner="ada")
    kit.model.answers = [others.does(lambda: chat.erase(verify=True), [new(SAILS)])]
    with pytest.raises(ErasedError):
        await kit.extraction().extract(kit.chat)
    left = kinds_of(server, kit.facts, "ada")
    assert left == {b"generation", b"cleared", b"lease"}, "notes, and who was at work"


async def test_all_turns_that_are_undone_meanwhile_take_their_facts_along(
    kit: Kit, others: Others
) -> None:
    await kit.say("I sail.")
    undo = others.store.conversation("c1", owner="ada").rewind
    kit.model.answers = [others.does(undo, [new(SAILS)])]
    done = await kit.extraction().extract(kit.chat)
    assert (done.turns, done.undone) == (1, 1)
    assert await kit.texts(include_closed=True) == []
    await kit.say("I bake.")
    kit.model.answers = [[new("Ada bakes.")]]
    assert (await kit.extraction().extract(kit.chat)).turns == 1


async def test_turns_that_are_undone_and_forgotten_meanwhile_leave_no_facts(
    kit: Kit, others: Others
) -> None:
    await kit.say("I sail.")
    chat = others.store.conversation("c1", owner="ada")

    def undo() -> None:
        others.facts.forget_turns("ada", "c1", chat.rewind())

    kit.model.answers = [others.does(undo, [new(SAILS)])]
    done = await kit.extraction().extract(kit.chat)
    assert (done.turns, done.undone) == (1, 1)
    assert await kit.texts(include_closed=True) == []


async def test_a_conversation_that_is_forgotten_meanwhile_leaves_no_facts(
    kit: Kit, others: Others
) -> None:
    await kit.say("I sail.")
    forget = others.does(lambda: others.facts.forget_conversation("ada", "c1"), [new(SAILS)])
    kit.model.answers = [forget]
    with pytest.raises(ErasedError):
        await kit.extraction().extract(kit.chat)
    assert await kit.texts(include_closed=True) == []


async def test_a_fact_that_is_forgotten_meanwhile_is_not_brought_back(
    kit: Kit, others: Others
) -> None:
    known = await kit.facts.add("ada", "Ada lives in Paris.", slot="home")
    await kit.say("I moved to Rome.")
    answer = [news("supersedes", 0, "Ada lives in Rome.", slot="home")]
    forget = others.does(lambda: others.facts.forget("ada", known.id), answer)
    kit.model.answers = [forget]
    await kit.extraction().extract(kit.chat)
    assert await kit.texts(include_closed=True) == ["Ada lives in Rome."]


async def test_what_is_said_meanwhile_is_read_next(kit: Kit, others: Others) -> None:
    await kit.say("I sail.")
    chat = others.store.conversation("c1", owner="ada")
    kit.model.answers = [
        others.does(lambda: chat.append("I bake."), [new(SAILS)]),
        [new("Ada bakes.")],
    ]
    assert (await kit.extraction().extract(kit.chat)).turns == 2
    assert await kit.texts() == ["Ada bakes.", SAILS]


async def test_the_lease_is_given_back_whatever_happens(kit: Kit) -> None:
    await kit.say("I sail.")
    kit.model.answers = [ConnectionError("down")]
    with pytest.raises(ConnectionError):
        await kit.extraction().extract(kit.chat)
    held: list[int] = []

    async def second() -> None:
        kit.model.answers = [[new(SAILS)]]
        held.append((await kit.extraction().extract(kit.chat)).turns)

    await asyncio.wait_for(second(), 20)
    await wait_until_async(lambda: held == [1])


def looked_at(kit: Kit, meanwhile: Any = None) -> Any:
    """Look whether the conversation is due; do something else once its turns were read."""
    base, place = inner(kit.facts)._base, inner(kit.chat)._place
    flow = due(base, place, Trigger(6, 300.0))
    try:
        asked = next(flow)
        while True:
            try:
                answer = yield asked
            except TurnstoreError as error:
                asked = flow.throw(error)
                continue
            command = asked.command if isinstance(asked, Call) else None
            is_read = isinstance(command, Script) and command.name == "page"
            if is_read and meanwhile is not None:
                yield from meanwhile
            asked = flow.send(answer)
    except StopIteration as end:
        return end.value


def keys_of_ada(kit: Kit, server: Server) -> set[bytes]:
    tag = inner(kit.facts)._base.ground.owner("ada").owner_keys.tag
    return {key.removeprefix(tag) for key in server.raw.scan_iter(count=1000) if tag in key}


async def test_nothing_is_noted_of_an_owner_who_was_erased(kit: Kit, server: Server) -> None:
    await kit.say("I sail.")
    await kit.store.erase("ada", verify=True)
    assert await kit.run(looked_at(kit)) is None
    assert keys_of_ada(kit, server) == {b"generation"}


async def test_an_erasure_while_the_background_looks_leaves_nothing(
    kit: Kit, server: Server
) -> None:
    await kit.say("I sail.")
    erasure = inner(kit.store)._home.erase("ada", verify=True)
    with pytest.raises(ErasedError):
        await kit.run(looked_at(kit, erasure))
    assert keys_of_ada(kit, server) == {b"generation"}
    await kit.say("I sail.")
    assert await kit.run(looked_at(kit)) is not None
    assert b"facts:cursors" in keys_of_ada(kit, server)


async def test_the_lease_of_an_extraction_is_no_conversation(kit: Kit, server: Server) -> None:
    await kit.say("I sail.")
    await kit.store.erase("ada", verify=True)
    assert (await kit.extraction().extract(kit.chat)).turns == 0
    assert keys_of_ada(kit, server) == {b"generation", b"facts:lease"}
