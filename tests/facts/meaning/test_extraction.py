from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from openai import AsyncOpenAI, OpenAI

from tests.facts.meaning.kit import new, news
from tests.servers.facade import inner
from turnstore.context import Context
from turnstore.facts import Facts
from turnstore.testing import ModelServer, Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import NewStore
    from tests.facts.meaning.kit import Kit
    from turnstore import AsyncStore

pytestmark = pytest.mark.one_setup


async def test_facts_are_drawn_from_the_turns_and_name_them(kit: Kit) -> None:
    await kit.say("I live in Paris.", turn_id="t1")
    await kit.say("I sail.", turn_id="t2")
    kit.model.answers = [[new("Ada lives in Paris.", 1, slot="home"), new("Ada sails.", 1, 2)]]
    done = await kit.extraction().extract(kit.chat)
    assert (done.turns, len(done.new), done.seen, done.closed) == (2, 2, (), ())
    assert await kit.texts() == ["Ada lives in Paris.", "Ada sails."]
    paris, sails = await kit.fact("Ada lives in Paris."), await kit.fact("Ada sails.")
    assert (paris.slot, paris.conversation, paris.sources) == ("home", "c1", ("t1",))
    assert sails.sources == ("t1", "t2")
    (first, second) = await kit.chat.turns()
    assert (paris.valid_from, paris.observed) == (first.time, first.time)
    assert (sails.valid_from, sails.observed) == (second.time, second.time)


async def test_what_was_read_is_not_read_again(kit: Kit) -> None:
    extraction = kit.extraction()
    await kit.say("I sail.")
    kit.model.answers = [[new("Ada sails.")], [new("Ada bakes.")]]
    await extraction.extract(kit.chat)
    assert (await extraction.extract(kit.chat)).turns == 0
    await kit.say("I bake.")
    assert (await extraction.extract(kit.chat)).turns == 1
    assert "I sail." not in kit.model.seen.partition("The new turns:")[2]
    assert await kit.texts() == ["Ada bakes.", "Ada sails."]


async def test_a_conversation_that_does_not_exist_has_nothing_to_read(kit: Kit) -> None:
    assert await kit.extraction().extract(kit.chat) == await kit.extraction().run("ada")
    assert kit.model.prompts == []


async def test_the_model_is_shown_turns_with_their_dates_and_who_said_what(kit: Kit) -> None:
    await kit.say("I live in Paris.", "I sail.")
    (turn, _) = await kit.chat.turns()
    kit.model.answers = [[]]
    await kit.extraction(zone=ZoneInfo("Asia/Tokyo")).extract(kit.chat)
    there = turn.time.astimezone(ZoneInfo("Asia/Tokyo"))
    assert kit.model.seen == (
        "(nothing)\n\nThe new turns:\n"
        f"Turn 1, {there:%A %Y-%m-%d %H:%M}:\nuser: I live in Paris.\nassistant: I see.\n\n"
        f"Turn 2, {there:%A %Y-%m-%d %H:%M}:\nuser: I sail.\nassistant: I see."
    )


async def test_what_is_no_talk_is_not_shown(kit: Kit) -> None:
    call = {"id": "call-1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    await kit.chat.append(
        [
            {"role": "system", "content": "a secret instruction"},
            {"role": "user", "content": "Where do I live?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call-1", "content": "found: lives in Oslo"},
            {"role": "assistant", "content": "I do not know."},
        ]
    )
    kit.model.answers = [[]]
    await kit.extraction().extract(kit.chat)
    assert "Where do I live?" in kit.model.seen
    assert "I do not know." in kit.model.seen
    for hidden in ("secret", "Oslo", "call-1"):
        assert hidden not in kit.model.seen


async def test_what_was_recalled_is_not_drawn_from_again(kit: Kit) -> None:
    context = Context(sources=[lambda _: "Ada was born in London."])
    async with kit.chat.turn("What do you know of me?", context=context) as turn:
        assert "London" in turn.messages[0]["content"]
        turn.reply("Some things.")
    kit.model.answers = [[]]
    await kit.extraction().extract(kit.chat)
    assert "London" not in kit.model.seen


async def test_turns_without_talk_are_passed_over_without_a_question(kit: Kit) -> None:
    extraction = kit.extraction()
    await kit.chat.append([{"role": "tool", "tool_call_id": "call-1", "content": "Oslo"}])
    assert (await extraction.extract(kit.chat)).turns == 1
    await kit.say("I sail.")
    kit.model.answers = [[new("Ada sails.")]]
    assert (await extraction.extract(kit.chat)).turns == 1


async def test_where_there_is_nothing_to_learn_the_turns_are_read_all_the_same(kit: Kit) -> None:
    extraction = kit.extraction()
    await kit.say("Good morning.")
    kit.model.answers = [[]]
    assert (await extraction.extract(kit.chat)).turns == 1
    assert (await extraction.extract(kit.chat)).turns == 0
    assert await extraction.operations("ada") == []


async def test_known_facts_are_shown_by_numbers_and_not_by_ids(kit: Kit) -> None:
    since = datetime(2018, 1, 1, tzinfo=UTC)
    one = await kit.facts.add("ada", "Ada lives in Paris.", slot="home", valid_from=since)
    two = await kit.facts.add("ada", "Ada sails to Paris.")
    await kit.say("I live in Paris, and sail.")
    kit.model.answers = [[]]
    await kit.extraction().extract(kit.chat)
    known = kit.model.seen.partition("\n\nThe new turns:")[0].split("\n")
    assert [line[:3] for line in known] == ["0. ", "1. "]
    paris, sails = sorted(line[3:] for line in known)
    assert paris == "Ada lives in Paris. (slot: home; since 2018-01-01)"
    assert sails.startswith("Ada sails to Paris. (heard ")
    assert one.id not in kit.model.prompts[0]
    assert two.id not in kit.model.prompts[0]


async def test_no_more_facts_are_shown_than_asked_for(kit: Kit) -> None:
    for number in range(8):
        await kit.facts.add("ada", f"Ada owns boat number {number}.")
    await kit.say("I own a boat.")
    kit.model.answers = [[]]
    await kit.extraction(candidates=3).extract(kit.chat)
    known = kit.model.seen.partition("\n\nThe new turns:")[0].split("\n")
    assert [line[:2] for line in known] == ["0.", "1.", "2."]


async def test_a_change_closes_the_old_fact_and_keeps_it(kit: Kit) -> None:
    since = datetime(2018, 1, 1, tzinfo=UTC)
    old = await kit.facts.add("ada", "Ada lives in Paris.", slot="home", valid_from=since)
    await kit.say("I moved to Rome in 2024.")
    answer = news("supersedes", 0, "Ada lives in Rome.", slot="home", **{"from": "2024"})
    kit.model.answers = [[answer]]
    done = await kit.extraction().extract(kit.chat)
    assert done.closed == (old.id,)
    assert await kit.texts() == ["Ada lives in Rome."]
    paris, rome = await kit.fact("Ada lives in Paris."), await kit.fact("Ada lives in Rome.")
    assert paris.valid_to == rome.valid_from == datetime(2024, 1, 1, tzinfo=UTC)
    assert (paris.superseded_by, paris.expired) == (rome.id, rome.created)

    async def where(**when: Any) -> list[str]:
        hits = await kit.facts.search("ada", "Where does Ada live?", min_score=None, **when)
        return [hit.fact.text for hit in hits]

    before = paris.expired - timedelta(milliseconds=1)
    assert await where() == ["Ada lives in Rome."]
    assert await where(as_of=datetime(2020, 1, 1, tzinfo=UTC)) == ["Ada lives in Paris."]
    assert await where(known_at=before) == ["Ada lives in Paris."]


async def test_late_news_is_stored_closed_and_disjoint_times_stay(kit: Kit) -> None:
    since = datetime(2018, 1, 1, tzinfo=UTC)
    await kit.facts.add("ada", "Ada lives in Paris.", slot="home", valid_from=since)
    await kit.say("Before, from 2010 on, I lived in Oslo. From 2003 to 2005 in Kyiv.")
    kit.model.answers = [
        [
            news("supersedes", 0, "Ada lives in Oslo.", slot="home", **{"from": "2010"}),
            news(
                "supersedes", 0, "Ada lives in Kyiv.", slot="home", **{"from": "2003", "to": "2005"}
            ),
        ]
    ]
    done = await kit.extraction().extract(kit.chat)
    assert done.closed == ()
    paris = await kit.fact("Ada lives in Paris.")
    oslo, kyiv = await kit.fact("Ada lives in Oslo."), await kit.fact("Ada lives in Kyiv.")
    assert (paris.valid_to, paris.expired) == (None, None)
    assert (oslo.valid_from.year, oslo.valid_to) == (2010, since)
    assert (kyiv.valid_from.year, kyiv.valid_to) == (2003, datetime(2006, 1, 1, tzinfo=UTC))


async def test_a_change_to_come_leaves_the_old_fact_true_until_then(kit: Kit) -> None:
    await kit.facts.add("ada", "Ada lives in Paris.", slot="home")
    await kit.say("In 2090 I will move to Rome.")
    answer = news("supersedes", 0, "Ada lives in Rome.", slot="home", **{"from": "2090"})
    kit.model.answers = [[answer]]
    await kit.extraction().extract(kit.chat)
    hits = await kit.facts.search("ada", "Where does Ada live?", min_score=None)
    assert [hit.fact.text for hit in hits] == ["Ada lives in Paris."]
    then = datetime(2091, 1, 1, tzinfo=UTC)
    hits = await kit.facts.search("ada", "Where does Ada live?", min_score=None, as_of=then)
    assert [hit.fact.text for hit in hits] == ["Ada lives in Rome."]


async def test_what_is_retracted_is_true_no_more_and_kept(kit: Kit) -> None:
    await kit.facts.add("ada", "Ada sails on Sundays.")
    await kit.say("I do not sail on Sundays any more.")
    kit.model.answers = [[news("retracts", 0, "Ada sails on Sundays.")]]
    done = await kit.extraction().extract(kit.chat)
    assert len(done.closed) == 1
    assert await kit.texts() == []
    assert await kit.texts(include_closed=True) == ["Ada sails on Sundays."]


async def test_a_duplicate_adds_a_source(kit: Kit) -> None:
    known = await kit.facts.add("ada", "Ada lives in Paris.", sources=["before"])
    await kit.say("I am in Paris.", turn_id="t1")
    kit.model.answers = [[{"verdict": "duplicate", "of": 0, "turns": [1]}]]
    done = await kit.extraction().extract(kit.chat)
    assert (done.new, done.seen) == ((), (known.id,))
    assert (await kit.fact("Ada lives in Paris.")).sources == ("before", "t1")


@pytest.mark.parametrize("text", ["ada lives  in PARIS.", "Ada is living in Paris"])
async def test_what_the_model_took_for_new_is_not_stored_twice(kit: Kit, text: str) -> None:
    known = await kit.facts.add("ada", "Ada lives in Paris.")
    await kit.say("I live in Paris.", turn_id="t1")
    kit.model.answers = [[new(text)]]
    done = await kit.extraction().extract(kit.chat)
    assert (done.new, done.seen) == ((), (known.id,))
    assert (await kit.fact("Ada lives in Paris.")).sources == ("t1",)


@pytest.mark.parametrize(
    "text", ["Ada has 3 cats.", "Bob has 2 cats.", "Ada has no 2 cats.", "Ada has 2 dogs."]
)
async def test_what_only_looks_like_a_duplicate_is_stored(kit: Kit, text: str) -> None:
    await kit.facts.add("ada", "Ada has 2 cats.")
    await kit.say("Something.")
    kit.model.answers = [[new(text)]]
    await kit.extraction().extract(kit.chat)
    assert await kit.texts() == sorted(["Ada has 2 cats.", text])


async def test_a_fact_gives_way_to_nothing_that_has_nothing_to_do_with_it(kit: Kit) -> None:
    await kit.facts.add("ada", "Ada sails on Sundays.")
    await kit.say("I like Sundays and bread.")
    kit.model.answers = [[news("supersedes", 0, "The user likes bread.")]]
    done = await kit.extraction().extract(kit.chat)
    assert (done.closed, done.notes["refused"]) == ((), 1)
    assert await kit.texts() == ["Ada sails on Sundays.", "The user likes bread."]


async def test_a_fact_that_was_true_before_can_be_true_again(kit: Kit) -> None:
    extraction = kit.extraction()
    for text in ("Ada lives in Paris.", "Ada lives in Rome.", "Ada lives in Paris."):
        await kit.say(text)
        known = await kit.texts()
        kit.model.answers = [
            [news("supersedes", 0, text, slot="home") if known else new(text, slot="home")]
        ]
        await extraction.extract(kit.chat)
    assert await kit.texts() == ["Ada lives in Paris."]
    every = await kit.texts(include_closed=True)
    assert every == ["Ada lives in Paris.", "Ada lives in Paris.", "Ada lives in Rome."]


async def test_many_turns_are_read_in_batches_without_a_gap(kit: Kit) -> None:
    await kit.say(*(f"I own boat number {number}." for number in range(1, 24)))
    kit.model.answers = [
        [new(f"Ada owns boat number {first + turn}.", turn + 1) for turn in range(count)]
        for first, count in ((1, 5), (6, 5), (11, 5), (16, 5), (21, 3))
    ]
    done = await kit.extraction(turns=5).extract(kit.chat)
    assert (done.turns, len(done.new)) == (23, 23)
    for number in range(1, 24):
        (turn,) = [
            turn for turn in await kit.chat.turns(50) if f"number {number}." in str(turn.messages)
        ]
        assert (await kit.fact(f"Ada owns boat number {number}.")).sources == (turn.id,)


async def test_turns_that_were_dropped_as_the_oldest_are_passed_over(
    kit: Kit, new_store: NewStore
) -> None:
    small = new_store(max_messages=6)
    chat = small.conversation("c1", owner="ada")
    for number in range(1, 11):
        await chat.append([f"I own boat number {number}."])
    kit.model.answers = [[], [], []]
    done = await kit.extraction(turns=2).extract(chat)
    assert done.turns == 6
    assert "boat number 5." in kit.model.prompts[0]
    assert "boat number 10." in kit.model.prompts[2]
    assert (await kit.extraction().extract(chat)).turns == 0


async def test_a_turn_that_goes_on_is_read_on(kit: Kit) -> None:
    extraction = kit.extraction()
    await kit.say("I live in Paris.", turn_id="t1")
    kit.model.answers = [[new("Ada lives in Paris.")], [new("Ada sails.")]]
    await extraction.extract(kit.chat)
    await kit.chat.append("And I sail.", turn_id="t2", continues=True)
    done = await extraction.extract(kit.chat)
    assert (done.turns, done.undone) == (1, 0)
    assert "And I sail." in kit.model.seen
    assert (await kit.fact("Ada sails.")).sources == ("t2",)
    assert await kit.texts() == ["Ada lives in Paris.", "Ada sails."]


async def test_an_owner_is_never_shown_or_changed_by_another_one(kit: Kit) -> None:
    await kit.facts.add("bob", "Bob lives in Paris.", slot="home")
    await kit.say("I live in Paris.")
    kit.model.answers = [[new("Bob lives in Rome.", slot="home")]]
    await kit.extraction().extract(kit.chat)
    assert "Bob" not in kit.model.seen
    assert [fact.text for fact in await kit.facts.list("bob")] == ["Bob lives in Paris."]


async def test_exchanges_are_no_candidates(kit: Kit) -> None:
    await kit.facts.add_exchange("ada", "c0", "t0", "user: I live in Paris.\nassistant: Nice.")
    await kit.say("I live in Paris.")
    kit.model.answers = [[]]
    await kit.extraction().extract(kit.chat)
    assert kit.model.seen.startswith("(nothing)\n")


async def test_a_conversation_of_nobody_is_refused_before_anything_is_sent(
    kit: Kit, new_store: NewStore
) -> None:
    chat = kit.store.conversation("c1")
    with pytest.raises(ValueError, match="owner"):
        await kit.extraction().extract(chat)
    other = new_store(name="another").conversation("c1", owner="ada")
    with pytest.raises(ValueError, match="another store"):
        await kit.extraction().extract(other)
    with pytest.raises(TypeError, match="conversation"):
        await kit.extraction().extract("c1")  # type: ignore[arg-type]  # as said
    for owner in ("", None, 7):
        with pytest.raises((TypeError, ValueError), match="owner"):
            await kit.extraction().run(owner)  # type: ignore[arg-type]  # as said


async def test_all_conversations_of_an_owner_are_read(kit: Kit) -> None:
    for identifier in ("c1", "c2", "c3"):
        await kit.store.conversation(identifier, owner="ada").append(f"I am in {identifier}.")
    await kit.store.conversation("c1", owner="bob").append("I am Bob.")
    kit.model.answers = [[new(f"Ada speaks in {number}.")] for number in range(3)]
    assert (await kit.extraction().run("ada")).turns == 3
    facts = await kit.facts.list("ada")
    assert {fact.conversation for fact in facts} == {"c1", "c2", "c3"}
    assert (await kit.extraction().run("ada")).turns == 0


async def test_one_conversation_that_fails_keeps_no_other_from_being_read(kit: Kit) -> None:
    for identifier in ("c1", "c2"):
        await kit.store.conversation(identifier, owner="ada").append(f"I am in {identifier}.")
    kit.model.answers = [ConnectionError("no model today"), [new("Ada sails.")]]
    with pytest.raises(ConnectionError, match="today"):
        await kit.extraction().run("ada")
    assert await kit.texts() == ["Ada sails."]


async def test_a_template_of_ones_own(kit: Kit) -> None:
    await kit.say("I sail.")
    kit.model.answers = [[]]
    template = 'Known: {facts}\nSaid: {transcript}\nAs {"facts": []}, please.'
    await kit.extraction(template=template).extract(kit.chat)
    (prompt,) = kit.model.prompts
    assert prompt.startswith("Known: (nothing)\nSaid: Turn 1, ")
    assert prompt.endswith('As {"facts": []}, please.')


async def test_a_client_of_the_openai_sdk_is_a_model(kit: Kit) -> None:
    is_sync = isinstance(inner(kit.facts), Facts)
    with ModelServer() as server:
        options: Any = {"base_url": server.base_url, "api_key": "none", "max_retries": 0}
        client: Any = OpenAI(**options) if is_sync else AsyncOpenAI(**options)
        kit.model = client
        await kit.say("I sail.")
        server.script(Reply(json.dumps({"facts": [new("Ada sails.")]})), to="extraction")
        made = await kit.extraction(model="gpt-x").extract(kit.chat)
        (request,) = server.requests
        if is_sync:
            client.close()
        else:
            await client.close()
    assert (made.turns, await kit.texts()) == (1, ["Ada sails."])
    assert request.body["model"] == "gpt-x"
    assert "user: I sail." in request.messages[0]["content"]


async def test_what_is_stored_is_redacted(
    new_store: NewStore, new_kit: Callable[[AsyncStore], Kit]
) -> None:
    def redact(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            {**message, "content": message["content"].replace("4711", "****")}
            for message in messages
        ]

    kit = new_kit(new_store(redact=redact))
    await kit.say("My number is 4711.")
    kit.model.answers = [
        [new("Ada's number is 4711.", slot="no 4711")],
        "a letter with 4711",
        "a letter with 4711",
    ]
    extraction = kit.extraction()
    await extraction.extract(kit.chat)
    assert await kit.texts() == ["Ada's number is ****."]
    assert [fact.slot for fact in await kit.facts.list("ada")] == ["no ****"]
    await kit.say("Good bye.")
    with pytest.raises(Exception, match="JSON"):
        await extraction.extract(kit.chat)
    assert [letter.answer for letter in await extraction.dead_letters("ada")] == [
        "a letter with ****"
    ]
