from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.meaning.kit import Kit, Model, facts_in, new, news
from tests.servers.facade import as_async, inner
from tests.servers.proxy import Cut
from tests.waiting import wait_until_async
from turnstore import AsyncStore, Store
from turnstore.errors import ErasedError, LeaseError, LeaseLostError, TurnstoreError
from turnstore.facts import AsyncExtraction, ExtractionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore.facts._extracting import Session

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis-7", "redis-8", "valkey")]

UNUSABLE = sorted((Path(__file__).parent / "answers/unusable").glob("*.txt"))
SAILS = "Ada sails."


async def nothing_happened(kit: Kit) -> None:
    """See that nothing was written, and that the turn is read by the next extraction."""
    assert await kit.texts(include_closed=True) == []
    kit.model.answers = [[new(SAILS)]]
    assert (await kit.extraction().extract(kit.chat)).turns == 1
    assert await kit.texts() == [SAILS]
    assert (await kit.extraction().extract(kit.chat)).turns == 0


@pytest.mark.parametrize("error", [ConnectionError("down"), TimeoutError(), ValueError("odd")])
async def test_a_model_that_fails_loses_nothing(kit: Kit, error: Exception) -> None:
    await kit.say("I sail.")
    kit.model.answers = [error]
    with pytest.raises(type(error)):
        await kit.extraction().extract(kit.chat)
    assert await kit.extraction().dead_letters("ada") == []
    assert (await kit.facts.health("ada")).lag == 1
    await nothing_happened(kit)


async def test_a_model_that_is_too_slow_loses_nothing(kit: Kit) -> None:
    go_on = threading.Event()
    await kit.say("I sail.")
    kit.model.answers = [lambda _: go_on.wait(30) and "too late"]
    with pytest.raises(TimeoutError):
        await kit.extraction(deadline=0.05).extract(kit.chat)
    go_on.set()
    await nothing_happened(kit)


async def test_what_answers_no_text_is_told(kit: Kit) -> None:
    await kit.say("I sail.")
    kit.model.answers = [lambda _: {"facts": []}]
    with pytest.raises(TypeError, match="dict, and not text"):
        await kit.extraction().extract(kit.chat)
    await nothing_happened(kit)


async def test_an_answer_of_no_use_is_asked_for_again_with_the_reason(kit: Kit) -> None:
    await kit.say("I sail.")
    kit.model.answers = ['{"facts": [{"verdict": "new"}]}', [new(SAILS)]]
    assert len((await kit.extraction().extract(kit.chat)).new) == 1
    first, second = kit.model.prompts
    assert second.startswith(first)
    assert '"text" is missing' in second[len(first) :]


async def test_an_answer_that_can_be_mended_is_not_asked_for_again(kit: Kit) -> None:
    await kit.say("I sail.")
    kit.model.answers = [f"Sure:\n```json\n{json.dumps([new(SAILS)])[:-1]},]\n```"]
    assert len((await kit.extraction().extract(kit.chat)).new) == 1


async def test_two_answers_of_no_use_are_a_dead_letter_and_the_cursor_stays(kit: Kit) -> None:
    await kit.say("Good morning.", "I sail.")
    kit.model.answers = ["nonsense", "more nonsense"]
    extraction = kit.extraction()
    with pytest.raises(ExtractionError, match="not JSON"):
        await extraction.extract(kit.chat)
    (letter,) = await extraction.dead_letters("ada")
    assert (letter.conversation, letter.first_turn, letter.last_turn) == ("c1", 1, 2)
    assert (letter.attempts, letter.answer) == (1, "more nonsense")
    assert "not JSON" in letter.reason
    health = await kit.facts.health("ada")
    assert (health.lag, health.dead_letters, health.is_well) == (2, 1, False)
    assert await extraction.dead_letters("bob") == []


async def test_a_dead_letter_goes_when_its_turns_are_read_at_last(kit: Kit) -> None:
    await kit.say("I sail.")
    kit.model.answers = ["nonsense", "nonsense", ConnectionError("down")]
    extraction = kit.extraction()
    for error in (ExtractionError, ConnectionError):
        with pytest.raises(error):
            await extraction.extract(kit.chat)
    (letter,) = await extraction.dead_letters("ada")  # a model that is down says nothing new
    kit.model.answers = [[new(SAILS)]]
    assert len((await extraction.retry("ada", letter.id)).new) == 1
    assert await extraction.dead_letters("ada") == []
    assert (await kit.facts.health("ada")).is_well
    with pytest.raises(LookupError, match="settled"):
        await extraction.retry("ada", letter.id)


async def test_of_each_conversation_the_newest_dead_letter_is_kept(kit: Kit) -> None:
    extraction = kit.extraction()
    for identifier, times in (("c1", 3), ("c2", 1)):
        chat = kit.store.conversation(identifier, owner="ada")
        await chat.append("I sail.")
        for number in range(times):
            kit.model.answers = ["nonsense", f"nonsense {number}"]
            with pytest.raises(ExtractionError):
                await extraction.extract(chat)
    letters = await extraction.dead_letters("ada")
    assert [(one.conversation, one.attempts, one.answer) for one in letters] == [
        ("c1", 3, "nonsense 2"),
        ("c2", 1, "nonsense 0"),
    ]
    await kit.facts.forget_conversation("ada", "c1")
    assert [one.conversation for one in await extraction.dead_letters("ada")] == ["c2"]


async def test_the_turns_of_a_dead_letter_can_be_skipped(kit: Kit) -> None:
    await kit.say("I sail.")
    kit.model.answers = ["nonsense", "nonsense"]
    extraction = kit.extraction()
    with pytest.raises(ExtractionError):
        await extraction.extract(kit.chat)
    (letter,) = await extraction.dead_letters("ada")
    await kit.say("I bake.")
    await extraction.skip("ada", letter.id)
    assert await extraction.dead_letters("ada") == []
    kit.model.answers = [[new("Ada bakes.")]]
    assert (await extraction.extract(kit.chat)).turns == 1
    assert "I sail." not in kit.model.seen
    with pytest.raises(LookupError):
        await extraction.skip("ada", letter.id)


async def test_where_a_batch_fails_ever_smaller_ones_come_closer_to_the_cause(kit: Kit) -> None:
    await kit.say(*(f"I own boat number {number}." for number in range(1, 8)), "poison")

    def model(prompt: str) -> str:
        if "poison" in prompt.partition("The new turns:")[2]:
            return "nonsense"
        return '{"facts": []}'

    kit.model = model  # type: ignore[assignment]  # as said
    extraction = kit.extraction(turns=8)
    for _ in range(4):
        with pytest.raises(ExtractionError):
            await extraction.extract(kit.chat)
    (letter,) = await extraction.dead_letters("ada")
    assert (letter.first_turn, letter.last_turn) == (8, 8)
    await extraction.skip("ada", letter.id)
    assert (await kit.facts.health("ada")).is_well


@pytest.mark.servers("redis-7")
async def test_no_answer_of_the_corpus_changes_anything(kit: Kit) -> None:
    await kit.facts.add("ada", "Ada lives in Paris.")
    await kit.facts.add("ada", "Paris is where Ada lives and works.")
    before = await kit.facts.list("ada")
    extraction = kit.extraction()
    for file in UNUSABLE:
        chat = kit.store.conversation(file.stem, owner="ada")
        for text in ("I live in Paris.", "Where do I live?", "In Paris!"):
            await chat.append(text)
        answer = file.read_bytes().decode()
        kit.model.answers = [answer, answer]
        with pytest.raises(ExtractionError):
            await extraction.extract(chat)
        letter = (await extraction.dead_letters("ada"))[-1]
        assert (letter.conversation, letter.answer) == (file.stem, answer[:4000])
    assert await kit.facts.list("ada", include_closed=True) == before
    health = await kit.facts.health("ada")
    assert (health.lag, health.dead_letters) == (3 * len(UNUSABLE), len(UNUSABLE))


async def test_an_answer_that_takes_back_too_much_is_of_no_use(kit: Kit) -> None:
    for text in ("Ada sails in May.", "Ada sails in June.", "Ada sails in July."):
        await kit.facts.add("ada", text)
    await kit.say("I do not sail.")
    wild = [news("retracts", of, "Ada sails.") for of in range(3)]
    kit.model.answers = [wild, wild]
    with pytest.raises(ExtractionError, match="retracts 3 known facts, and 2 are the most"):
        await kit.extraction(max_changes=2).extract(kit.chat)
    assert len(await kit.texts()) == 3


async def test_an_embedder_that_fails_loses_nothing(kit: Kit) -> None:
    await kit.say("I sail.")
    kit.model.answers = [[new(SAILS)]]
    embedder = inner(kit.facts)._base.embedder
    works = embedder.function

    def broken(_: list[str]) -> Any:
        raise ConnectionError("the embedder is down")

    embedder.function = broken
    with pytest.raises(ConnectionError, match="embedder"):
        await kit.extraction().extract(kit.chat)
    embedder.function = works
    await nothing_happened(kit)


async def test_a_server_that_goes_down_meanwhile_loses_nothing(
    new_store: NewStore, new_kit: Callable[[AsyncStore], Kit], proxy: Proxy
) -> None:
    kit = new_kit(new_store(at=proxy))
    await kit.say("I sail.")

    def answer(_: str) -> str:
        proxy.go_down()
        return json.dumps([new(SAILS)])

    kit.model.answers = [answer]
    with pytest.raises(TurnstoreError):
        await kit.extraction().extract(kit.chat)
    proxy.come_up()
    # Its lease could not be given back, and runs out by itself; here it is taken away.
    session_keys = inner(kit.facts)._base.ground.owner("ada").keys
    flow = single(inner(kit.facts), "DEL", session_keys.lease)
    assert flow in (0, 1) or await flow in (0, 1)
    await nothing_happened(kit)


def single(facts: Any, command: str, key: bytes) -> Any:
    """Send one command on a key of an owner."""
    from turnstore._calls import Call  # noqa: PLC0415 - beside its use

    def flow() -> Any:
        return (yield Call("test", (key,), command, (), writes=True, read=int))

    return facts._run(flow())


@pytest.mark.parametrize("number", range(14))
async def test_a_lost_answer_of_the_server_stores_nothing_twice(
    new_store: NewStore, new_kit: Callable[[AsyncStore], Kit], proxy: Proxy, number: int
) -> None:
    kit = new_kit(new_store(at=proxy))
    known = await kit.facts.add("ada", "Ada sails on Sundays.", slot="hobby")
    await kit.say("I sail.", turn_id="t1")
    scripts: list[int] = []

    def answer(_: str) -> str:
        # The answer of one of the scripts that follow is lost; the client sends it again.
        scripts.append(proxy.count("EVALSHA"))
        if number:
            proxy.next(Cut.NEVER, command="EVALSHA", times=number)
        proxy.next(Cut.REPLY_LOST, command="EVALSHA")
        return json.dumps([news("supersedes", 0, SAILS, slot="hobby")])

    kit.model.answers = [answer]
    done = await kit.extraction().extract(kit.chat)
    followed = proxy.count("EVALSHA") - scripts[0]
    proxy.clear()
    assert number >= 3 or followed > number, "an answer was lost"
    assert (done.turns, len(done.new), done.closed) == (1, 1, (known.id,))
    assert await kit.texts() == [SAILS]
    assert await kit.texts(include_closed=True) == ["Ada sails on Sundays.", SAILS]
    assert (await kit.fact(SAILS)).sources == ("t1",)
    assert len(await kit.extraction().operations("ada")) == 1
    assert (await kit.extraction().extract(kit.chat)).turns == 0


# Several at work at once


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
        isinstance(asks, Ask) and asks.function is extraction._options.question("").function
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
    lease = inner(kit.facts)._base.ground.owner("ada").keys.lease
    gone = single(inner(kit.facts), "DEL", lease)
    assert gone == 1 or await gone == 1
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
    await nothing_happened(kit)


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
