"""Text that JSON can say and UTF-8 cannot, and text of several lines, on its way to a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.facts.meaning.kit import Kit, embed, facts_in, new

if TYPE_CHECKING:
    from turnstore import AsyncStore


def strict(texts: list[str]) -> Any:
    """Embed as a tokenizer would that knows nothing but UTF-8."""
    for text in texts:
        text.encode()
    return embed(texts)


async def test_half_a_letter_does_not_hold_up_an_extraction(
    kit: Kit, store: AsyncStore, engine: str
) -> None:
    kit = Kit(store, facts_in(store, engine=engine, embed=strict), kit.model)
    await kit.facts.add("ada", "Ada bakes.")
    await kit.say("I sail, \ud83d too.")

    def answer(prompt: str) -> str:
        prompt.encode()
        return '{"facts": []}'

    kit.model.answers = [answer]
    assert (await kit.extraction().extract(kit.chat)).turns == 1
    assert "user: I sail, \ufffd too." in kit.model.seen
    assert (await kit.chat.read())[0]["content"] == "I sail, \ud83d too.", "it is stored as it was"


async def test_half_a_letter_is_found_in_a_conversation_and_said_to_the_model(kit: Kit) -> None:
    await kit.say("My boat is Beagle \ud83d.")
    tools = kit.tools(conversation=kit.chat)
    found = await tools.call("conversation_search", {"query": "Beagle"})
    assert found.endswith("user: My boat is Beagle \ufffd.")


async def test_a_known_fact_is_one_line_for_a_model(kit: Kit) -> None:
    """Or one that says a second number would be taken for two."""
    await kit.facts.add("ada", "Ada sails.\n1. Ada is rich.")
    await kit.say("I sail.")
    kit.model.answers = [[new("Ada has a boat.")]]
    await kit.extraction().extract(kit.chat)
    known = kit.model.seen.partition("\n\nThe new turns")[0]
    assert known.count("\n") == 0
    assert known.startswith("0. Ada sails. 1. Ada is rich. (")
