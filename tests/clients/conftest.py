"""A model server for each test, the real openai package's clients for it, and memories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest
from openai import AsyncOpenAI, OpenAI

from tests.clients.talking import CHAT, RESPONSES, Api
from tests.clients.views import as_async
from turnstore.testing import ModelServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from tests.servers.setups import Setup
    from turnstore import AsyncConversation, AsyncStore


@pytest.fixture
def client(model: ModelServer) -> Iterator[OpenAI]:
    """Give a sync client for it that tries nothing again."""
    with OpenAI(base_url=model.base_url, api_key="none", max_retries=0) as opened:
        yield opened


@pytest.fixture
async def base(setup: Setup, model: ModelServer) -> AsyncIterator[OpenAI | AsyncOpenAI]:
    """Give the client to be wrapped: sync with a sync store, async with an async one."""
    if setup.client == "sync":
        with OpenAI(base_url=model.base_url, api_key="none", max_retries=0) as opened:
            yield opened
    else:
        client = AsyncOpenAI(base_url=model.base_url, api_key="none", max_retries=0)
        async with client:
            yield client


@pytest.fixture(params=[CHAT, RESPONSES], ids=lambda api: api.name)
def api(request: pytest.FixtureRequest) -> Api:
    """Give each of the two endpoints."""
    chosen: Api = request.param
    return chosen


class Wrap(Protocol):
    """Gives the base client a memory; see the fixture `wrap`."""

    def __call__(self, chat: AsyncConversation, /, **options: Any) -> AsyncOpenAI: ...


@pytest.fixture
def wrap(base: OpenAI | AsyncOpenAI) -> Wrap:
    """Wrap the base client; on a sync store, the result is a view that looks like an async one."""

    def wrapped(chat: AsyncConversation, /, **options: Any) -> AsyncOpenAI:
        return as_async(chat.wrap(base, **options))

    return wrapped


@pytest.fixture
def chat(store: AsyncStore) -> AsyncConversation:
    """Give an empty conversation."""
    return store.conversation("ada")


@pytest.fixture
def far(new_store: NewStore, proxy: Proxy) -> AsyncConversation:
    """Give an empty conversation behind the proxy."""
    return new_store(at=proxy).conversation("ada")


@pytest.fixture
def ada(wrap: Wrap, chat: AsyncConversation) -> AsyncOpenAI:
    """Give a client with the memory of `chat`."""
    return wrap(chat)
