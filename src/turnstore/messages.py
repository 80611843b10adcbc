"""What a message is: the shapes that callers hand in, and the rules of each format.

Messages stay the JSON of their provider. A `Format` knows of that JSON only what a
memory has to know: which messages are instructions, which come from the model, which
open tool calls, and which answer them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

from . import _json

__all__ = ["FORMATS", "Format", "Input", "Message", "Model", "format_named", "plain_messages"]

Message: TypeAlias = dict[str, Any]
"""A message as it is stored and given back: the provider's JSON as a plain dict."""


@runtime_checkable
class Model(Protocol):
    """A message object of an SDK: whatever has pydantic's `model_dump`."""

    @property
    def model_dump(self) -> Callable[..., dict[str, Any]]:
        """Give its fields as a dict. A property here, to fit methods of any options."""
        ...


Input: TypeAlias = "str | Mapping[str, Any] | Model | Iterable[str | Mapping[str, Any] | Model]"
"""What is taken for messages: text for a user message, a dict, an SDK object, or many."""

_NAME = re.compile(r"[!#-\[\]-~]{1,32}")


class Format:
    """The rules of a format that turnstore knows nothing more of: roles, and no tools.

    Args:
        name: The name that is stored with each turn, 1 to 32 visible ASCII characters.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def user(self, text: str) -> Message:
        """Make a user message out of text."""
        return {"role": "user", "content": text}

    def assistant(self, text: str) -> Message:
        """Make a message of the model out of text."""
        return {"role": "assistant", "content": text}

    def context(self, text: str) -> Message:
        """Make a message out of what is sent ahead of the history and never stored."""
        return {"role": "system", "content": text}

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

    def answer(self, reply: Any) -> Any:
        """Give the messages in what a client returned; anything else is given back."""
        return reply

    def text(self, message: Message) -> str:
        """Give what a person would read in it; empty where there is no text."""
        return _text(message.get("content"))


class _OpenAIChat(Format):
    """Chat Completions: roles, `tool_calls` in the assistant's message, `tool` messages."""

    def check(self, message: Message) -> None:
        role = message.get("role")
        if not isinstance(role, str) or not role:
            msg = f"a message of {self.name} has a role; found the keys {list(message)}"
            raise ValueError(msg)

    def calls(self, message: Message) -> list[str]:
        if message.get("role") != "assistant":
            return []
        ids = [
            call["id"]
            for call in message.get("tool_calls") or ()
            if isinstance(call, dict) and isinstance(call.get("id"), str)
        ]
        function = message.get("function_call")  # the older form, which has no id
        if isinstance(function, dict):
            ids.append(f"function:{function.get('name')}")
        return ids

    def results(self, message: Message) -> list[str]:
        if message.get("role") == "tool":
            return [str(message.get("tool_call_id"))]
        if message.get("role") == "function":
            return [f"function:{message.get('name')}"]
        return []

    def outgoing(self, message: Message) -> Message:
        # Not everything that a provider answers does it take back: OpenAI refuses null for
        # `tool_calls` and `function_call`, and for the content where nothing else is said;
        # of an audio it takes the id alone. Other servers answer with no calls as [].
        values = message.values()
        if None not in values and [] not in values and "audio" not in message:
            return message
        sent = {
            name: value
            for name, value in message.items()
            if name == "content" or value not in (None, [])
        }
        audio = sent.get("audio")
        if isinstance(audio, dict) and "id" in audio:
            sent["audio"] = {"id": audio["id"]}
        if (
            sent.get("content", "") is None
            and self.is_reply(sent)
            and sent.keys().isdisjoint(("tool_calls", "function_call", "audio"))
        ):
            sent["content"] = ""
        return sent

    def answer(self, reply: Any) -> Any:
        choices = getattr(reply, "choices", None)
        return choices[0].message if choices else reply


class _OpenAIResponses(Format):
    """Responses: a flat list of items, of which messages are one type among many."""

    def check(self, message: Message) -> None:
        if not any(isinstance(message.get(field), str) for field in ("type", "role")):
            msg = f"an item of {self.name} has a type or a role; found the keys {list(message)}"
            raise ValueError(msg)

    def is_reply(self, message: Message) -> bool:
        if "role" in message:
            return bool(message["role"] == "assistant")
        return not self.results(message)

    def calls(self, message: Message) -> list[str]:
        # Calls that the provider runs itself (web search, code interpreter, …) have no
        # call_id: nobody has to answer them.
        kind = str(message.get("type"))
        if kind.endswith("_call") and isinstance(message.get("call_id"), str):
            return [message["call_id"]]
        if kind == "mcp_approval_request":
            return [str(message.get("id"))]
        return []

    def results(self, message: Message) -> list[str]:
        kind = str(message.get("type"))
        if kind.endswith("_output") and isinstance(message.get("call_id"), str):
            return [message["call_id"]]
        if kind == "mcp_approval_response":
            return [str(message.get("approval_request_id"))]
        return []

    def answer(self, reply: Any) -> Any:
        return getattr(reply, "output", reply)


FORMATS: dict[str, Format] = {
    known.name: known
    for known in (_OpenAIChat("openai.chat"), _OpenAIResponses("openai.responses"))
}
"""The formats whose rules are known, by name."""


def format_named(name: str) -> Format:
    """Give the rules of a format; a name that is not known has those of `Format`.

    Raises:
        TypeError: The name is not text.
        ValueError: It is not 1 to 32 visible ASCII characters.
    """
    known = FORMATS.get(name)
    if known is not None:
        return known
    if not isinstance(name, str):
        msg = f"a format is named by text, not by {type(name).__name__}"
        raise TypeError(msg)
    if not _NAME.fullmatch(name):
        msg = f"format {name!r}: a name is 1 to 32 visible ASCII characters without blanks"
        raise ValueError(msg)
    return Format(name)


def plain_messages(given: Input, rules: Format, *, reply: bool = False) -> list[Message]:
    """Copy what a caller gave into plain dicts that can be stored.

    Args:
        given: Text, a dict, an SDK object, or an iterable of these.
        rules: The format of the messages.
        reply: Whether text is the model's; else it is the user's.

    Raises:
        TypeError: It is none of these.
        ValueError: A message is not JSON, or not what the format asks for.
    """
    messages: list[Message] = []
    for item in _items(given):
        try:
            messages.append(_plain_message(item, rules, reply=reply))
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            msg = f"message {len(messages)}: {error}; nothing was written"
            raise kind(msg) from error
    return messages


def _plain_message(item: Any, rules: Format, *, reply: bool) -> Message:
    if type(item) is dict or hasattr(item, "model_dump"):
        message = _json.plain(item)
    elif isinstance(item, str):
        message = _json.plain(rules.assistant(item) if reply else rules.user(item))
    elif isinstance(item, Mapping):
        message = _json.plain(dict(item))
    else:
        msg = f"{type(item).__name__} is no message; give text, a dict or an SDK message object"
        raise TypeError(msg)
    if type(message) is not dict:
        msg = f"{type(item).__name__} became a {type(message).__name__}, and a message is a dict"
        raise TypeError(msg)
    rules.check(message)
    return message


def _items(given: Input) -> Iterable[Any]:
    if isinstance(given, list):
        return given
    if isinstance(given, str | Mapping) or hasattr(given, "model_dump"):
        return (given,)
    if isinstance(given, Iterable) and not isinstance(given, bytes | bytearray | memoryview):
        return given
    msg = f"messages are text, a dict, an SDK object or a list of these, not {type(given).__name__}"
    raise TypeError(msg)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (part.get("text") if isinstance(part, dict) else part for part in content)
    return "".join(part for part in parts if isinstance(part, str))
