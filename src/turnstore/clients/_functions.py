"""Puts a memory around a function, whatever kind of function it is."""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, aclosing, closing, nullcontext
from functools import partial, wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any

from turnstore.clients._calling import keep, sendable

if TYPE_CHECKING:
    from turnstore.turn import AsyncPendingTurn, PendingTurn

# Takes the arguments of a call apart: the turn that begins, and what the function is given
# beside its messages.
Take = Callable[[tuple[Any, ...], dict[str, Any]], tuple[Any, tuple[Any, ...], dict[str, Any]]]


def is_function(value: object) -> bool:
    """Tell whether it is a function, or an object that is called like one."""
    return callable(value) and not isinstance(value, type)


def is_litellms(value: object) -> bool:
    """Tell whether it comes from LiteLLM, whatever partial or decorator is around it.

    A decorator that keeps the name of what it decorates keeps the module's, too.
    """
    if "litellm" not in sys.modules or isinstance(value, type):
        return False
    while isinstance(value, partial):
        value = value.func
    of_module = "__name__" if isinstance(value, ModuleType) else "__module__"
    return str(getattr(value, of_module, "")).partition(".")[0] == "litellm"


def is_async(function: Callable[..., Any]) -> bool:
    """Tell whether it is an async function or an async generator function."""
    called = _called(function)
    return inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)


def remembering(function: Callable[..., Any], take: Take) -> Callable[..., Any]:
    """Give a function of the same kind that has a memory.

    A generator function stays one, so that frameworks that look for that find it: its turn begins
    when the first piece is asked for.
    """
    called = _called(function)
    kind = (
        _async_generator
        if inspect.isasyncgenfunction(called)
        else _coroutine
        if inspect.iscoroutinefunction(called)
        else _generator
        if inspect.isgeneratorfunction(called)
        else _plain
    )
    made = kind(function, take)
    return wraps(function)(made) if hasattr(function, "__name__") else made


def _called(function: Any) -> Any:
    while isinstance(function, partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


def _plain(function: Callable[..., Any], take: Take) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        turn, args, kwargs = take(args, kwargs)
        with ExitStack() as opened:
            opened.enter_context(turn)
            answer = function(sendable(turn.messages), *args, **kwargs)
            if isinstance(answer, Iterator):
                return _pieces(turn, answer, opened.pop_all())
            if inspect.isawaitable(answer) or isinstance(answer, AsyncIterator):
                raise TypeError(_waits(answer))
            _keep(turn, answer)
        return answer

    return call


def _generator(function: Callable[..., Any], take: Take) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Iterator[Any]:
        turn, args, kwargs = take(args, kwargs)
        with ExitStack() as opened:
            opened.enter_context(turn)
            yield from _pieces(
                turn, function(sendable(turn.messages), *args, **kwargs), opened.pop_all()
            )

    return call


def _coroutine(function: Callable[..., Any], take: Take) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        turn, args, kwargs = take(args, kwargs)
        async with AsyncExitStack() as opened:
            await opened.enter_async_context(turn)
            answer = await function(sendable(turn.messages), *args, **kwargs)
            if isinstance(answer, AsyncIterator):
                return _async_pieces(turn, answer, opened.pop_all())
            if isinstance(answer, Iterator):
                raise TypeError(_waits(answer))
            _keep(turn, answer)
        return answer

    return call


def _async_generator(function: Callable[..., Any], take: Take) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        turn, args, kwargs = take(args, kwargs)
        async with AsyncExitStack() as opened:
            await opened.enter_async_context(turn)
            source = function(sendable(turn.messages), *args, **kwargs)
            async with aclosing(_async_pieces(turn, source, opened.pop_all())) as pieces:
                async for piece in pieces:
                    yield piece

    return call


def _pieces(turn: PendingTurn, source: Any, opened: ExitStack) -> Iterator[Any]:
    followed = turn.follow(source)  # from now on, though nobody may ever ask for a piece

    def pieces() -> Iterator[Any]:
        said = _Said()
        with opened, closing(source) if hasattr(source, "close") else nullcontext():
            for piece in followed:
                said.add(piece)
                yield piece
            said.keep(turn)

    return pieces()


def _async_pieces(
    turn: AsyncPendingTurn, source: Any, opened: AsyncExitStack
) -> AsyncGenerator[Any]:
    followed = turn.follow(source)  # as above

    async def pieces() -> AsyncGenerator[Any]:
        said = _Said()
        async with opened, aclosing(source) if hasattr(source, "aclose") else nullcontext():
            async for piece in followed:
                said.add(piece)
                yield piece
            said.keep(turn)

    return pieces()


class _Said:
    """What a function yielded: texts are the pieces of one message, messages are themselves."""

    def __init__(self) -> None:
        self._said: list[Any] = []
        self._text: list[str] = []  # the pieces of the message that has not ended

    def add(self, piece: Any) -> None:
        if not isinstance(piece, str | Mapping) and not hasattr(piece, "model_dump"):
            if piece is None:  # deltas of some SDKs have no text
                return
            raise TypeError(
                f"a function with a memory yields text or messages, not {type(piece).__name__}"
            )
        if isinstance(piece, str):
            self._text.append(piece)
        else:
            self._end_text()
            self._said.append(piece)

    def _end_text(self) -> None:
        if text := "".join(self._text):
            self._said.append(text)
        self._text.clear()

    def keep(self, turn: PendingTurn | AsyncPendingTurn) -> None:
        self._end_text()
        if said := self._said:
            answer = said[0] if len(said) == 1 else said
            keep(turn, said, answer)


def _keep(turn: PendingTurn | AsyncPendingTurn, answer: Any) -> None:
    if answer is None:
        raise TypeError("the function answered None; it returns text, a message or an iterator")
    keep(turn, answer, answer)


def _waits(answer: object) -> str:
    return (
        f"the function answered {type(answer).__name__}: an async function, or an async "
        f"generator, needs a conversation of AsyncStore, and a plain one needs one of Store"
    )
