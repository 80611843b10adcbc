"""A turn in the making: load the history, let a model answer, save request and reply."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from dataclasses import dataclass, field
from functools import lru_cache
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeVar

from . import _io
from ._calls import Flow
from ._compose import Plan, compose
from ._history import new_turn_id
from ._place import Place, check_turn_id, check_window, plain_meta
from .context import Context
from .errors import (
    ClosedError,
    ConflictError,
    SaveError,
    ServerError,
    TurnConflictError,
    TurnstoreError,
)
from .messages import Format, Input, Message, format_named, plain_messages
from .results import Appended, History
from .window import Window

__all__ = ["AsyncPendingTurn", "PendingTurn", "TurnOptions"]

R = TypeVar("R")

log = logging.getLogger("turnstore")


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOptions:
    """How a turn deals with its history; checked once, shared by many turns."""

    context: Context = field(default_factory=Context)
    on_conflict: Literal["append", "reject"] = "append"
    on_load_error: Literal["raise", "continue"] = "raise"
    on_other_format: Literal["raise", "text"] = "raise"

    def __post_init__(self) -> None:
        for name, choices in (
            ("on_conflict", ("append", "reject")),
            ("on_load_error", ("raise", "continue")),
            ("on_other_format", ("raise", "text")),
        ):
            if getattr(self, name) not in choices:
                msg = f"{name} is one of {choices}, not {getattr(self, name)!r}"
                raise ValueError(msg)

    @classmethod
    def of(cls, window: Window | None, context: Context | None, **options: Any) -> TurnOptions:
        """Make options of what `turn` and `wrap` take: a window is a context of its own.

        Raises:
            TypeError: One of them is of another kind.
            ValueError: Both were given.
        """
        if context is None:
            return _windowed(check_window(window), **options)
        if window is not None:
            msg = "give a window or a context; a context has its own, as in Context(window=…)"
            raise ValueError(msg)
        if not isinstance(context, Context):
            msg = f"context is a Context, not {type(context).__name__}"
            raise TypeError(msg)
        return cls(context=context, **options)


@lru_cache(maxsize=64)
def _windowed(window: Window, **options: Any) -> TurnOptions:
    """Make the options of a turn without a context, once for all turns that are alike."""
    return TurnOptions(context=Context(window), **options)


class Runner(Protocol):
    """Runs a flow on the connection of a store."""

    def __call__(self, flow: Flow[R], /) -> R:
        """Run it to its end."""
        ...


class AsyncRunner(Protocol):
    """Runs a flow on the connection of an async store."""

    def __call__(self, flow: Flow[R], /) -> Awaitable[R]:
        """Run it to its end."""
        ...


class _Turn:
    """What the two kinds of pending turn share: everything but the waiting."""

    def __init__(  # noqa: PLR0913 - the options of the public `turn`
        self,
        place: Place,
        messages: Input,
        *,
        options: TurnOptions,
        turn_id: str | None,
        format: str,  # noqa: A002 - the public name
        meta: dict[str, Any] | None,
    ) -> None:
        self.turn_id = new_turn_id() if turn_id is None else check_turn_id(turn_id)
        """The idempotency key: a save with the id of a saved turn writes nothing."""
        self.meta: dict[str, Any] = plain_meta({} if meta is None else meta)
        """What is stored of the turn beside its messages; may be added to until the save."""
        self.saved: Appended | None = None
        """What the save did; None until the turn is saved."""
        self.load_error: TurnstoreError | None = None
        """Why there is no history, where the turn went on without it."""
        self._place = place
        self._options = options
        self._rules: Format = format_named(format)
        self._request = plain_messages(messages, self._rules)
        self._replies: list[Message] = []
        self._answer: Any = None
        self._history: History | None = None
        self._plan: Plan | None = None
        self._after: Flow[Any] | None = None  # what is left to do when the turn was saved

    @property
    def history(self) -> History:
        """What was read from the store."""
        return self._loaded()[0]

    @property
    def messages(self) -> list[Message]:
        """What to send: instructions, history, the new messages, and the replies so far."""
        return self._loaded()[1].send + self._replies

    @property
    def new(self) -> list[Message]:
        """What will be stored: the new messages of the request, and the replies so far."""
        return self._loaded()[1].new + self._replies

    @property
    def revision(self) -> str:
        """The revision of the conversation when its history was read."""
        return self._loaded()[0].revision

    def reply(self, reply: Input, *, answer: Any = None) -> None:
        """Add what the model said; a turn without a reply is not saved.

        In a tool loop, call it with each message of the model and with each tool result:
        all of them are stored as one turn, and are part of `messages` from then on.

        Args:
            reply: Text of the model, a message, a completion of the OpenAI SDK, or
                several messages.
            answer: What an error at the save carries as its `reply`; by default this
                reply as it was given.

        Raises:
            TypeError, ValueError: It is not a message; it is not added.
            RuntimeError: The turn was saved already; begin another one.
        """
        self._loaded()
        if self.saved is not None:
            msg = "the turn was saved already, and this reply would be lost; begin another turn"
            raise RuntimeError(msg)
        messages = plain_messages(self._rules.answer(reply), self._rules, reply=True)
        self._replies += messages
        self._answer = reply if answer is None else answer

    def _loaded(self) -> tuple[History, Plan]:
        if self._history is None or self._plan is None:
            msg = "the turn has not begun: use it in a `with` block"
            raise RuntimeError(msg)
        return self._history, self._plan

    def _load(self) -> Flow[None]:
        options = self._options
        try:
            history = yield from self._place.read(options.context.window)
            plan = compose(history, self._request, self._rules, options.on_other_format)
        except TurnstoreError as error:
            if options.on_load_error == "raise":
                raise
            history = History([], 0, has_older=False)
            try:
                plan = compose(history, self._request, self._rules, options.on_other_format)
            except ValueError:  # it answers a tool call, which only the memory has
                raise error from None
            log.warning("the turn goes on without memory: %s", error)
            self.load_error = error
        self._history, self._plan = history, (yield from self._with_context(history, plan))

    def _with_context(self, history: History, plan: Plan) -> Flow[Plan]:
        """Put before the history what the context knows, and leave out what it leaves out."""
        context, place = self._options.context, self._place
        prepared = yield from context.prepare(
            history, plan.new, self._rules, place.counter, str(place.keys)
        )
        self.meta = prepared.meta | self.meta
        summary = ""
        if self.load_error is None:
            closes = prepared.boundary is not None
            summary, self._after = yield from place.carry(
                context, history, prepared.history, closes=closes
            )
        injected = "\n\n".join(text for text in (prepared.injected, summary) if text)
        if prepared.history is history and not injected:
            return plan
        return compose(
            history,
            self._request,
            self._rules,
            self._options.on_other_format,
            shown=prepared.history,
            injected=injected,
        )

    def _save(self) -> Flow[Appended | None]:
        """Append request and reply; once it is saved, answer what that did."""
        self._loaded()
        if self.saved is not None:
            return self.saved
        if not self._replies:
            msg = "there is no reply yet, and a turn without one is not saved"
            raise RuntimeError(msg)
        try:
            self.saved = yield from self._append()
        except ConflictError as error:
            msg = f"the model answered, but another turn came first: {error}"
            raise TurnConflictError(
                msg,
                expected=error.expected,
                actual=error.actual,
                reply=self._answer,
                turn=self,
            ) from error
        except Exception as error:  # whatever it is, the answer must not be lost
            if self.load_error is not None and isinstance(error, ServerError):
                # The caller chose to go on without memory; there was none at either end.
                log.warning("the turn was not saved: %s", error)
                return None
            raise self._unsaved(error) from error
        if self._after is not None:
            yield from self._after
        return self.saved

    def _unsaved(self, error: Exception) -> SaveError:
        msg = f"the model answered, but the turn was not saved: {error}"
        return SaveError(msg, reply=self._answer, turn=self)

    def _append(self) -> Flow[Appended]:
        history, plan = self._loaded()
        reject = self._options.on_conflict == "reject"
        if reject and self.load_error is not None:
            msg = "the history could not be loaded, so that it is not known what came before"
            raise ConflictError(msg)
        expected = history.revision if reject or plan.continued else None
        try:
            return (
                yield from self._place.append_draft(
                    self._draft(self.new), expected, continues=plan.continued is not None
                )
            )
        except ConflictError:
            if reject or plan.continued is None:
                raise
        # Another turn came between a tool call and its result. Pieces of a turn stand side
        # by side, so the whole of it follows; its first piece stays, and is never sent.
        return (yield from self._place.append_draft(self._draft(plan.continued + self.new)))

    def _draft(self, messages: list[Message]) -> Any:
        return self._place.draft(messages, self.turn_id, self._rules, self.meta)


class PendingTurn(_Turn):
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
        super().__init__(place, messages, **options)
        self._run = run

    def __enter__(self) -> Self:
        self._run(self._load())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None and self._replies:
            self.save()

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
            TurnConflictError: Another turn came first, under `on_conflict="reject"`.
        """
        try:
            return self._run(self._save())
        except ClosedError as error:
            raise self._unsaved(error) from error


class AsyncPendingTurn(_Turn):
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

    async def __aenter__(self) -> Self:
        await self._run(self._load())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None and self._replies:
            await self.save()

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
            TurnConflictError: Another turn came first, under `on_conflict="reject"`.
        """
        try:
            return await _io.unbroken(self._run(self._save()))
        except ClosedError as error:
            raise self._unsaved(error) from error
