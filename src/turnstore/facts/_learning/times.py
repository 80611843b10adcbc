"""When facts hold: dates as they are stated, and what later news does to older facts.

Nothing here asks a model or the clock. An interval holds from its start up to, and not
including, its end; one that ends where it starts holds never.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

__all__ = ["Interval", "apart", "chain", "interval_of", "period", "resolve", "retract"]

_DAY = timedelta(days=1)
_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?", re.ASCII)


class Interval(NamedTuple):
    """A stretch of time in the world.

    Attributes:
        start: Since when.
        end: Until when, exclusive; None where no end is known.
    """

    start: datetime
    end: datetime | None = None


class Resolved(NamedTuple):
    """What becomes of two facts, of which the new one takes the place of the old one."""

    old: Interval
    new: Interval


def period(text: str, zone: tzinfo) -> Interval | None:
    """Give the stretch of time that a date names; None where it is no date.

    Args:
        text: `2024`, `2024-05`, `2024-05-03`, or a date with a time of day in ISO 8601.
        zone: Where it holds, if it names no zone itself.

    Returns:
        The year, the month or the day. A time of day starts and ends at once.
    """
    text = text.strip()
    date = _DATE.fullmatch(text)
    try:
        if date is None:
            moment = _utc(datetime.fromisoformat(text), zone)
            return Interval(moment, moment) if ":" in text else None
        year, month, day = (int(part) if part else 0 for part in date.groups())
        start = datetime(year, month or 1, day or 1)  # noqa: DTZ001 - in `zone`; see `_utc`
        if day:
            after = start + _DAY
        elif month:
            after = datetime(year + month // 12, month % 12 + 1, 1)  # noqa: DTZ001 - likewise
        else:
            after = datetime(year + 1, 1, 1)  # noqa: DTZ001 - likewise
        return Interval(_utc(start, zone), _utc(after, zone))
    except (ValueError, OverflowError):  # no such day, or beyond what datetime can say
        return None


def interval_of(
    stated_from: str, stated_to: str, observed: datetime, zone: tzinfo
) -> tuple[Interval, bool]:
    """Find out when a fact holds, from the dates that were stated of it.

    Args:
        stated_from: Since when; empty where nothing was said.
        stated_to: Until when, a day, month or year inclusive; empty likewise.
        observed: When it was said. It holds since then, unless a date says otherwise.
        zone: Where the dates hold.

    Returns:
        The interval, and whether all that was stated went into it. Dates that cannot be
        read are left out, and so are both where the end is not after the start.
    """
    first = period(stated_from, zone) if stated_from else None
    last = period(stated_to, zone) if stated_to else None
    whole = (first is not None or not stated_from) and (last is not None or not stated_to)
    if last is None:
        return Interval(observed if first is None else first.start), whole
    end = last.start if last.end is None else last.end
    if first is None:
        # It held in that time; since when, nobody said.
        since = last.start if last.start < end else end - _DAY
        return Interval(min(observed, since), end), whole
    if end <= first.start:
        return Interval(observed), False
    return Interval(first.start, end), whole


def apart(one: Interval, other: Interval) -> bool:
    """Tell whether two intervals have no moment in common."""
    return (
        _is_empty(one)
        or _is_empty(other)
        or (one.end is not None and one.end <= other.start)
        or (other.end is not None and other.end <= one.start)
    )


def resolve(old: Interval, new: Interval, *, never: bool = False) -> Resolved:
    """Say when two facts hold, of which the new one takes the place of the old one.

    - Where they have no moment in common, both stay as they are.
    - News of what began later ends the old fact where the new one starts.
    - News of what began earlier, come late, ends where the old fact starts.
    - Where the old fact was never true, it holds never, and the new one as stated.

    Args:
        old: When the old fact holds by what was known.
        new: When the new one does.
        never: Whether the news is that the old one was wrong from the start.
    """
    if never:
        return Resolved(Interval(old.start, old.start), new)
    if apart(old, new):
        return Resolved(old, new)
    if new.start < old.start:
        return Resolved(old, Interval(new.start, old.start))
    return Resolved(Interval(old.start, new.start), new)


def retract(old: Interval, since: datetime, *, never: bool = False) -> Interval:
    """Say when a fact holds that is not true any more since some time, or never was."""
    end = old.start if never else max(old.start, since)
    return Interval(old.start, end if old.end is None else min(old.end, end))


def chain(intervals: Sequence[Interval]) -> list[Interval]:
    """Say when facts hold that came together, and take the place of one another.

    Each ends where the next later one starts, if it has not ended before. Those that start
    at once all stay: nothing says which of them is right.

    Returns:
        The intervals in the order in which they were given.
    """
    return [
        min(
            (
                Interval(interval.start, later.start)
                for later in intervals
                if later.start > interval.start and not apart(interval, later)
            ),
            default=interval,
        )
        for interval in intervals
    ]


def _is_empty(interval: Interval) -> bool:
    return interval.end is not None and interval.end <= interval.start


def _utc(moment: datetime, zone: tzinfo) -> datetime:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    moment = moment.astimezone(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
