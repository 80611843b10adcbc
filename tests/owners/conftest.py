from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.owners.helping import Owner
from turnstore import Store

if TYPE_CHECKING:
    from tests.servers.running import Server


@pytest.fixture(autouse=True)
def _without_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process be one that has not imported facts; other tests of it have."""
    monkeypatch.setattr("turnstore._erasing.ERASERS", [])


@pytest.fixture
def ada(server: Server, prefix: str) -> Owner:
    """Give what is stored of the owner `ada`."""
    return Owner(server, prefix)


@pytest.fixture
def behind(server: Server, prefix: str) -> Store:
    """Give the store as another process has it, for what happens in between."""
    return Store(server.raw, name="test", prefix=prefix)
