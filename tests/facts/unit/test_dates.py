from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstore.facts._scoring.dates import Named, named

DAY = 24 * 3600 * 1000


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


NOW = ms("2024-03-20T15:00")  # a Wednesday


@pytest.mark.parametrize(
    "text, start, end",
    [
        ("What did I do on 7 May 2023?", "2023-05-07", "2023-05-08"),
        ("on May 7th, 2023", "2023-05-07", "2023-05-08"),
        ("the 7th of may 2023", "2023-05-07", "2023-05-08"),
        ("2023-05-07", "2023-05-07", "2023-05-08"),
        ("7.5.2023", "2023-05-07", "2023-05-08"),
        ("since 2023-05", "2023-05-01", "2023-06-01"),
        ("in Dec. 2022", "2022-12-01", "2023-01-01"),
        ("in 2021?", "2021-01-01", "2022-01-01"),
        ("today", "2024-03-20", "2024-03-21"),
        ("yesterday", "2024-03-19", "2024-03-20"),
        ("last night", "2024-03-19", "2024-03-20"),
        ("3 days ago", "2024-03-17", "2024-03-18"),
        ("two weeks ago", "2024-03-03", "2024-03-10"),
        ("a month ago", "2024-02-01", "2024-03-01"),
        ("four months ago", "2023-11-01", "2023-12-01"),
        ("last week", "2024-03-11", "2024-03-18"),
        ("this month", "2024-03-01", "2024-04-01"),
        ("Last year", "2023-01-01", "2024-01-01"),
    ],
)
def test_a_time_that_a_question_names(text: str, start: str, end: str) -> None:
    assert named(text, NOW) == [Named(ms(start), ms(end))]


def test_a_day_without_a_year_is_that_of_each_of_the_last_years() -> None:
    found = named("in June", NOW)
    assert len(found) == 11
    assert {found[-1], found[0]} == {
        Named(ms("2024-06-01"), ms("2024-07-01")),
        Named(ms("2014-06-01"), ms("2014-07-01")),
    }
    assert len(named("on 3 May", NOW)) == 11
    assert len(named("on 29 February", NOW)) == 3


def test_several_times_are_found() -> None:
    assert len(named("between 11 August 2023 and 2023-09-02, or last week", NOW)) == 3


@pytest.mark.parametrize(
    "text", ["", "May I march?", "31 June 2023", "2023-13-01", "room 2101", "call 20235", "99.1"]
)
def test_what_is_no_date(text: str) -> None:
    assert named(text, NOW) == []


def test_what_is_told_soon_after_is_near() -> None:
    date = Named(ms("2023-05-07"), ms("2023-05-08"))
    assert date.closeness(ms("2023-05-07T12:00")) == 1
    assert date.closeness(ms("2023-05-06T12:00")) == 1
    assert date.closeness(ms("2023-05-05")) == 0
    later = [date.closeness(date.end_ms + days * DAY) for days in (0, 1, 7, 60)]
    assert later == sorted(later, reverse=True)
    assert later[2] == pytest.approx(0.3679, abs=1e-3)
    assert later[-1] < 0.001


@given(st.text(), st.integers(0, ms("2999-01-01")))
def test_any_text_is_read(text: str, now_ms: int) -> None:
    assert all(one.start_ms < one.end_ms for one in named(text, now_ms))


@given(
    st.integers(0, 999),
    st.sampled_from(["day", "weeks", "month", "years"]),
    st.integers(0, ms("2999-01-01")),
)
def test_any_time_ago_is_a_stretch(count: int, unit: str, now_ms: int) -> None:
    (found,) = named(f"{count} {unit} ago", now_ms)
    assert 0 < found.end_ms - found.start_ms <= 366 * DAY
