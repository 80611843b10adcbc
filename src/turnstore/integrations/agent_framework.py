"""A history provider for Microsoft's Agent Framework."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from agent_framework import AgentResponse, Message
from agent_framework import HistoryProvider as Base

from turnstore.aio import AsyncConversation
from turnstore.clients._calling import sendable
from turnstore.formats.agent_framework import AgentFramework
from turnstore.messages import FORMATS
from turnstore.turn import AsyncPendingTurn, TurnOptions, begin
from turnstore.window import Window

if TYPE_CHECKING:
    from agent_framework import AgentSession, SessionContext, SupportsAgentRun

    from turnstore.context import Context

__all__ = ["HistoryProvider"]

_FORMAT = "agent_framework"

log = logging.getLogger("turnstore")


class HistoryProvider(Base):
    """Keep the history of an agent's sessions: one turn a run, saved when it has succeeded.

    A run that fails or is cancelled, and a stream that is not read to its end, save nothing.
    Neither do answers that a provider filtered or refused, or that have no finish reason: a
    stream that was cut ends like this.

    Args:
        conversation: Gives the conversation of a session's id, as `store.conversation` of an
            `AsyncStore` does.
        source_id: The name of the provider in an agent.
        window: As for `AsyncConversation.turn`; so are the other options. "serialize" is
            not among them: the framework does not tell a provider that a run has failed.
        needs_finish_reason: Whether an answer without a finish reason is left out. Set it to
            False for a chat client that never gives one.

    Raises:
        TypeError, ValueError: An option is of no use; in a run, a session whose history the
            service keeps.

    Cost:
        Two round trips a run.

    Example:
        >>> from agent_framework import Agent, AgentSession
        >>> from agent_framework.openai import OpenAIChatCompletionClient
        >>> client = OpenAIChatCompletionClient(model="gpt-5")
        >>> agent = Agent(client, context_providers=[HistoryProvider(store.conversation)])
        >>> answer = await agent.run("Hi", session=AgentSession(session_id="conv-1"))
        >>> len(await store.conversation("conv-1").turns())
        1
    """

    def __init__(  # noqa: PLR0913 - options by keyword
        self,
        conversation: Callable[[str], AsyncConversation],
        source_id: str = "turnstore",
        *,
        window: Window | None = None,
        context: Context | None = None,
        on_conflict: Literal["append", "reject"] = "append",
        on_load_error: Literal["raise", "continue"] = "raise",
        on_other_format: Literal["raise", "text"] = "raise",
        needs_finish_reason: bool = True,
    ) -> None:
        super().__init__(source_id)
        if not callable(conversation):
            msg = "give store.conversation of an AsyncStore, or a function of a session's id"
            raise TypeError(msg)
        given: Any = on_conflict
        if given == "serialize":
            msg = "the framework does not say that a run failed, so a lease would not be given back"
            raise ValueError(msg)
        self._conversation = conversation
        self._needs_finish_reason = needs_finish_reason
        self._options = TurnOptions.of(
            window,
            context,
            on_conflict=on_conflict,
            on_load_error=on_load_error,
            on_other_format=on_other_format,
        )
        # A run that failed leaves its turn here until its context is forgotten.
        self._turns: WeakKeyDictionary[SessionContext, AsyncPendingTurn] = WeakKeyDictionary()

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Read the history and put it before the new messages; called by the framework."""
        del agent, state
        _refuse_other_histories(session, context)
        chat, request = self._of(context.session_id), _dumped(context.input_messages)
        turn = begin(chat, request, self._options, format=_FORMAT)
        await turn.__aenter__()  # `after_run` is where it ends
        self._turns[context] = turn
        past = turn.messages[: len(turn.messages) - len(context.input_messages)]
        context.extend_messages(self, _loaded(past))

    async def after_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Save the new messages as one turn; called by the framework after a success."""
        del agent, session, state
        turn, response = self._turns.pop(context, None), context.response
        if turn is None or response is None or not response.messages:
            return
        replies = _dumped(response.messages)
        if reason := self._unfit(response, replies):
            log.warning("the turn was not saved: %s", reason)
            return
        turn.reply(replies, answer=response)
        await turn.save()

    def _unfit(self, response: AgentResponse, replies: list[dict[str, Any]]) -> str:
        reason = response.finish_reason
        if reason is None and self._needs_finish_reason:
            return "the answer has no finish reason, as if it had been cut"
        if reason == "content_filter":
            return "the answer was filtered"
        return next(filter(None, map(_rules().unfit, replies)), "")

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Read the history of a session, within the window; one round trip."""
        del state, kwargs
        return _loaded(await self._of(session_id).read(self._options.context.window))

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Append messages to the history of a session, as one turn; one round trip."""
        del state, kwargs
        kept = [one for one in _dumped(messages) if not _rules().is_instruction(one)]
        await self._of(session_id).append(kept, format=_FORMAT)

    def _of(self, session_id: str | None) -> AsyncConversation:
        if not session_id:
            msg = "a history needs a session: agent.run(…, session=AgentSession(session_id=…))"
            raise ValueError(msg)
        chat: Any = self._conversation(session_id)
        if not isinstance(chat, AsyncConversation):
            msg = f"this needs a conversation of an AsyncStore, not {type(chat).__name__}"
            raise TypeError(msg)
        return chat


def _refuse_other_histories(session: AgentSession, context: SessionContext) -> None:
    options = context.options
    for name, value in (
        ("service_session_id", session.service_session_id),
        ("conversation_id", options.get("conversation_id")),
        ("store", options.get("store")),
        ("continuation_token", options.get("continuation_token")),
    ):
        if value:
            msg = (
                f"{name} and a history provider would both give the model a history; leave one "
                'out. With options={"store": False} a service keeps none'
            )
            raise ValueError(msg)


def _rules() -> AgentFramework:
    rules = FORMATS[_FORMAT]
    assert isinstance(rules, AgentFramework)  # noqa: S101 - for the type checker
    return rules


def _dumped(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [message.to_dict() for message in messages]


def _loaded(messages: list[dict[str, Any]]) -> list[Message]:
    return [Message.from_dict(message) for message in sendable(messages)]
