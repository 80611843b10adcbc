"""Streams of LiteLLM that save their turn when they were read to the end."""

from __future__ import annotations

from contextlib import AsyncExitStack, ExitStack, aclosing, closing, nullcontext, suppress
from typing import TYPE_CHECKING, Any, NoReturn

from turnstore.clients._deriving import derived

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
    from typing import Self

    from turnstore.clients._litellm_call import Call
    from turnstore.turn import AsyncPendingTurn, PendingTurn


def is_stream(answer: object) -> bool:
    """Tell whether an answer is to be iterated, of either kind."""
    return hasattr(answer, "__next__") or hasattr(answer, "__anext__")


def remembered(stream: Any, call: Call, turn: PendingTurn, opened: ExitStack) -> Any:
    """Give the twin of a stream that saves its turn, which `opened` ends."""
    twin = _twin(stream, Remembered)
    twin._begin(stream, call, turn, opened)  # noqa: SLF001 - of this module
    return twin


def async_remembered(
    stream: Any, call: Call, turn: AsyncPendingTurn, opened: AsyncExitStack
) -> Any:
    """Give the twin of an async stream that saves its turn, which `opened` ends."""
    twin = _twin(stream, AsyncRemembered)
    twin._begin(stream, call, turn, opened)  # noqa: SLF001 - of this module
    return twin


def _twin(stream: Any, remembering: type) -> Any:
    """Give an object of the stream's class that has the stream's attributes, for good.

    A generator, as a decorator makes of a stream, has no attributes: it is only read.
    """
    if not hasattr(stream, "__dict__"):
        return remembering()
    kind: type = type(stream)
    # The Router makes a class for each of its streams, which nobody else should keep.
    derive = derived.__wrapped__ if "<locals>" in kind.__qualname__ else derived
    twin: Any = object.__new__(derive(kind, remembering))
    twin.__dict__ = vars(stream)
    return twin


class Remembered:
    """A stream whose turn is saved after its last chunk and before the end of the iteration.

    It reads the stream that it stands for, and has everything else in common with it. One that
    is left, closed, broken or cut short saves nothing.
    """

    __slots__ = ("_chunks", "_opened", "_stream")

    def _begin(self, stream: Any, call: Call, turn: PendingTurn, opened: ExitStack) -> None:
        self._stream, self._opened = stream, opened
        self._chunks = self._read(call, turn, turn.follow(stream))

    def _read(self, call: Call, turn: PendingTurn, chunks: Iterator[Any]) -> Generator[Any]:
        stream = self._stream
        with self._opened, closing(stream) if hasattr(stream, "close") else nullcontext():
            for chunk in chunks:
                call.take(chunk, stream)
                yield chunk
            call.keep_stream(turn)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return next(self._chunks)

    def __aiter__(self) -> NoReturn:
        raise TypeError("this stream has the memory of a Store: read it by `for`, not `async for`")

    def close(self) -> None:
        """Close the response, and end the turn: without a save, if it was not read to the end."""
        if hasattr(self._stream, "close"):
            self._stream.close()
        self._opened.close()
        with suppress(ValueError):  # a thread that reads it just now finds it closed
            self._chunks.close()

    async def aclose(self) -> None:
        """Do the same as `close`."""
        self.close()


class AsyncRemembered:
    """The same for async functions; being cancelled saves nothing, but does not break a save."""

    __slots__ = ("_chunks", "_opened", "_stream")

    def _begin(
        self, stream: Any, call: Call, turn: AsyncPendingTurn, opened: AsyncExitStack
    ) -> None:
        self._stream, self._opened = stream, opened
        self._chunks = self._read(call, turn, turn.follow(stream))

    async def _read(
        self, call: Call, turn: AsyncPendingTurn, chunks: AsyncIterator[Any]
    ) -> AsyncGenerator[Any]:
        stream = self._stream
        async with self._opened, aclosing(stream) if hasattr(stream, "aclose") else nullcontext():
            async for chunk in chunks:
                call.take(chunk, stream)
                yield chunk
            call.keep_stream(turn)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return await anext(self._chunks)

    def __iter__(self) -> NoReturn:
        raise TypeError("this stream has the memory of an AsyncStore: read it by `async for`")

    async def aclose(self) -> None:
        """Close the response, and end the turn: without a save, if it was not read to the end."""
        if hasattr(self._stream, "aclose"):
            await self._stream.aclose()
        await self._opened.aclose()
        with suppress(RuntimeError):  # a task that reads it just now finds it closed
            await self._chunks.aclose()
