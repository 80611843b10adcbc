"""Functions with a memory: for every model that has no adapter of its own."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from turnstore.aio import AsyncConversation
from turnstore.clients import _functions
from turnstore.turn import begin

if TYPE_CHECKING:
    from turnstore.conversation import Conversation
    from turnstore.messages import Input, Message
    from turnstore.turn import TurnOptions

__all__ = ["remember", "wrap"]

C = TypeVar("C")
P = ParamSpec("P")
R = TypeVar("R")


def wrap(conversation: Conversation | AsyncConversation, function: C, options: TurnOptions) -> C:
    """Give a function the memory of a conversation; see `Conversation.wrap`.

    Raises:
        TypeError: It is async and the conversation is not, or the other way about.
    """
    called: Any = function
    is_async = _functions.is_async(called)
    if isinstance(conversation, AsyncConversation) is not is_async:
        needed, other = ("AsyncStore", "a plain") if is_async else ("Store", "an async")
        raise TypeError(
            f"{_name(called)} needs a conversation of {needed}; wrap it there, or give this "
            f"conversation {other} function"
        )
    parameter = _first_parameter(called)

    def take(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given, args, kwargs = _given(called, parameter, args, kwargs)
        return begin(conversation, given, options, format="openai.chat"), args, kwargs

    made: Any = _functions.remembering(called, take)
    return made  # type: ignore[no-any-return]  # as `function`, with a memory


class Remember(Protocol):
    """Makes a function with a memory out of a function; what `remember(…)` with options gives."""

    # Whatever is async also fits the last of these: the first that fits is meant.

    @overload
    def __call__(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]  # as said
        self, function: Callable[Concatenate[list[Message], P], Coroutine[Any, Any, R]], /
    ) -> Callable[Concatenate[AsyncConversation, Input, P], Coroutine[Any, Any, R]]: ...

    @overload
    def __call__(  # type: ignore[overload-overlap]  # as said
        self, function: Callable[Concatenate[list[Message], P], AsyncIterator[R]], /
    ) -> Callable[Concatenate[AsyncConversation, Input, P], AsyncIterator[R]]: ...

    @overload
    def __call__(
        self, function: Callable[Concatenate[list[Message], P], R], /
    ) -> Callable[Concatenate[Conversation, Input, P], R]: ...


# Here, too, whatever is async also fits the last one.


@overload
def remember(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]  # as said
    function: Callable[Concatenate[list[Message], P], Coroutine[Any, Any, R]], /
) -> Callable[Concatenate[AsyncConversation, Input, P], Coroutine[Any, Any, R]]: ...


@overload
def remember(  # type: ignore[overload-overlap]  # as said
    function: Callable[Concatenate[list[Message], P], AsyncIterator[R]], /
) -> Callable[Concatenate[AsyncConversation, Input, P], AsyncIterator[R]]: ...


@overload
def remember(
    function: Callable[Concatenate[list[Message], P], R], /
) -> Callable[Concatenate[Conversation, Input, P], R]: ...


@overload
def remember(**options: Any) -> Remember: ...


def remember(function: Any = None, /, **options: Any) -> Any:
    """Give a function a memory; which conversation, each call says.

    For a model that has no adapter, or a function of your own around one. The function takes the
    messages to send: history and new ones. What it returns, or yields, is the reply. Decorated,
    it takes a conversation and the new messages in their place; its other parameters stay.

    Args:
        function: Takes messages, and returns text, a message, several, or an iterator of texts.
            It may be async, a generator, or an async generator: the latter two, and an iterator,
            are saved when they were read to the end.
        options: Those of `Conversation.turn`, `format` among them.

    Returns:
        A function of the same kind; without a function, a decorator.

    Raises:
        TypeError: What is decorated is no function.

    Example:
        >>> from turnstore import remember
        >>> @remember
        ... def ask(messages, *, loud=False):
        ...     return str(len(messages)) + "!" * loud
        >>> ask(chat, "Hi", loud=True)
        '1!'
        >>> ask(chat, "Hi again")
        '3'
    """
    if function is None:
        return lambda given: remember(given, **options)
    if not _functions.is_function(function):
        raise TypeError(f"remember is for functions, not for {type(function).__name__}")
    if _functions.is_litellms(function):  # it takes a model first
        raise TypeError(
            f"remember is for functions that take messages first; give {_name(function)} a memory "
            f"by conversation.wrap(…)"
        )
    is_async = _functions.is_async(function)

    def take(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        conversation, args, kwargs = _given(function, "conversation", args, kwargs)
        given, args, kwargs = _given(function, "messages", args, kwargs)
        turn = conversation.turn(given, **options)
        if hasattr(turn, "__aenter__") is not is_async:
            needed = "AsyncStore" if is_async else "Store"
            raise TypeError(f"{_name(function)} needs a conversation of {needed}")
        return turn, args, kwargs

    made: Any = _functions.remembering(function, take)
    made.__signature__ = _signature(function)
    return made


def _given(
    function: Any, parameter: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Take the first argument off, however it was passed."""
    if args:
        return args[0], args[1:], kwargs
    if parameter in kwargs:
        others = {name: value for name, value in kwargs.items() if name != parameter}
        return kwargs[parameter], args, others
    raise TypeError(f"{_name(function)}() is called without its {parameter}")


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)


def _first_parameter(function: Any) -> str:
    try:
        return next(iter(inspect.signature(function).parameters), "messages")
    except ValueError:  # some of those that are written in C have no signature
        return "messages"


def _signature(function: Any) -> inspect.Signature | None:
    try:
        signature = inspect.signature(function)
    except ValueError:
        return None
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    first = [inspect.Parameter(name, kind) for name in ("conversation", "messages")]
    rest = list(signature.parameters.values())
    return signature.replace(parameters=[*first, *rest[1:]])
