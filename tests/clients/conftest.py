"""A model server for each test, and the real openai package's clients for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from openai import OpenAI

from turnstore.testing import ModelServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """Give a model server of the test's own."""
    with ModelServer() as running:
        yield running


@pytest.fixture
def client(model: ModelServer) -> Iterator[OpenAI]:
    """Give a client for it that tries nothing again."""
    with OpenAI(base_url=model.base_url, api_key="none", max_retries=0) as opened:
        yield opened
