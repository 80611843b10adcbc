"""Dates that a question names, to find what was said then: English, and dates in figures."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

__all__ = ["Named", "named"]

_DAY_MS = 86_400_000
_FADES_IN_DAYS = 7.0

_MONTH_NAMES = """
january february march april may june july august september october november december
jan feb mar apr may jun jul aug sep oct nov dec
"""
_MONTHS = {name: at % 12 + 1 for at, name in enumerate(_MONTH_NAMES.split())} | {"sept": 9}
_MONTH = rf"(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\b\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"

# The first that fits a piece of text takes it. A month alone is one only behind such a word:
# "may" and "march" are verbs, too.
_DATES = [
    re.compile(pattern, re.IGNORECASE | re.ASCII)
    for pattern in (
        rf"\b{_YEAR}-(?P<month>\d\d)(?:-(?P<day>\d\d))?\b",
        rf"\b(?P<day>\d\d?)\.(?P<month>\d\d?)\.{_YEAR}\b",
        rf"\b{_MONTH}\s+{_DAY}(?:,?\s+{_YEAR})?\b",
        rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?",
        rf"\b{_MONTH},?\s+(?:of\s+)?{_YEAR}\b",
        rf"\b(?:in|during|by|since|until|early|late|mid|last|this|before|after)\s+{_MONTH}(?!\s+\d)",
        rf"\b{_YEAR}\b",
    )
]
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_AGO = re.compile(
    rf"\b(?P<count>\d{{1,3}}|{'|'.join(_NUMBERS)})\s+(?P<unit>day|week|month|year)s?\s+ago\b",
    re.IGNORECASE | re.ASCII,
)
_RELATIVE = re.compile(
    r"\b(?P<which>last|this)\s+(?P<unit>week|month|year)\b|\b(?P<day>today|yesterday|last night)\b",
    re.IGNORECASE | re.ASCII,
)


class Named(NamedTuple):
    """A stretch of time that a question names.

    Attributes:
        start_ms: Since when, in milliseconds since 1970.
        end_ms: Until when, exclusive.
    """

    start_ms: int
    end_ms: int

    def closeness(self, time_ms: int) -> float:
        """Say how near a time is: 1 within the stretch, less the longer after it, 0 before it.

        What happened is told when it happens, or in the days after. A day before counts as
        within: the question's days begin elsewhere than UTC's.
        """
        if time_ms < self.start_ms - _DAY_MS:
            return 0.0
        return math.exp(-max(time_ms - self.end_ms, 0) / (_FADES_IN_DAYS * _DAY_MS))


def named(text: str, now_ms: int) -> list[Named]:
    """Find the stretches of time that a text names.

    A day or a month without a year is the one of this year and of each of the ten before.

    Args:
        text: A question.
        now_ms: What "yesterday" is reckoned from.
    """
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return [
        Named(_ms(start), _ms(end))
        for start, end in (*_absolute(text, now.year), *_relative(text, today))
    ]


def _absolute(text: str, this_year: int) -> Iterator[tuple[datetime, datetime]]:
    for pattern in _DATES:
        for found in pattern.finditer(text):
            parts = found.groupdict()
            month = (parts.get("month") or "").lower()
            number = int(month) if month.isdigit() else _MONTHS.get(month, 0)
            day = int(parts.get("day") or 0)
            year = parts.get("year")
            years = [int(year)] if year else range(this_year - 10, this_year + 1)
            for one in years:
                yield from _stretch(one, number, day)
        text = pattern.sub(" ", text)


def _stretch(year: int, month: int, day: int) -> Iterator[tuple[datetime, datetime]]:
    try:
        start = datetime(year, month or 1, day or 1, tzinfo=UTC)
    except ValueError:  # the 31st of June
        return
    yield start, start + timedelta(days=1) if day else _later(start, 1 if month else 12)


def _relative(text: str, today: datetime) -> Iterator[tuple[datetime, datetime]]:
    for found in _AGO.finditer(text):
        said = found["count"].lower()
        count = _NUMBERS.get(said) or int(said)
        yield from _ago(count, found["unit"].lower(), today)
    for found in _RELATIVE.finditer(text):
        if found["day"]:
            start = today - timedelta(days=found["day"].lower() != "today")
            yield start, start + timedelta(days=1)
            continue
        back = 1 if found["which"].lower() == "last" else 0
        unit = found["unit"].lower()
        if unit == "week":
            start = today - timedelta(days=today.weekday() + 7 * back)
            yield start, start + timedelta(days=7)
        else:
            months = 1 if unit == "month" else 12
            first = today.replace(day=1) if months == 1 else today.replace(month=1, day=1)
            start = _later(first, -months * back)
            yield start, _later(start, months)


def _ago(count: int, unit: str, today: datetime) -> Iterator[tuple[datetime, datetime]]:
    if unit == "day":
        start = today - timedelta(days=count)
        yield start, start + timedelta(days=1)
    elif unit == "week":
        middle = today - timedelta(days=7 * count)
        yield middle - timedelta(days=3), middle + timedelta(days=4)
    else:
        months = 1 if unit == "month" else 12
        start = _later(today.replace(day=1), -months * count)
        yield start, _later(start, months)


def _later(first: datetime, months: int) -> datetime:
    """Go on by months from the first day of one."""
    count = max(12 * first.year + first.month - 1 + months, 12)
    year, month = divmod(count, 12)
    return first.replace(year=min(year, 9999), month=month + 1)


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
