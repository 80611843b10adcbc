"""What a turn is refused with: it was saved before, or could not be saved."""

from __future__ import annotations

import logging
from typing import Any

from ._calls import Flow
from ._compose import repeats
from ._history import IDS_KEPT
from ._place import Place
from .errors import (
    AlreadySavedError,
    ConflictError,
    ErasedError,
    LeaseLostError,
    SaveError,
    TurnConflictError,
    TurnGoneError,
    TurnIdReusedError,
    TurnstoreError,
)
from .messages import Format, Message, format_named
from .results import History, Turn, turns_of
from .window import Window

__all__ = ["as_stored", "not_saved", "refuse", "saved_before"]

log = logging.getLogger("turnstore")


def saved_before(
    place: Place, turn_id: str, history: History, *, further: bool
) -> Flow[Turn | None]:
    """Find what is saved under an id: the newest piece of it, alone.

    It is looked for in the window, and with `further`, where that shows less than an append
    remembers, once more in as much as that. What was dropped or trimmed is not found.
    """
    saved = _named(turn_id, history)
    if saved is None and further and history.has_older and len(history.pieces) < IDS_KEPT:
        saved = _named(turn_id, (yield from place.read(Window(turns=IDS_KEPT))))
    return saved


def as_stored(
    place: Place, turn_id: str, written: tuple[list[Message], Format], older: int
) -> Flow[tuple[list[Message], Format]]:
    """Give the messages of a turn that was saved before: it may have had another answer then.

    Args:
        place: The conversation.
        turn_id: The id of the turn, or of its newest piece.
        written: What was to be saved now, with earlier pieces before it, and its format; given
            back where what is stored is gone, or cannot be read.
        older: How many messages earlier pieces have.
    """
    try:
        saved = _named(turn_id, (yield from place.read(Window(turns=IDS_KEPT))))
    except TurnstoreError as error:
        log.warning("the turn %s was saved before, and is not read again: %s", turn_id, error)
        saved = None
    if saved is None:
        return written
    before, rules = written[0][:older], format_named(saved.format)
    piece = list(saved.messages)
    # Where another turn had come between, all of it was stored as one piece.
    is_whole = rules.name != written[1].name or piece[:older] == before
    return (piece if is_whole else [*before, *piece]), rules


def refuse(place: Place, saved: Turn, request: list[Message], rules: Format) -> Flow[None]:
    """Refuse to ask a request whose answer is saved.

    Raises:
        AlreadySavedError: Always, but for this:
        TurnIdReusedError: What is saved was asked something else.
    """
    msg = (
        f"a turn with the id {saved.id} was saved in {place.keys} before, at revision "
        f"{saved.revision}; the model was not asked, and nothing was written. "
    )
    theirs = format_named(saved.format)
    if place.redacts:
        request = yield from place.redacted(request, rules)
    if not repeats(request, rules, saved.messages, theirs):
        msg += "What was asked then, in this error's `saved`, is not what is asked now"
        raise TurnIdReusedError(msg, saved=saved)
    msg += "What was answered then is this error's `reply`"
    reply = list(filter(theirs.is_reply, saved.messages))
    raise AlreadySavedError(msg, saved=saved, reply=reply)


def not_saved(error: Exception, reply: Any, turn: Any, trouble: Exception | None) -> SaveError:
    """Make the error that carries a reply, out of the one that its save met.

    Args:
        error: What the save met.
        reply: What the model answered.
        turn: The turn.
        trouble: Why its lease was not renewed.
    """
    if isinstance(error, ConflictError):
        return TurnConflictError(
            f"the model answered, but another turn came first: {error}",
            expected=error.expected,
            actual=error.actual,
            reply=reply,
            turn=turn,
        )
    msg = f"the model answered, but the turn was not saved: {error}"
    if isinstance(error, TurnGoneError):  # trimmed, or told by a summary: nothing else was written
        return TurnConflictError(msg, reply=reply, turn=turn)
    if isinstance(error, ErasedError):
        return ErasedError(msg, reason=error.reason, reply=reply, turn=turn)
    if not isinstance(error, LeaseLostError):
        return SaveError(msg, reply=reply, turn=turn)
    if trouble is not None:
        msg += f". The lease was not renewed: {trouble}"
    return LeaseLostError(msg, reply=reply, turn=turn)


def _named(turn_id: str, history: History) -> Turn | None:
    elements = history.elements
    for at in range(len(elements) - 1, -1, -1):
        if elements[at].turn_id == turn_id:
            before = elements[at - 1].total_tokens if at else history.tokens_before
            return turns_of([elements[at]], before)[0]
    return None
