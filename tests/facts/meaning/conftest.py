"""The fixtures of tests of extractions and memory tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.facts.meaning.kit import Kit, Model, facts_in

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from turnstore import AsyncStore


@pytest.fixture
def new_kit(engine: str) -> Callable[[AsyncStore], Kit]:
    """Make facts in a store, with a model that nobody has told anything."""
    return lambda store: Kit(store, facts_in(store, engine=engine), Model())


@pytest.fixture
def kit(new_store: NewStore, new_kit: Callable[[AsyncStore], Kit]) -> Kit:
    """Give a store with facts, a model that nobody has told anything, and a conversation."""
    return new_kit(new_store())
