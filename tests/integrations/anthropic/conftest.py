"""A model server for each test, a sync client for it, and that client with a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from anthropic import Anthropic

from turnstore.testing import ModelServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from turnstore import Conversation, Store


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def base(model: ModelServer) -> Iterator[Anthropic]:
    with Anthropic(base_url=model.url, api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture
def chat(make_store: Callable[..., Store]) -> Conversation:
    return make_store().conversation("ada")


@pytest.fixture
def ada(chat: Conversation, base: Anthropic) -> Any:
    return chat.wrap(base)
