"""A chat store for LlamaIndex."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from llama_index.core.llms import ChatMessage
from llama_index.core.storage.chat_store import BaseChatStore
from pydantic import PrivateAttr

from turnstore._calls import Flow
from turnstore._checks import check_window
from turnstore._compose import compose
from turnstore._place import Place
from turnstore.clients._calling import sendable
from turnstore.conversation import Conversation
from turnstore.errors import ConflictError
from turnstore.formats import FORMATS
from turnstore.results import History
from turnstore.window import Window

__all__ = ["ChatStore"]

_FORMAT = "llama_index"

R = TypeVar("R")
Messages = list[ChatMessage]
Found = ChatMessage | None


class ChatStore(BaseChatStore):
    """Keep the chat histories of LlamaIndex, each key a conversation.

    LlamaIndex writes the user's message before it asks the model, and the answer after it.
    So a turn cannot be saved whole: a call that fails leaves the question behind. What can be
    decided is where a turn ends: a user's message begins one, all others join the newest, so
    that windows and limits keep them together, and tool calls that were never answered are
    not given to a model again. Calls of one conversation at once can mix their turns.

    Args:
        conversation: Gives the conversation of a key, as `store.conversation` of a `Store`
            does. LlamaIndex's memory reads in a thread even where its engine is async, and so
            do the async methods.
        window: How much `get_messages` reads; by default at most 100 messages.

    Raises:
        TypeError: An argument is of no use.

    Cost:
        One round trip to read, one for each message. A turn of a chat engine takes three.

    Example:
        >>> chats = ChatStore(store.conversation)
        >>> chats.add_message("conv-1", ChatMessage(role="user", content="Hi"))
        >>> chats.add_message("conv-1", ChatMessage(role="assistant", content="Hello"))
        >>> len(store.conversation("conv-1").turns())
        1
    """

    _conversation: Callable[[str], Conversation] = PrivateAttr()
    _window: Window = PrivateAttr()

    def __init__(
        self,
        conversation: Callable[[str], Conversation],
        *,
        window: Window | None = None,
    ) -> None:
        super().__init__()
        if not callable(conversation):
            msg = "give store.conversation, or another function of a key"
            raise TypeError(msg)
        self._conversation = conversation
        self._window = check_window(window)

    @classmethod
    def class_name(cls) -> str:
        """Give the name that LlamaIndex writes beside it."""
        return "TurnstoreChatStore"

    def get_messages(self, key: str) -> Messages:
        """Read the newest messages."""
        return self._run(key, _get, self._window)

    def add_message(self, key: str, message: ChatMessage) -> None:
        """Append a message, to the newest turn unless it is the user's."""
        self._run(key, _add, message)

    def set_messages(self, key: str, messages: Messages) -> None:
        """Replace the history; in several steps, so that a crash can leave less of it."""
        self._run(key, _set, messages)

    def delete_messages(self, key: str) -> Messages | None:
        """Delete the history, and give what `get_messages` would have given."""
        return self._run(key, _clear, self._window)

    def delete_message(self, key: str, idx: int) -> Found:
        """Delete a message of those that `get_messages` gives; in several steps, as above.

        Raises:
            ConflictError: Somebody wrote meanwhile; nothing was deleted.
        """
        return self._run(key, _delete, idx, self._window)

    def delete_last_message(self, key: str) -> Found:
        """Delete the newest message; see `delete_message`."""
        return self._run(key, _delete, -1, self._window)

    def get_keys(self) -> list[str]:
        """Not to be had: Redis keys hold digests, and there is no index of conversations."""
        msg = "turnstore keeps no list of conversations; keep their ids where users are kept"
        raise NotImplementedError(msg)

    def _run(self, key: str, flow: Callable[..., Flow[R]], *arguments: Any) -> R:
        chat: Any = self._conversation(key)
        if not isinstance(chat, Conversation):
            msg = f"a ChatStore needs a conversation of a Store, not {type(chat).__name__}"
            raise TypeError(msg)
        owner: Any = chat
        done: R = owner._run(flow(owner._place, *arguments))  # noqa: SLF001 - of the same house
        return done


# What the methods do, as flows: what is undone and written again goes through one of them.


def _get(place: Place, window: Window) -> Flow[Messages]:
    history = yield from place.read(window)
    return [_loaded(message) for message in sendable(_fit(history))]


def _add(place: Place, message: ChatMessage) -> Flow[None]:
    joins = message.role.value not in ("user", "system")
    try:
        yield from _append(place, [_dumped(message)], continues=joins)
    except ConflictError:  # there is no turn that it could join
        yield from _append(place, [_dumped(message)])


def _set(place: Place, messages: Messages) -> Flow[None]:
    turns: list[list[dict[str, Any]]] = []
    for message in map(_dumped, messages):
        if not turns or message["role"] in ("user", "system"):
            turns.append([])
        turns[-1].append(message)
    yield from place.clear()
    for turn in turns:
        yield from _append(place, turn)


def _clear(place: Place, window: Window) -> Flow[Messages | None]:
    deleted = yield from _get(place, window)
    return deleted if (yield from place.clear()) else None


def _delete(place: Place, index: int, window: Window) -> Flow[Found]:
    history = yield from place.read(window)
    given = _fit(history)
    if not -len(given) <= index < len(given):
        return None
    gone = given[index]
    turns = history.turns
    at = next(n for n, turn in enumerate(turns) if any(one is gone for one in turn.messages))
    yield from place.rewind(len(turns) - at, history.revision)
    for turn in turns[at:]:
        kept = [message for message in turn.messages if message is not gone]
        yield from place.append(
            kept,
            turn_id=None,
            expected_revision=None,
            continues=False,
            format=turn.format,
            meta=turn.meta,
        )
    return _loaded(gone)


def _append(place: Place, messages: list[dict[str, Any]], *, continues: bool = False) -> Flow[None]:
    yield from place.append(
        messages,
        turn_id=None,
        expected_revision=None,
        continues=continues,
        format=_FORMAT,
        meta=None,
    )


def _fit(history: History) -> list[dict[str, Any]]:
    """Leave out turns that a model would refuse."""
    return compose(history, [], FORMATS[_FORMAT], "raise").send


def _dumped(message: ChatMessage) -> dict[str, Any]:
    return message.model_dump(mode="json")


def _loaded(message: dict[str, Any]) -> ChatMessage:
    return ChatMessage.model_validate(message)
