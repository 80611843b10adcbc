"""What is particular to Railtracks, in an environment of its own: `make test-railtracks`."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnstore import AsyncStore

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it asks the network
os.environ.setdefault("RAILTRACKS_DISABLE_EVENTS", "True")  # else each session writes a file

# Railtracks needs an older openai than the other frameworks.
collect_ignore_glob = [] if find_spec("railtracks") else ["test_*.py"]


@pytest.fixture
def conversation(store: AsyncStore) -> Callable[[str], Any]:
    """Give what a memory is given: conversations of a Store, or of an AsyncStore."""

    def give(key: str) -> Any:
        seen = store.conversation(key)
        return getattr(seen, "_inner", seen)

    return give
