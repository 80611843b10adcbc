"""LangChain: a memory for the agents of `create_agent`, and a chat message history.

`MemoryMiddleware` is the way that goes on: a whole run of an agent, tools and all, is one
turn. `ChatHistory` is for `RunnableWithMessageHistory`, which LangChain has deprecated.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, ExitStack
from itertools import takewhile
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict, Unpack

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import BaseMessage, messages_from_dict
from langgraph.channels.untracked_value import UntrackedValue  # pyright: ignore[reportMissingTypeStubs]  # it is typed, and does not say so

from turnstore._leases import Lease
from turnstore.aio import AsyncConversation
from turnstore.clients._calling import sendable
from turnstore.context import Context
from turnstore.conversation import Conversation
from turnstore.errors import SaveError
from turnstore.messages import Message, plain_messages
from turnstore.window import Window

from ._langchain_history import FORMAT, RULES, ChatHistory, unfit

__all__ = ["FORMAT", "ChatHistory", "MemoryMiddleware"]

Either: TypeAlias = Conversation | AsyncConversation

# What hands the history to a provider, in the settings of a model call or of a model.
_KEPT_ELSEWHERE = (
    "previous_response_id",
    "use_previous_response_id",
    "conversation",
    "background",
    "thread",
)


class TurnOptions(TypedDict, total=False):
    """What `Conversation.turn` takes beside messages; see there."""

    window: Window | None
    context: Context | None
    turn_id: str | None
    meta: dict[str, Any] | None
    on_conflict: Literal["append", "reject", "serialize"]
    lease: Lease | None
    on_load_error: Literal["raise", "continue"]
    on_other_format: Literal["raise", "text"]
    on_duplicate: Literal["ask", "raise"]


class _Run:
    """One run of an agent, from its request to its answer; it lives in the run's own state."""

    def __init__(self, conversation: Either, given: list[BaseMessage], options: Any) -> None:
        self.request = _plain(given)
        self.given = given
        self.turn: Any = conversation.turn(self.request, format=FORMAT, **options)
        self.end: Any = None
        self.ahead: list[BaseMessage] = []
        self.known: set[str | None] = set()

    def load(self) -> _Run:
        """Begin the turn."""
        self.end = ExitStack()
        self.end.enter_context(self.turn)
        return self._loaded()

    async def aload(self) -> _Run:
        """Begin the turn."""
        self.end = AsyncExitStack()
        await self.end.enter_async_context(self.turn)
        return self._loaded()

    def _loaded(self) -> _Run:
        """Find out what goes ahead of the request, and what of the request is history."""
        request, first = self.request, _leading(self.request)
        spoken = [at for at, one in enumerate(request) if not RULES.is_instruction(one)]
        known = len(spoken) - len(self.turn.new)
        start = spoken[known] if known else first
        self.known = {message.id for message in self.given[first:start]}
        sent: list[Message] = self.turn.messages
        self.ahead = messages_from_dict(sendable(sent[first : len(sent) - len(request) + start]))
        return self

    def sending(self, request: Any) -> Any:
        """Give a request for the model with the history in it."""
        for option in _KEPT_ELSEWHERE:
            if request.model_settings.get(option) or getattr(request.model, option, None):
                msg = (
                    f"{option} makes the provider keep the history, which turnstore sends; "
                    "leave it out. Nothing was sent"
                )
                raise ValueError(msg)
        new = [message for message in request.messages if message.id not in self.known]
        roles = ({"type": one.type, "data": {"role": getattr(one, "role", "")}} for one in new)
        first = _leading(roles)
        return request.override(messages=[*new[:first], *self.ahead, *new[first:]])

    def answered(self, messages: list[BaseMessage]) -> None:
        """Hand the turn what the run added to its request."""
        asked = {message.id for message in self.given}
        said = [message for message in messages if message.id not in asked]
        answer = said[-1] if said else None
        try:
            replies = [one for one in _plain(said) if not RULES.is_instruction(one)]
            if not unfit(replies):
                self.turn.reply(replies, answer=answer)
        except (TypeError, ValueError) as error:
            msg = f"the agent answered, but its answer cannot be stored: {error}"
            raise SaveError(msg, reply=answer, turn=self.turn) from error


class _State(AgentState[Any]):
    turnstore: NotRequired[Annotated[_Run | None, UntrackedValue, PrivateStateAttr]]


class MemoryMiddleware(AgentMiddleware[Any, Any, Any]):
    """A memory for an agent: history before each model call, one turn saved at the end.

    Put it first, so that its save comes last. The state of the agent has the messages of the
    run alone: what came before goes to the model, and nowhere else.

    Args:
        conversation: The conversation, or a function that gives it for the runtime of a run,
            as in `lambda runtime: store.conversation(runtime.context)`. Of a Store for
            `invoke` and `stream`, of an AsyncStore for `ainvoke` and `astream`.
        options: As for `Conversation.turn`: `window`, `context`, `on_conflict`, `lease`,
            `on_load_error`, `on_other_format`, `meta`; for one that is made for a single run,
            `turn_id` and `on_duplicate`, too.

    Raises:
        TypeError, ValueError: An option is of no use.
    """

    state_schema: Any = _State

    def __init__(
        self, conversation: Either | Callable[[Any], Either], **options: Unpack[TurnOptions]
    ) -> None:
        super().__init__()
        self._conversation = conversation
        self._options: Any = options
        if isinstance(conversation, Conversation | AsyncConversation):
            conversation.turn((), format=FORMAT, **self._options)  # says what is wrong with them

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        """Load the history."""
        return {"turnstore": self._run(state["messages"], runtime, Conversation).load()}

    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        """Load the history."""
        run = self._run(state["messages"], runtime, AsyncConversation)
        return {"turnstore": await run.aload()}

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Send the history with the request."""
        run = self._resumed(request.state, request.runtime, Conversation)
        run = run if run.end else run.load()
        try:
            return handler(run.sending(request))
        except BaseException as error:
            run.turn.__exit__(type(error), error, error.__traceback__)  # no turn waits for it
            raise

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Send the history with the request."""
        run = self._resumed(request.state, request.runtime, AsyncConversation)
        run = run if run.end else await run.aload()
        try:
            return await handler(run.sending(request))
        except BaseException as error:
            await run.turn.__aexit__(type(error), error, error.__traceback__)
            raise

    def after_agent(self, state: Any, runtime: Any) -> None:
        """Save request and answer as one turn."""
        run = self._resumed(state, runtime, Conversation)
        run = run if run.end else run.load()
        with run.end:
            run.answered(state["messages"])

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        """Save request and answer as one turn."""
        run = self._resumed(state, runtime, AsyncConversation)
        run = run if run.end else await run.aload()
        async with run.end:
            run.answered(state["messages"])

    def _resumed(self, state: Any, runtime: Any, kind: type) -> _Run:
        """Give the run of this state; a new one where it was interrupted, and goes on here."""
        run: _Run | None = state.get("turnstore")
        if run is not None:
            return run
        messages: list[BaseMessage] = state["messages"]
        asked = [at for at, one in enumerate(messages, 1) if one.type not in ("ai", "tool")]
        return self._run(messages[: asked[-1] if asked else 0], runtime, kind)

    def _run(self, given: list[BaseMessage], runtime: Any, kind: type) -> _Run:
        found = self._conversation
        if not isinstance(found, Conversation | AsyncConversation):
            found = found(runtime)
        if not isinstance(found, kind):
            needed = "an AsyncStore" if kind is AsyncConversation else "a Store"
            msg = (
                f"this call of the agent needs a conversation of {needed}; "
                f"it was given {type(found).__name__}"
            )
            raise TypeError(msg)
        return _Run(found, given, self._options)


def _plain(messages: Any) -> list[Message]:
    return plain_messages(list(messages), RULES)


def _leading(messages: Iterable[Message]) -> int:
    """Count the instructions that stand first."""
    return sum(1 for _ in takewhile(RULES.is_instruction, messages))
