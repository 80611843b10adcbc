"""Draw facts from the turns of a conversation: one extraction, as a flow.

It holds the lease of the owner while it reads, asks and stores, so that nobody else reads the
same turns, and the facts that it compares with stay as they are. Everything of a batch of turns
is stored in one commit, together with the cursor that says they were read. Where anything fails,
the cursor stays, and the next extraction reads the same turns.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from turnstore import _json
from turnstore._calls import Flow
from turnstore._counting import count
from turnstore._leases import Hold, Lease
from turnstore.context._common import Asking, fill
from turnstore.errors import TurnstoreError

from .._finding.searching import Question, search_in
from .._model import Fact, Hit, NewFact
from .._owner import new_ids
from .._scoring.ranking import Ranking
from .._storing.adding import checked_fact, draft
from .._storing.commit import Add, Began, Blocked, Change, Close, CursorMove, Seen, again
from .._storing.record import moment, norm_of
from .consolidation import Batch, Plan, consolidate
from .cursors import START, Cursor, read_cursor, unread
from .letters import DROP, KEEP, DeadLetter, Reader, letter_named, note, written
from .prompts import AGAIN
from .returning import EXTRACT, go_back
from .telling import Told, prompt, tell
from .verdicts import AnswerError, Item, parse

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnstore._place import Place

    from .._storing.base import Base

__all__ = ["Extracted", "ExtractionError", "Options", "Session"]

log = logging.getLogger("turnstore")

_MARGIN = timedelta(seconds=30)  # of the lease, beyond what two questions may take
_MOST_WAITERS = 1000
_NEIGHBOURS = 8  # facts that a new one is compared with, beside the one that it speaks of
_KINDS = ("fact",)
_AS_THEY_ARE = Ranking(near_duplicate=None)
_ANY_TIME = moment(0)


class ExtractionError(TurnstoreError):
    """A model answered twice what no facts can be drawn from; nothing was written.

    The turns are read again by the next extraction. The answer is kept as a dead letter.
    """


@dataclass(frozen=True, slots=True)
class Extracted:
    """What an extraction did.

    Attributes:
        turns: Turns that were read.
        new: The ids of the facts that were stored.
        seen: The ids of known facts that were said again.
        closed: The ids of known facts that are not true any more.
        undone: Earlier extractions that were undone, since their turns are gone.
        notes: How often something was not taken as the model put it: `dates` that cannot be
            read or contradict each other, `repeated` facts that it took for new ones,
            `refused` to take the place of a fact that has nothing to do with them.
    """

    turns: int = 0
    new: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    undone: int = 0
    notes: Counter[str] = field(default_factory=Counter[str])

    def __add__(self, other: Extracted) -> Extracted:
        """Give what both did."""
        return Extracted(
            self.turns + other.turns,
            self.new + other.new,
            self.seen + other.seen,
            self.closed + other.closed,
            self.undone + other.undone,
            self.notes + other.notes,
        )


@dataclass(frozen=True, slots=True)
class Options:
    """How facts are drawn, checked once.

    Attributes:
        question: Asks the model what a prompt says.
        template: The prompt.
        batch: Turns that are read at once.
        candidates: Known facts that the model is shown.
        max_changes: Known facts that one answer may supersede or retract.
        zone: Where the dates of the conversation hold.
        deadline: Seconds that the model may take for one answer.
    """

    question: Callable[[str], Asking[Any]]
    template: str
    batch: int
    candidates: int
    max_changes: int
    zone: tzinfo
    deadline: float


class _UnusableError(Exception):
    """A model answered twice what is of no use; it is not raised to users."""

    def __init__(self, reason: str, answer: str) -> None:
        super().__init__(reason)
        self.answer = answer


class Session:
    """One extraction of one conversation.

    Args:
        base: The facts.
        place: The conversation's.
        options: How.
        wait: How long to wait for another extraction of the same owner.
        counts: Where a failure is counted that could not be noted, as `unnoted`.
        since: The number with which it was looked for, where that was: an owner who was erased
            since is not waited for. 0 begins now.

    Attributes:
        hold: The lease; to be given back by who runs it.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what the two kinds share
        self,
        base: Base,
        place: Place,
        options: Options,
        wait: timedelta,
        counts: Counter[str],
        since: int = 0,
    ) -> None:
        self._base = base
        self._counts = counts
        self._keys = place.keys
        self._options = options
        self._owner = base.ground.owner_in(place.keys.turns)
        # A conversation that was cleared is on no list any more, so that its id may be lost.
        self._conversation: str = _json.loads(place.keys.name)[0] if place.keys.name else ""
        lease = Lease(
            ttl=timedelta(seconds=2 * options.deadline) + _MARGIN,
            wait=wait,
            waiters=_MOST_WAITERS if wait else 0,
        )
        # The owner's, which outlives a conversation that is cleared meanwhile.
        keys = place.keys._replace(queue=self._owner.keys.lease, member="-")
        self.hold = Hold(keys, lease)
        self._since = since
        self._began = Began(0, 0, (), ())

    def run(self) -> Flow[Extracted]:
        """Read all turns after the cursor, a batch at a time.

        Raises:
            LeaseError: Another extraction of the owner is at work.
            ExtractionError: The model's answers could not be used.
            ErasedError: The owner was erased, or the conversation cleared, since it began.
            Exception: What the model or the embedder raised.
        """
        yield from self._begin()
        done = Extracted()
        while True:
            try:
                step = yield from self._step()
            except Blocked as blocked:
                if blocked.what != "cursor":
                    raise
                continue  # it was moved by hand; what follows is looked at anew
            if step is None:
                return done
            done += step
            yield from self.hold.renew()

    def skip(self, identifier: str) -> Flow[None]:
        """Leave the turns of a dead letter unread, and drop the letter.

        Raises:
            LookupError: The owner has no such letter.
            LeaseError, ErasedError: As for `run`.
        """
        yield from self._begin()
        _, last = yield from letter_named(self._owner, identifier)
        stands, cursor = yield from read_cursor(self._owner, self._keys.member)
        after = last if last.no > cursor.no else cursor._replace(attempts=0, most=0)
        yield from note(self._reader, stands, after, DROP)

    def _begin(self) -> Flow[None]:
        self._began = yield from self._base.begin(self._owner, (), EXTRACT)
        self.hold.began = self._since or self._began.number
        yield from self.hold.take()

    @property
    def _reader(self) -> Reader:
        ttl_ms = self._base.settings.ttl_ms
        return Reader(self._owner, self._keys.member, self._began, self.hold.proof, ttl_ms)

    def _step(self) -> Flow[Extracted | None]:
        """Read one batch; None where nothing is left."""
        stands, cursor = yield from read_cursor(self._owner, self._keys.member)
        most = min(self._options.batch, cursor.most or self._options.batch)
        found = yield from unread(self._keys, cursor, most)
        if found.is_gone and stands:
            undone = yield from go_back(self._base, self._keys, self._reader, stands)
            return Extracted(undone=undone)
        if not found.elements or not self._conversation:
            return None
        told = tell(found.elements)
        try:
            extracted = yield from self._read(told, stands)
        except TurnstoreError:
            raise
        except Exception as error:
            yield from self._failed(stands, cursor, told, error)
            if not isinstance(error, _UnusableError):
                raise
            msg = f"{error}; its turns are read again by the next extraction"
            raise ExtractionError(msg) from error
        if cursor.attempts:
            after = Cursor.after(told.last)
            yield from note(self._reader, str(after), after, DROP)
        return extracted

    def _read(self, told: Told, stands: str) -> Flow[Extracted]:
        """Draw facts from turns, and store them."""
        plan = Plan()
        if any(told.texts):
            known = yield from self._candidates(told)
            items = yield from self._items(told, known)
            near = yield from self._near(items, known)
            batch = Batch(known, told.shown, self._options.zone, self._conversation)
            plan = consolidate(items, batch, near)
        return (yield from self._store(plan, told, stands))

    def _candidates(self, told: Told) -> Flow[list[Fact]]:
        """Find the known facts that the turns may speak of, oldest first."""
        best: dict[str, tuple[float, Fact]] = {}
        most = self._options.candidates
        for text in filter(None, told.texts):
            for hit in (yield from self._search(text, most)):
                score = max(hit.score, best.get(hit.fact.id, (hit.score, hit.fact))[0])
                best[hit.fact.id] = (score, hit.fact)
        chosen = sorted(best.values(), key=lambda one: (-one[0], one[1].id))[:most]
        return sorted((fact for _, fact in chosen), key=lambda fact: fact.id)

    def _search(self, text: str, most: int) -> Flow[list[Hit]]:
        question = Question(text, most, None, _KINDS, "", None, None, frozenset())
        return search_in(self._base, self._owner, question, ranking=_AS_THEY_ARE, is_use=False)

    def _items(self, told: Told, known: Sequence[Fact]) -> Flow[list[Item]]:
        """Ask the model, and once more where its answer is of no use."""
        options = self._options
        question = prompt(options.template, told, known, options.zone)
        answer = ""
        reason: AnswerError | None = None
        for _ in range(2):
            again = fill(AGAIN, reason=str(reason)) if reason else ""
            given = yield from options.question(question + again)
            if not isinstance(given, str):
                msg = f"the model answered {type(given).__name__}, and not text"
                raise TypeError(msg)
            answer = given
            try:
                return parse(
                    answer,
                    facts=len(known),
                    turns=len(told.shown),
                    changes=options.max_changes,
                )
            except AnswerError as error:
                reason = error
        raise _UnusableError(str(reason), answer)

    def _near(
        self, items: Sequence[Item], known: Sequence[Fact]
    ) -> Flow[list[dict[str, tuple[Fact, float]]]]:
        """Find the facts near to each item, and how near the one is that it speaks of."""
        near: list[dict[str, tuple[Fact, float]]] = []
        for item in items:
            found: dict[str, tuple[Fact, float]] = {}
            if item.text:
                hits = yield from self._search(item.text, _NEIGHBOURS)
                found = {hit.fact.id: (hit.fact, hit.similarity) for hit in hits}
            target = known[item.of] if item.text and item.of >= 0 else None
            if target is not None and target.id not in found:
                backend = yield from self._base.prepare()
                one, other = yield from self._base.embed(backend, [item.text, target.text])
                found[target.id] = (target, float(one @ other))
            near.append(found)
        return near

    def _store(self, plan: Plan, told: Told, stands: str) -> Flow[Extracted]:
        """Commit all of it, and the cursor."""
        news: list[NewFact] = []
        for new in plan.new:
            redacted = yield from self._base.redacted_fact(new)
            news.append(checked_fact(redacted))
        after = Cursor.after(told.last)
        move = CursorMove(self._keys.member, stands, str(after))
        writer = self._base.writer(self._owner, EXTRACT, self._began.number)

        def work() -> Flow[Extracted]:
            norms = [norm_of(draft(new, "", _ANY_TIME)) for new in news]
            now = yield from writer.begin(norms)
            backend = yield from self._base.backend_of(now.spaces)
            vectors = yield from self._base.embed(backend, [new.text for new in news])
            ids = new_ids(now.number, len(news))
            taken = [there or id_ for there, id_ in zip(now.ids, ids, strict=True)]
            changes: list[Change] = [
                Add(draft(new, id_, now.now), vector)
                for new, id_, vector in zip(news, ids, vectors, strict=True)
            ]
            changes += [Seen(id_, *seeing) for id_, seeing in plan.seen.items()]
            for id_, closing in plan.closed.items():
                by = taken[closing.by] if isinstance(closing.by, int) else closing.by or ""
                changes.append(Close(id_, closing.valid_to, now.now, by))
            said = {
                "conversation": self._keys.member,
                "from": stands or str(START),
                "to": str(after),
                "sources": [id_ for shown in told.shown for id_ in shown.ids],
                "now": now.number // 1000,
            }
            answers = yield from self._base.commit(
                self._owner,
                now,
                changes,
                operation=EXTRACT,
                logged=EXTRACT if changes else "",
                note=said,
                cursor=move,
                fence=self.hold.proof,
            )
            added = list(zip(ids, answers, strict=False))
            return Extracted(
                turns=len(told.shown),
                new=tuple(id_ for id_, answer in added if answer == "1"),
                seen=(*(there for _, there in added if there != "1"), *plan.seen),
                closed=tuple(plan.closed),
                notes=plan.notes,
            )

        return (yield from again(work, ("spaces", "changed")))

    def _failed(self, stands: str, cursor: Cursor, told: Told, error: Exception) -> Flow[None]:
        """Note that these turns could not be read; what is raised is the error itself."""
        after = cursor._replace(
            attempts=cursor.attempts + 1,
            tried_ms=self._began.now_ms,
            most=max(len(told.shown) // 2, 1),  # to come closer to what fails
        )
        try:
            letter = KEEP
            if isinstance(error, _UnusableError):
                answer = yield from self._base.redacted(error.answer)
                letter = written(
                    DeadLetter(
                        id="",
                        conversation=self._conversation,
                        first_turn=told.first.turn,
                        last_turn=told.last.turn,
                        failed=self._began.now,
                        attempts=after.attempts,
                        reason=str(error),
                        answer=answer,
                    ),
                    Cursor.after(told.last),
                )
            yield from note(self._reader, stands, after, letter)
        except Exception as trouble:  # noqa: BLE001 - the first error says more
            count(self._counts, "unnoted")
            log.warning("a failed extraction could not be noted: %s", trouble)
