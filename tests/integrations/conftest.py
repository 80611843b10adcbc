"""The fixture of those that take the client of an SDK for their model: summaries, extractions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.servers.setups import Setup
    from turnstore.testing import ModelServer


@pytest.fixture(params=["openai", "anthropic", "google"])
async def client(
    request: pytest.FixtureRequest, setup: Setup, model: ModelServer
) -> AsyncIterator[Any]:
    """Give a client of each SDK, of the kind that the store is."""
    from tests.integrations.sdk_clients import sdk_client  # noqa: PLC0415 - not beside Railtracks

    async with sdk_client(request.param, model, is_async=setup.client == "async") as made:
        yield made
