"""What a model is told of what was said long ago, and what it is not told."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.context.flows import Recorder
from tests.facts.meaning.kit import DIMENSIONS, embed, leaning
from tests.facts.recall.kit import facts_in
from tests.servers.facade import inner
from tests.servers.proxy import Cut
from turnstore import UnavailableError, Window
from turnstore.context import FRAME, Context, Rewrite
from turnstore.facts import Hit, NewFact, Recall

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.facts.recall.kit import Memory
    from tests.servers.proxy import Proxy

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis", "valkey")]

MAY = datetime(2024, 5, 3, 12, tzinfo=UTC)
ASKED = "Where does Ada live?"


async def test_what_is_known_of_the_owner_is_sent_with_its_date(memory: Memory) -> None:
    await memory.facts.add("ada", "Ada lives in Paris.", observed=MAY)
    await memory.facts.add("bob", "Ada lives in Lyon, says Bob.")
    sent = await memory.ask(ASKED, Context(sources=[memory.recall()]))
    assert sent == FRAME.format(
        texts="What is known from earlier conversations with this user, and when it was said:\n"
        "[said on 2024-05-03] Ada lives in Paris."
    )


async def test_a_turn_shows_the_facts_that_were_recalled(memory: Memory) -> None:
    await memory.facts.add("ada", "Ada lives in Paris.", observed=MAY)
    chat = memory.store.conversation("c", owner="ada")
    async with chat.turn(ASKED, context=Context(sources=[memory.recall()])) as turn:
        (recalled,) = turn.recalled
    assert recalled.text == "[said on 2024-05-03] Ada lives in Paris."
    assert recalled.title.startswith("What is known")
    hit = recalled.item
    assert isinstance(hit, Hit)
    assert (hit.fact.text, hit.fact.observed) == ("Ada lives in Paris.", MAY)
    assert 0 < hit.similarity <= 1


async def test_nothing_known_sends_nothing(memory: Memory) -> None:
    assert await memory.ask(ASKED, Context(sources=[memory.recall()])) == ""
    await memory.facts.add("ada", "The moon is round.")
    assert await memory.ask(ASKED, Context(sources=[memory.recall()])) == ""


async def test_what_was_recalled_is_not_stored(memory: Memory) -> None:
    await memory.facts.add("ada", "Ada lives in Paris.")
    exchanges = memory.exchanges()
    context = Context(sources=[memory.recall()], after=[inner(exchanges)])
    for _ in range(2):
        assert (await memory.ask(ASKED, context)).count("Paris") == 1
    history = await memory.store.conversation("c", owner="ada").read()
    assert "Paris" not in str(history)
    assert [text for text in await memory.texts() if "Paris" in text] == ["Ada lives in Paris."]


async def test_what_comes_from_turns_that_are_sent_anyway_is_left_out(memory: Memory) -> None:
    """Of this conversation: another one may have a turn of the same id."""
    chat = memory.store.conversation("c", owner="ada")
    for name in ("t1", "t2"):
        await chat.append([{"role": "user", "content": "I live in Paris."}], turn_id=name)
    news = [
        NewFact(text="Ada lives in Paris.", conversation="c", sources=("t1",)),
        NewFact(text="Ada lives in a house.", conversation="c", sources=("t2",)),
        NewFact(text="Ada lives with a cat.", conversation="other", sources=("t2",)),
        NewFact(text="Ada lives well."),
    ]
    await memory.facts.add_many("ada", news)
    recall = memory.recall(top_k=4)
    sent = await memory.ask(ASKED, Context(Window(turns=1), sources=[recall]), chat="c")
    assert "Paris" in sent
    assert "cat" in sent
    assert "well" in sent
    assert "house" not in sent


async def test_the_rewritten_question_is_searched_for(memory: Memory) -> None:
    await memory.facts.add("ada", "Ada lives in Paris.")
    await memory.store.conversation("c", owner="ada").append("I moved.")
    context = Context(rewrite=Rewrite(Recorder(ASKED)), sources=[memory.recall()])
    assert "Paris" in await memory.ask("Where to?", context)


async def test_facts_and_exchanges_have_a_least_similarity_each(memory: Memory) -> None:
    await memory.facts.add("ada", "Ada lives in Paris, in a house by the river.")
    await memory.facts.add_exchange("ada", "d", "t1", "User: Where does Ada live? Assistant: Oslo")
    await memory.facts.add_exchange("ada", "d", "t2", "User: The moon is round. Assistant: Yes.")

    async def sent(**options: Any) -> str:
        return await memory.ask(ASKED, Context(sources=[memory.recall(**options)]), chat="x")

    both = await sent(min_score=0.3, exchange_min_score=0.3)
    assert "Paris" in both
    assert "Oslo" in both
    assert "moon" not in both
    assert "Paris" not in await sent(min_score=0.9, exchange_min_score=0.3)
    assert "Oslo" not in await sent(min_score=0.3, exchange_min_score=0.999)
    assert "moon" in await sent(exchange_min_score=None)
    assert "Oslo" not in await sent(kinds=["fact"])


@pytest.mark.servers("redis", "valkey", first=True)
async def test_a_fact_has_a_similarity_of_0_7_and_an_exchange_of_0_3_by_default(
    memory: Memory, engine: str
) -> None:
    facts = facts_in(memory.store, engine=engine, embed=leaning)
    for number in (69, 71):
        await facts.add("ada", f"fact {number}")
    for number in (29, 31):
        await facts.add_exchange("ada", "d", f"t{number}", f"exchange {number}")
    recall = Recall(inner(facts), deadline=None, top_k=10)
    sent = await memory.ask("?", Context(sources=[recall], frame="{texts}"))
    assert {line.rpartition("] ")[2] for line in sent.splitlines()} >= {"fact 71", "exchange 31"}
    assert "69" not in sent
    assert "exchange 29" not in sent


async def test_limits_of_number_and_of_tokens(memory: Memory) -> None:
    for number in range(5):
        await memory.facts.add("ada", f"Ada lives in house {number}.")
    limits: list[tuple[dict[str, Any], int]] = [
        ({"top_k": 2}, 2),
        ({"top_k": 5, "tokens": 30}, 1),
        ({}, 3),
    ]
    for options, expected in limits:
        sent = await memory.ask(ASKED, Context(sources=[memory.recall(**options)]), chat="x")
        assert sent.count("Ada lives in house") == expected, options


async def test_dates_of_a_fact_are_told(memory: Memory) -> None:
    day = timedelta(days=1)
    await memory.facts.add(
        "ada",
        "Ada lives in Paris.",
        observed=MAY,
        valid_from=MAY - 30 * day,
        valid_to=datetime(2999, 1, 1, tzinfo=UTC),
    )
    sent = await memory.ask(ASKED, Context(sources=[memory.recall()]))
    assert "[said on 2024-05-03, true since 2024-04-03, until 2999-01-01] Ada lives" in sent


async def test_the_wording_is_the_callers(memory: Memory) -> None:
    await memory.facts.add("ada", "Ada lives in Paris.")

    def wording(hit: Hit) -> str:
        return f"{hit.fact.text} ({hit.similarity > 0})"

    recall = memory.recall(wording=wording, title=None)
    sent = await memory.ask(ASKED, Context(sources=[recall], frame="<{texts}>"))
    assert sent == "<Ada lives in Paris. (True)>"


async def test_a_conversation_without_an_owner_recalls_nothing(
    memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    await memory.facts.add("ada", "Ada lives in Paris.")
    recall = memory.recall()
    context = Context(sources=[recall])
    assert await memory.ask(ASKED, context, owner=None) == ""
    assert (context.counts, recall.failures) == ({"recall": 1}, 1)
    assert "the conversation has no owner" in caplog.text
    with pytest.raises(LookupError, match="no owner"):
        await memory.ask(ASKED, Context(sources=[memory.recall(strict=True)]), owner=None)


async def test_an_owner_may_be_given_and_is_never_mixed_up(memory: Memory) -> None:
    await memory.facts.add("ada", "Ada lives in Paris.")
    context = Context(sources=[memory.recall(owner="ada")])
    assert "Paris" in await memory.ask(ASKED, context, owner=None)
    assert "Paris" in await memory.ask(ASKED, context, owner="ada")
    assert await memory.ask(ASKED, context, owner="bob") == ""
    assert context.counts == {"recall": 1}


async def test_an_embedder_that_fails_leaves_the_turn_alone(
    memory: Memory, engine: str, caplog: pytest.LogCaptureFixture
) -> None:
    await memory.facts.add("ada", "Ada lives in Paris.")

    def broken(texts: list[str]) -> Any:
        raise OSError(texts)

    for name, function in (("fails", broken), ("lies", lambda _: [[float("nan")] * DIMENSIONS])):
        facts = facts_in(memory.store, engine=engine, embed=function)
        recall = Recall(inner(facts), deadline=None)
        context = Context(sources=[recall])
        assert await memory.ask(ASKED, context, chat=name) == ""
        assert (context.counts, recall.failures) == ({"recall": 1}, 1)
        strict = Context(sources=[Recall(inner(facts), deadline=None, strict=True)])
        with pytest.raises((OSError, ValueError)):
            await memory.ask(ASKED, strict, chat=name)
        history = await memory.store.conversation(name, owner="ada").read()
        assert len(history) == 2
    assert "Recall: its texts are left out" in caplog.text


async def test_a_search_that_is_too_late_leaves_the_turn_alone(memory: Memory, engine: str) -> None:
    await memory.facts.add("ada", "Ada lives in Paris.")
    released = threading.Event()

    def slow(texts: list[str]) -> Any:
        released.wait(60)
        return embed(texts)

    facts = facts_in(memory.store, engine=engine, embed=slow)
    recall = Recall(inner(facts), deadline=0.05)
    context = Context(sources=[recall])
    strict = Recall(inner(facts), deadline=0.05, strict=True)
    try:
        assert await memory.ask(ASKED, context) == ""
        with pytest.raises(TimeoutError):
            await memory.ask(ASKED, Context(sources=[strict]), chat="strict")
    finally:
        released.set()
    assert (context.counts, recall.failures, strict.failures) == ({"recall": 1}, 1, 1)


@pytest.mark.servers("redis-7", "redis-8.2", "valkey")
async def test_a_server_that_fails_leaves_the_turn_alone(
    new_store: NewStore, memory: Memory, proxy: Proxy, engine: str
) -> None:
    await memory.facts.add("ada", "Ada lives in Paris.")
    far = facts_in(new_store(at=proxy), engine=engine)
    recall = Recall(inner(far), deadline=None, min_score=0.3)
    context = Context(sources=[recall])
    assert "Paris" in await memory.ask(ASKED, context, chat="before")
    proxy.go_down()
    assert await memory.ask(ASKED, context, chat="down") == ""
    assert (context.counts, recall.failures) == ({"recall": 1}, 1)
    strict = Recall(inner(far), deadline=None, strict=True)
    with pytest.raises(UnavailableError):
        await memory.ask(ASKED, Context(sources=[strict]), chat="down")
    assert strict.failures == 1
    proxy.come_up()
    proxy.next(Cut.REPLY_LOST, command="EVALSHA")
    assert "Paris" in await memory.ask(ASKED, context, chat="back")


async def test_a_message_without_text_is_no_question(memory: Memory) -> None:
    await memory.facts.add("ada", "Ada lives in Paris.")
    context = Context(sources=[memory.recall(min_score=None)])
    assert await memory.ask("  ", context) == ""
    assert context.counts == {}


async def test_a_long_message_is_searched_by_its_beginning_and_its_end(
    memory: Memory, engine: str
) -> None:
    given: list[str] = []

    def note(texts: list[str]) -> Any:
        given.extend(texts)
        return embed(texts)

    await memory.facts.add("ada", "Ada lives in Paris.")
    facts = facts_in(memory.store, engine=engine, embed=note)
    recall = Recall(inner(facts), deadline=None, min_score=None)
    await memory.ask(f"{ASKED} {'word ' * 2000} And the cat?", Context(sources=[recall]))
    (asked,) = given
    assert len(asked) == 2001
    assert asked.startswith(ASKED)
    assert asked.endswith("And the cat?")


@pytest.mark.servers("redis-8.2")
async def test_arguments_of_no_use(memory: Memory) -> None:
    facts = inner(memory.facts)
    useless: list[dict[str, Any]] = [
        {"min_score": 2},
        {"exchange_min_score": -2},
        {"top_k": 0},
        {"deadline": 0},
        {"owner": ""},
        {"kinds": []},
    ]
    for options in useless:
        with pytest.raises(ValueError, match=r"."):
            Recall(facts, **options)
    wrong: list[dict[str, Any]] = [{"min_score": "0.7"}, {"owner": 7}, {"wording": "x"}]
    for options in (*wrong, {"title": 7}):
        with pytest.raises(TypeError):
            Recall(facts, **options)
    with pytest.raises(TypeError, match="Recall takes Facts, not"):
        Recall(memory.store)  # type: ignore[arg-type]  # on purpose
    recall = Recall(facts)
    assert (recall.deadline, recall.tokens, recall.strict) == (0.3, 1000, False)
    assert repr(recall).startswith("Retrieval(Recall, deadline=0.3, tokens=1000")
