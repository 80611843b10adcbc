"""Keep no more facts than are wanted: what goes is decided by one function, owner by owner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from turnstore._calls import Flow, in_steps
from turnstore._checks import ordinal

from .._model import Fact
from .._owner import Ground, OwnerPlace, clock_call
from .._scoring.ranking import Decay
from .forgetting import remove
from .owners import each, owners
from .reading import Row, all_ids, read_rows
from .record import moment, stamp

__all__ = ["Retention", "Rule", "read_aged", "retain", "to_go"]

_READ_AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Which facts are kept; a pinned fact always is.

    Args:
        closed_for: Facts that are not true any more go so long after their end, or after it
            became known; None keeps them.
        older_than: Facts go that were stored so long ago; None keeps them.
        unused_for: Facts go that were neither stored, nor heard, nor found for so long; None
            keeps them.
        fresh: Facts go whose freshness by `decay` is less, from 0 to 1; None keeps them.
        most: Of each owner so many are kept, the freshest; None keeps all.
        decay: Says how fresh a fact is.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: A time is not above 0, or a number out of range.
    """

    closed_for: timedelta | None = None
    older_than: timedelta | None = None
    unused_for: timedelta | None = None
    fresh: float | None = None
    most: int | None = None
    decay: Decay = field(default_factory=Decay)

    def __post_init__(self) -> None:
        for name in ("closed_for", "older_than", "unused_for"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, timedelta):
                msg = f"{name}={value!r}: it is a timedelta"
                raise TypeError(msg)
            if value is not None and value <= timedelta(0):
                msg = f"{name}={value}: it is above 0"
                raise ValueError(msg)
        if self.fresh is not None and (
            not isinstance(self.fresh, int | float) or isinstance(self.fresh, bool)
        ):
            msg = f"fresh={self.fresh!r}: it is a number"
            raise TypeError(msg)
        if self.fresh is not None and not 0 < self.fresh <= 1:
            msg = f"fresh={self.fresh}: it is above 0 and at most 1"
            raise ValueError(msg)
        ordinal("most={}", self.most, optional=True)
        if not isinstance(self.decay, Decay):
            msg = f"decay is a Decay, not {type(self.decay).__name__}"
            raise TypeError(msg)


@dataclass(frozen=True, slots=True)
class Retention:
    """What a retention removed, or would have removed.

    Attributes:
        owners: Owners looked at.
        facts: Facts looked at.
        removed: Facts removed, by reason: `closed`, `old`, `unused`, `faded`, `most`.
        dry_run: Whether nothing was removed.
    """

    owners: int
    facts: int
    removed: dict[str, int]
    dry_run: bool


def to_go(aged: Sequence[Row], rule: Rule, now: datetime) -> dict[str, str]:
    """Decide which facts of an owner go, and why: the ids, and a reason for each."""
    gone: dict[str, str] = {}
    staying: list[tuple[float, str]] = []
    pinned = 0
    for one in aged:
        fact = one.record.fact
        if fact.pinned:
            pinned += 1
            continue
        fresh = rule.decay.freshness(stamp(fact.created), one.used_ms, stamp(now))
        reason = _reason(fact, one.used_ms, fresh, rule, now)
        if reason:
            gone[fact.id] = reason
        else:
            staying.append((fresh, fact.id))
    if rule.most is not None:
        room = max(rule.most - pinned, 0)
        for _, id_ in sorted(staying, reverse=True)[room:]:
            gone[id_] = "most"
    return gone


def _reason(fact: Fact, used_ms: int | None, fresh: float, rule: Rule, now: datetime) -> str:
    if rule.closed_for is not None:
        ends = [end for end in (fact.valid_to, fact.expired) if end is not None]
        if fact.valid_to is not None and now - max(ends) >= rule.closed_for:
            return "closed"
    if rule.older_than is not None and now - fact.created >= rule.older_than:
        return "old"
    if rule.unused_for is not None:
        last = max(stamp(fact.created), stamp(fact.observed), used_ms or 0)
        if last <= stamp(now) - rule.unused_for // timedelta(milliseconds=1):
            return "unused"
    return "faded" if rule.fresh is not None and fresh < rule.fresh else ""


@in_steps
def retain(ground: Ground, owner: str | None, rule: Rule, *, dry_run: bool) -> Flow[Retention]:
    """Remove what a rule does not keep, of one owner or of all."""
    seen = facts = 0
    removed: Counter[str] = Counter()

    def work(place: OwnerPlace) -> Flow[None]:
        nonlocal seen, facts
        now, aged = yield from read_aged(place)
        seen += bool(aged)
        facts += len(aged)
        gone = to_go(aged, rule, now)
        if not dry_run:
            its = [one.record for one in aged if one.record.fact.id in gone]
            # One that was changed meanwhile stays: it is looked at the next time.
            ids = yield from remove(place, its, "retain", unless_changed=True)
            gone = {id_: gone[id_] for id_ in ids}
        removed.update(gone.values())

    if owner is None:
        yield from each((yield from owners(ground)), work, "retain")
    else:
        yield from work(ground.owner(owner))
    return Retention(seen, facts, dict(removed), dry_run)


def read_aged(place: OwnerPlace) -> Flow[tuple[datetime, list[Row]]]:
    """Read all facts of an owner, when they were last found, and what time it is."""
    time_ms: int = yield clock_call(place, "retain")
    ids = yield from all_ids(place, "retain")
    aged: list[Row] = []
    for start in range(0, len(ids), _READ_AT_ONCE):
        part = ids[start : start + _READ_AT_ONCE]
        aged += (yield from read_rows(place, part, operation="retain")).values()
    return moment(time_ms), aged
