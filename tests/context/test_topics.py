"""Where a conversation turns to another topic: by what is said, or by the time between."""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.context.flows import Recorder, drive, history_of, said
from tests.servers.found import needs
from tests.unit.histories import asks, result, user
from turnstore.context import Boundary, Topics
from turnstore.context.topics import begins, cosine, meta_of, since_boundary, without

if TYPE_CHECKING:
    from turnstore import History

SAME, OTHER, NEAR = [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]
LONG = "how do I sail a boat"
NEXT = "what is the best pizza dough"


def found(topics: Topics, history: History, question: str = NEXT) -> Boundary | None:
    boundary: Boundary | None = drive(begins(topics, history.turns, question, Counter()))
    return boundary


class Now:
    """A clock that stands still."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


def embed(*vectors: Any) -> Recorder:
    return Recorder(list(vectors))


def test_another_topic_begins_below_the_threshold() -> None:
    model = embed(SAME, OTHER)
    assert found(Topics(model), said("boats", LONG)) == Boundary((1, 2), 0.0, "similarity")
    assert model.given == [[LONG, NEXT]]
    assert found(Topics(embed(SAME, NEAR)), said(LONG)) is None
    similarity = cosine(SAME, NEAR)
    assert found(Topics(embed(SAME, NEAR), threshold=similarity), said(LONG)) is None
    assert found(Topics(embed(SAME, NEAR), threshold=similarity + 0.01), said(LONG)) is not None


def test_the_first_message_opens_nothing() -> None:
    model = embed(SAME, OTHER)
    assert found(Topics(model, idle=timedelta(1)), said()) is None
    assert model.given == []


@pytest.mark.parametrize("short", ["and then?", "Thank you so", "yes", "请告诉我更多", "", "  ?!"])
def test_a_short_message_neither_opens_a_topic_nor_is_compared_with(short: str) -> None:
    model = embed(SAME, OTHER)
    assert found(Topics(model), said(LONG), short) is None
    assert model.given == []
    assert found(Topics(model), said(LONG, short)) == Boundary((1, 2), 0.0, "similarity")
    assert model.given == [[LONG, NEXT]]
    assert found(Topics(model), said(short)) is None


def test_words_without_blanks_between_them_are_counted_too() -> None:
    assert found(Topics(embed(SAME, OTHER)), said(LONG), "怎样才能做出最好吃的披萨面团") is not None


def test_results_of_tools_are_no_question() -> None:
    turn = [user(LONG), asks("1"), result("1 2 3 4 5 6"), result("1")]
    model = embed(SAME, SAME)
    found(Topics(model), history_of([[turn]], {}))
    assert model.given == [[LONG, NEXT]]


def test_time_between_opens_a_topic_too_even_with_a_short_message() -> None:
    history = said(LONG, NEXT)
    newest = history.turns[-1].time
    model = embed(SAME, SAME)
    for seconds, opens in ((3599, False), (3600, True), (-5, False)):
        now = newest + timedelta(seconds=seconds)
        topics = Topics(model, idle=timedelta(hours=1), clock=Now(now))
        expected = Boundary((1, 2), None, "idle") if opens else None
        assert found(topics, history, "and?") == expected
    assert model.given == []
    alone = Topics(idle=timedelta(hours=1), clock=Now(newest + timedelta(hours=2)))
    assert found(alone, history) == Boundary((1, 2), None, "idle")
    assert found(Topics(idle=timedelta(days=999_999)), history) is None


@pytest.mark.parametrize(
    "vectors",
    [
        RuntimeError("down"),
        TimeoutError(),
        None,
        [],
        [SAME],
        [SAME, OTHER, NEAR],
        [SAME, [1.0]],
        [SAME, [0.0, 0.0]],
        [SAME, [math.nan, 1.0]],
        [SAME, [math.inf, 1.0]],
        [SAME, []],
        [[], []],
        [SAME, None],
        [SAME, ["a", "b"]],
        [[SAME], [OTHER]],
        7,
    ],
)
def test_vectors_that_cannot_be_compared_leave_the_topic(
    vectors: Any, caplog: pytest.LogCaptureFixture
) -> None:
    counts = Counter[str]()
    flow = begins(Topics(Recorder(vectors)), said(LONG).turns, NEXT, counts)
    assert drive(flow) is None
    assert counts == {"topics": 1}
    assert "topics failed" in caplog.text


def test_a_clock_without_timezone_leaves_the_topic() -> None:
    counts = Counter[str]()
    topics = Topics(idle=timedelta(1), clock=datetime.now)
    assert drive(begins(topics, said(LONG).turns, NEXT, counts)) is None
    assert counts == {"topics": 1}


@given(
    st.lists(
        st.tuples(*[st.floats(-1e300, 1e300, allow_subnormal=False)] * 2), min_size=1, max_size=9
    ),
    st.floats(1e-3, 1e3),
)
def test_cosine(pairs: list[tuple[float, float]], scale: float) -> None:
    one, other = [a for a, _ in pairs], [b for _, b in pairs]
    if not (0 < math.hypot(*one) < math.inf and 0 < math.hypot(*other) < math.inf):
        with pytest.raises(ValueError, match="no direction"):
            cosine(one, other)
        return
    similarity = cosine(one, other)
    assert -1 <= similarity <= 1
    assert similarity == cosine(other, one)
    assert math.isclose(cosine(one, one), 1)
    assert math.isclose(cosine(one, [-a for a in one]), -1)
    scaled = [b * scale for b in other]
    if 1e-300 < math.hypot(*other) < 1e297:
        assert math.isclose(cosine(one, scaled), similarity, abs_tol=1e-9)


def test_arrays_are_vectors_too() -> None:
    numpy = needs("numpy")
    vectors = numpy.array([SAME, NEAR], dtype="float32")
    assert math.isclose(cosine(*vectors), math.sqrt(0.5), rel_tol=1e-6)
    boundary = found(Topics(Recorder(numpy.array([SAME, OTHER]))), said(LONG))
    assert boundary is not None
    assert type(boundary.similarity) is float


# -- the hook ----------------------------------------------------------------------------


def test_the_hook_is_told_and_may_refuse() -> None:
    hook = Recorder(None, "yes", False)  # noqa: FBT003 - an answer
    topics = Topics(embed(SAME, OTHER), on_boundary=hook)
    boundary = Boundary((1,), 0.0, "similarity")
    assert found(topics, said(LONG)) == boundary
    assert found(topics, said(LONG)) == boundary
    assert found(topics, said(LONG)) is None
    assert hook.given == [boundary] * 3


def test_a_hook_that_fails_does_not_keep_the_topic_open(caplog: pytest.LogCaptureFixture) -> None:
    counts = Counter[str]()
    topics = Topics(embed(SAME, OTHER), on_boundary=Recorder(RuntimeError("down")))
    assert drive(begins(topics, said(LONG).turns, NEXT, counts)) is not None
    assert counts == {"on_boundary": 1}
    assert "on_boundary failed" in caplog.text


# -- what is sent ------------------------------------------------------------------------


def test_only_turns_from_the_newest_mark_on_are_shown() -> None:
    history = said("a", "b", "c", "d", m2={"boundary": True}, m3={"boundary": True})
    shown = since_boundary(history)
    assert [turn.number for turn in shown.turns] == [3, 4]
    assert [turn.tokens for turn in shown.turns] == [turn.tokens for turn in history.turns[2:]]
    assert (shown.has_older, shown.revision) == (True, history.revision)
    assert shown == history[4:]


def test_a_turn_in_pieces_is_shown_whole_whichever_is_marked() -> None:
    history = history_of(
        [[[user("a")]], [[user("b")], [user("c")]]], {"m2": {"boundary": True, "similarity": 0.1}}
    )
    assert [turn.number for turn in since_boundary(history).turns] == [2]
    assert since_boundary(history) == [user("b"), user("c")]


def test_without_marks_the_history_is_as_it_was() -> None:
    for history in (said(), said("a", "b"), said("a", "b", m1={"boundary": True})):
        assert since_boundary(history) is history


def test_a_fresh_window_keeps_the_revision() -> None:
    history = said("a", "b")
    fresh = without(history)
    assert (fresh, fresh.revision, fresh.has_older) == ([], history.revision, True)
    assert without(said()).has_older is False


def test_the_mark_says_how_similar_it_was() -> None:
    assert meta_of(Boundary((1,), 0.123456, "similarity")) == {
        "boundary": True,
        "similarity": 0.1235,
    }
    assert meta_of(Boundary((1,), None, "idle")) == {"boundary": True}


@pytest.mark.parametrize(
    "options, error, text",
    [
        ({}, ValueError, "finds no boundary"),
        ({"embed": 7}, TypeError, "is a function"),
        ({"embed": print, "on_boundary": 7}, TypeError, "is a function"),
        ({"embed": print, "threshold": math.nan}, ValueError, "from -1 to 1"),
        ({"embed": print, "threshold": 1.5}, ValueError, "from -1 to 1"),
        ({"embed": print, "threshold": "high"}, TypeError, "give a number"),
        ({"embed": print, "min_words": 0}, ValueError, "at least 1 word"),
        ({"embed": print, "min_words": 2.5}, TypeError, "give a number"),
        ({"idle": 60}, TypeError, "give a timedelta"),
        ({"idle": timedelta(0)}, ValueError, "above 0"),
        ({"embed": print, "deadline": 0}, ValueError, "above 0"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Topics(**options)
