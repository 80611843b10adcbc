"""What a search reads of a stored fact says the same as the fact."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstore import CorruptTurnError, FormatError
from turnstore.facts import Fact
from turnstore.facts._storing.heads import head
from turnstore.facts._storing.record import decode, encode, stamp, times_of

START = datetime(2026, 5, 1, tzinfo=UTC)
TIMES = st.integers(-5, 5).map(lambda days: START + timedelta(days=days))
FACTS = st.builds(
    Fact,
    id=st.just("0" * 12),
    text=st.text(min_size=1),
    kind=st.sampled_from(["fact", "exchange"]),
    sources=st.lists(st.sampled_from(["t1", "t2"]), unique=True).map(tuple),
    created=TIMES,
    observed=TIMES,
    valid_from=TIMES,
    valid_to=st.none() | TIMES,
    expired=st.none() | TIMES,
    valid_to_before=st.none() | TIMES,
    pinned=st.booleans(),
)


@given(FACTS, TIMES, st.none() | TIMES, st.sampled_from(["", "d" * 32]))
def test_it_says_the_same_as_the_fact(
    fact: Fact, as_of: datetime, known_at: datetime | None, digest: str
) -> None:
    raw = encode(fact, digest=digest, norm="n" * 24)
    read, record = head("0" * 12, raw), decode("0" * 12, raw)
    stored = record.fact
    assert (read.text, read.kind, read.pinned) == (stored.text, stored.kind, stored.pinned)
    assert (read.digest, tuple(read.sources)) == (record.digest, stored.sources)
    assert (read.created, read.start, read.to, read.expired, read.before) == times_of(stored)
    assert read.observed == stamp(stored.observed)
    known_ms = None if known_at is None else stamp(known_at)
    assert read.is_valid(stamp(as_of), known_ms) == stored.is_valid(as_of, known_at)


@pytest.mark.parametrize("raw", [b"", b"1 2", b"1 1 a b c d e f\n{}", b"1 \xff\n{}"])
def test_what_is_none_of_ours_is_refused(raw: bytes) -> None:
    with pytest.raises(CorruptTurnError):
        head("0" * 12, raw)


def test_what_a_later_version_has_written_is_refused() -> None:
    with pytest.raises(FormatError, match="format 2"):
        head("0" * 12, b"2 x\n{}")
