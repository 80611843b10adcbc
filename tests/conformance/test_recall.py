"""What was said in one conversation is known in another one of the same owner, and of no other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.marks import ONE_SERVER
from tests.conformance.test_failures import spoken
from tests.conformance.views import kept, stored
from tests.facts.meaning.kit import facts_in
from tests.servers.facade import inner
from turnstore.context import Context
from turnstore.facts import AsyncExchanges, Exchanges, Recall
from turnstore.testing import Reply

if TYPE_CHECKING:
    from tests.conformance.driver import Driver
    from turnstore import AsyncStore

pytestmark = ONE_SERVER

QUESTION = "What is my cat called?"


@pytest.mark.parametrize("stream", [False, True])
async def test_an_exchange_is_recalled_in_another_conversation_of_its_owner(
    driver: Driver, store: AsyncStore, *, stream: bool
) -> None:
    facts = facts_in(store, engine="plain")
    context = _context(driver, facts)

    def memory(conversation: str, owner: str) -> Any:
        chat = store.conversation(conversation, owner=owner)
        return driver.remember(chat, context=context)

    driver.script(Reply("I will remember it."))
    await spoken(driver, memory("one", "ada"), "My cat is called Tom.", stream=stream)
    (exchange,) = await facts.list("ada")
    assert "My cat is called Tom." in exchange.text
    assert "I will remember it." in exchange.text

    driver.script(Reply("Tom."), Reply("I do not know."))
    assert await spoken(driver, memory("two", "ada"), QUESTION, stream=stream) == "Tom."
    assert str(driver.asked[-1]).count("cat is called Tom") == 1
    await spoken(driver, memory("three", "bob"), QUESTION, stream=stream)
    assert "Tom" not in str(driver.asked[-1])

    two = store.conversation("two", owner="ada")
    assert await stored(two) == [[QUESTION, "Tom."]]
    assert "is called Tom" not in str(await kept(two))
    assert len(await facts.list("ada")) == 2
    assert context.counts == {}


def _context(driver: Driver, facts: Any) -> Context:
    of_kind = inner(facts)
    after: Any = Exchanges(of_kind) if driver.kind == "sync" else AsyncExchanges(of_kind)
    return Context(sources=[Recall(of_kind, deadline=30)], after=[after])
