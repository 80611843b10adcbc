"""A conversation whose turns wait for one another, and its queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.leases.line import Queue

if TYPE_CHECKING:
    from tests.servers.running import Server
    from turnstore import AsyncConversation, AsyncStore


@pytest.fixture
def chat(store: AsyncStore) -> AsyncConversation:
    """Give an empty conversation."""
    return store.conversation("ada")


@pytest.fixture
def queue(server: Server, chat: AsyncConversation) -> Queue:
    """Give the queue of `chat`, seen from behind."""
    return Queue(server, chat)
