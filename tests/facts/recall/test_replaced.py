"""What was remembered of a turn that another one replaces: not recalled for it, and forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.facts.meaning.kit import Kit, Model, new
from tests.facts.recall.kit import Memory, facts_in
from tests.facts.recall.test_exchanges import Slow
from tests.servers.facade import inner
from tests.waiting import wait_until_async
from turnstore import UnavailableError
from turnstore.context import Context, Query, SavedTurn
from turnstore.facts import _exchanging

if TYPE_CHECKING:
    from turnstore._calls import Flow

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis", "valkey")]

ASKED = "Where does Ada live?"


async def test_an_answer_is_made_anew_without_the_one_before(memory: Memory) -> None:
    exchanges, seen = memory.exchanges(), []

    def note(turn: SavedTurn) -> None:
        seen.append(turn.appended.replaced_ids)

    def known(query: Query) -> None:
        seen.append(query.replaced)

    recall = memory.recall(exchange_min_score=0.3)
    context = Context(sources=[recall, known], after=[inner(exchanges), note])
    await memory.facts.add("ada", "Ada lives in Paris.")
    for chat in ("c", "other"):
        await memory.ask(f"{ASKED} In {chat}?", context, chat=chat)
    conversation = memory.store.conversation("c", owner="ada")
    (old,) = await conversation.turns()
    seen.clear()
    async with conversation.turn(ASKED, replaces=old, context=context) as turn:
        told = turn.messages[0]["content"]
        assert "In other?" in told
        assert "Paris" in told
        assert "In c?" not in told, "it is about to go"
        turn.reply("In Oslo.")
    assert seen == [old.ids, old.ids]
    left = await memory.texts()
    assert not any("In c?" in text for text in left), "it was forgotten"
    assert any("In other?" in text for text in left)
    assert any("Oslo" in text for text in left)
    assert inner(exchanges).counts == {"stored": 3}


@pytest.mark.parametrize("background", [False, True], ids=["in line", "background"])
async def test_what_is_no_exchange_itself_forgets_those_that_it_replaces(
    memory: Memory, *, background: bool
) -> None:
    exchanges = memory.exchanges(background=background)
    context = Context(after=[inner(exchanges)])
    for chat in ("c", "other"):
        await memory.ask(f"In {chat}.", context, chat=chat)
    await wait_until_async(lambda: inner(exchanges).counts["stored"] == 2)
    await memory.facts.add("ada", "Ada was in c.", conversation="c", sources=["t0"])
    conversation = memory.store.conversation("c", owner="ada")
    old = await conversation.turns()
    async with conversation.turn("In c again.", replaces=old[0], context=context) as turn:
        turn.reply({"role": "assistant", "content": ""})
    assert await exchanges.close() == 0
    assert sorted(await memory.texts(), reverse=True) == [
        "User: In other.\nAssistant: I see.",
        "Ada was in c.",
    ]
    assert inner(exchanges).counts == {"stored": 2, "left_out": 1}


async def test_where_the_forgetting_fails_the_new_exchange_is_stored(
    memory: Memory, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> Flow[int]:
        raise UnavailableError("down")
        yield

    context = Context(after=[inner(memory.exchanges())])
    await memory.ask("In c.", context)
    conversation = memory.store.conversation("c", owner="ada")
    old = await conversation.turns()
    with monkeypatch.context() as broken:
        broken.setattr(_exchanging, "forget_turns", fails)
        async with conversation.turn("Again.", replaces=old[0], context=context) as turn:
            turn.reply("I see.")
    assert "UnavailableError: down" in caplog.text
    assert context.counts == {"after": 1}
    assert [text.partition("\n")[0] for text in await memory.texts()] == [
        *("User: In c.", "User: Again.")
    ]
    assert turn.saved is not None
    assert await memory.facts.forget_turns("ada", "c", turn.saved.replaced_ids) == 1


async def test_what_waits_forgets_nothing_later(memory: Memory, engine: str) -> None:
    """A turn may have the id of a replaced one again, as where a queue delivers a job twice."""
    conversation = memory.store.conversation("c", owner="ada")
    await conversation.append(["One.", {"role": "assistant", "content": "I see."}], turn_id="job")
    slow = Slow()
    facts = facts_in(memory.store, embed=slow, engine=engine)
    exchanges = Memory(memory.store, facts).exchanges(background=True)
    context = Context(after=[inner(exchanges)])
    async with conversation.turn("Two.", replaces="job", context=context) as turn:
        turn.reply("I see.")
    await conversation.append(["One.", {"role": "assistant", "content": "I see."}], turn_id="job")
    slow.go.set()
    await facts.add_exchange("ada", "c", "job", "User: One.\nAssistant: I see.")
    assert await exchanges.close() == 0
    assert len(await memory.texts()) == 2


@pytest.mark.parametrize("which", [0, 1])
async def test_an_extraction_notices(memory: Memory, which: int) -> None:
    kit = Kit(memory.store, memory.facts, Model())
    await kit.say("I sail.")
    await kit.say("I bake.")
    kit.model.answers = [[new("Ada sails."), new("Ada bakes.", 2)]]
    await kit.extraction().extract(kit.chat)
    async with kit.chat.turn("I paint.", replaces=(await kit.chat.turns())[which]) as turn:
        turn.reply("How nice.")
    kit.model.answers = [
        [new("Ada paints.")] if which == 0 else [new("Ada sails."), new("Ada paints.", 2)]
    ]
    done = await kit.extraction().extract(kit.chat)
    assert done.undone == 1
    assert await kit.texts() == ["Ada paints.", "Ada sails."][: which + 1]
