"""An erasure of facts that another one overtakes: what it counts, and when it stops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.store.raw import place_of
from tests.servers.facade import inner
from turnstore._calls import Together
from turnstore.facts._storing.erasing import Eraser
from turnstore.facts.engines._index import Found

if TYPE_CHECKING:
    from turnstore.facts import AsyncFacts

pytestmark = pytest.mark.one_setup

IDS = [f"{number:012}" for number in range(900)]


class Replies:
    """Answers what an erasure asks for; each deletion has one of the states."""

    def __init__(self, registry: bytes, *states: int) -> None:
        self.registry = registry
        self.states = list(states)

    def __call__(self, call: Any) -> Any:
        if isinstance(call, Together):  # what there is
            return [["search:abc"], IDS, 0, 0, 0, 0]
        if call.command == "hkeys":
            assert call.keys == (self.registry,)
            return ["current"]
        if call.command == "ft.search":
            return Found(1, {b"document": None}, has_warnings=True)
        if call.command.name == "facts_exchanges":
            return 0, ""
        assert call.command.name == "erase_some"
        return [self.states.pop(0), 0]


def erased(facts: AsyncFacts, *states: int) -> dict[str, int]:
    ground = inner(facts)._base.ground
    replies = Replies(ground.registry, *states)
    flow = Eraser(ground).everything(place_of(facts, "ada").owner_keys, 5)
    reply = None
    while True:
        try:
            reply = replies(flow.send(reply))
        except StopIteration as done:
            assert replies.states == [], "it stopped too early"
            counted: dict[str, int] = done.value
            return counted


@pytest.mark.parametrize("state", [0, 2])
@pytest.mark.parametrize("before", [0, 1, 2])
def test_what_another_one_deleted_is_not_counted(
    facts: AsyncFacts, before: int, state: int
) -> None:
    assert erased(facts, *[1] * before, state) == {}


@pytest.mark.parametrize("state", [0, 2])
def test_it_does_not_delete_documents_after_another_one_has_ended(
    facts: AsyncFacts, state: int
) -> None:
    batches = len(IDS) // 50 + 1  # of documents, and one of the other keys
    assert erased(facts, *[1] * batches, state)["facts"] == len(IDS)
