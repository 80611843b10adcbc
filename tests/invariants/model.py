"""A conversation as the documentation describes it, in plain Python: the model for the tests.

Written from the docstrings and shares no code with the product. It is slow and obvious.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

IDS_KNOWN = 32


class Conflict(Exception):  # noqa: N818 (named for what it means)
    """The operation has to be refused, and to change nothing."""


class NotHeld(Exception):  # noqa: N818 (as above)
    """The turn that is asked for was dropped."""


class IdTaken(Exception):  # noqa: N818 (as above)
    """The new turn has the id of one that would go."""


@dataclass(frozen=True)
class Piece:
    """What one append stored."""

    no: int
    turn: int
    id: str
    contents: tuple[str, ...]

    @property
    def revision(self) -> str:
        """What names the conversation when this is its newest piece."""
        return f"{self.no}-{self.id}"


@dataclass
class Answer:
    """What an append answers."""

    revision: str
    duplicate: bool
    turns: int
    messages: int
    tokens: int
    dropped: int
    replaced_ids: tuple[str, ...] = ()


@dataclass
class Model:
    """One conversation."""

    max_messages: int
    ttl_ms: int
    pieces: list[Piece] = field(default_factory=list)
    known: list[Piece] = field(default_factory=list)
    life_ms: int = 0

    # what it holds

    @property
    def turn_numbers(self) -> list[int]:
        """The turns, oldest first."""
        return sorted({piece.turn for piece in self.pieces})

    @property
    def revision(self) -> str:
        """The revision: "0" for nothing."""
        return self.pieces[-1].revision if self.pieces else "0"

    def contents(self, turns: list[int] | None = None) -> list[str]:
        """The messages of some turns, or of all."""
        return [
            content
            for piece in self.pieces
            if turns is None or piece.turn in turns
            for content in piece.contents
        ]

    def pieces_of(self, turn: int) -> list[Piece]:
        """The pieces of one turn."""
        return [piece for piece in self.pieces if piece.turn == turn]

    # what can be done with it

    def append(
        self, contents: list[str], turn_id: str, expected: str | None, *, continues: bool
    ) -> Answer:
        """Append a turn, or a piece of the newest one."""
        for piece in self.known:
            if piece.id == turn_id:
                return self._answer(piece.revision, duplicate=bool(contents))
        if expected not in (None, self.revision) or (continues and not self.pieces):
            raise Conflict
        if not contents:
            return self._answer(self.revision)
        newest = self.pieces[-1] if self.pieces else Piece(0, 0, "", ())
        turn = newest.turn if continues else newest.turn + 1
        self.pieces.append(Piece(newest.no + 1, turn, turn_id, tuple(contents)))
        self.known = [*self.known, self.pieces[-1]][-IDS_KNOWN:]
        dropped = self.trim(messages=self.max_messages)
        self.life_ms = self.ttl_ms
        return replace(self._answer(self.revision), dropped=dropped)

    def trim(self, messages: int | None = None, turns: int | None = None) -> int:
        """Drop the oldest turns; answers how many."""
        if 0 in (messages, turns):
            return self.clear()
        dropped = 0
        while len(numbers := self.turn_numbers) > 1 and (
            (messages is not None and len(self.contents()) > messages)
            or (turns is not None and len(numbers) > turns)
        ):
            self.pieces = [piece for piece in self.pieces if piece.turn != numbers[0]]
            dropped += 1
        return dropped

    def clear(self) -> int:
        """Drop everything; answers how many turns."""
        dropped = len(self.turn_numbers)
        self.pieces, self.known = [], []
        return dropped

    def rewind(self, turns: int, expected: str | None) -> list[int]:
        """Undo the newest turns; answers their numbers."""
        if expected not in (None, self.revision):
            raise Conflict
        undone = self.turn_numbers[-turns:]
        gone = [piece for piece in self.pieces if piece.turn in undone]
        self.pieces = [piece for piece in self.pieces if piece.turn not in undone]
        known = [piece for piece in self.known if piece not in gone]
        before = [piece for piece in self.pieces if not known or piece.no < known[0].no]
        self.known = [*before, *known][-IDS_KNOWN:] if self.pieces else []
        return undone

    def replace(self, turn: int, contents: list[str], turn_id: str) -> Answer:
        """Put a turn in the place of one that is held, and of all after it."""
        gone = [piece for piece in self.pieces if piece.turn >= turn]
        if turn_id in {piece.id for piece in gone}:
            raise IdTaken
        for piece in self.known:
            if piece.id == turn_id:
                return self._answer(piece.revision, duplicate=True)
        kept = [piece for piece in self.pieces if piece.turn < turn]
        known = [piece for piece in self.known if piece not in gone]
        before = [piece for piece in kept if not known or piece.no < known[0].no]
        new = Piece(gone[0].no, turn, turn_id, tuple(contents))
        self.pieces = [*kept, new]
        self.known = [*before, *known, new][-IDS_KNOWN:]
        dropped = self.trim(messages=self.max_messages)
        self.life_ms = self.ttl_ms
        ids = tuple(piece.id for piece in gone)
        return replace(self._answer(self.revision), dropped=dropped, replaced_ids=ids)

    def fork(self, target: Model, upto: int | None) -> None:
        """Copy to another conversation, which is empty or holds the copy already."""
        copied = [piece for piece in self.pieces if upto is None or piece.turn <= upto]
        if self.pieces and (not copied or (upto is not None and copied[-1].turn != upto)):
            raise NotHeld  # not any more, or not yet
        if not copied and target.pieces:
            raise Conflict
        if not copied:
            return
        if target.pieces:
            if (target.pieces, target.known) != (copied, copied[-IDS_KNOWN:]):
                raise Conflict
            return
        target.pieces, target.known = copied, copied[-IDS_KNOWN:]
        target.life_ms = target.ttl_ms

    def window(
        self, turns: int | None, messages: int | None, among: list[int] | None = None
    ) -> list[int]:
        """Say which turns a window shows, of all or of some."""
        shown: list[int] = []
        for number in reversed(self.turn_numbers if among is None else among):
            wanted = [number, *shown]
            if shown and (
                (turns is not None and len(wanted) > turns)
                or (messages is not None and len(self.contents(wanted)) > messages)
            ):
                break
            shown = wanted
        return shown

    def page(self, limit: int, before: int | None) -> tuple[list[int], int | None]:
        """Say which turns a page shows, and the cursor of the next."""
        older = [number for number in self.turn_numbers if before is None or number < before]
        shown = older[-limit:]
        return shown, (shown[0] if len(older) > len(shown) else None)

    def _answer(self, revision: str, *, duplicate: bool = False) -> Answer:
        contents = self.contents()
        turns = len(self.turn_numbers)
        return Answer(revision, duplicate, turns, len(contents), sum(map(len, contents)), 0)
