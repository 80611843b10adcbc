"""A model server for each test, a sync client for it, and that client with a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from anthropic import Anthropic

from turnstore.testing import ModelServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turnstore import Conversation


@pytest.fixture
def base(model: ModelServer) -> Iterator[Anthropic]:
    with Anthropic(base_url=model.url, api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture
def ada(chat: Conversation, base: Anthropic) -> Any:
    return chat.wrap(base)
