"""Clients of the `openai` package with a memory, for OpenAI, Azure and compatible providers.

Every method that asks a model goes through the client's `request`, once for each call and above
the SDK's retries: `create`, `parse` and `stream` of chat completions and responses, their raw
responses, and `client.post`. So a client with a memory is a copy of the caller's client whose
class overrides just that; all else, and every other endpoint, is the SDK's own.
"""

from __future__ import annotations

import copy
from contextlib import AsyncExitStack, ExitStack
from functools import cache, cached_property, partial
from inspect import getattr_static, isawaitable
from typing import TYPE_CHECKING, Any, TypeVar

from openai import AsyncOpenAI, OpenAI

from turnstore.aio import AsyncConversation
from turnstore.clients._openai_call import call_of, mended
from turnstore.clients._openai_stream import remembered
from turnstore.turn import AsyncPendingTurn, PendingTurn

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from turnstore.conversation import Conversation
    from turnstore.turn import TurnOptions

__all__ = ["wrap"]

C = TypeVar("C")


def wrap(conversation: Conversation | AsyncConversation, client: C, options: TurnOptions) -> C:
    """Give a client the memory of a conversation; see `Conversation.wrap`."""
    is_async = isinstance(client, AsyncOpenAI)
    if isinstance(conversation, AsyncConversation) != is_async:
        needed, other = ("AsyncStore", "OpenAI") if is_async else ("Store", "AsyncOpenAI")
        raise TypeError(
            f"{type(client).__name__} needs a conversation of {needed}; "
            f"wrap it there, or give this conversation openai.{other}"
        )
    if isinstance(client, _Remembering | _AsyncRemembering):
        raise TypeError("this client has a memory already; wrap the client that it was made from")
    kind: type = type(client)
    wrapped = copy.copy(client)
    wrapped.__class__ = _derived(kind, _AsyncRemembering if is_async else _Remembering)
    state: Any = vars(wrapped)
    for name in _cached(kind) & state.keys():  # client.chat and the like lead back to the original
        del state[name]
    # What its own `turn` does, but for the messages and their format; options are checked once.
    owner: Any = conversation
    begin = AsyncPendingTurn if is_async else PendingTurn
    parts = (owner._run, owner._place)  # noqa: SLF001 - of the same house
    state["_turnstore"] = partial(begin, *parts, options=options, turn_id=None, meta=None)
    return wrapped


@cache
def _derived(client: type, remembering: type) -> type:
    """The class of a client with a memory; the SDK tells the provider its name, so it is kept."""
    names = ("__module__", "__qualname__", "__doc__")
    return type(
        client.__name__, (remembering, client), {name: getattr(client, name) for name in names}
    )


@cache
def _cached(client: type) -> frozenset[str]:
    """The names of what a client makes once and keeps."""
    return frozenset(
        name for name in dir(client) if isinstance(getattr_static(client, name), cached_property)
    )


class _Remembering(OpenAI):
    # What begins a turn; None in a client that somebody makes of this class anew.
    _turnstore: Callable[..., PendingTurn] | None = None

    def request(
        self, cast_to: Any, options: Any, *, stream: bool = False, stream_cls: Any = None
    ) -> Any:
        ask: Any = super().request
        call = call_of(options, stream=stream) if self._turnstore else None
        if self._turnstore is None or call is None:
            return ask(cast_to, options, stream=stream, stream_cls=stream_cls)
        twin = remembered(stream_cls) if stream else None
        with ExitStack() as opened:
            turn = opened.enter_context(self._turnstore(call.given, format=call.format))
            how = {"stream": stream, "stream_cls": twin}
            try:
                raw = ask(cast_to, call.sending(turn.messages), **how)
            except UnicodeEncodeError:  # of the request's body, before anything was sent
                raw = ask(cast_to, call.sending(mended(turn.messages)), **how)
            if stream:
                (raw.parse() if call.raw else raw).remember(call, turn, opened.pop_all())
                return raw
            if call.raw == "stream":
                raw.read()
            answer = raw if call.raw else raw.parse()
            call.keep_content(turn, raw.http_response.content, answer)
        return answer

    def copy(self, **options: Any) -> Self:
        copied = super().copy(**options)
        copied._turnstore = self._turnstore  # noqa: SLF001 - its own class
        return copied

    with_options = copy

    def close(self) -> None:
        """Leave the connections open: they are those of the client that was wrapped."""


class _AsyncRemembering(AsyncOpenAI):
    _turnstore: Callable[..., AsyncPendingTurn] | None = None

    async def request(
        self, cast_to: Any, options: Any, *, stream: bool = False, stream_cls: Any = None
    ) -> Any:
        ask: Any = super().request
        call = call_of(options, stream=stream) if self._turnstore else None
        if self._turnstore is None or call is None:
            return await ask(cast_to, options, stream=stream, stream_cls=stream_cls)
        twin = remembered(stream_cls) if stream else None
        async with AsyncExitStack() as opened:
            turn = await opened.enter_async_context(self._turnstore(call.given, format=call.format))
            how = {"stream": stream, "stream_cls": twin}
            try:
                raw = await ask(cast_to, call.sending(turn.messages), **how)
            except UnicodeEncodeError:  # of the request's body, before anything was sent
                raw = await ask(cast_to, call.sending(mended(turn.messages)), **how)
            if stream:
                events = raw if not call.raw else raw.parse()
                events = await events if isawaitable(events) else events
                events.remember(call, turn, opened.pop_all())
                return raw
            if call.raw == "stream":
                await raw.read()
            answer = raw if call.raw else raw.parse()
            call.keep_content(turn, raw.http_response.content, answer)
        return answer

    def copy(self, **options: Any) -> Self:
        copied = super().copy(**options)
        copied._turnstore = self._turnstore  # noqa: SLF001 - its own class
        return copied

    with_options = copy

    async def close(self) -> None:
        """Leave the connections open: they are those of the client that was wrapped."""
