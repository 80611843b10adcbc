"""How these tests talk to Google's client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2
from google.genai import Client, types

if TYPE_CHECKING:
    from turnstore.testing import ModelServer

Json = dict[str, Any]


def client_of(model: ModelServer, kind: type[Client] = Client, **options: Any) -> Client:
    # Without a transport the SDK takes aiohttp, where it is installed, with a warning.
    transport = {"transport": httpx2.AsyncHTTPTransport()}
    http = types.HttpOptions(base_url=model.url, async_client_args=transport, **options)
    return kind(api_key="none", http_options=http)


def ask(client: Any, contents: Any, **config: Any) -> Any:
    return client.models.generate_content(
        model="m", contents=contents, config=types.GenerateContentConfig(**config)
    )


def stream(client: Any, contents: Any, **config: Any) -> list[Any]:
    return list(
        client.models.generate_content_stream(
            model="m", contents=contents, config=types.GenerateContentConfig(**config)
        )
    )


def said(reply: Any) -> str:
    """Give the text of a reply, or of the chunks of one."""
    if isinstance(reply, list):
        return "".join(map(said, reply))
    content = reply.candidates[0].content if reply.candidates else None
    parts = content.parts if content else None
    return "".join(part.text or "" for part in parts or () if not part.thought)


def user(*parts: Any) -> Json:
    return {"role": "user", "parts": [_part(part) for part in parts]}


def model_said(*parts: Any) -> Json:
    return {"role": "model", "parts": [_part(part) for part in parts]}


def _part(part: Any) -> Any:
    return {"text": part} if isinstance(part, str) else part


def body(*parts: Any, finish: str | None = "STOP", **candidate: Any) -> Json:
    """Make the JSON of a whole reply, or of a chunk."""
    made = {"content": model_said(*parts), **candidate}
    return {"candidates": [made | ({"finishReason": finish} if finish else {})]}


def weather(city: str) -> str:
    """Say how warm it is.

    Args:
        city: Where.
    """
    return f"21 degrees in {city}"
