"""LiteLLM's functions and its Router with a memory: `completion`, `responses`, and their twins.

The memory stands around the whole call, so LiteLLM's retries, its fallbacks and the Router's
choice of a deployment are below it: the history is read once, and sent with each attempt.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, ExitStack
from copy import copy
from dataclasses import dataclass
from functools import partial, wraps
from inspect import isawaitable, iscoroutine, signature
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from litellm.router import Router

from turnstore.aio import AsyncConversation
from turnstore.clients._endpoints import ENDPOINTS
from turnstore.clients._litellm_call import Call
from turnstore.clients._litellm_streams import async_remembered, is_stream, remembered
from turnstore.turn import begin

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnstore.clients._endpoints import Endpoint
    from turnstore.conversation import Conversation
    from turnstore.turn import AsyncPendingTurn, PendingTurn, TurnOptions

__all__ = ["wrap"]

C = TypeVar("C")

_CHAT, _RESPONSES = ENDPOINTS
# What has a memory: the endpoint whose rules hold for it, and what it takes by position.
_KNOWN: Final[dict[str, tuple[Endpoint, tuple[str, ...]]]] = {
    "completion": (_CHAT, ("model", "messages")),
    "acompletion": (_CHAT, ("model", "messages")),
    "responses": (_RESPONSES, ("input", "model")),
    "aresponses": (_RESPONSES, ("input", "model")),
}
_MARK: Final = "__turnstore__"  # of what has a memory; copies and decorators keep it


def wrap(conversation: Conversation | AsyncConversation, client: C, options: TurnOptions) -> C:
    """Give a function of LiteLLM, or a Router, the memory of a conversation.

    Raises:
        TypeError: It is something else of LiteLLM's, has a memory already, or is sync where the
            conversation is async, or the other way about.
    """
    made: Any
    if isinstance(client, Router):
        made = _router(conversation, client, options)
        return made  # type: ignore[no-any-return]  # of the type of `client`
    function = _Function.of(client)
    if function.name not in _KNOWN:
        raise TypeError(
            f"of litellm, wrap knows the functions {', '.join(_KNOWN)}, and a Router, but not "
            f"{function.name}; anything else takes its messages from conversation.turn(…)"
        )
    if hasattr(function.call, _MARK):
        raise TypeError(f"this {function.name} has a memory already; wrap the one of litellm")
    if isinstance(conversation, AsyncConversation) is not function.is_async:
        raise TypeError(_other_kind(function.name))
    made = _remembering(conversation, function, options)
    return made  # type: ignore[no-any-return]  # of the type of `client`


@dataclass(frozen=True, slots=True)
class _Function:
    """A function of LiteLLM, out of whatever partials it was given in."""

    name: str
    call: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] | None = None

    @classmethod
    def of(cls, given: Any) -> Self:
        args: tuple[Any, ...] = ()
        kwargs: dict[str, Any] = {}
        while isinstance(given, partial):
            args, kwargs = (*given.args, *args), {**given.keywords, **kwargs}
            given = given.func
        return cls(str(getattr(given, "__name__", type(given).__name__)), given, args, kwargs)

    @property
    def is_async(self) -> bool:
        return self.name.startswith("a")

    def asked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """One call, with all of its arguments by name."""
        endpoint, names = _KNOWN[self.name]
        args = (*self.args, *args)
        if len(args) > len(names):
            names = tuple(signature(self.call).parameters)
        by_position = dict(zip(names, args, strict=False))
        twice = by_position.keys() & kwargs.keys()
        if twice or len(by_position) < len(args):
            why = f"two values for {', '.join(twice)}" if twice else "too many arguments"
            raise TypeError(f"{self.name}() got {why}")
        return Call(endpoint, {**(self.kwargs or {}), **by_position, **kwargs})


def _router(
    conversation: Conversation | AsyncConversation, router: Router, options: TurnOptions
) -> Router:
    """Give a Router of the same deployments, whose calls remember.

    A Router cannot be derived from; but what it holds itself goes before what it hands on to.
    """
    if _MARK in vars(router):
        raise TypeError("this Router has a memory already; wrap the one that it was made from")
    twin = object.__new__(type(router))
    held = vars(twin)
    held.update(vars(router))
    held[_MARK] = router  # its parts know it by a weak reference, so it has to live as long
    for name in _KNOWN:
        function = _Function(name, getattr(router, name))
        fits = isinstance(conversation, AsyncConversation) is function.is_async
        held[name] = _remembering(conversation, function, options) if fits else _refusing(function)
    known: Any = router
    held["chat"] = chat = copy(known.chat)  # chat.completions.create, which calls `completion`
    chat.completions = copy(chat.completions)
    chat.completions.router_obj = twin
    chat.completions.params = dict(chat.completions.params)  # it keeps the options of each call
    return twin


def _refusing(function: _Function) -> Callable[..., Any]:
    """A method that refuses, rather than have no memory without a word."""

    @wraps(function.call)
    def call(*_: Any, **__: Any) -> Any:
        raise TypeError(_other_kind(function.name))

    return call


def _remembering(
    conversation: Any, function: _Function, options: TurnOptions
) -> Callable[..., Any]:
    begins: Any = partial(begin, conversation, options=options)
    made: Any = _async_call(function, begins) if function.is_async else _call(function, begins)
    made = wraps(function.call)(made)
    setattr(made, _MARK, True)
    return made  # type: ignore[no-any-return]  # wraps gives what has no type


def _call(function: _Function, begins: Callable[..., PendingTurn]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        asked = function.asked(args, kwargs)
        with ExitStack() as opened:
            turn = opened.enter_context(begins(asked.given, format=asked.format))
            answer = function.call(**asked.sending(turn.messages))
            if is_stream(answer):
                return remembered(answer, asked, turn, opened.pop_all())
            if isawaitable(answer):  # as by acompletion=True
                if iscoroutine(answer):
                    answer.close()
                raise TypeError(_other_kind(f"a{function.name}"))
            asked.keep_answer(turn, answer)
        return answer

    return call


def _async_call(function: _Function, begins: Callable[..., AsyncPendingTurn]) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        asked = function.asked(args, kwargs)
        async with AsyncExitStack() as opened:
            turn = await opened.enter_async_context(begins(asked.given, format=asked.format))
            answer = await function.call(**asked.sending(turn.messages))
            if is_stream(answer):
                return async_remembered(answer, asked, turn, opened.pop_all())
            asked.keep_answer(turn, answer)
        return answer

    return call


def _other_kind(name: str) -> str:
    needed, other = ("AsyncStore", name[1:]) if name.startswith("a") else ("Store", f"a{name}")
    return (
        f"{name} needs a conversation of {needed}; wrap it there, or give this conversation {other}"
    )
