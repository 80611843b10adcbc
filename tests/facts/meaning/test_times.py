from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstore.facts._learning.times import (
    Interval,
    apart,
    chain,
    interval_of,
    period,
    resolve,
    retract,
)

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
PARIS = ZoneInfo("Europe/Paris")


def year(number: int) -> datetime:
    return datetime(number, 1, 1, tzinfo=UTC)


def held(start: int, end: int | None = None) -> Interval:
    return Interval(year(start), None if end is None else year(end))


# old, new, what becomes of each
TRUTH = [
    pytest.param(held(2018), held(2024), held(2018, 2024), held(2024), id="later news"),
    pytest.param(held(2018), held(2018), held(2018, 2018), held(2018), id="since the same time"),
    pytest.param(held(2018), held(2010), held(2018), held(2010, 2018), id="late news of before"),
    pytest.param(held(2018, 2030), held(2024), held(2018, 2024), held(2024), id="before its end"),
    pytest.param(held(2010, 2015), held(2024), held(2010, 2015), held(2024), id="ended long ago"),
    pytest.param(held(2010, 2015), held(2015), held(2010, 2015), held(2015), id="just ended"),
    pytest.param(held(2018), held(2010, 2015), held(2018), held(2010, 2015), id="ended before it"),
    pytest.param(held(2018), held(2010, 2018), held(2018), held(2010, 2018), id="just before it"),
    pytest.param(held(2018), held(2010, 2020), held(2018), held(2010, 2018), id="reaches into it"),
    pytest.param(
        held(2018), held(2020, 2022), held(2018, 2020), held(2020, 2022), id="for a while"
    ),
    pytest.param(
        held(2018, 2024), held(2020, 2022), held(2018, 2020), held(2020, 2022), id="inside it"
    ),
    pytest.param(
        held(2020, 2022), held(2018, 2024), held(2020, 2022), held(2018, 2020), id="around it"
    ),
    pytest.param(held(2018, 2018), held(2010), held(2018, 2018), held(2010), id="never was true"),
    pytest.param(held(2018), held(2030), held(2018, 2030), held(2030), id="in the future"),
]


@pytest.mark.parametrize("old, new, old_after, new_after", TRUTH)
def test_what_news_does_to_an_older_fact(
    old: Interval, new: Interval, old_after: Interval, new_after: Interval
) -> None:
    assert resolve(old, new) == (old_after, new_after)


@pytest.mark.parametrize("old, new", [(held(2018), held(2024)), (held(2018, 2020), held(2010))])
def test_what_was_never_true_holds_never_and_the_news_as_stated(
    old: Interval, new: Interval
) -> None:
    assert resolve(old, new, never=True) == (Interval(old.start, old.start), new)


@pytest.mark.parametrize(
    "old, since, never, after",
    [
        (held(2018), 2024, False, held(2018, 2024)),
        (held(2018), 2030, False, held(2018, 2030)),
        (held(2018), 2010, False, held(2018, 2018)),
        (held(2018, 2020), 2024, False, held(2018, 2020)),
        (held(2018, 2024), 2020, False, held(2018, 2020)),
        (held(2018), 2024, True, held(2018, 2018)),
    ],
)
def test_what_a_retraction_leaves(
    old: Interval,
    since: int,
    never: bool,  # noqa: FBT001
    after: Interval,
) -> None:
    assert retract(old, year(since), never=never) == after


@pytest.mark.parametrize(
    "given, after",
    [
        ([], []),
        ([held(2018)], [held(2018)]),
        ([held(2018), held(2020), held(2024)], [held(2018, 2020), held(2020, 2024), held(2024)]),
        ([held(2024), held(2018), held(2020)], [held(2024), held(2018, 2020), held(2020, 2024)]),
        ([held(2018), held(2018)], [held(2018), held(2018)]),
        ([held(2018), held(2024), held(2018)], [held(2018, 2024), held(2024), held(2018, 2024)]),
        (
            [held(2018), held(2020, 2020), held(2024)],
            [held(2018, 2024), held(2020, 2020), held(2024)],
        ),
        ([held(2010, 2012), held(2024)], [held(2010, 2012), held(2024)]),
    ],
)
def test_facts_that_came_together_follow_one_another(
    given: list[Interval], after: list[Interval]
) -> None:
    assert chain(given) == after


@pytest.mark.parametrize(
    "text, start, end",
    [
        ("2024", "2024-01-01", "2025-01-01"),
        ("2024-05", "2024-05-01", "2024-06-01"),
        ("2024-12", "2024-12-01", "2025-01-01"),
        ("2024-02-29", "2024-02-29", "2024-03-01"),
        (" 2024-05-03 ", "2024-05-03", "2024-05-04"),
        ("2024-05-03T10:30", "2024-05-03T10:30", "2024-05-03T10:30"),
        ("2024-05-03T10:30:00Z", "2024-05-03T10:30", "2024-05-03T10:30"),
        ("2024-05-03T10:30+02:00", "2024-05-03T08:30", "2024-05-03T08:30"),
        ("2024-05-03 10:30:00.123456", "2024-05-03T10:30:00.123", "2024-05-03T10:30:00.123"),
    ],
)
def test_what_a_date_names(text: str, start: str, end: str) -> None:
    ends = [datetime.fromisoformat(moment).replace(tzinfo=UTC) for moment in (start, end)]
    assert period(text, UTC) == (ends[0], ends[1])


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "soon", "next Tuesday", "03/05/2024", "2024-13", "2023-02-29", "2024-5-3"),
        *(
            "0000",
            "9999",
            "10000",
            "20240503",
            "2024-05-03T25:00",
            "May 2024",
            "\u0662\u0660\u0662\u0664",
        ),
        *("0001-01-01T00:00+14:00", "9999-12-31"),
    ],
)
def test_what_is_no_date_names_nothing(text: str) -> None:
    assert period(text, UTC) is None


def test_a_day_is_one_of_the_users_zone() -> None:
    start, end = period("2024-07-14", PARIS) or (None, None)
    assert start == datetime(2024, 7, 13, 22, tzinfo=UTC)
    assert end == datetime(2024, 7, 14, 22, tzinfo=UTC)
    short, long = period("2024-03-31", PARIS), period("2024-10-27", PARIS)
    assert short is not None
    assert long is not None
    assert short.end is not None
    assert long.end is not None
    assert (short.end - short.start, long.end - long.start) == (
        timedelta(hours=23),
        timedelta(hours=25),
    )


@pytest.mark.parametrize(
    "first, last, expected, whole",
    [
        ("", "", Interval(NOW), True),
        ("2024", "", held(2024), True),
        ("2030", "", held(2030), True),
        ("2019", "2020", held(2019, 2021), True),
        ("2020", "2020", held(2020, 2021), True),
        ("", "2020", held(2020, 2021), True),
        ("", "2030", Interval(NOW, year(2031)), True),
        ("", "2020-01-01T00:00", Interval(year(2020) - timedelta(days=1), year(2020)), True),
        ("2024", "2020", Interval(NOW), False),
        ("2024-05-03T10:00", "2024-05-03T10:00", Interval(NOW), False),
        ("soon", "", Interval(NOW), False),
        ("", "soon", Interval(NOW), False),
        ("soon", "2020", held(2020, 2021), False),
        ("2019", "later", held(2019), False),
    ],
)
def test_when_a_fact_holds_by_what_was_said(
    first: str,
    last: str,
    expected: Interval,
    whole: bool,  # noqa: FBT001
) -> None:
    assert interval_of(first, last, NOW, UTC) == (expected, whole)


# What holds for all intervals.

MOMENTS = st.integers(0, 30).map(lambda day: NOW + timedelta(days=day))


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    start = draw(MOMENTS)
    days = draw(st.none() | st.integers(0, 10))
    return Interval(start, None if days is None else start + timedelta(days=days))


def holds(interval: Interval, moment: datetime) -> bool:
    return interval.start <= moment and (interval.end is None or moment < interval.end)


DAYS = [NOW + timedelta(days=day) for day in range(50)]


@given(intervals(), intervals())
def test_never_do_both_hold_and_no_new_time_is_made_up(old: Interval, new: Interval) -> None:
    old_after, new_after = resolve(old, new)
    assert apart(old_after, new_after)
    assert (old_after.start, new_after.start) == (old.start, new.start)
    for day in DAYS:
        assert holds(old_after, day) <= holds(old, day)
        assert holds(new_after, day) <= holds(new, day)
        # Who began later has the time that both claim.
        if holds(old, day) and holds(new, day):
            assert holds(new_after, day) == (new.start >= old.start)


@given(intervals(), intervals())
def test_intervals_are_apart_where_no_day_is_in_both(one: Interval, other: Interval) -> None:
    assert apart(one, other) == apart(other, one)
    assert apart(one, other) == (not any(holds(one, day) and holds(other, day) for day in DAYS))


@given(st.permutations([2010, 2014, 2018, 2022]))
def test_open_facts_give_one_history_in_whatever_order_they_come(years: list[int]) -> None:
    known: dict[int, Interval] = {}
    for new in years:
        interval = held(new)
        for old, before in known.items():
            known[old], interval = resolve(before, interval)
        known[new] = interval
    ends = {2010: 2014, 2014: 2018, 2018: 2022, 2022: None}
    assert known == {start: held(start, end) for start, end in ends.items()}


@given(st.lists(intervals(), max_size=6))
def test_in_a_chain_those_hold_at_a_time_that_started_last(given: list[Interval]) -> None:
    after = chain(given)
    assert [interval.start for interval in after] == [interval.start for interval in given]
    for day in DAYS:
        assert len({interval.start for interval in after if holds(interval, day)}) <= 1
        for before, now in zip(given, after, strict=True):
            assert holds(now, day) <= holds(before, day)


@given(st.text(max_size=30), st.sampled_from([UTC, PARIS, timezone(timedelta(hours=-11))]))
def test_any_text_is_a_period_or_none(text: str, zone: ZoneInfo) -> None:
    found = period(text, zone)
    assert found is None or (found.end is not None and found.start <= found.end)


DATES = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 30)).flatmap(  # noqa: DTZ001 - any
    lambda moment: st.sampled_from(
        [f"{moment:%Y-%m-%d}".zfill(10), moment.isoformat(), f"{moment.year:04}"]
    )
)


@given(DATES | st.text(max_size=12), DATES | st.text(max_size=12))
def test_any_two_dates_make_an_interval_that_is_not_empty(first: str, last: str) -> None:
    interval, _ = interval_of(first, last, NOW, UTC)
    assert interval.end is None or interval.start < interval.end
