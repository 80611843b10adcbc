"""The fixtures of tests of the store of facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from tests.facts.meaning.kit import facts_in
from tests.facts.store.raw import Raw, look

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.running import Server
    from turnstore import AsyncStore
    from turnstore.facts import AsyncFacts


class NewFacts(Protocol):
    """Makes facts that run on both clients; see the fixture `new_facts`."""

    def __call__(self, store: AsyncStore | None = ..., **options: Any) -> AsyncFacts: ...


@pytest.fixture
def new_facts(new_store: NewStore, engine: str) -> NewFacts:
    """Make facts for a test that is written once, for AsyncFacts, and runs on Facts too."""

    def make(store: AsyncStore | None = None, **options: Any) -> AsyncFacts:
        return facts_in(store or new_store(), **{"engine": engine, **options})

    return make


@pytest.fixture
def facts(new_facts: NewFacts) -> AsyncFacts:
    """Give facts with the default options, and a time to live."""
    return new_facts()


@pytest.fixture
def raw(server: Server, facts: AsyncFacts) -> Callable[..., Raw]:
    """Look at what lies in Redis of an owner; fails where its parts do not agree."""

    def look_at(owner: str = "ada") -> Raw:
        return look(server, facts, owner)

    return look_at
