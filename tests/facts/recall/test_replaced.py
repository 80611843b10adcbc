"""What was remembered of a turn that another one replaces: not recalled for it, and forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.facts.meaning.kit import Kit, Model, new
from tests.servers.facade import inner
from turnstore.context import Context, Query, SavedTurn

if TYPE_CHECKING:
    from tests.facts.recall.kit import Memory

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
    assert turn.saved is not None
    assert any("In c?" in text for text in await memory.texts()), "until it is forgotten"
    assert await memory.facts.forget_turns("ada", "c", turn.saved.replaced_ids) == 1
    left = await memory.texts()
    assert not any("In c?" in text for text in left)
    assert any("Oslo" in text for text in left)


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
