"""A memory for agents of Railtracks: its ConversationMemory, kept in Redis."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Never, Self, TypeAlias, TypeVar
from uuid import uuid4

from railtracks.built_nodes.llm.response import LLMResponse
from railtracks.context.central import (
    is_context_active,
    is_context_present,
    safe_get_runner_context,
)
from railtracks.llm import (
    AssistantMessage,
    Message,
    MessageHistory,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolResponse,
    UserMessage,
)
from railtracks.llm.content import ToolCalls
from railtracks.llm.message import Attachment
from railtracks.middleware import Middleware

from turnstore._compose import compose
from turnstore._io import unbroken
from turnstore.aio import AsyncConversation
from turnstore.clients._calling import sendable
from turnstore.conversation import Conversation
from turnstore.errors import ConflictError, SaveError, ServerError
from turnstore.messages import FORMATS, plain_messages
from turnstore.turn import AsyncPendingTurn, PendingTurn, TurnOptions, begin
from turnstore.window import Window, limit

if TYPE_CHECKING:
    from turnstore._leases import Lease
    from turnstore.context import Context

__all__ = ["ConversationMemory"]

R = TypeVar("R")

Either: TypeAlias = Conversation | AsyncConversation
Json: TypeAlias = dict[str, Any]
Said: TypeAlias = "Message[Any, Any]"

_FORMAT = "railtracks"
_RULES = FORMATS[_FORMAT]

log = logging.getLogger("turnstore")


class ConversationMemory(Middleware[..., Any, Never]):
    """A node middleware that gives an agent the history of a conversation.

    It behaves as Railtracks' own middleware of that name, for all processes: what an agent
    is asked goes to it with the history before it, and a run that has succeeded is saved as
    one turn, with its tool calls and their results. A run that fails, and one whose session
    has ended before it, save nothing. System messages are passed on and not stored.

    Args:
        conversation: Gives the conversation of a key, as `store.conversation` does. Those of a
            Store fit `flow.invoke`, and any other call; those of an AsyncStore only calls
            from one event loop, as with `await flow.ainvoke(…)`.
        context_key: The key of the conversation, the same in all processes; or a function
            that gives it for a run. By default a random one, so that each middleware has a
            conversation of its own, which nobody else can find. A history in the session's
            context under a key that is text goes first into an empty conversation, for one
            more round trip a run.
        max_messages: At most so many messages of the history are sent, in whole turns; None
            and 0 set no limit.
        window: As for `Conversation.turn`, in place of `max_messages`; so are the other
            options.

    Raises:
        TypeError, ValueError: An option is of no use: a blank key, or a limit below 0.

    Cost:
        Two round trips a run.

    Example:
        >>> import railtracks as rt
        >>> memory = ConversationMemory(store.conversation, "conv-1")
        >>> agent = rt.agent_node("Echo", llm=rt.llm.EchoLLM(), middleware=[memory])
        >>> answer = rt.Flow("echo", entry_point=agent).invoke("My name is Ada.")
        >>> len(store.conversation("conv-1").turns())
        1
    """

    def __init__(  # noqa: PLR0913 - options by keyword
        self,
        conversation: Callable[[str], Either],
        context_key: str | Callable[[], str] | None = None,
        *,
        max_messages: int | None = None,
        window: Window | None = None,
        context: Context | None = None,
        on_conflict: Literal["append", "reject", "serialize"] = "append",
        lease: Lease | None = None,
        on_load_error: Literal["raise", "continue"] = "raise",
        on_other_format: Literal["raise", "text"] = "raise",
    ) -> None:
        if not callable(conversation):
            msg = "give store.conversation, or another function of a key"
            raise TypeError(msg)
        at_most = limit("max_messages={}", max_messages or None)
        if window is None and context is None:
            window = Window(messages=at_most)
        elif at_most is not None:
            msg = "give max_messages, a window or a context; each is a limit"
            raise ValueError(msg)
        self._conversation = conversation
        self._key = uuid4().hex if context_key is None else context_key
        if not callable(context_key):
            self._key = _checked(self._key)
        self._options = TurnOptions.of(
            window,
            context,
            on_conflict=on_conflict,
            lease=lease,
            on_load_error=on_load_error,
            on_other_format=on_other_format,
        )
        super().__init__(self._remember)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Give itself: `rt.couple` copies what a node has, and a copy is the same memory."""
        return self

    @property
    def context_key(self) -> str:
        """The key of the conversation."""
        return _checked(self._key() if callable(self._key) else self._key)

    async def get_history(self) -> MessageHistory:
        """Read the history that the next run is sent, oldest first; one round trip."""
        chat, options = self._chat(), self._options
        history = await _run(chat, chat.read, options.context.window)
        return _loaded(compose(history, [], _RULES, options.on_other_format).send)

    async def clear(self) -> bool:
        """Delete the history; tell whether there was one. One round trip."""
        chat = self._chat()
        return bool(await _run(chat, chat.clear))

    async def seed(self, history: Iterable[Said]) -> bool:
        """Put messages into a conversation that has none yet; one round trip.

        They are one turn, so that a limit takes or leaves them together. Safe to be called
        by each process that starts.

        Returns:
            Whether they were put there; otherwise the conversation is as it was.

        Raises:
            TypeError, ValueError: They are no messages; nothing was written.
        """
        return await _seed(self._chat(), history)

    def _chat(self) -> Either:
        chat: Any = self._conversation(self.context_key)
        if not isinstance(chat, Conversation | AsyncConversation):
            msg = f"this needs a conversation of a store, not {type(chat).__name__}"
            raise TypeError(msg)
        return chat

    async def _remember(
        self, call: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> Any:
        if not args and "user_input" not in kwargs:
            msg = "a memory goes with an agent, whose input comes first or is named user_input"
            raise TypeError(msg)
        given: Any = args[0] if args else kwargs["user_input"]
        request = _plain([given] if isinstance(given, Message) else given)
        chat = self._chat()
        await self._seed_from_session(chat)
        turn = begin(chat, request, self._options, format=_FORMAT)
        async with turn if isinstance(turn, AsyncPendingTurn) else _InThread(turn):
            sent = _loaded(turn.messages)
            if args:
                args = (sent, *args[1:])
            else:
                kwargs["user_input"] = sent
            result = await call(*args, **kwargs)
            if not isinstance(result, LLMResponse):
                log.warning("not saved: %s is no answer of an agent", type(result).__name__)
            elif is_context_present() and not is_context_active():
                log.warning("not saved: the session has ended, and nobody has the answer")
            else:
                _answered(turn, sent, result)
        return result

    async def _seed_from_session(self, chat: Either) -> None:
        """Put the history that the session's context has under the key before everything."""
        if callable(self._key) or not is_context_present():
            return
        context = safe_get_runner_context().external_context
        found: Any = context.get(self._key, default=())
        if not isinstance(found, list) or not all(isinstance(one, Message) for one in found):
            return
        try:
            await _seed(chat, found)
        except ServerError as error:
            if self._options.on_load_error == "raise":
                raise
            log.warning("the run goes on without memory: %s", error)


def _checked(key: Any) -> str:
    if not isinstance(key, str):
        msg = f"context_key is text, or a function that gives it, not {type(key).__name__}"
        raise TypeError(msg)
    if not key.strip():
        msg = "context_key is blank; leave it out for a conversation of the memory's own"
        raise ValueError(msg)
    return key


async def _seed(chat: Either, history: Iterable[Said]) -> bool:
    messages = [one for one in _plain(history) if not _RULES.is_instruction(one)]
    if not messages:
        return False
    try:
        await _run(chat, chat.append, messages, format=_FORMAT, expected_revision="0")
    except ConflictError:
        return False
    return True


def _plain(messages: Any) -> list[Json]:
    return plain_messages(messages, _RULES)


def _answered(turn: PendingTurn | AsyncPendingTurn, sent: MessageHistory, result: Any) -> None:
    """Hand the turn what the run added to what it was sent."""
    history: list[Said] = result.message_history
    first = _first_answer(history, sent)
    try:
        replies = _plain(history[first:])
        if reason := next(filter(None, map(_RULES.unfit, replies)), ""):
            log.warning("the turn was not saved: %s", reason)
            return
        if turn.new and first == len(sent):
            # With what was filled in for its placeholders.
            asked = [one for one in history[:first] if one.role.value != "system"]
            turn.amend(_plain(asked[-len(turn.new) :]))
        turn.reply(replies, answer=result)
    except (TypeError, ValueError) as error:
        msg = f"the agent answered, but its answer cannot be stored: {error}"
        raise SaveError(msg, reply=result, turn=turn) from error


def _first_answer(history: list[Said], sent: MessageHistory) -> int:
    """Find where the answers begin; other middleware may have changed what was sent."""
    if sent and sent[-1].role.value in ("assistant", "tool"):
        return len(sent)
    asked = [at for at, one in enumerate(history, 1) if one.role.value in ("user", "system")]
    return asked[-1] if asked else 0


def _loaded(messages: Iterable[Json]) -> MessageHistory:
    return MessageHistory(map(_message, sendable(list(messages))))


def _message(stored: Json) -> Said:
    role, content = stored["role"], stored["content"]
    beside = {name: value for name, value in stored.items() if name not in ("role", "content")}
    made: Said
    if role == "user":
        made = UserMessage(content)
    elif role == "system":
        made = SystemMessage(content)
    elif role == "tool":
        made = ToolMessage(ToolResponse.model_validate(content))
    elif isinstance(content, list):
        calls = map(ToolCall.model_validate, content)
        made = AssistantMessage(ToolCalls(calls, text=beside.pop("text", None)))
    else:
        made = AssistantMessage(content)
    for name, value in beside.items():
        setattr(made, name, _BESIDE.get(name, _as_it_is)(value))
    return made


def _as_it_is(value: Any) -> Any:
    return value


def _attachments(stored: list[Json]) -> list[Attachment]:
    # Not by its constructor, which would read the file or the address once more.
    made = [Attachment.__new__(Attachment) for _ in stored]
    for attachment, fields in zip(made, stored, strict=True):
        vars(attachment).update(fields)
    return made


def _provider_message(stored: Any) -> Any:
    if not isinstance(stored, dict) or not {"role", "content"} <= stored.keys():
        return stored
    # Few messages have one. (It is typed, and does not say so.)
    from litellm.types.utils import Message as Provided  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs]

    return Provided(**stored)


_BESIDE = {"attachment": _attachments, "raw_litellm_message": _provider_message}


async def _run(chat: Either, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    if isinstance(chat, AsyncConversation):
        return await function(*args, **options)
    return await asyncio.to_thread(function, *args, **options)


class _InThread(AbstractAsyncContextManager[None]):
    """Begins and ends the turn of a Store in a thread of its own.

    In no pool that others use: turns that wait for a lease would leave the one that has it
    without a thread.
    """

    def __init__(self, turn: PendingTurn) -> None:
        self._turn = turn
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="turnstore-turn")

    async def __aenter__(self) -> None:
        try:
            await self._do("the begin of a turn", self._turn.__enter__)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):  # it may have begun all the same
                await self.__aexit__(type(error), error, None)
            self._pool.shutdown(wait=False)
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await self._do("the end of a turn", self._turn.__exit__, kind, error, traceback)
        finally:
            self._pool.shutdown(wait=False)

    async def _do(self, what: str, function: Callable[..., R], *args: Any) -> R:
        work = partial(contextvars.copy_context().run, function, *args)
        loop = asyncio.get_running_loop()
        return await unbroken(loop.run_in_executor(self._pool, work), what)
