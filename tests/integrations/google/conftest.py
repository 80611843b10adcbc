"""A model server for each test, Google's client for it, and that client with a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.integrations.google.talking import client_of
from turnstore.testing import ModelServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from google.genai import Client

    from turnstore import AsyncConversation, AsyncStore, Conversation


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running
        assert not running._desk.left, "more was scripted than the model was asked for"


@pytest.fixture
async def base(model: ModelServer) -> AsyncIterator[Client]:
    client = client_of(model)
    yield client
    await client.aio.aclose()
    client.close()


@pytest.fixture
def ada(chat: Conversation, base: Client) -> Any:
    return chat.wrap(base)


@pytest.fixture
def async_chat(make_async_store: Callable[..., AsyncStore]) -> AsyncConversation:
    return make_async_store().conversation("ada")
