"""What facts and conversations have inside, for the parts that stand on them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from .base import Base

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnstore._place import Home, Place

__all__ = ["base_in", "check_store", "home_in", "place_in", "run_in", "shared_in"]

# All of it is of the same house: the flows of these parts run where the store runs its own.


def base_in(what: str, facts: Any, *, asynchronous: bool) -> Base:
    """Give what sync and async facts share.

    Args:
        what: Who takes them, without an "Async" before it: "Extraction".
        facts: The facts.
        asynchronous: Whether they have to be of an asyncio store.

    Raises:
        TypeError: These are no facts, or of the other kind.
    """
    base = getattr(facts, "_base", None)
    kinds = {False: ("Facts", what), True: ("AsyncFacts", f"Async{what}")}
    ours, taker = kinds[asynchronous]
    if not isinstance(base, Base) or not hasattr(facts, "add"):
        msg = f"{taker} takes {ours}, not {type(facts).__name__}"
        raise TypeError(msg)
    if inspect.iscoroutinefunction(facts.add) != asynchronous:
        others, other_taker = kinds[not asynchronous]
        msg = f"{taker} takes {ours}, not {others}; {other_taker} takes those"
        raise TypeError(msg)
    return base


def shared_in(memory: Any) -> Base:
    """Give what a working memory shares with the facts beside which it lies.

    Raises:
        TypeError: It is none.
    """
    base = getattr(memory, "_base", None)
    if not isinstance(base, Base):
        msg = f"a working memory is needed, not {type(memory).__name__}"
        raise TypeError(msg)
    return base


def check_store(base: Base, conversation: str) -> None:
    """Refuse a conversation of another store than the facts.

    Raises:
        ValueError: It is, by the names and the secrets of the two.
    """
    if not base.ground.holds(conversation):
        msg = (
            "the facts are those of another store than the conversation: name, prefix or secret "
            "of the stores differ. Nothing was read or written"
        )
        raise ValueError(msg)


def run_in(facts: Any) -> Callable[..., Any]:
    """Give what runs flows."""
    return facts._run  # type: ignore[no-any-return]  # noqa: SLF001 - see above


def home_in(facts: Any) -> Home:
    """Give the store of facts, without its connection."""
    return facts._home  # type: ignore[no-any-return]  # noqa: SLF001 - see above


def place_in(conversation: Any) -> Place:
    """Give where a conversation lies.

    Raises:
        TypeError: It is no conversation.
    """
    place = getattr(conversation, "_place", None)
    if place is None:
        msg = f"a conversation of a store is needed, not {type(conversation).__name__}"
        raise TypeError(msg)
    return place  # type: ignore[no-any-return]  # by its name
