"""What a message is: the shapes that callers hand in, and the rules of each format.

Messages stay the JSON of their provider. The rules of each format are in `formats`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

from . import _json
from .formats import FORMATS, Format, Message
from .formats.replies import added

__all__ = [
    "FORMATS",
    "Format",
    "Input",
    "Message",
    "Model",
    "format_named",
    "note",
    "plain_messages",
]

_log = logging.getLogger("turnstore")


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


def note(meta: dict[str, Any], told: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    """Put into a turn's `meta` what a reply says of itself; what the caller put there stays.

    Args:
        meta: The turn's, which is changed.
        told: What the replies of the turn before this one have said.
        about: What this one says; where it is not JSON, the log says so, and it is left out.

    Returns:
        What all of them say: of the newest, but for what was used, which adds up.
    """
    try:
        about = _json.plain_dict(about)
    except ValueError as error:
        _log.warning("saved without its meta, which is not JSON: %s", error)
        return told
    if isinstance(told.get("usage"), dict) and isinstance(about.get("usage"), dict):
        about["usage"] = added(told["usage"], about["usage"])
    for name, value in about.items():
        if name not in meta or (name in told and meta[name] == told[name]):
            meta[name] = value
    return told | about


def _plain_message(item: Any, rules: Format, *, reply: bool) -> Message:
    item = rules.unpacked(item)
    message: Any
    if type(item) is dict:
        message = _json.plain_dict(item)
    elif hasattr(item, "model_dump"):
        message = _json.plain(_bare(_json.dumped(item), rules))
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


def _bare(dumped: Any, rules: Format) -> Any:
    return rules.bare(dumped) if isinstance(dumped, dict) else dumped


def _items(given: Input) -> Iterable[Any]:
    if isinstance(given, list):
        return given
    if isinstance(given, str | Mapping) or hasattr(given, "model_dump"):
        return (given,)
    if isinstance(given, Iterable) and not isinstance(given, bytes | bytearray | memoryview):
        return given
    msg = f"messages are text, a dict, an SDK object or a list of these, not {type(given).__name__}"
    raise TypeError(msg)
