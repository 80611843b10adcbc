"""Change messages before they are stored: the caller's function, and what it has to give back."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from . import _json
from ._calls import Ask, Flow
from .messages import Format, Message, format_named, plain_messages

__all__ = ["Redact", "check_redact", "redacted", "redacted_text"]

Redact: TypeAlias = Callable[[list[Message]], "list[Message] | Awaitable[list[Message]]"]
"""Gives messages as they are to be stored: as many as it is given, in the same order."""


def check_redact(redact: Redact | None, *, asynchronous: bool) -> None:
    """Refuse what is no function, and an async one on a sync store.

    Raises:
        TypeError: It is not a function that the store can call.
    """
    if redact is None:
        return
    if not callable(redact):
        msg = f"redact is a function of messages, not {type(redact).__name__}"
        raise TypeError(msg)
    if not asynchronous and inspect.iscoroutinefunction(redact):
        msg = "redact is async, and this store is not; use AsyncStore"
        raise TypeError(msg)


def redacted(redact: Redact | None, messages: list[Message], rules: Format) -> Flow[list[Message]]:
    """Give messages as they are to be stored; those that are given stay as they are.

    Raises:
        TypeError, ValueError: What the function gave cannot be stored in their place.
        Exception: What the function raised.
    """
    if redact is None or not messages:
        return messages
    given: Any = yield Ask(redact, (list(map(_json.plain, messages)),))
    if not isinstance(given, list | tuple) or not all(isinstance(one, dict) for one in given):
        msg = f"redact gave {type(given).__name__}, and a list of dicts is needed"
        raise TypeError(msg)
    if len(given) != len(messages):
        msg = (
            f"redact was given {len(messages)} messages and gave {len(given)}; nothing was written"
        )
        raise ValueError(msg)
    try:
        return plain_messages(list(given), rules)
    except (TypeError, ValueError) as error:
        msg = f"what redact gave cannot be stored: {error}"
        raise type(error)(msg) from error


def redacted_text(redact: Redact | None, text: str) -> Flow[str]:
    """Give a text as it is to be stored: the function is shown a message of the assistant's."""
    if redact is None or not text:
        return text
    rules = format_named("openai.chat")
    (message,) = yield from redacted(redact, [rules.assistant(text)], rules)
    content = message.get("content")
    if not isinstance(content, str):
        msg = f"redact made a {type(content).__name__} of a text; nothing was written"
        raise TypeError(msg)
    return content
