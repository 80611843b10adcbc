from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.servers import found
from turnstore.server import EmbeddedServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def embedded() -> Iterator[EmbeddedServer]:
    """Give a server of these tests' own, whatever `REDIS_URL` says."""
    if not found.binaries():
        found.lack("no server binary on this machine")
    with EmbeddedServer(binary=found.binaries()[0]) as server:
        yield server
