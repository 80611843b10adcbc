"""A memory for agents of pydantic-ai, and a store for its conversations.

`Memory` is a capability: an agent that has it reads the history before a run and saves the
new messages after it, as one turn. `ConversationStore` implements pydantic-ai's own
interface of that name, for applications that load and save `Conversation` objects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal

from pydantic_ai import AgentRunResult, ModelMessagesTypeAdapter
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart, UserPromptPart
from pydantic_ai.tools import AgentDepsT, RunContext

from turnstore.aio import AsyncConversation
from turnstore.clients._calling import sendable
from turnstore.formats.pydantic_ai import PydanticAI
from turnstore.integrations._pydantic_ai_store import ConversationStore
from turnstore.messages import FORMATS
from turnstore.turn import AsyncPendingTurn, TurnOptions, begin
from turnstore.window import Window

if TYPE_CHECKING:
    from pydantic_ai.capabilities import WrapRunHandler
    from pydantic_ai.models import ModelRequestContext

    from turnstore._leases import Lease
    from turnstore.context import Context

__all__ = ["ConversationStore", "Memory"]

_FORMAT = "pydantic_ai"
# Settings with which the provider goes on from a history of its own.
_HELD_ELSEWHERE = ("openai_previous_response_id", "openai_conversation_id")


@dataclass
class Memory(AbstractCapability[AgentDepsT], Generic[AgentDepsT]):
    """A capability that gives each run of an agent the history of a conversation.

    A run and all its tool calls are one turn, saved when the run has succeeded. A run that
    fails or is cancelled, and a stream that is not read to its end, save nothing. Neither do
    replies that a provider filtered or cut off.

    The agent's system prompt and instructions are not stored: the agent gives them anew
    with each run. A run takes no `message_history` and no `conversation` beside this.

    Attributes:
        conversation: The conversation, of an `AsyncStore`; or a function of the run's
            context that gives it, for an agent that many share.
        window: As for `AsyncConversation.turn`; so are the other options.

    Raises:
        TypeError, ValueError: An option is of no use.

    Cost:
        Two round trips a run.

    Example:
        >>> from pydantic_ai import Agent
        >>> agent = Agent("test", capabilities=[Memory(chat)])
        >>> result = await agent.run("My name is Ada.")
        >>> len(await chat.turns())
        1
    """

    conversation: AsyncConversation | Callable[[RunContext[AgentDepsT]], AsyncConversation]
    _: KW_ONLY
    window: Window | None = None
    context: Context | None = None
    on_conflict: Literal["append", "reject", "serialize"] = "append"
    lease: Lease | None = None
    on_load_error: Literal["raise", "continue"] = "raise"
    on_other_format: Literal["raise", "text"] = "raise"
    _options: TurnOptions = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._options = TurnOptions.of(
            self.window,
            self.context,
            on_conflict=self.on_conflict,
            lease=self.lease,
            on_load_error=self.on_load_error,
            on_other_format=self.on_other_format,
        )

    async def wrap_run(
        self, ctx: RunContext[AgentDepsT], *, handler: WrapRunHandler
    ) -> AgentRunResult[Any]:
        """Load before the run, save after it; called by pydantic-ai."""
        if ctx.messages:
            msg = "a run with a Memory takes its history from there: give it no message_history"
            raise ValueError(msg)
        chat = self._conversation(ctx)
        async with await self._begin(chat, ctx) as turn:
            past = turn.messages[: len(turn.messages) - len(turn.new)]
            if past:
                ctx.messages[:0] = [*await _system_prompt(ctx), *_loaded(past)]
            result = await handler()
            _remember(turn, result)
        return result

    async def before_model_request(
        self, ctx: RunContext[AgentDepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Refuse settings with which the provider has a history, too; called by pydantic-ai."""
        del ctx
        settings: Any = request_context.model_settings or {}
        for name in _HELD_ELSEWHERE:
            if settings.get(name):
                msg = f"{name} and a Memory would both give the model a history; leave one out"
                raise ValueError(msg)
        return request_context

    def _conversation(self, ctx: RunContext[AgentDepsT]) -> AsyncConversation:
        chat: Any = self.conversation
        if callable(chat):
            chat = chat(ctx)
        if not isinstance(chat, AsyncConversation):
            msg = f"Memory needs a conversation of an AsyncStore, not {type(chat).__name__}"
            raise TypeError(msg)
        return chat

    async def _begin(
        self, chat: AsyncConversation, ctx: RunContext[AgentDepsT]
    ) -> AsyncPendingTurn:
        if ctx.prompt is not None:
            request = [ModelRequest(parts=[UserPromptPart(ctx.prompt)])]
        else:  # it goes on with the newest turn: results of deferred tools, or nothing new
            request = _answers(await chat.read(Window(turns=1)))
        return begin(chat, _dumped(request), self._options, format=_FORMAT)


async def _system_prompt(ctx: RunContext[Any]) -> list[ModelMessage]:
    """Give what the agent itself leaves out of a run that has a history."""
    if ctx.agent is None:
        return []
    settings: Any = ctx.model_settings
    model: Any = ctx.model
    parts = await ctx.agent.system_prompt_parts(
        deps=ctx.deps, model=model, prompt=ctx.prompt, usage=ctx.usage, model_settings=settings
    )
    return [ModelRequest(parts=parts)] if parts else []


def _answers(newest: list[dict[str, Any]]) -> list[ModelRequest]:
    """Make a request that answers the open calls of a turn; what is in it is not sent."""
    rules = FORMATS[_FORMAT]
    answered = {done for message in newest for done in rules.results(message)}
    waiting = [call for one in newest for call in rules.calls(one) if call not in answered]
    parts = [ToolReturnPart("deferred", "", tool_call_id=call) for call in waiting]
    return [ModelRequest(parts=parts)] if parts else []


def _remember(turn: AsyncPendingTurn, result: AgentRunResult[Any]) -> None:
    rules = FORMATS[_FORMAT]
    assert isinstance(rules, PydanticAI)  # noqa: S101 - for the type checker
    messages = _dumped(result.new_messages())
    if any(map(rules.unfit, messages)):
        return
    messages = rules.without_instructions(messages)
    first = next((n for n, message in enumerate(messages) if rules.is_reply(message)), None)
    if first is not None:
        turn.amend(messages[:first])
        turn.reply(messages[first:], answer=result)


def _dumped(messages: list[Any]) -> list[dict[str, Any]]:
    dumped: list[dict[str, Any]] = ModelMessagesTypeAdapter.dump_python(messages, mode="json")
    return dumped


def _loaded(messages: list[dict[str, Any]]) -> list[ModelMessage]:
    return ModelMessagesTypeAdapter.validate_python(sendable(messages))
