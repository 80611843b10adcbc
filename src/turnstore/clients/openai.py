"""Clients of the `openai` package with a memory, for OpenAI, Azure and compatible providers.

Every method that asks a model goes through the client's `request`, once for each call and above
the SDK's retries: `create`, `parse` and `stream` of chat completions and responses, their raw
responses, and `client.post`. So a client with a memory is a copy of the caller's client whose
class overrides just that; all else, and every other endpoint, is the SDK's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from openai import AsyncOpenAI, OpenAI

from turnstore.clients._deriving import ask, async_ask, derive
from turnstore.clients._openai_call import call_of
from turnstore.clients._openai_stream import remembered

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from turnstore.aio import AsyncConversation
    from turnstore.conversation import Conversation
    from turnstore.turn import AsyncPendingTurn, PendingTurn, TurnOptions

__all__ = ["wrap"]

C = TypeVar("C")


def wrap(conversation: Conversation | AsyncConversation, client: C, options: TurnOptions) -> C:
    """Give a client the memory of a conversation; see `Conversation.wrap`."""
    kind = _AsyncRemembering if isinstance(client, AsyncOpenAI) else _Remembering
    return derive(conversation, client, options, kind)


class _Remembering(OpenAI):
    # What begins a turn; None in a client that somebody makes of this class anew.
    _turnstore: Callable[..., PendingTurn] | None = None

    def request(
        self, cast_to: Any, options: Any, *, stream: bool = False, stream_cls: Any = None
    ) -> Any:
        request: Any = super().request
        call = call_of(options, stream=stream) if self._turnstore else None
        if self._turnstore is None or call is None:
            return request(cast_to, options, stream=stream, stream_cls=stream_cls)
        twin = remembered(stream_cls) if stream else None
        return ask(self._turnstore, call, request, cast_to, stream=stream, stream_cls=twin)

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
        request: Any = super().request
        call = call_of(options, stream=stream) if self._turnstore else None
        if self._turnstore is None or call is None:
            return await request(cast_to, options, stream=stream, stream_cls=stream_cls)
        twin = remembered(stream_cls) if stream else None
        return await async_ask(
            self._turnstore, call, request, cast_to, stream=stream, stream_cls=twin
        )

    def copy(self, **options: Any) -> Self:
        copied = super().copy(**options)
        copied._turnstore = self._turnstore  # noqa: SLF001 - its own class
        return copied

    with_options = copy

    async def close(self) -> None:
        """Leave the connections open: they are those of the client that was wrapped."""
