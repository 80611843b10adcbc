"""A model of Railtracks' own interface, and how it is talked to."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

import railtracks as rt
from railtracks.llm import AssistantMessage, MessageHistory, ModelBase, ModelProvider, Response

if TYPE_CHECKING:
    from railtracks.llm import Message

Said = tuple[str, str]


class Model(ModelBase):
    """Says what it was given, one after the other, then "Yes."; an exception is raised."""

    def __init__(self, *replies: Any) -> None:
        super().__init__()
        self._replies = list(replies)
        self._lock = Lock()
        self.asked: list[MessageHistory] = []

    @property
    def heard(self) -> list[Said]:
        """What the newest call told it."""
        return heard(self.asked[-1])

    def model_name(self) -> str:
        return "scripted"

    def model_provider(self) -> ModelProvider:
        return ModelProvider.UNKNOWN

    @classmethod
    def model_gateway(cls) -> ModelProvider:
        return ModelProvider.UNKNOWN

    def _answer(self, messages: MessageHistory) -> Response:
        with self._lock:
            self.asked.append(MessageHistory(messages))
            reply = self._replies.pop(0) if self._replies else "Yes."
        if isinstance(reply, Exception):
            raise reply
        if callable(reply):
            reply = reply()
        return Response(reply if isinstance(reply, AssistantMessage) else AssistantMessage(reply))

    def _chat(self, messages: MessageHistory) -> Response:
        return self._answer(messages)

    def _chat_with_tools(self, messages: MessageHistory, tools: Any) -> Response:
        del tools
        return self._answer(messages)

    def _structured(self, messages: MessageHistory, schema: Any) -> Response:
        del schema
        return self._answer(messages)

    async def _achat(self, messages: MessageHistory) -> Response:
        return self._answer(messages)

    async def _achat_with_tools(self, messages: MessageHistory, tools: Any) -> Response:
        return self._chat_with_tools(messages, tools)

    async def _astructured(self, messages: MessageHistory, schema: Any) -> Response:
        return self._structured(messages, schema)


def heard(messages: list[Message[Any, Any]]) -> list[Said]:
    """Give who said what."""
    return [(one.role.value, str(one.content)) for one in messages]


async def ask(
    agent: Any,
    *said: Any,
    context: dict[str, Any] | None = None,
    timeout: float | None = None,  # noqa: ASYNC109 - the flow's
    **named: Any,
) -> Any:
    """Run an agent in a flow of its own."""
    flow: Any = rt.Flow("test", entry_point=agent, context=context, timeout=timeout)
    return await flow.ainvoke(*said, **named)
