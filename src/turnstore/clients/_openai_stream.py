"""Streams that are the SDK's own, and save their turn when they were read to the end."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args, get_origin

from openai import AsyncStream, Stream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator
    from contextlib import AsyncExitStack, ExitStack

    from openai._streaming import ServerSentEvent

    from turnstore.clients._openai_call import Call
    from turnstore.turn import AsyncPendingTurn, PendingTurn

T = TypeVar("T")


class RememberedStream(Stream[T]):
    """A stream whose turn is saved after its last chunk and before the end of the iteration.

    One that is left, closed, broken or cut short saves nothing.
    """

    _call: Call
    _turn: PendingTurn
    _opened: ExitStack

    def remember(self, call: Call, turn: PendingTurn, opened: ExitStack) -> None:
        """Take over the turn, which `opened` ends; before the first chunk is read."""
        self._call, self._turn, self._opened = call, turn, opened
        self._iterator = turn.follow(self._iterator)

    def _iter_events(self) -> Iterator[ServerSentEvent]:
        for event in super()._iter_events():
            self._call.see(event.data)
            yield event

    def __stream__(self) -> Iterator[T]:
        with self._opened:
            yield from super().__stream__()
            self._call.keep_stream(self._turn)

    def close(self) -> None:
        """Close the response, and end the turn: without a save, if it was not read to the end."""
        super().close()
        self._opened.close()


class AsyncRememberedStream(AsyncStream[T]):
    """The same for async clients; being cancelled saves nothing, but does not break a save."""

    _call: Call
    _turn: AsyncPendingTurn
    _opened: AsyncExitStack

    def remember(self, call: Call, turn: AsyncPendingTurn, opened: AsyncExitStack) -> None:
        """Take over the turn, which `opened` ends; before the first chunk is read."""
        self._call, self._turn, self._opened = call, turn, opened
        self._iterator = turn.follow(self._iterator)

    async def _iter_events(self) -> AsyncIterator[ServerSentEvent]:
        async for event in super()._iter_events():
            self._call.see(event.data)
            yield event

    async def __stream__(self) -> AsyncIterator[T]:
        chunks = cast("AsyncGenerator[T]", super().__stream__())
        async with self._opened, aclosing(chunks):
            async for chunk in chunks:
                yield chunk
            self._call.keep_stream(self._turn)

    async def close(self) -> None:
        """Close the response, and end the turn: without a save, if it was not read to the end."""
        await super().close()
        await self._opened.aclose()


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
