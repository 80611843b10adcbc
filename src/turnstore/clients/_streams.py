"""What makes a stream of an SDK save its turn when it was read to the end.

The SDKs of OpenAI and Anthropic are made by one generator: their streams have the same inside,
which these two classes stand before. (They are generic because the SDK looks through the bases of
a stream's class for what it streams, and expects each of them to be.)
"""

from __future__ import annotations

from contextlib import AsyncExitStack, ExitStack, aclosing
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from turnstore.clients._calling import Call
    from turnstore.turn import AsyncPendingTurn, PendingTurn

T = TypeVar("T")


class Remembered(Generic[T]):
    """A stream whose turn is saved after its last chunk and before the end of the iteration.

    One that is left, closed, broken or cut short saves nothing.
    """

    _call: Call
    _turn: PendingTurn
    _opened: ExitStack

    def remember(self, call: Call, turn: PendingTurn, opened: ExitStack) -> None:
        """Take over the turn, which `opened` ends; before the first chunk is read."""
        self._call, self._turn, self._opened = call, turn, opened
        sdk: Any = self
        sdk._iterator = turn.follow(sdk._iterator)  # noqa: SLF001 - of the class behind this

    def _iter_events(self) -> Iterator[Any]:
        sdk: Any = super()
        for event in sdk._iter_events():  # noqa: SLF001 - what this stands before
            self._call.see(event.data)
            yield event

    def __stream__(self) -> Iterator[T]:
        sdk: Any = super()
        with self._opened:
            yield from sdk.__stream__()
            self._call.keep_stream(self._turn)

    def close(self) -> None:
        """Close the response, and end the turn: without a save, if it was not read to the end."""
        sdk: Any = super()
        sdk.close()
        self._opened.close()


class AsyncRemembered(Generic[T]):
    """The same for async clients; being cancelled saves nothing, but does not break a save."""

    _call: Call
    _turn: AsyncPendingTurn
    _opened: AsyncExitStack

    def remember(self, call: Call, turn: AsyncPendingTurn, opened: AsyncExitStack) -> None:
        """Take over the turn, which `opened` ends; before the first chunk is read."""
        self._call, self._turn, self._opened = call, turn, opened
        sdk: Any = self
        sdk._iterator = turn.follow(sdk._iterator)  # noqa: SLF001 - of the class behind this

    async def _iter_events(self) -> AsyncIterator[Any]:
        sdk: Any = super()
        async for event in sdk._iter_events():  # noqa: SLF001 - what this stands before
            self._call.see(event.data)
            yield event

    async def __stream__(self) -> AsyncIterator[T]:
        sdk: Any = super()
        async with self._opened, aclosing(sdk.__stream__()) as chunks:
            async for chunk in chunks:
                yield chunk
            self._call.keep_stream(self._turn)

    async def close(self) -> None:
        """Close the response, and end the turn: without a save, if it was not read to the end."""
        sdk: Any = super()
        await sdk.close()
        await self._opened.aclose()
