"""What sync and async extractions share: their settings, and what they count."""

from __future__ import annotations

import logging
from collections import Counter
from datetime import timedelta, tzinfo
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from turnstore._calls import Flow
from turnstore._counting import count
from turnstore._place import Place
from turnstore.context._common import Asking, check_deadline, check_template
from turnstore.context._models import check_model, question
from turnstore.errors import ClosedError, ErasedError, LeaseError, UnavailableError

from .._storing.base import Base
from .._storing.commit import begin
from .._storing.handles import check_store, home_in, place_in
from .._storing.owners import is_erased, owners
from .extracting import ExtractionError, Options, Session
from .letters import DeadLetter, letter_named, letters
from .operations import Operation, Undone, entries, listed, undo_named
from .prompts import PLACES
from .runners import AsyncRunner, Runner
from .schedule import Trigger
from .waiting import told, unread_of

if TYPE_CHECKING:
    from turnstore.context import SavedTurn

    from .._owner import OwnerPlace
    from ..aio import AsyncFacts
    from ..facts import Facts

__all__ = [
    "BUSY_PAUSE",
    "FAILED_PAUSE",
    "MOST_UNNOTED",
    "NOT_LOOKED_FOR",
    "NOT_NOTED",
    "NOT_READ",
    "BaseExtraction",
]

log = logging.getLogger("turnstore")

BUSY_PAUSE, FAILED_PAUSE = 2.0, 30.0
"""Seconds until a conversation is looked at again, in the background."""

MOST_UNNOTED = 10_000
"""Conversations that may wait until Redis has a note of them: where it cannot be reached."""

NOT_READ = "no facts were drawn from %s, and it is tried again later (%s: %s)"
NOT_NOTED = "that turns of %s wait for extraction could not be noted (%s: %s)"
NOT_LOOKED_FOR = "what else waits for extraction beside %s was not looked for (%s: %s)"
"""What the log says of what fails in the background: where, and what was raised."""

_NO_OWNER = "facts are an owner's, and the conversation has none: store.conversation(id, owner=…)"
_MOST_TURNS = 50


class BaseExtraction:
    """Everything of an extraction but the waiting."""

    _belongs = "after"

    def __init__(  # noqa: PLR0913 - settings, by keyword
        self,
        base: Base,
        facts: Facts | AsyncFacts,
        ask: Any,
        *,
        model: str | None,
        template: str,
        every: int,
        idle: timedelta,
        turns: int,
        candidates: int,
        max_changes: int,
        zone: tzinfo,
        deadline: float,
        queue: int,
    ) -> None:
        check_model("Extraction", ask, model)
        check_template("the template of an extraction", template, *PLACES)
        numbers = {
            "every": (every, 10_000),
            "turns": (turns, _MOST_TURNS),
            "candidates": (candidates, 200),
            "max_changes": (max_changes, 50),
            "queue": (queue, 1_000_000),
        }
        for name, (value, most) in numbers.items():
            _check_number(name, value, most)
        if not isinstance(idle, timedelta):
            msg = f"Extraction(idle={idle!r}): idle is a timedelta"
            raise TypeError(msg)
        if idle < timedelta(0):
            msg = f"Extraction(idle={idle}): it is not below 0"
            raise ValueError(msg)
        if not isinstance(zone, tzinfo):
            msg = f"zone is a time zone, as in ZoneInfo('Europe/Paris'); not {zone!r}"
            raise TypeError(msg)
        if deadline is None:  # a lease that never ends would stop all extractions
            msg = "Extraction(deadline=None): the model needs an end, in seconds"
            raise TypeError(msg)
        check_deadline("Extraction", deadline)

        def asked(prompt: str) -> Asking[Any]:
            return question(ask, model, prompt, deadline)

        self._options = Options(asked, template, turns, candidates, max_changes, zone, deadline)
        self._trigger = Trigger(every, idle.total_seconds())
        self._base = base
        self._home = home_in(facts)
        self.counts: Counter[str] = Counter()
        """How often it happened in the background: `extracted`, `busy` (another one of the
        owner was at work), `erased` (while it was at work), `failed`, `unusable` (answers of the
        model), `dropped` (the queue was full, or this was closed). And anywhere, `unnoted`: what
        could not be noted in Redis, a failure, or that turns wait."""

    def _check_store(self, conversation: str) -> None:
        """Refuse a conversation of another store; asked by a context."""
        check_store(self._base, conversation)

    def _session(self, place: Place, since: int = 0, *, waits: bool) -> Session:
        wait = timedelta(seconds=2 * self._options.deadline if waits else 0)
        return Session(self._base, place, self._options, wait, self.counts, since)

    def _place_of(self, conversation: object) -> Place:
        place = place_in(conversation)
        if place.keys.owner is None:
            raise ValueError(_NO_OWNER)
        check_store(self._base, str(place.keys))
        return place

    def _place_of_turn(self, turn: SavedTurn) -> Place:
        if not turn.owner:
            raise ValueError(_NO_OWNER)
        return self._home.place(turn.conversation, turn.owner)

    def _failed(
        self, error: Exception, place: Place, said: str, name: str = "failed"
    ) -> float | None:
        """Count what went wrong in the background, and say when to try again."""
        if isinstance(error, ClosedError):
            return None
        if isinstance(error, LeaseError):
            count(self.counts, "busy")
            return BUSY_PAUSE
        if isinstance(error, ErasedError):
            count(self.counts, "erased")
            return None
        log.warning(said, place.keys, type(error).__name__, error)
        count(self.counts, "unusable" if isinstance(error, ExtractionError) else name)
        return FAILED_PAUSE

    def _first(
        self, first: Exception | None, error: Exception, owner: str | EllipsisType
    ) -> Exception | None:
        """Keep the first error of a run; who is erased is passed over in one over all owners.

        Raises:
            UnavailableError, ClosedError: It is that: no other conversation can be read either.
        """
        if isinstance(error, UnavailableError | ClosedError):
            raise error
        return first or (None if owner is ... and is_erased(error) else error)

    def _wait_for(self, reader: Runner | AsyncRunner, place: Place, seconds: float | None) -> None:
        """Let a conversation that was noted wait until it is read."""
        try:
            if seconds is not None and not reader.put(place, seconds) and not reader.is_closed:
                self._dropped(place)
        except RuntimeError as error:  # no thread: it waits until one can be started
            self._failed(error, place, NOT_READ)

    def _dropped(self, place: Place) -> None:
        count(self.counts, "dropped")
        log.warning(
            "too many conversations wait for extraction; %s is looked at after the next "
            "extraction of its owner",
            place.keys,
        )

    def _refused(self, place: Place, *, is_closed: bool) -> None:
        count(self.counts, "dropped")
        why = "the extraction is closed" if is_closed else "too many wait to be noted"
        log.warning("a turn of %s is not noted for extraction: %s", place.keys, why)

    # Flows

    def _owner(self, owner: Any) -> OwnerPlace:
        return self._base.ground.owner(owner)

    def _owners(self) -> Flow[list[OwnerPlace]]:
        """Find all owners who have conversations, or had some that were read."""
        return owners(self._base.ground, "conversations", "facts:cursors")

    def _places(self, owner: OwnerPlace) -> Flow[tuple[list[Place], int]]:
        """Find the conversations of an owner that wait, those that were cleared too.

        Returns:
            Their places, and the number with which it began to look for them.
        """
        began = yield from begin(owner, (), "extract")
        return (yield from unread_of(self._home, owner)), began.number

    def _others(self, place: Place) -> Flow[list[Place]]:
        """Find what waits of the owner of a conversation, and was noted by whoever it was."""
        owner = self._base.ground.owner_in(place.keys.turns)
        return told(self._home, owner)

    def _letters(self, owner: str) -> Flow[list[DeadLetter]]:
        found = yield from letters(self._base.ground.owner(owner))
        return [letter for letter, _ in found]

    def _letter_place(self, owner: str, identifier: str) -> Flow[tuple[Place, int]]:
        """Find the conversation of a letter; and the number with which it began to look."""
        place = self._base.ground.owner(owner)
        began = yield from begin(place, (), "extract")
        letter, _ = yield from letter_named(place, identifier)
        return self._home.place(letter.conversation, owner), began.number

    def _operations(self, owner: str) -> Flow[list[Operation]]:
        return listed((yield from entries(self._base.ground.owner(owner))))

    def _undo(self, owner: str, identifier: str) -> Flow[Undone]:
        return undo_named(self._base, self._base.ground.owner(owner), identifier)


def _check_number(name: str, value: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        msg = f"Extraction({name}={value!r}): it is a whole number"
        raise TypeError(msg)
    if not 1 <= value <= most:
        msg = f"Extraction({name}={value}): it is from 1 to {most}"
        raise ValueError(msg)
