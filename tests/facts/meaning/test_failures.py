from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.meaning.kit import Kit, new, news
from tests.servers.facade import inner
from tests.servers.proxy import Cut
from turnstore import AsyncStore
from turnstore.errors import TurnstoreError
from turnstore.facts import ExtractionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis-7", "redis-8", "valkey")]

UNUSABLE = sorted((Path(__file__).parent / "answers/unusable").glob("*.txt"))
SAILS = "Ada sails."


@pytest.mark.parametrize("error", [ConnectionError("down"), TimeoutError(), ValueError("odd")])
async def test_a_model_that_fails_loses_nothing(kit: Kit, error: Exception) -> None:
    await kit.say("I sail.")
    kit.model.answers = [error]
    with pytest.raises(type(error)):
        await kit.extraction().extract(kit.chat)
    assert await kit.extraction().dead_letters("ada") == []
    assert (await kit.facts.health("ada")).lag == 1
    await kit.reads_it_later()


async def test_a_model_that_is_too_slow_loses_nothing(kit: Kit) -> None:
    go_on = threading.Event()
    await kit.say("I sail.")
    kit.model.answers = [lambda _: go_on.wait(30) and "too late"]
    with pytest.raises(TimeoutError):
        await kit.extraction(deadline=0.05).extract(kit.chat)
    go_on.set()
    await kit.reads_it_later()


async def test_what_answers_no_text_is_told(kit: Kit) -> None:
    await kit.say("I sail.")
    kit.model.answers = [lambda _: {"facts": []}]
    with pytest.raises(TypeError, match="dict, and not text"):
        await kit.extraction().extract(kit.chat)
    await kit.reads_it_later()


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
    works = embedder.given

    def broken(_: list[str]) -> Any:
        raise ConnectionError("the embedder is down")

    embedder.given = broken
    with pytest.raises(ConnectionError, match="embedder"):
        await kit.extraction().extract(kit.chat)
    embedder.given = works
    await kit.reads_it_later()


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
    await kit.run_out()
    await kit.reads_it_later()


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
