"""Streams that are the SDK's own, and save their turn when they were read to the end."""

from __future__ import annotations

from typing import Any, TypeVar, get_args, get_origin

from openai import AsyncStream, Stream

from turnstore.clients._streams import AsyncRemembered, Remembered

T = TypeVar("T")


class RememberedStream(Remembered[T], Stream[T]):
    """A stream of the SDK that saves its turn."""


class AsyncRememberedStream(AsyncRemembered[T], AsyncStream[T]):
    """An async stream of the SDK that saves its turn."""


def remembered(stream_cls: object) -> Any:
    """Give the remembered twin of a stream class, such as `Stream[ChatCompletionChunk]`.

    Raises:
        TypeError: It is a class of the caller's own, which has none.
    """
    twins: dict[object, Any] = {Stream: RememberedStream, AsyncStream: AsyncRememberedStream}
    twin = twins.get(get_origin(stream_cls))
    if twin is None:
        raise TypeError(f"a client with a memory streams openai.Stream, and not {stream_cls!r}")
    return twin[get_args(stream_cls)]
