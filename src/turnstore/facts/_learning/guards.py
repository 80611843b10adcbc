"""Rules that no model decides: what is a duplicate, and what may take whose place.

A text counts as a duplicate of another only where they are near, and one is a repetition of the
other. Everything else stays, and is told apart or together by the model that sees both.
"""

from __future__ import annotations

__all__ = ["NEAR", "may_replace"]

NEAR = 0.9
"""The cosine from which on two texts may be duplicates, or one news of the other."""

_RELATED = 0.5  # the cosine from which on a fact may take the place of one of another slot


def may_replace(old_slot: str, new_slot: str, cosine: float) -> bool:
    """Tell whether a fact may take the place of another: of the same slot, or near to it."""
    same = bool(old_slot) and old_slot.casefold() == new_slot.casefold()
    return same or cosine >= _RELATED
