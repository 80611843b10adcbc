"""The SDK's API client for one call: requests get the history, and replies are noted as JSON."""

from __future__ import annotations

import copy
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from google.genai import _common
from google.genai.types import GenerateContentResponse, HttpOptions

from turnstore.clients._google_call import Call

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator
    from contextlib import AsyncExitStack, ExitStack

    from turnstore.clients._deltas import Json


class _OfOneCall:
    """What the two kinds share.

    Args:
        sdk: The SDK's own, which does the rest.
        begin: What begins the turn.
        opened: Takes the turn, and ends it with the call.
    """

    def __init__(self, sdk: Any, begin: Callable[..., Any], opened: Any) -> None:
        self.call = Call(_response)
        self._sdk = sdk
        self._begin = begin
        self._opened = opened

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sdk, name)

    def _whole(self, body: Json, http_options: Any) -> tuple[Json, Any]:
        """Put into a request what the SDK would put into it below: its `extra_body`."""
        of_all = self._sdk._http_options  # noqa: SLF001 - as the SDK does
        extra = getattr(http_options, "extra_body", None) or of_all.extra_body
        if extra:
            _common.recursive_dict_update(body, extra)
            options: HttpOptions = http_options or HttpOptions()
            http_options = options.model_copy(update={"extra_body": {}})
        return body, http_options


class Api(_OfOneCall):
    """For the sync methods, all of which come down to these two."""

    _opened: ExitStack

    def request(self, method: str, path: str, body: Json, http_options: Any = None) -> Any:
        """Ask for a whole reply."""
        body, http_options = self._whole(body, http_options)
        response = self._sdk.request(method, path, self._asking(body), http_options)
        self.call.see(response.body)
        return response

    def request_streamed(
        self, method: str, path: str, body: Json, http_options: Any = None
    ) -> Iterator[Any]:
        """Ask for a stream."""
        body, http_options = self._whole(body, http_options)
        chunks = self._sdk.request_streamed(method, path, self._asking(body), http_options)
        for response in self.call.turn.follow(chunks):
            self.call.see(response.body)
            yield response

    def _asking(self, body: Json) -> Json:
        call = self.call
        if call.takes(body):
            call.loaded(self._opened.enter_context(self._begin(call.given, format=call.format)))
        return call.asking(body)


class AsyncApi(_OfOneCall):
    """For the async methods."""

    _opened: AsyncExitStack

    async def async_request(
        self, method: str, path: str, body: Json, http_options: Any = None
    ) -> Any:
        """Ask for a whole reply."""
        body, http_options = self._whole(body, http_options)
        asking = await self._asking(body)
        response = await self._sdk.async_request(method, path, asking, http_options)
        self.call.see(response.body)
        return response

    async def async_request_streamed(
        self, method: str, path: str, body: Json, http_options: Any = None
    ) -> Any:
        """Ask for a stream."""
        body, http_options = self._whole(body, http_options)
        asking = await self._asking(body)
        chunks = await self._sdk.async_request_streamed(method, path, asking, http_options)
        seen = self._seen(chunks)
        self._opened.push_async_callback(seen.aclose)  # the SDK leaves it to the collector
        return seen

    async def _seen(self, chunks: Any) -> AsyncGenerator[Any]:
        async with aclosing(chunks):
            async for response in self.call.turn.follow(chunks):
                self.call.see(response.body)
                yield response

    async def _asking(self, body: Json) -> Json:
        call = self.call
        if call.takes(body):
            begun = self._begin(call.given, format=call.format)
            call.loaded(await self._opened.enter_async_context(begun))
        return call.asking(body)


def _response(**reply: Any) -> Any:
    """Make the SDK's object of a reply, which lacks what the SDK does not know."""
    made: Any = GenerateContentResponse
    return made._from_response(response=copy.deepcopy(reply), kwargs={})  # noqa: SLF001 - as it does
