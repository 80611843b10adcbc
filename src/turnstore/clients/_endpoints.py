"""The two endpoints of OpenAI's protocol that hold a conversation: what they take and answer.

They know the JSON of requests and replies, and no SDK.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final

from turnstore.clients._calling import Answer
from turnstore.clients._deltas import Json, as_dict, dicts, is_list
from turnstore.clients._folding import ChatFolding, ResponseFolding
from turnstore.formats import FORMATS
from turnstore.formats.openai import unparsed

if TYPE_CHECKING:
    from typing import Any

    from turnstore.messages import Input

# What would make the provider the keeper of the history, or of a reply that comes later. (`store`
# leaves a copy there, which nothing reads back without one of these, so it passes.)
_HELD_BY_PROVIDER: Final = ("previous_response_id", "conversation", "background", "prompt")

# A finish reason says that the reply ended, and these that it did not end well.
_FAILED: Final = frozenset(
    {"content_filter", "error", "abort", "cancelled", "insufficient_system_resource"}
)

_CHAT: Final = FORMATS["openai.chat"]
_RESPONSES: Final = FORMATS["openai.responses"]

_warned: set[str] = set()


class Endpoint(ABC):
    """One endpoint.

    Attributes:
        path: Its path below the base URL.
        format: The format of its messages.
        field: Where a request holds its messages.
        folding: What makes a reply of the parts of a stream.
    """

    path: ClassVar[str]
    format: ClassVar[str]
    field: ClassVar[str]
    folding: ClassVar[type[ChatFolding | ResponseFolding]]

    def given(self, body: Mapping[str, Any]) -> Input:
        """Take the messages out of a request.

        Raises:
            ValueError: An option of the request does not go with a memory.
        """
        for option in _HELD_BY_PROVIDER:
            if body.get(option):
                raise ValueError(
                    f"{option} leaves the history, or the reply, with the provider, and this "
                    f"client's history comes from turnstore; leave {option} out, or use the "
                    f"client that was wrapped. Nothing was sent"
                )
        messages: Any = body.get(self.field)
        if is_list(messages):
            return [unparsed(message) for message in messages]
        return [] if messages is None else messages

    @abstractmethod
    def read(self, reply: Json) -> Answer:
        """Read a whole reply."""


class Chat(Endpoint):
    """Chat completions."""

    path = "/chat/completions"
    format = "openai.chat"
    field = "messages"
    folding = ChatFolding

    def given(self, body: Mapping[str, Any]) -> Input:
        """Take the messages out of a request."""
        if body.get("n") not in (None, 1):
            raise ValueError(
                f"n={body['n']} asks for several replies, and a conversation goes on from one; "
                f"leave n out, or use the client that was wrapped. Nothing was sent"
            )
        return super().given(body)

    def read(self, reply: Json) -> Answer:
        """Read the first choice, the only one there is.

        A text that ended at the limit of tokens was said, and is kept; tool calls that ended
        there are cut, and can never be answered.
        """
        choice = (dicts(reply.get("choices")) or [Json()])[0]
        message, reason = as_dict(choice.get("message")), choice.get("finish_reason")
        unfit = ""
        if not message or not reason or reply.get("error"):
            unfit = "the provider did not say that it was finished"
        elif message.get("refusal"):
            unfit = "the model refused"
        elif str(reason) in _FAILED or (reason == "length" and message.get("tool_calls")):
            unfit = f"the finish reason is {reason}"
        if message and not message.get("role"):  # some providers leave it out
            message = {**message, "role": "assistant"}
        return Answer([message], _CHAT.about(reply), unfit)


class Responses(Endpoint):
    """Responses."""

    path = "/responses"
    format = "openai.responses"
    field = "input"
    folding = ResponseFolding

    def given(self, body: Mapping[str, Any]) -> Input:
        """Take the input out of a request."""
        messages = super().given(body)
        if body.get("context_management"):
            _warn("context_management", "shortens")
        if body.get("truncation") == "auto":
            _warn('truncation="auto"', "cuts")
        return messages

    def read(self, reply: Json) -> Answer:
        """Read the output, each item as it came."""
        output, status = dicts(reply.get("output")), reply.get("status", "completed")
        parts = [part for item in output for part in dicts(item.get("content"))]
        unfit = ""
        if status != "completed" or reply.get("error") or not output:
            unfit = f"the response is {status}" if output else "the response has no output"
        elif any(part.get("type") == "refusal" for part in parts):
            unfit = "the model refused"
        return Answer(output, _RESPONSES.about(reply), unfit)


ENDPOINTS: Final[tuple[Endpoint, ...]] = (Chat(), Responses())


def _warn(option: str, does: str) -> None:
    if option not in _warned:
        _warned.add(option)
        warnings.warn(
            f"{option}: the provider {does} the history that turnstore sends, so the model may "
            f"not see all of the window (said once)",
            UserWarning,
            stacklevel=2,
        )
