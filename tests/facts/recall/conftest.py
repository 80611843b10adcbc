"""The fixtures of tests of recall and of exchanges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.facts.recall.kit import Memory, facts_in

if TYPE_CHECKING:
    from tests.conftest import NewStore


@pytest.fixture
def memory(new_store: NewStore, engine: str) -> Memory:
    """Give a store with facts."""
    store = new_store()
    return Memory(store, facts_in(store, engine=engine))
