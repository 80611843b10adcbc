"""Derives a client with a memory from a client of an SDK that the Stainless generator made.

In such an SDK every call goes through the client's `request`, once and above its retries. A
client with a memory is a copy of the caller's client, whose class stands before just that.
"""

from __future__ import annotations

import copy
from contextlib import AsyncExitStack, ExitStack
from functools import cache, cached_property, partial
from inspect import getattr_static, isawaitable, iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeVar

from turnstore.aio import AsyncConversation
from turnstore.clients._calling import mended
from turnstore.turn import begin

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnstore.clients._calling import Call
    from turnstore.conversation import Conversation
    from turnstore.turn import AsyncPendingTurn, PendingTurn, TurnOptions

C = TypeVar("C")


def derive(
    conversation: Conversation | AsyncConversation,
    client: C,
    options: TurnOptions,
    remembering: type,
) -> C:
    """Give a client the memory of a conversation.

    Args:
        conversation: The conversation.
        client: The client; it stays as it is.
        options: How its turns deal with their history.
        remembering: What stands before the client's own class. It derives from a base of that
            class, or no object could change from the one to the other.

    Raises:
        TypeError: The client has a memory already, or the conversation is of the other kind.
    """
    is_async = iscoroutinefunction(getattr(remembering, "request", None))
    if isinstance(conversation, AsyncConversation) != is_async:
        name, sdk = type(client).__name__, remembering.__module__.rpartition(".")[2]
        needed, other = ("AsyncStore", name[5:]) if is_async else ("Store", f"Async{name}")
        raise TypeError(
            f"{name} needs a conversation of {needed}; "
            f"wrap it there, or give this conversation {sdk}.{other}"
        )
    if isinstance(client, remembering):
        raise TypeError("this client has a memory already; wrap the client that it was made from")
    kind: type = type(client)
    wrapped = copy.copy(client)
    wrapped.__class__ = derived(kind, remembering)
    state: Any = vars(wrapped)
    made_once = _cached(kind)
    for name, value in list(state.items()):
        if getattr(value, "_client", None) is not client:  # some set themselves what others make
            continue
        if name in made_once:  # client.messages and the like lead back
            del state[name]
        else:  # so do those that are made at once
            state[name] = type(value)(wrapped)
    state["_turnstore"] = partial(begin, conversation, options=options)
    return wrapped


@cache
def derived(kind: type, remembering: type) -> type:
    """The class of what has a memory; some SDKs tell the provider its name, so it is kept."""
    names = ("__module__", "__qualname__", "__doc__")
    own = {name: getattr(kind, name) for name in names} | {"__slots__": ()}
    return type(kind.__name__, (remembering, kind), own)


@cache
def _cached(client: type) -> frozenset[str]:
    """The names of what a client makes once and keeps."""
    return frozenset(
        name for name in dir(client) if isinstance(getattr_static(client, name), cached_property)
    )


def ask(  # noqa: PLR0913 - a call, and who makes it
    begins: Callable[..., PendingTurn],
    call: Call,
    request: Callable[..., Any],
    cast_to: Any,
    *,
    stream: bool,
    stream_cls: Any,
) -> Any:
    """Make one call of a model with a memory.

    Args:
        begins: What begins its turn.
        call: The call.
        request: The SDK's own `request`, with its retries.
        cast_to: What the SDK makes of the reply.
        stream: Whether it is streamed.
        stream_cls: The remembered twin of the SDK's stream class.
    """
    how = {"stream": stream, "stream_cls": stream_cls}
    with ExitStack() as opened:
        turn = opened.enter_context(begins(call.given, format=call.format))
        call.loaded(turn)
        try:
            raw = request(cast_to, call.sending(turn.messages), **how)
        except UnicodeEncodeError:  # of the request's body, before anything was sent
            raw = request(cast_to, call.sending(mended(turn.messages)), **how)
        if stream:
            (raw.parse() if call.raw else raw).remember(call, turn, opened.pop_all())
            return raw
        if call.raw == "stream":
            raw.read()
        answer = raw if call.raw else raw.parse()
        call.keep_content(turn, raw.http_response.content, answer)
    return answer


async def async_ask(  # noqa: PLR0913 - a call, and who makes it
    begins: Callable[..., AsyncPendingTurn],
    call: Call,
    request: Callable[..., Any],
    cast_to: Any,
    *,
    stream: bool,
    stream_cls: Any,
) -> Any:
    """Make one call of a model with a memory; see `ask`."""
    how = {"stream": stream, "stream_cls": stream_cls}
    async with AsyncExitStack() as opened:
        turn = await opened.enter_async_context(begins(call.given, format=call.format))
        call.loaded(turn)
        try:
            raw = await request(cast_to, call.sending(turn.messages), **how)
        except UnicodeEncodeError:  # of the request's body, before anything was sent
            raw = await request(cast_to, call.sending(mended(turn.messages)), **how)
        if stream:
            events = await _done(raw.parse()) if call.raw else raw
            events.remember(call, turn, opened.pop_all())
            return raw
        if call.raw == "stream":
            await raw.read()
        answer = raw if call.raw else await _done(raw.parse())
        call.keep_content(turn, raw.http_response.content, answer)
    return answer


async def _done(value: Any) -> Any:
    """Give what some raw responses parse at once, and others in a coroutine."""
    return await value if isawaitable(value) else value
