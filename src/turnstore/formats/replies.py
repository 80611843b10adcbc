"""What a client's whole reply says of itself: the model, why it ended, what it used, its id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._format import Message

__all__ = ["added", "field", "known"]


def field(reply: Any, *names: str) -> Any:
    """Give the first of these fields that is there, of JSON or of an SDK's object; else None."""
    for name in names:
        value = reply.get(name) if isinstance(reply, Mapping) else getattr(reply, name, None)
        if value is not None:
            return value
    return None


def known(**fields: Any) -> Message:
    """Give those of the fields that say something."""
    return {name: value for name, value in fields.items() if value is not None}


def added(usage: Message, further: Message) -> Message:
    """Add up what several requests of one turn used; what is no number is that of the newest.

    A null says nothing: what was known stays.
    """
    return usage | {name: _sum(usage.get(name), value) for name, value in further.items()}


def _sum(old: Any, new: Any) -> Any:
    if new is None:
        return old
    if isinstance(old, dict) and isinstance(new, dict):
        return added(old, new)
    numbers = all(type(value) in (int, float) for value in (old, new))
    return old + new if numbers else new
