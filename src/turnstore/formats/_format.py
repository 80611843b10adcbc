"""What a memory has to know of the JSON of a provider's messages."""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["Format", "Message"]

Message: TypeAlias = dict[str, Any]
"""A message as it is stored and given back: the provider's JSON as a plain dict."""


# Whose messages of text are nothing but that; a tool's, for one, answers a call.
_SPEAKERS = frozenset(("user", "assistant", "system", "developer"))


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

    def bare(self, message: Message) -> Message:
        """Give what the provider said of what an SDK's object holds, which adds to it."""
        return message

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

    def is_plain(self, message: Message) -> bool:
        """Tell, at little cost, that it calls and answers nothing and goes out as it is stored.

        Most messages are plain; for one that is not told to be, the other rules are asked.
        """
        try:
            content = message["content"]
            return (
                len(message) == 2  # noqa: PLR2004 - who says what
                and message["role"] in _SPEAKERS
                and (type(content) is str or _is_text(content))
            )
        except (KeyError, TypeError):  # another field than these; a role that is no text
            return False

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

    def about(self, reply: Any) -> Message:
        """Give what a client's whole reply says of itself, for `meta`; of anything else nothing.

        Args:
            reply: An SDK's object, or its JSON.
        """
        del reply
        return {}

    def text(self, message: Message) -> str:
        """Give what a person would read in it; empty where there is no text."""
        return _text(message.get("content"))


def _is_text(content: Any) -> bool:
    """Tell whether a content is blocks of text alone, none of which is empty."""
    if type(content) is not list or not content:
        return False
    for block in content:
        if len(block) != 2 or block["type"] != "text":  # noqa: PLR2004 - a type and a text
            return False
        text = block["text"]
        if type(text) is not str or not text or text.isspace():
            return False
    return True


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (part.get("text") if isinstance(part, dict) else part for part in content)
    return "".join(part for part in parts if isinstance(part, str))
