"""What adapters share whose framework asks for the history before it tells the question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["check_late"]

_NEEDS_A_QUESTION = ("sources", "topics", "rewrite", "entities")


def check_late(options: Mapping[str, Any]) -> None:
    """Refuse a context that looks at the question.

    Raises:
        ValueError: It has such a part.
    """
    for part in _NEEDS_A_QUESTION:
        if getattr(options.get("context"), part, None):
            msg = (
                f"the history is asked for before the question is known, which {part} of a "
                "context need; put conversation.turn(…) around the call instead"
            )
            raise ValueError(msg)
