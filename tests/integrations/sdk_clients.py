"""The clients of the SDKs that a summary or an extraction takes for its model."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI

from tests.integrations.google.talking import client_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from turnstore.testing import ModelServer


@asynccontextmanager
async def sdk_client(sdk: str, model: ModelServer, *, is_async: bool) -> AsyncGenerator[Any]:
    """Give a client of an SDK, sync or async, that asks a model server."""
    if sdk == "google":
        with client_of(model) as gemini:
            if is_async:
                async with gemini.aio as aio:
                    yield aio
            else:
                yield gemini
        return
    kinds: Any = {"openai": (OpenAI, AsyncOpenAI), "anthropic": (Anthropic, AsyncAnthropic)}
    url = model.base_url if sdk == "openai" else model.url
    made = kinds[sdk][is_async](base_url=url, api_key="none", max_retries=0)
    if is_async:
        async with made:
            yield made
    else:
        with made:
            yield made
