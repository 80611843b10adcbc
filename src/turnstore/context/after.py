"""What is done when a turn was saved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from turnstore._calls import Ask
from turnstore.messages import Message
from turnstore.results import Appended

from ._common import Asking, check_function, check_part, failed
from .retrieval import Recalled

__all__ = ["After", "SavedTurn", "check_after", "finish"]


@dataclass(frozen=True, slots=True)
class SavedTurn:
    """A turn that was saved.

    Attributes:
        conversation: The id of the conversation.
        owner: The owner of the conversation; empty where it has none.
        turn_id: The id of the turn.
        messages: Request and reply as they were stored, oldest first. Of a turn that is
            saved in several pieces, such as the calls of a wrapped client around a tool's
            result, these are all of the pieces so far.
        format: Whose JSON they are.
        appended: What the save did. A duplicate was saved before, perhaps by a process that
            got no further.
        began: The number that the owner gave to the turn when it began: what is written
            with it is refused once the owner was erased; 0 where there is no owner.
        recalled: What the model was told by the sources of the context, as on the turn.
    """

    conversation: str
    owner: str
    turn_id: str
    messages: Sequence[Message]
    format: str
    appended: Appended
    began: int = 0
    recalled: tuple[Recalled, ...] = ()


class After(Protocol):
    """Does something with a turn that was saved."""

    def __call__(self, turn: SavedTurn, /) -> Awaitable[Any] | object:
        """Do it; on an async store it may be async."""
        ...


def check_after(functions: Sequence[After]) -> None:
    """Refuse what is no list of functions.

    Raises:
        TypeError: It is not.
    """
    if callable(functions) or isinstance(functions, str):
        msg = "after is a list of functions; put this one into a list"
        raise TypeError(msg)
    for function in functions:
        check_part(function, "after")
        check_function("what is done after a save", function)


def finish(functions: Sequence[After], turn: SavedTurn, counts: Counter[str]) -> Asking[None]:
    """Have something done with a turn, one function after the other; failures are counted."""
    for function in functions:
        try:
            yield Ask(function, (turn,))
        except Exception as error:  # noqa: BLE001 - the turn is saved, whatever becomes of this
            failed(counts, "after", error, "the turn is saved")
