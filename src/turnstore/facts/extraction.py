"""Facts drawn from conversations by a model of the caller's, on a sync store."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, timedelta, tzinfo
from types import EllipsisType, TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from turnstore._counting import count
from turnstore.context._models import check_sync_model
from turnstore.errors import ClosedError

from ._learning.extracting import Extracted, Session
from ._learning.extraction import (
    MOST_UNNOTED,
    NOT_LOOKED_FOR,
    NOT_NOTED,
    NOT_READ,
    BaseExtraction,
)
from ._learning.letters import DeadLetter
from ._learning.operations import Operation, Undone
from ._learning.prompts import EXTRACTION_PROMPT
from ._learning.runners import Runner, left
from ._learning.schedule import due
from ._storing.handles import base_in, run_in

if TYPE_CHECKING:
    from turnstore import _holding
    from turnstore._calls import Flow
    from turnstore._place import Place
    from turnstore.context import SavedTurn
    from turnstore.conversation import Conversation

    from .facts import Facts

__all__ = ["Extraction"]


R = TypeVar("R")


class Extraction(BaseExtraction):
    """Draw facts from the turns of conversations, and settle them with those that are known.

    A model is shown the turns that were not read yet and the facts that may concern them, and
    says of each fact that it draws whether it is new, a duplicate, takes the place of a known
    one, or takes it back. All else is done by rules: what repeats a known fact is not stored
    again, what changed closes the old fact and keeps it, dates are reckoned with, and nothing
    is taken back that has nothing to do with the news. What was recalled or put in by a
    context is no part of a turn, and so never read; neither is what tools were asked and said.

    Give it to a context, as in `Context(after=[extraction])`, and each saved turn is noted and
    read in the background: as soon as `every` turns wait, or the conversation has been `idle`.
    Whatever else waits of the owner, from a process that is gone, is read after that, too. Or
    call `run` or `extract` in a job of your own. Only one at a time reads for an owner, among
    all processes. Where anything fails, the turns are read again by the next extraction.

    Args:
        facts: Where facts are kept.
        ask: The model: a function from a prompt to text, or a client of the openai, anthropic
            or google-genai package, without a memory, together with `model`. It may be async
            on an async store.
        model: The name of the model, where `ask` is a client.
        template: The prompt; `{facts}` and `{transcript}` are put in.
        every: In the background, read when so many turns wait.
        idle: In the background, read when the newest turn is so old.
        turns: Turns that the model reads at once, 1 to 50.
        candidates: Known facts that it is shown.
        max_changes: Known facts that one answer may take back or replace; an answer that
            goes beyond is of no use.
        zone: Where the user's dates hold, and "yesterday".
        deadline: Seconds that the model may take for an answer.
        queue: Conversations that may wait in the background of this process. Those beyond are
            noted in Redis alone, and read after the next extraction of their owner.

    Raises:
        TypeError, ValueError: An argument is of no use.

    Cost:
        No I/O. In the background, two round trips after each turn, two more with the first one
        of a conversation, and five beside each extraction.

    Example:
        >>> facts = Facts(store, embed=embed, dimensions=8, embedder="demo:1", engine="plain")
        >>> def model(prompt):
        ...     return '{"facts": [{"verdict": "new", "text": "Ada sails.", "turns": [1]}]}'
        >>> chat = store.conversation("conv-1", owner="ada")
        >>> chat.append("I sail.").turns
        1
        >>> len(Extraction(facts, model).extract(chat).new)
        1
        >>> [fact.text for fact in facts.list("ada")]
        ['Ada sails.']
    """

    def __init__(  # noqa: PLR0913 - settings, by keyword
        self,
        facts: Facts,
        ask: Any,
        *,
        model: str | None = None,
        template: str = EXTRACTION_PROMPT,
        every: int = 6,
        idle: timedelta = timedelta(minutes=5),
        turns: int = 12,
        candidates: int = 20,
        max_changes: int = 10,
        zone: tzinfo = UTC,
        deadline: float = 60.0,
        queue: int = 1000,
    ) -> None:
        super().__init__(
            base_in("Extraction", facts, asynchronous=False),
            facts,
            ask,
            model=model,
            template=template,
            every=every,
            idle=idle,
            turns=turns,
            candidates=candidates,
            max_changes=max_changes,
            zone=zone,
            deadline=deadline,
            queue=queue,
        )
        check_sync_model("Extraction", ask)
        self._run: _holding.Runner = run_in(facts)
        self._noter = Runner(self._note, MOST_UNNOTED, finishes=True)
        self._reader = Runner(self._look, queue)

    def extract(self, conversation: Conversation) -> Extracted:
        """Read all turns of a conversation that were not read yet, now.

        Where turns that were read have been undone since, or the conversation was cleared,
        what was drawn from them is undone first.

        Args:
            conversation: The conversation; it has an owner.

        Returns:
            What became of it: the ids of the facts that are new, were said again, or closed.

        Raises:
            TypeError, ValueError: It is no conversation, or has no owner.
            ExtractionError: The model answered twice what is of no use. The answer is kept
                as a dead letter, and the turns are read again by the next extraction.
            LeaseError: Another extraction of the owner is at work for too long.
            ErasedError: The owner was erased, or the conversation cleared, meanwhile.
            Exception: What the model or the embedder raised, `TimeoutError` after `deadline`.
            ServerError: Redis failed.

        Atomicity:
            The facts of one batch of `turns` and the cursor are stored together or not at
            all: a process that dies loses nothing, and stores nothing twice.

        Cost:
            Some six round trips, and for each batch one more for each turn and each fact.
        """
        return self._extract(self._place_of(conversation), waits=True)

    def run(self, owner: str | EllipsisType = ...) -> Extracted:
        """Read all conversations of an owner, or of all owners, as far as they were not read yet.

        For a job that runs now and then, in the place of the background or beside it. What
        waits is read at once, whatever `every` and `idle` say, and whether an extraction was
        told of it or not.

        Args:
            owner: Whose conversations are read; without one, those of all owners of the store.

        Returns:
            What became of all of them.

        Raises:
            TypeError, ValueError: The owner is not text, or empty.
            UnavailableError: Redis cannot be reached; what was read before that is stored.
            ClosedError: The store was closed; the same.
            Exception: As from `extract`, the first one, when all others were read. Of all
                owners, who is being erased is passed over.

        Cost:
            As for `extract`, for each conversation with something to read; two round trips for
            each owner, and three for each hundred conversations. For all owners it looks at
            every key of the server, twice.
        """
        done, first = Extracted(), None
        owners = self._run(self._owners()) if owner is ... else [self._owner(owner)]
        for one in owners:
            try:
                places, since = self._run(self._places(one))
            except Exception as error:  # noqa: BLE001 - raised when the others were read
                first = self._first(first, error, owner)
                continue
            for place in places:
                try:
                    done += self._extract(place, since, waits=True)
                except Exception as error:  # noqa: BLE001 - raised when the others were read
                    first = self._first(first, error, owner)
        if first is not None:
            raise first
        return done

    def __call__(self, turn: SavedTurn) -> bool:
        """Note that a turn was saved, to be read in the background; for `Context(after=…)`.

        Args:
            turn: The turn.

        Returns:
            False where too many conversations wait to be noted, or this was closed.

        Raises:
            ValueError: The conversation has no owner.

        Cost:
            No I/O.
        """
        place = self._place_of_turn(turn)
        is_taken = self._noter.put(place)
        if not is_taken:
            self._refused(place, is_closed=self._noter.is_closed)
        return is_taken

    def flush(self, timeout: float | None = None) -> Extracted:
        """Read all that waits in the background, now, and wait for it.

        Args:
            timeout: Seconds that what is read just now is waited for.

        Returns:
            What became of what had waited.

        Raises:
            Exception: As from `extract`, the first one, when all others were read.
        """
        done, first = Extracted(), None
        since = time.monotonic()
        noted = self._noter.take_all(timeout)
        waiting = self._reader.take_all(left(timeout, since))
        for place in {str(place.keys): place for place in (*noted, *waiting)}.values():
            try:
                done += self._extract(place, waits=True)
            except Exception as error:  # noqa: BLE001 - raised when the others were read
                first = first or error
        if first is not None:
            raise first
        return done

    def dead_letters(self, owner: str) -> list[DeadLetter]:
        """List what could not be read: of each conversation the newest answer, oldest first.

        Args:
            owner: Whose conversations they are of.

        Raises:
            TypeError, ValueError: The owner is not text, or empty.
            ServerError: Redis failed.

        Cost:
            One round trip.
        """
        return self._run(self._letters(owner))

    def retry(self, owner: str, letter: str) -> Extracted:
        """Read the conversation of a dead letter again, now; the letter goes if that succeeds.

        Args:
            owner: Whose it is.
            letter: The id of the letter.

        Raises:
            LookupError: The owner has no such letter.
            Exception: As from `extract`.

        Cost:
            Two round trips more than `extract`.
        """
        place, since = self._run(self._letter_place(owner, letter))
        return self._extract(place, since, waits=True)

    def skip(self, owner: str, letter: str) -> None:
        """Leave the turns of a dead letter unread for good, and drop the letter.

        Args:
            owner: Whose it is.
            letter: The id of the letter.

        Raises:
            LookupError: The owner has no such letter.
            LeaseError: Another extraction of the owner is at work for too long.
            ServerError: Redis failed.

        Cost:
            Eight round trips.
        """
        place, since = self._run(self._letter_place(owner, letter))
        session = self._session(place, since, waits=True)
        self._held(session, session.skip(letter))

    def operations(self, owner: str) -> list[Operation]:
        """List what extractions did, newest first: the newest 200 that changed something.

        Args:
            owner: Whose facts were changed.

        Raises:
            TypeError, ValueError: The owner is not text, or empty.
            ServerError: Redis failed.

        Cost:
            One round trip.
        """
        return self._run(self._operations(owner))

    def undo(self, owner: str, operation: str) -> Undone:
        """Undo what one extraction did, as far as nothing was changed since.

        Facts that it stored are removed, unless other turns say them too or they are pinned;
        those that it closed are open again. The turns count as read all the same.

        Args:
            owner: Whose facts are changed.
            operation: The id of the operation.

        Returns:
            How many changes were undone, and how many stay.

        Raises:
            TypeError: The id is not text.
            LookupError: There is no such operation in the log.
            ValueError: It was undone already.
            ErasedError: The owner, or the conversation, was erased meanwhile; nothing was
                written.
            ServerError: Redis failed.

        Atomicity:
            All of it or nothing.

        Cost:
            Four round trips.
        """
        return self._run(self._undo(owner, operation))

    def close(self, timeout: float | None = None) -> None:
        """End the background: what is read just now is finished, what waits is given up.

        Nothing is lost: what was given up is noted in Redis, and read after the next turn of
        its owner, or by `run`. To read it now, `flush` first.

        Args:
            timeout: Seconds that what is read just now is waited for.
        """
        since = time.monotonic()
        self._reader.end()
        self._noter.close(timeout)
        self._reader.close(left(timeout, since))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _extract(self, place: Place, since: int = 0, *, waits: bool) -> Extracted:
        session = self._session(place, since, waits=waits)
        return self._held(session, session.run())

    def _held(self, session: Session, flow: Flow[R]) -> R:
        try:
            return self._run(flow)
        finally:
            with suppress(ClosedError):
                self._run(session.hold.release())

    def _note(self, place: Place) -> float | None:
        """Note in Redis that a conversation waits, and let it wait."""
        try:
            seconds = self._run(due(self._base, place, self._trigger))
        except Exception as error:  # noqa: BLE001 - counted, and tried again
            return self._failed(error, place, NOT_NOTED, "unnoted")
        self._wait_for(self._reader, place, seconds)
        return None

    def _look(self, place: Place) -> float | None:
        """Read a conversation in the background, if it is time."""
        try:
            seconds = self._run(due(self._base, place, self._trigger))
            if seconds is None or seconds > 0:
                return seconds
            self._extract(place, waits=False)
        except Exception as error:  # noqa: BLE001 - counted, and looked at again
            return self._failed(error, place, NOT_READ)
        try:
            for other in self._run(self._others(place)):
                self._reader.put(other)
        except Exception as error:  # noqa: BLE001 - counted; they wait for the next extraction
            self._failed(error, place, NOT_LOOKED_FOR)
        count(self.counts, "extracted")
        return None
