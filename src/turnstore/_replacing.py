"""A turn in the place of another one, and of all that came after that."""

from __future__ import annotations

from ._checks import check_turn_id
from ._element import Element, Row, named
from .errors import TurnGoneError
from .results import Cut, History, Turn, turns_of

__all__ = ["Replaces", "Search"]

_TURN, _TURN_ID, _TOTAL_TOKENS = map(Element._fields.index, ("turn", "turn_id", "total_tokens"))


class Replaces:
    """Which turn is to be replaced.

    Args:
        turn: The turn, or the id of one of its pieces.

    Attributes:
        ids: Its id, or those of its pieces.
        number: Its ordinal; None where only its id is known.
        done: Whether it was replaced: what comes then replaces nothing.

    Raises:
        TypeError, ValueError: It names no turn.
    """

    __slots__ = ("done", "ids", "number")

    def __init__(self, turn: Turn | str) -> None:
        if not isinstance(turn, Turn | str):
            msg = f"replaces is a Turn or the id of one, not {type(turn).__name__}"
            raise TypeError(msg)
        self.ids = turn.ids if isinstance(turn, Turn) else (check_turn_id(turn),)
        self.number = turn.number if isinstance(turn, Turn) else None
        self.done = False

    def check_id(self, turn_id: str) -> None:
        """Refuse the id of the turn that is replaced for the one that replaces it.

        Raises:
            ValueError: It is that.
        """
        if turn_id in self.ids:
            msg = f"turn_id {turn_id!r} is the turn's that is replaced; the new one needs another"
            raise ValueError(msg)

    def is_meant(self, row: Row) -> bool:
        """Tell whether an element is of the turn."""
        return row[_TURN_ID] in self.ids and self.number in (None, row[_TURN])


class Search:
    """Looks for the turn in what is read, and leaves out it and all after it.

    Args:
        replaces: The turn.
        turn_id: The id of the turn that is going to replace it.
        known: Of how many of the newest elements the ids are known to an append.
        where: The conversation, in the words of an error.
    """

    def __init__(self, replaces: Replaces, turn_id: str, known: int, where: str) -> None:
        self._replaces = replaces
        self._turn_id = turn_id
        self._known = known
        self._where = where
        self._rows: list[Row] = []
        self._start: int | None = None
        self._tokens_before = 0

    def kept(self, rows: list[Row], tokens_before: int | None) -> list[Row]:
        """Give the elements before the turn; none where more have to be read.

        Args:
            rows: The newest elements, oldest first.
            tokens_before: The running total before the first; None where others may stand there.

        Raises:
            TurnGoneError: The turn is not held, and was not replaced by this one before.
        """
        whole = tokens_before is not None or not rows or self._are_past(rows)
        self._rows, self._start, self._tokens_before = rows, None, tokens_before or 0
        meant = [at for at, row in enumerate(rows) if self._replaces.is_meant(row)]
        if not meant and whole:
            if any(row[_TURN_ID] == self._turn_id for row in rows[-self._known :]):
                return rows  # a save that was done before: its append will find it, too
            ids = ", ".join(self._replaces.ids)
            msg = (
                f"the turn {ids} of {self._where}, which is to be replaced, is not held any more; "
                "the model was not asked, and nothing was written"
            )
            raise TurnGoneError(msg)
        if not meant:
            return []
        start = meant[-1]
        while start and rows[start - 1][_TURN] == rows[start][_TURN]:
            start -= 1
        if start or whole:
            self._start = start
        return rows[:start]

    def _are_past(self, rows: list[Row]) -> bool:
        """Tell whether no older elements are of the turn, nor of a save that was done before."""
        number = self._replaces.number
        return number is not None and rows[0][_TURN] < number and len(rows) >= self._known

    def mark(self, history: History) -> None:
        """Note in a history what goes; its revision is that of the whole conversation.

        Raises:
            ValueError: The new turn has the id of one that would go.
        """
        if self._start is None:
            history.cut = Cut("", self._replaces.ids, ())
            return
        rows, start = self._rows, self._start
        before = rows[start - 1][_TOTAL_TOKENS] if start else self._tokens_before
        gone = list(map(named, rows[start:]))
        ids = tuple(element.turn_id for element in gone)
        if self._turn_id in ids:
            msg = (
                f"turn_id {self._turn_id!r} is that of a turn which would go; the new one needs "
                "another. The model was not asked, and nothing was written"
            )
            raise ValueError(msg)
        turns = tuple(turns_of(gone, before))
        history.cut = Cut(gone[0].revision, ids, turns)
        history.revision = gone[-1].revision
