"""A turn in the making: load the history, let a model answer, save request and reply."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from . import _io
from ._holding import AsyncHolding, AsyncRunner, Holding, Runner
from ._options import TurnOptions
from ._pending import Pending
from ._place import Place
from .errors import ClosedError
from .messages import Input
from .results import Appended

if TYPE_CHECKING:
    from .aio import AsyncConversation
    from .conversation import Conversation

__all__ = ["AsyncPendingTurn", "AsyncRunner", "PendingTurn", "Runner", "TurnOptions", "begin"]

T = TypeVar("T")


class PendingTurn(Pending):
    """A turn in the making: a context manager that saves on a clean exit.

    `Conversation.turn` makes it. Entering reads the history; `messages` is then what to
    send. Leaving saves request and reply as one turn, if there was a reply and no
    exception; otherwise nothing is written.

    Example:
        >>> with chat.turn("My name is Ada.") as turn:
        ...     turn.reply(model(turn.messages))
        >>> turn.saved.revision.partition("-")[0]
        '1'
    """

    def __init__(self, run: Runner, place: Place, messages: Input, **options: Any) -> None:
        options["options"].context.check_sync()
        super().__init__(place, messages, **options)
        self._run = run
        self._holding: Holding | None = None

    def __enter__(self) -> Self:
        hold = self._new_hold()
        holding = self._holding = None if hold is None else Holding(self._run, hold)
        try:
            if hold is not None and holding is not None:
                self._run(self._take(hold))
                if hold.number is not None:
                    holding.keep(self)
            self._run(self._load())
        except BaseException:
            self._leave_id()
            if holding is not None:
                holding.release()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if error is None and self._replies:
                self.save()
        finally:
            self._leave_id()
            if self._holding is not None:
                # A generator may be closed by a finaliser, which must send nothing.
                if kind is GeneratorExit:
                    self._holding.let_go()
                else:
                    self._holding.release()

    def follow(self, chunks: Iterator[T]) -> Iterator[T]:
        """Pass on the chunks of a stream that somebody else reads, and may leave unread.

        For adapters that keep the block open while the stream is read. Under
        `on_conflict="serialize"` a reader who takes no chunk is not waited for: the lease is
        free after its `ttl`, at most 4/3 of it; waiting for the model does not count.
        """
        self._hand_out()
        return chunks if self._holding is None else self._holding.follow(chunks)

    def save(self) -> Appended | None:
        """Save request and reply now; the end of the block does it otherwise.

        Safe to call again after an error: the turn keeps its id, and a save that did
        reach the server is recognised.

        Returns:
            What the append did; None where the turn went on without memory and the
            server still does not answer.

        Raises:
            SaveError: It could not be saved; the error carries the reply.
            RuntimeError: There is no reply yet.
            TurnConflictError: Another turn came first, under `on_conflict="reject"` or
                with `replaces`.
            LeaseLostError: Under `on_conflict="serialize"`, another turn may have begun.
            ErasedError: The owner was erased, or the conversation cleared, since it began.
        """
        try:
            return self._run(self._save())
        except ClosedError as error:
            raise self._unsaved(error) from error


class AsyncPendingTurn(Pending):
    """A turn in the making: an async context manager that saves on a clean exit.

    `AsyncConversation.turn` makes it. Entering reads the history; `messages` is then what
    to send. Leaving saves request and reply as one turn, if there was a reply and no
    exception; otherwise nothing is written. A save that has begun is finished before a
    cancellation goes on.

    Example:
        >>> async with chat.turn("My name is Ada.") as turn:
        ...     turn.reply(await amodel(turn.messages))
    """

    def __init__(self, run: AsyncRunner, place: Place, messages: Input, **options: Any) -> None:
        super().__init__(place, messages, **options)
        self._run = run
        self._holding: AsyncHolding | None = None

    async def __aenter__(self) -> Self:
        hold = self._new_hold()
        holding = self._holding = None if hold is None else AsyncHolding(self._run, hold)
        try:
            if hold is not None and holding is not None:
                await self._run(self._take(hold))
                if hold.number is not None:
                    holding.keep(self)
            await self._run(self._load())
        except BaseException:
            self._leave_id()
            if holding is not None:
                await holding.release()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if error is None and self._replies:
                await self.save()
        finally:
            self._leave_id()
            if self._holding is not None:
                # A coroutine may be closed by a finaliser, and can await nothing then.
                if kind is GeneratorExit:
                    self._holding.let_go()
                else:
                    await self._holding.release()

    def follow(self, chunks: AsyncIterator[T]) -> AsyncIterator[T]:
        """Pass on the chunks of a stream that somebody else reads, and may leave unread.

        For adapters that keep the block open while the stream is read. Under
        `on_conflict="serialize"` a reader who takes no chunk is not waited for: the lease is
        free after its `ttl`, at most 4/3 of it; waiting for the model does not count.
        """
        self._hand_out()
        return chunks if self._holding is None else self._holding.follow(chunks)

    async def save(self) -> Appended | None:
        """Save request and reply now; the end of the block does it otherwise.

        Safe to call again after an error: the turn keeps its id, and a save that did
        reach the server is recognised. A cancellation waits until the save is done.

        Returns:
            What the append did; None where the turn went on without memory and the
            server still does not answer.

        Raises:
            SaveError: It could not be saved; the error carries the reply.
            RuntimeError: There is no reply yet.
            TurnConflictError: Another turn came first, under `on_conflict="reject"` or
                with `replaces`.
            LeaseLostError: Under `on_conflict="serialize"`, another turn may have begun.
            ErasedError: The owner was erased, or the conversation cleared, since it began.
        """
        try:
            return await _io.unbroken(self._run(self._save()), "a save")
        except ClosedError as error:
            raise self._unsaved(error) from error


@overload
def begin(
    conversation: Conversation,
    messages: Input,
    options: TurnOptions,
    *,
    format: str,
    turn_id: str | None = None,
    meta: dict[str, Any] | None = None,
) -> PendingTurn: ...


@overload
def begin(
    conversation: AsyncConversation,
    messages: Input,
    options: TurnOptions,
    *,
    format: str,
    turn_id: str | None = None,
    meta: dict[str, Any] | None = None,
) -> AsyncPendingTurn: ...


@overload
def begin(
    conversation: Conversation | AsyncConversation,
    messages: Input,
    options: TurnOptions,
    *,
    format: str,
    turn_id: str | None = None,
    meta: dict[str, Any] | None = None,
) -> PendingTurn | AsyncPendingTurn: ...


def begin(  # noqa: PLR0913 - what a turn is made of
    conversation: Conversation | AsyncConversation,
    messages: Input,
    options: TurnOptions,
    *,
    format: str,  # noqa: A002 - the public name
    turn_id: str | None = None,
    meta: dict[str, Any] | None = None,
) -> Any:
    """Begin a turn with options that were checked before; what `turn` and every adapter call.

    Args:
        conversation: The conversation.
        messages: The new messages.
        options: How the turn deals with its history.
        format: Whose JSON the messages are.
        turn_id: As for `Conversation.turn`; by default the next one of the options.
        meta: As for `Conversation.turn`.
    """
    chat: Any = conversation
    run, place = chat._run, chat._place  # noqa: SLF001 - of the same house
    kind: type[PendingTurn | AsyncPendingTurn] = chat._turn_kind  # noqa: SLF001 - as above
    return kind(run, place, messages, options=options, turn_id=turn_id, format=format, meta=meta)
