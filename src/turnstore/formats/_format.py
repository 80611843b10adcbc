"""What a memory has to know of the JSON of a provider's messages."""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["Format", "Message"]

Message: TypeAlias = dict[str, Any]
"""A message as it is stored and given back: the provider's JSON as a plain dict."""


class Format:
    """The rules of a format that turnstore knows nothing more of: roles, and no tools.

    Args:
        name: The name that is stored with each turn, 1 to 32 visible ASCII characters.
    """

    resumes = False
    """Whether a model that is sent its own message last goes on with it."""

    user_first = False
    """Whether the provider refuses a conversation that the model begins."""

    def __init__(self, name: str) -> None:
        self.name = name

    def user(self, text: str) -> Message:
        """Make a user message out of text."""
        return self._message("user", text)

    def assistant(self, text: str) -> Message:
        """Make a message of the model out of text."""
        return self._message("assistant", text)

    def context(self, text: str) -> Message:
        """Make a message out of what is sent ahead of the history and never stored."""
        return self._message("system", text)

    def _message(self, role: str, text: str) -> Message:
        """Make a message of a role and a text: the shape that a format has its own of."""
        return {"role": role, "content": text}

    def unpacked(self, item: Any) -> Any:
        """Give what a caller handed in as a message, where it is an object of a framework."""
        return item

    def check(self, message: Message) -> None:
        """Raise ValueError for what this format cannot hold."""

    def is_instruction(self, message: Message) -> bool:
        """Tell whether it is policy, which callers send each time, and not history."""
        return message.get("role") in ("system", "developer")

    def is_reply(self, message: Message) -> bool:
        """Tell whether the model wrote it."""
        return message.get("role") == "assistant"

    def calls(self, message: Message) -> list[str]:
        """List the ids of the tool calls in it that wait for a result of the caller."""
        del message
        return []

    def results(self, message: Message) -> list[str]:
        """List the ids of the tool calls that it answers."""
        del message
        return []

    def outgoing(self, message: Message) -> Message:
        """Give a stored message as the provider takes it back."""
        return message

    def comparable(self, message: Message) -> Message:
        """Give a message in the one form that all ways to say the same share."""
        return message

    def unfit(self, message: Message) -> str:
        """Say why a message of the model must not be saved; empty where it may be."""
        del message
        return ""

    def answer(self, reply: Any) -> Any:
        """Give the messages in what a client returned; anything else is given back."""
        return reply

    def text(self, message: Message) -> str:
        """Give what a person would read in it; empty where there is no text."""
        return _text(message.get("content"))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (part.get("text") if isinstance(part, dict) else part for part in content)
    return "".join(part for part in parts if isinstance(part, str))
