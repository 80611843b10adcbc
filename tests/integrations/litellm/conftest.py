"""A model server for each test, and providers that are functions of the test's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import litellm
import pytest

from tests.integrations.litellm.talking import Scripted
from tests.litellms import close_clients
from turnstore import AsyncStore, Store
from turnstore.testing import ModelServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from turnstore import AsyncConversation, Conversation


@pytest.fixture(autouse=True)
async def _closed() -> AsyncIterator[None]:
    yield
    await close_clients()


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running
        assert not running._desk.left, "more was scripted than the model was asked for"


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    """Give a provider whose models are `scripted/…`, and that streams what it is told to."""
    made = Scripted()
    litellm.custom_provider_map = [{"provider": "scripted", "custom_handler": made}]
    yield made
    litellm.custom_provider_map = []


@pytest.fixture
def nowhere() -> Conversation:
    """Give a conversation of a store that is not there."""
    return Store.from_url("redis://127.0.0.1:1", name="t").conversation("ada")


@pytest.fixture
def anowhere() -> AsyncConversation:
    """Give an async one."""
    return AsyncStore.from_url("redis://127.0.0.1:1", name="t").conversation("ada")


@pytest.fixture
def achat(make_async_store: Callable[..., AsyncStore]) -> AsyncConversation:
    return make_async_store().conversation("ada")
