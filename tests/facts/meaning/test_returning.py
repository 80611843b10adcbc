from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.meaning.kit import new, news
from tests.facts.store.raw import place_of

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.facts.meaning.kit import Kit, Scripted
    from tests.servers.running import Server
    from turnstore.facts import Extracted

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis-7", "redis-8", "valkey")]


async def read(kit: Kit, *answers: Scripted, **options: Any) -> Extracted:
    kit.model.answers = list(answers)
    return await kit.extraction(**options).extract(kit.chat)


async def test_a_turn_that_is_undone_takes_its_facts_along(kit: Kit) -> None:
    await kit.say("I live in Paris.")
    await read(kit, [new("Ada lives in Paris.", slot="home")])
    await kit.say("I moved to Rome.")
    await read(kit, [news("supersedes", 0, "Ada lives in Rome.", slot="home")])
    await kit.chat.rewind()
    done = await read(kit)
    assert (done.turns, done.undone) == (0, 1)
    paris = await kit.fact("Ada lives in Paris.")
    assert (paris.valid_to, paris.expired, paris.superseded_by) == (None, None, "")
    assert await kit.texts(include_closed=True) == ["Ada lives in Paris."]


async def test_a_retraction_that_is_undone_was_never_said(kit: Kit) -> None:
    await kit.facts.add("ada", "Ada sails.")
    await kit.say("Good morning.", "I do not sail any more.")
    await read(kit, [news("retracts", 0, "Ada sails.", 2)])
    assert await kit.texts() == []
    await kit.chat.rewind()
    await read(kit, [])
    assert await kit.texts() == ["Ada sails."]


async def test_what_is_said_instead_is_read(kit: Kit) -> None:
    await kit.say("I live in Paris.", "I moved to Rome.")
    await read(kit, [new("Ada lives in Paris."), new("Ada moved to Rome.", 2)])
    await kit.chat.rewind()
    await kit.say("I moved to Oslo.", "I like it there.")
    answer = [new("Ada lives in Paris."), new("Ada moved to Oslo.", 2), new("Ada likes Oslo.", 3)]
    done = await read(kit, answer)
    assert (done.turns, done.undone) == (3, 1)
    assert await kit.texts() == ["Ada likes Oslo.", "Ada lives in Paris.", "Ada moved to Oslo."]


async def test_only_what_was_drawn_from_undone_turns_is_undone(kit: Kit) -> None:
    for text in ("I sail.", "I bake.", "I paint.", "I sing."):
        await kit.say(text)
        await read(kit, [new(text)])
    await kit.chat.rewind(2)
    await kit.say("I dance.")
    done = await read(kit, [new("I dance.")])
    assert (done.turns, done.undone) == (1, 2)
    assert "I bake." not in kit.model.seen.partition("The new turns:")[2]
    assert await kit.texts() == ["I bake.", "I dance.", "I sail."]


async def test_a_fact_that_other_turns_say_too_only_loses_its_source(kit: Kit) -> None:
    other = kit.store.conversation("c2", owner="ada")
    await kit.say("Good morning.")
    await kit.say("I sail.", turn_id="t1")
    await read(kit, [new("Ada sails.", 2)])
    await other.append("I sail a lot.", turn_id="t2")
    kit.model.answers = [[{"verdict": "duplicate", "of": 0, "turns": [1]}]]
    await kit.extraction().extract(other)
    assert (await kit.fact("Ada sails.")).sources == ("t1", "t2")
    await kit.chat.rewind()
    await read(kit, [])
    assert (await kit.fact("Ada sails.")).sources == ("t2",)


async def test_a_source_that_is_undone_is_taken_back(kit: Kit) -> None:
    known = await kit.facts.add("ada", "Ada sails.", sources=["before"])
    before = await kit.facts.get("ada", known.id)
    await kit.say("Good morning.", "I sail.")
    await read(kit, [{"verdict": "duplicate", "of": 0, "turns": [2]}])
    await kit.chat.rewind()
    await read(kit, [])
    assert await kit.facts.get("ada", known.id) == before


async def test_undone_turns_that_were_not_read_yet_change_nothing(kit: Kit) -> None:
    await kit.say("I sail.")
    await read(kit, [new("Ada sails.")])
    await kit.say("I bake.")
    await kit.chat.rewind()
    done = await read(kit)
    assert (done.turns, done.undone) == (0, 0)
    assert await kit.texts() == ["Ada sails."]


async def test_a_conversation_that_is_cleared_takes_its_facts_along(kit: Kit) -> None:
    await kit.facts.add("ada", "Ada was born in London.")
    await kit.say("I sail.", "I bake.")
    await read(kit, [new("Ada sails.")], [new("Ada bakes.")], turns=1)
    await kit.chat.clear()
    done = await kit.extraction().run("ada")
    assert (done.turns, done.undone) == (0, 2)
    assert await kit.texts(include_closed=True) == ["Ada was born in London."]


async def test_one_that_is_cleared_and_begun_anew_too(kit: Kit) -> None:
    await kit.say("I sail.", "I bake.")
    await read(kit, [new("Ada sails."), new("Ada bakes.", 2)])
    await kit.chat.clear()
    await kit.say("I paint.")
    done = await read(kit, [new("Ada paints.")])
    assert (done.turns, done.undone) == (1, 1)
    assert await kit.texts(include_closed=True) == ["Ada paints."]


async def test_facts_outlive_a_conversation_that_expires(kit: Kit, server: Server) -> None:
    await kit.say("I sail.", "I bake.")
    await read(kit, [new("Ada sails."), new("Ada bakes.", 2)])
    server.raw.delete(kit.chat.key)  # as if its time were up
    assert (await read(kit)).undone == 0
    await kit.say("I paint.")
    done = await read(kit, [new("Ada paints.")])
    assert (done.turns, done.undone) == (1, 0)
    assert await kit.texts() == ["Ada bakes.", "Ada paints.", "Ada sails."]


@pytest.mark.parametrize("is_read", [True, False], ids=["read", "failed"])
async def test_the_cursors_of_conversations_that_expired_go(
    kit: Kit, server: Server, *, is_read: bool
) -> None:
    """Where facts are kept for longer than conversations, they would become ever more."""
    chats = [kit.store.conversation(f"c{number}", owner="ada") for number in range(3)]
    extraction = kit.extraction()
    for chat in chats:
        await chat.append("I sail.")
        kit.model.answers = [[new("Ada sails.")] if is_read else ConnectionError()]
        with nullcontext() if is_read else pytest.raises(ConnectionError):
            await extraction.extract(chat)
    cursors = place_of(kit.facts, "ada").keys.cursors
    assert server.raw.hlen(cursors) == 3
    for chat in chats[:2]:
        server.raw.delete(chat.key)  # as if their time were up
    kit.model.answers = [] if is_read else [[new("Ada sails.")]]
    assert (await extraction.run("ada")).undone == 0
    assert server.raw.hkeys(cursors) == [place_of(kit.facts, "ada").conversation("c2").encode()]
    assert await kit.texts() == ["Ada sails."]
    await chats[0].append("I paint.")
    kit.model.answers = [[new("Ada paints.")]]
    assert (await extraction.run("ada")).turns == 1, "one that begins anew under the id"
    assert await kit.texts() == ["Ada paints.", "Ada sails."]


async def test_so_do_those_of_conversations_that_were_cleared(kit: Kit, server: Server) -> None:
    await kit.say("I sail.")
    await read(kit, [new("Ada sails.")])
    await kit.chat.clear()
    assert (await kit.extraction().run("ada")).undone == 1
    assert not server.raw.exists(place_of(kit.facts, "ada").keys.cursors)


async def test_facts_outlive_one_that_expires_and_grows_longer(kit: Kit, server: Server) -> None:
    await kit.say("I sail.")
    await read(kit, [new("Ada sails.")])
    server.raw.delete(kit.chat.key)
    await kit.say("I paint.", "I sing.")
    done = await read(kit, [new("Ada paints."), new("Ada sings.", 2)])
    assert (done.turns, done.undone) == (2, 0)
    assert await kit.texts() == ["Ada paints.", "Ada sails.", "Ada sings."]


async def test_facts_outlive_turns_that_are_dropped_as_the_oldest(
    kit: Kit, new_store: NewStore
) -> None:
    small = new_store(max_messages=2).conversation("c1", owner="ada")
    for number in range(1, 6):
        await small.append(f"I own boat number {number}.")
        kit.model.answers = [[new(f"Ada owns boat number {number}.")]]
        done = await kit.extraction().extract(small)
        assert (done.turns, done.undone) == (1, 0)
    await small.rewind()
    await small.append("I own no boat.")
    kit.model.answers = [[new("Ada owns no boat.")]]
    done = await kit.extraction().extract(small)
    assert (done.turns, done.undone) == (1, 1)
    owned = [f"Ada owns boat number {number}." for number in range(1, 5)]
    assert await kit.texts() == [*owned, "Ada owns no boat."]


async def test_where_all_turns_are_undone_their_facts_go(kit: Kit) -> None:
    await kit.facts.add("ada", "Ada was born in London.")
    await kit.say("I sail.", "I bake.")
    await read(kit, [new("Ada sails.")], [new("Ada bakes.")], turns=1)
    await kit.chat.rewind(2)
    done = await kit.extraction().run("ada")
    assert (done.turns, done.undone) == (0, 2)
    assert await kit.texts(include_closed=True) == ["Ada was born in London."]
    assert (await read(kit)).undone == 0


async def test_what_is_said_after_all_was_undone_is_read_once(kit: Kit) -> None:
    await kit.say("I sail.", "I bake.")
    await read(kit, [new("Ada sails."), new("Ada bakes.", 2)])
    await kit.chat.rewind(2)
    await kit.say("I paint.", "I sing.", "I dance.")
    done = await read(kit, [new("Ada paints."), new("Ada sings.", 2), new("Ada dances.", 3)])
    assert (done.turns, done.undone) == (3, 1)
    assert await kit.texts(include_closed=True) == ["Ada dances.", "Ada paints.", "Ada sings."]
    assert (await read(kit)).turns == 0


@pytest.mark.parametrize("before", [[], ["Good morning."]])
async def test_a_turn_that_comes_again_under_its_id_is_read_again(
    kit: Kit, before: list[str]
) -> None:
    await kit.say(*before)
    await kit.say("I sail.", turn_id="t1")
    await read(kit, [new("Ada sails.", len(before) + 1)])
    await kit.chat.rewind()
    await kit.say("I bake.", turn_id="t1")
    done = await read(kit, [new("Ada bakes.", len(before) + 1)])
    assert (done.turns, done.undone) == (len(before) + 1, 1)
    assert await kit.texts(include_closed=True) == ["Ada bakes."]


async def test_a_turn_that_began_before_all_were_undone_is_saved(kit: Kit) -> None:
    await kit.say("I sail.")
    async with kit.chat.turn("I bake.") as turn:
        await kit.chat.rewind()
        turn.reply("I see.")
    assert [turn.messages[0]["content"] for turn in await kit.chat.turns()] == ["I bake."]


async def test_what_was_undone_is_no_more_noted_than_what_was_cleared(
    kit: Kit, server: Server
) -> None:
    await kit.say("I sail.")
    await kit.chat.rewind()
    (key,) = server.raw.scan_iter(match=f"{kit.chat.key.partition('}')[0]}*cleared")
    assert 0 < server.raw.pttl(key) <= 172_800_000
    assert server.raw.zcard(key) == 1
    await kit.store.erase("ada")
    assert not server.raw.exists(key)


async def test_a_fact_that_was_pinned_since_stays(kit: Kit) -> None:
    await kit.say("Good morning.", "I sail.")
    done = await read(kit, [new("Ada sails.", 2)])
    await kit.facts.update("ada", done.new[0], pinned=True)
    await kit.chat.rewind()
    await read(kit, [])
    assert await kit.texts() == ["Ada sails."]


# Turns whose facts were forgotten at once


async def test_an_extraction_after_that_undoes_the_rest(kit: Kit) -> None:
    await kit.say("I live in Paris.")
    await read(kit, [new("Ada lives in Paris.", slot="home")])
    await kit.say("I moved to Rome.")
    await read(kit, [news("supersedes", 0, "Ada lives in Rome.", slot="home")])
    assert await kit.facts.forget_turns("ada", "c1", await kit.chat.rewind()) == 1
    assert await kit.texts() == []
    done = await read(kit)
    assert (done.turns, done.undone) == (0, 1)
    paris = await kit.fact("Ada lives in Paris.")
    assert (paris.valid_to, paris.expired, paris.superseded_by) == (None, None, "")
    assert await kit.texts(include_closed=True) == ["Ada lives in Paris."]
    assert (await read(kit)).undone == 0


async def test_of_turns_read_together_only_those_that_are_gone_are_forgotten(kit: Kit) -> None:
    await kit.say("I sail.", "I bake and sail.")
    await read(kit, [new("Ada sails.", 1, 2), new("Ada bakes.", 2), new("Ada is up.", 1)])
    undone = await kit.chat.rewind()
    assert await kit.facts.forget_turns("ada", "c1", undone) == 1
    assert await kit.texts() == ["Ada is up.", "Ada sails."]
    (kept,) = await kit.chat.turns()
    assert (await kit.fact("Ada sails.")).sources == kept.ids
    await kit.say("I paint.")
    done = await read(kit, [new("Ada sails."), new("Ada paints.", 2)])
    assert (done.turns, done.undone) == (2, 1)
    assert await kit.texts(include_closed=True) == ["Ada paints.", "Ada sails."]
    assert (await kit.facts.health("ada")).is_well


async def test_after_an_extraction_that_noticed_only_exchanges_are_left(kit: Kit) -> None:
    await kit.say("I sail.")
    await kit.say("I bake.", turn_id="t2")
    await read(kit, [new("Ada sails."), new("Ada bakes.", 2)])
    await kit.facts.add_exchange("ada", "c1", "t2", "User: I bake.")
    undone = await kit.chat.rewind()
    done = await read(kit, [new("Ada sails.")])
    assert (done.turns, done.undone) == (1, 1)
    assert await kit.facts.forget_turns("ada", "c1", undone) == 1
    assert await kit.texts() == ["Ada sails."]
    assert (await read(kit)).turns == 0


async def test_a_fact_of_them_that_was_pinned_stays_for_an_extraction_too(kit: Kit) -> None:
    await kit.say("Good morning.", "I sail.")
    done = await read(kit, [new("Ada sails.", 2)])
    await kit.facts.update("ada", done.new[0], pinned=True)
    before = await kit.fact("Ada sails.")
    assert await kit.facts.forget_turns("ada", "c1", await kit.chat.rewind()) == 0
    await read(kit, [])
    assert await kit.fact("Ada sails.") == before


async def test_a_turn_that_comes_again_under_its_id_is_drawn_from(kit: Kit) -> None:
    await kit.say("I sail.", turn_id="t1")
    await read(kit, [new("Ada sails.")])
    await kit.facts.add_exchange("ada", "c1", "t1", "User: I sail.")
    assert await kit.facts.forget_turns("ada", "c1", await kit.chat.rewind()) == 2
    await kit.say("I bake.", turn_id="t1")
    assert not (await kit.facts.add_exchange("ada", "c1", "t1", "User: I bake.")).duplicate
    await read(kit, [new("Ada bakes.")])
    assert await kit.texts(include_closed=True) == ["Ada bakes.", "User: I bake."]
