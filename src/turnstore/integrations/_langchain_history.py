"""LangChain's chat message history, over a conversation."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage, messages_from_dict

from turnstore.aio import AsyncConversation
from turnstore.clients._calling import sendable
from turnstore.conversation import Conversation
from turnstore.errors import ConflictError
from turnstore.messages import Message, format_named, plain_messages

from ._late import check_late

__all__ = ["FORMAT", "RULES", "ChatHistory", "unfit"]

FORMAT = "langchain"
"""The format of the turns: what LangChain's `message_to_dict` writes."""

RULES = format_named(FORMAT)

log = logging.getLogger("turnstore")


class ChatHistory(BaseChatMessageHistory):
    """A conversation as LangChain's `BaseChatMessageHistory`.

    Make one for each call: what `messages` has read once stays as it is until messages are
    added, since `RunnableWithMessageHistory` reads twice and trusts that nothing changed.
    What `add_messages` is given is one turn. Messages that are added one by one with the
    same object are pieces of the turn that the user's message began.

    Args:
        conversation: Of a Store, or of an AsyncStore for `ainvoke` and `astream` alone.
        options: As for `Conversation.turn`: `window`, `context` (a window and a summary),
            `on_conflict` (no "serialize"), `on_load_error`, `on_other_format`, `meta`.

    Raises:
        TypeError, ValueError: An option is of no use.
    """

    def __init__(self, conversation: Conversation | AsyncConversation, **options: Any) -> None:
        check_late(options)
        if options.get("on_conflict") == "serialize":
            msg = 'LangChain does not tell a history of a failure, so "serialize" cannot end'
            raise ValueError(msg)
        self._conversation = conversation
        self._options = options
        self._turn: Any = None
        self._saved: str | None = None  # the revision after what was added last
        self._begun()

    # Sync

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # the base has a field
        """The history, oldest first."""
        self._of(Conversation)
        if self._turn is None:
            turn = self._begun()
            turn.__enter__()
            self._turn = turn
        return messages_from_dict(sendable(self._turn.messages))

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Save messages; nothing where the model refused."""
        new = plain_messages(list(messages), RULES)
        if not new or unfit(new):
            return
        chat = self._of(Conversation)
        turn = self._handed(new)
        if turn is not None:
            self._saved = getattr(turn.save(), "revision", None)
            return
        try:
            saved = chat.append(new, **self._piece(new))
        except ConflictError:
            saved = chat.append(new, format=FORMAT)
        self._saved = saved.revision

    def clear(self) -> None:
        """Delete everything."""
        self._turn = self._saved = None
        self._of(Conversation).clear()

    # Async

    async def aget_messages(self) -> list[BaseMessage]:
        """Give the history, oldest first."""
        if isinstance(self._conversation, Conversation):
            return await super().aget_messages()
        if self._turn is None:
            turn = self._begun()
            await turn.__aenter__()
            self._turn = turn
        return messages_from_dict(sendable(self._turn.messages))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Save messages; nothing where the model refused."""
        if isinstance(self._conversation, Conversation):
            await super().aadd_messages(messages)
            return
        new = plain_messages(list(messages), RULES)
        if not new or unfit(new):
            return
        turn = self._handed(new)
        if turn is not None:
            self._saved = getattr(await turn.save(), "revision", None)
            return
        chat: Any = self._conversation
        try:
            saved = await chat.append(new, **self._piece(new))
        except ConflictError:
            saved = await chat.append(new, format=FORMAT)
        self._saved = saved.revision

    async def aclear(self) -> None:
        """Delete everything."""
        if isinstance(self._conversation, Conversation):
            await super().aclear()
            return
        self._turn = self._saved = None
        await self._conversation.clear()

    # Both

    def _of(self, kind: type) -> Any:
        if not isinstance(self._conversation, kind):
            msg = "a history over an AsyncStore is for ainvoke and astream; give a Store here"
            raise TypeError(msg)
        return self._conversation

    def _begun(self) -> Any:
        return self._conversation.turn((), format=FORMAT, **self._options)

    def _handed(self, new: list[Message]) -> Any:
        """Hand messages to the turn whose history was read; None where nothing was read."""
        turn, self._turn = self._turn, None
        first = next((at for at, one in enumerate(new) if RULES.is_reply(one)), None)
        if turn is None or first is None:
            return None
        turn._ask(new[:first])  # noqa: SLF001 - of the same house
        turn.reply(new[first:], answer=new[-1])
        return turn

    def _piece(self, new: list[Message]) -> dict[str, Any]:
        """Say how messages are appended without a history that was read."""
        begins = not RULES.is_reply(new[0]) and not RULES.results(new[0])
        begun = None if begins else self._saved
        return {"format": FORMAT, "expected_revision": begun, "continues": begun is not None}


def unfit(messages: list[Message]) -> str:
    """Say in the log why messages are not saved; empty where they may be."""
    reason = next(filter(None, map(RULES.unfit, messages)), "")
    if reason:
        log.warning("not saved: %s", reason)
    return reason
