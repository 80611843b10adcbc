"""A rewind between whose two calls somebody else appends, step by step and without a server."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.histories import raw_elements, user
from turnstore import ConflictError, Turn
from turnstore._calls import Call, Flow
from turnstore._history import _REWIND_TRIES, rewind
from turnstore._keys import Keys

KEYS = Keys(b"turns", b"summary", b"lease", b"queue")


def page(count: int) -> list[Any]:
    """Answer as page.lua does for the newest of `count` turns."""
    raws = raw_elements([[[user(f"{number}")]] for number in range(1, count + 1)])
    previous = f"{count - 1}-id-{count - 1}".encode() if count > 1 else b"0"
    return [f"{count}-id-{count}".encode(), previous, 10 * (count - 1), raws[-1]]


def send(flow: Flow[list[Turn]], call: Call, reply: Any) -> Call:
    step = flow.send(call.read(reply))
    assert isinstance(step, Call)
    return step


def begin(flow: Flow[list[Turn]]) -> Call:
    step = next(flow)
    assert isinstance(step, Call)
    return step


def test_without_an_expected_revision_it_takes_whichever_is_the_newest() -> None:
    flow = rewind(KEYS, 1, None)
    cut = send(flow, begin(flow), page(2))
    assert cut.arguments == ("2-id-2", "1-id-1")
    again = flow.throw(ConflictError("somebody appended"))
    assert isinstance(again, Call)
    cut = send(flow, again, page(3))
    assert cut.arguments == ("3-id-3", "2-id-2")
    with pytest.raises(StopIteration) as end:
        flow.send(1)
    assert [turn.number for turn in end.value.value] == [3]


def test_with_one_it_gives_up_at_once() -> None:
    flow = rewind(KEYS, 1, "2-id-2")
    send(flow, begin(flow), page(2))
    with pytest.raises(ConflictError, match="somebody appended"):
        flow.throw(ConflictError("somebody appended"))


def test_it_gives_up_where_appends_do_not_pause() -> None:
    flow = rewind(KEYS, 1, None)
    call = begin(flow)
    for attempt in range(1, _REWIND_TRIES):
        send(flow, call, page(attempt))
        step = flow.throw(ConflictError("somebody appended"))
        assert isinstance(step, Call)
        call = step
    send(flow, call, page(9))
    with pytest.raises(ConflictError, match="somebody appended"):
        flow.throw(ConflictError("somebody appended"))


def test_another_error_is_not_tried_again() -> None:
    flow = rewind(KEYS, 1, None)
    send(flow, begin(flow), page(2))
    with pytest.raises(ConnectionError):
        flow.throw(ConnectionError())
