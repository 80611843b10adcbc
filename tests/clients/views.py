"""Makes a sync OpenAI client look like an async one, so that one test runs on both."""

from __future__ import annotations

import asyncio
import inspect
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, cast

from openai import AsyncOpenAI, OpenAI

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

# What asyncio.to_thread raises in place of StopIteration, which no future can carry.
_END = object()


def as_async(client: OpenAI | AsyncOpenAI) -> AsyncOpenAI:
    """Give a view of a sync client with the methods of the async one; that one stays as it is."""
    if isinstance(client, AsyncOpenAI):
        return client
    return cast("AsyncOpenAI", _View(client, _twin()))


@cache
def _twin() -> AsyncOpenAI:
    return AsyncOpenAI(api_key="none", base_url="http://none")  # only looked at


class _View:
    """A sync client, or a part of it, beside its async twin."""

    def __init__(self, inner: object, twin: object) -> None:
        self.inner = inner
        self._twin = twin

    def __getattr__(self, name: str) -> Any:
        value, twin = getattr(self.inner, name), getattr(self._twin, name, None)
        if self._awaits(twin):
            return _in_thread(value)
        if not callable(value):
            return _View(value, twin) if type(value).__module__.startswith("openai") else value

        @wraps(value)
        def call(*args: object, **kwargs: object) -> object:
            made = value(*args, **kwargs)
            return _View(made, self._twin) if isinstance(made, OpenAI) else _seen(made)

        return call

    def _awaits(self, twin: object) -> bool:
        if "StreamingResponse" in type(self._twin).__name__:  # gives context managers
            return False
        return callable(twin) and inspect.iscoroutinefunction(inspect.unwrap(twin))


class _Once:
    """What is entered, iterated, or asked for its result: streams, their helpers, managers."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.inner, name)
        return _in_thread(value) if callable(value) else value

    async def __aenter__(self) -> object:
        return _seen(await asyncio.to_thread(self.inner.__enter__))

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(self.inner.__exit__, *error)

    async def __anext__(self) -> object:
        item = await asyncio.to_thread(next, self.inner, _END)
        if item is _END:
            raise StopAsyncIteration
        return item

    def __aiter__(self) -> AsyncIterator[object]:
        return self


def _seen(value: object) -> object:
    is_model = hasattr(value, "model_dump")
    looks = any(hasattr(value, name) for name in ("__enter__", "__next__", "parse"))
    return _Once(value) if looks and not is_model else value


def _in_thread(function: Callable[..., object]) -> Callable[..., Any]:
    @wraps(function)
    async def call(*args: object, **kwargs: object) -> object:
        return _seen(await asyncio.to_thread(function, *args, **kwargs))

    return call
