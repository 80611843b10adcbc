"""A server that stands still while facts are recalled: the turn goes on, and the next are right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.facts.recall.kit import Memory, facts_in
from tests.servers.facade import inner
from tests.servers.proxy import Cut
from turnstore.context import Context
from turnstore.facts import Recall

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy

ASKED = "Where does Ada live?"


@pytest.mark.servers("redis-7", "redis-8.2", "valkey")
async def test_a_server_that_stands_still_holds_up_no_turn(
    new_store: NewStore, memory: Memory, proxy: Proxy, engine: str
) -> None:
    await memory.facts.add("ada", "Ada lives in Paris.")
    far = facts_in(new_store(at=proxy), engine=engine)
    patient = Context(sources=[Recall(inner(far), deadline=None, min_score=0.3)])
    assert "Paris" in await memory.ask(ASKED, patient, chat="before")

    recall = Recall(inner(far), deadline=0.05, min_score=0.3)
    hasty = Context(sources=[recall])
    proxy.next(Cut.NEVER, delay_seconds=2)
    assert await memory.ask(ASKED, hasty, chat="still") == ""
    assert (hasty.counts, recall.failures) == ({"recall": 1}, 1)
    # What comes late is nobody's answer.
    assert "Paris" in await memory.ask(ASKED, patient, chat="after")
    assert "Paris" in await memory.ask("And Ada's home is in?", patient, chat="again")
