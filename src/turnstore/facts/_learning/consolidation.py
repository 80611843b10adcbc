"""From what a model drew from some turns to what is stored: every rule that needs no model.

Nothing here asks anybody or the clock. The verdicts of the model are taken within bounds: what
repeats a known fact word for word adds a source and no fact, and a fact gives way only to one
of its own slot, or near to it in meaning. Everything else is stored beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import NamedTuple

from .._model import Fact, NewFact
from .._scoring.repetition import is_repetition
from .guards import NEAR, may_replace
from .times import Interval, apart, chain, interval_of, period, resolve, retract
from .verdicts import Item

__all__ = ["Batch", "Closing", "Plan", "Seeing", "Shown", "consolidate"]


class Shown(NamedTuple):
    """A turn as the model was shown it.

    Attributes:
        ids: The turn ids of its pieces.
        time: When it was saved.
    """

    ids: tuple[str, ...]
    time: datetime


class Batch(NamedTuple):
    """What the model was shown.

    Attributes:
        known: The facts, in their order.
        turns: The turns, in their order.
        zone: Where the dates hold that it names.
        conversation: The id of the conversation.
    """

    known: Sequence[Fact]
    turns: Sequence[Shown]
    zone: tzinfo
    conversation: str


class Seeing(NamedTuple):
    """A known fact that was said again.

    Attributes:
        sources: The turns that say it.
        observed: When it was said.
    """

    sources: tuple[str, ...]
    observed: datetime


class Closing(NamedTuple):
    """A known fact that is not true any more.

    Attributes:
        valid_to: Until when it was.
        by: Which of the new facts took its place, by their order; or the id of a known one;
            None where nothing did.
    """

    valid_to: datetime
    by: int | str | None


@dataclass(slots=True)
class Plan:
    """What is to be stored.

    Attributes:
        new: The facts that nobody knew.
        seen: The known ones that were said again, by their ids.
        closed: The known ones that are not true any more, by their ids.
        notes: How often something was not taken as the model put it: `dates` that cannot be
            read or contradict each other, `repeated` facts that it took for new ones,
            `refused` to take the place of a fact that has nothing to do with them.
    """

    new: list[NewFact] = field(default_factory=list[NewFact])
    seen: dict[str, Seeing] = field(default_factory=dict[str, Seeing])
    closed: dict[str, Closing] = field(default_factory=dict[str, Closing])
    notes: Counter[str] = field(default_factory=Counter[str])


class _Replacing(NamedTuple):
    """A fact that takes the place of a known one."""

    by: int | str
    interval: Interval
    never: bool


def consolidate(
    items: Sequence[Item], batch: Batch, near: Sequence[Mapping[str, tuple[Fact, float]]]
) -> Plan:
    """Decide what is stored of what a model drew from some turns.

    Args:
        items: What it drew, checked.
        batch: What it was shown.
        near: For each item the facts near to its text, and the one that it speaks of, by
            their ids, with the cosine of the two texts.
    """
    work = _Work(batch)
    for item, neighbours in zip(items, near, strict=True):
        if item.verdict == "duplicate":
            work.see(batch.known[item.of], item)
        elif item.verdict == "retracts":
            work.retract(item, neighbours)
        else:
            work.learn(item, neighbours)
    return work.finish()


class _Work:
    def __init__(self, batch: Batch) -> None:
        self._known, self._turns, self._zone, self._conversation = batch
        self._plan = Plan()
        self._drafts: list[tuple[Item, Interval]] = []
        self._sources: list[list[str]] = []
        self._replaced: dict[str, tuple[Fact, list[_Replacing]]] = {}
        self._held: dict[str, Interval] = {}

    def see(self, fact: Fact, item: Item) -> None:
        """Note that a known fact was said again."""
        sources, observed = self._spoken(item)
        before = self._plan.seen.get(fact.id, Seeing((), observed))
        merged = tuple(dict.fromkeys((*before.sources, *sources)))
        self._plan.seen[fact.id] = Seeing(merged, max(before.observed, observed))

    def retract(self, item: Item, near: Mapping[str, tuple[Fact, float]]) -> None:
        """Note that a known fact is not true any more."""
        fact = self._known[item.of]
        if not self._gives_way(fact, item, near):
            return
        _, observed = self._spoken(item)
        last = period(item.stated_to, self._zone) if item.stated_to else None
        first = period(item.stated_from, self._zone) if item.stated_from else None
        if (item.stated_to and last is None) or (item.stated_from and first is None):
            self._plan.notes["dates"] += 1
        since = observed
        if last is not None and last.end is not None:
            since = last.end
        elif first is not None:
            since = first.start
        self._close(fact, retract(self._now(fact), since, never=item.never), None)

    def learn(self, item: Item, near: Mapping[str, tuple[Fact, float]]) -> None:
        """Note a new fact, or that it is none, and whose place it takes."""
        _, observed = self._spoken(item)
        interval, whole = interval_of(item.stated_from, item.stated_to, observed, self._zone)
        if not whole:
            self._plan.notes["dates"] += 1
        target = self._known[item.of] if item.of >= 0 else None
        if target is not None and item.never and not item.stated_from:
            interval = interval_of("", item.stated_to, target.valid_from, self._zone)[0]
        repeated = self._repeated(item, interval, near)
        if repeated is not None:
            self._plan.notes["repeated"] += 1
            self.see(repeated, item)
            by: int | str = repeated.id
            interval = self._now(repeated)
        else:
            by = self._draft(item, interval)
            if target is None:
                target = self._outdated(item, near)
        if target is None or target is repeated or target.id == by:
            return
        if self._gives_way(target, item, near):
            replacing = _Replacing(by, interval, item.never)
            self._replaced.setdefault(target.id, (target, []))[1].append(replacing)

    def finish(self) -> Plan:
        """Work out when everything holds, and give what is to be stored."""
        intervals = [interval for _, interval in self._drafts]
        for fact, all_replacing in self._replaced.values():
            chained = chain([replacing.interval for replacing in all_replacing])
            for replacing, interval in zip(all_replacing, chained, strict=True):
                old, new = resolve(self._now(fact), interval, never=replacing.never)
                if isinstance(replacing.by, int):
                    intervals[replacing.by] = new
                if old != self._now(fact):
                    self._close(fact, old, replacing.by)
        for (item, _), interval, sources in zip(
            self._drafts, intervals, self._sources, strict=True
        ):
            self._plan.new.append(
                NewFact(
                    text=item.text,
                    slot=item.slot,
                    conversation=self._conversation,
                    sources=tuple(sources),
                    observed=self._spoken(item)[1],
                    valid_from=interval.start,
                    valid_to=interval.end,
                )
            )
        return self._plan

    def _spoken(self, item: Item) -> tuple[tuple[str, ...], datetime]:
        """Give the ids of the turns that say it, and the time of the newest."""
        turns = [self._turns[number - 1] for number in item.turns]
        return tuple(id_ for turn in turns for id_ in turn.ids), max(turn.time for turn in turns)

    def _now(self, fact: Fact) -> Interval:
        """Say when a known fact holds by what was noted so far."""
        return self._held.get(fact.id, Interval(fact.valid_from, fact.valid_to))

    def _close(self, fact: Fact, interval: Interval, by: int | str | None) -> None:
        if interval.end is None or interval == self._now(fact):
            return
        self._held[fact.id] = interval
        self._plan.closed[fact.id] = Closing(interval.end, by)

    def _draft(self, item: Item, interval: Interval) -> int:
        """Note a fact to be stored, or the sources of one that is; give its number."""
        sources, _ = self._spoken(item)
        for number, (other, its_interval) in enumerate(self._drafts):
            if is_repetition(item.text, other.text) and not apart(interval, its_interval):
                self._plan.notes["repeated"] += 1
                added = [source for source in sources if source not in self._sources[number]]
                self._sources[number] += added
                return number
        self._drafts.append((item, interval))
        self._sources.append(list(sources))
        return len(self._drafts) - 1

    def _repeated(
        self, item: Item, interval: Interval, near: Mapping[str, tuple[Fact, float]]
    ) -> Fact | None:
        """Find the known fact that says the same, of the same time, word for word."""
        return next(
            (
                fact
                for fact, cosine in near.values()
                if cosine >= NEAR
                and not apart(interval, self._now(fact))
                and is_repetition(item.text, fact.text)
            ),
            None,
        )

    def _outdated(self, item: Item, near: Mapping[str, tuple[Fact, float]]) -> Fact | None:
        """Find the known fact that a new one is news of, which the model did not see."""
        return next(
            (
                fact
                for fact, cosine in near.values()
                if cosine >= NEAR and item.slot and item.slot.casefold() == fact.slot.casefold()
            ),
            None,
        )

    def _gives_way(self, fact: Fact, item: Item, near: Mapping[str, tuple[Fact, float]]) -> bool:
        _, cosine = near.get(fact.id, (fact, 0.0))
        if may_replace(fact.slot, item.slot, cosine):
            return True
        self._plan.notes["refused"] += 1
        return False
