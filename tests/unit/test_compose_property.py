"""Whatever is stored and asked: a model is never sent a call without its result, or the reverse."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from hypothesis import event, given
from hypothesis import strategies as st

from tests.unit.histories import asks, assistant, history, result, system, user
from turnstore import History
from turnstore._compose import compose
from turnstore.messages import FORMATS

if TYPE_CHECKING:
    from tests.unit.histories import Json

CHAT = FORMATS["openai.chat"]

# Few ids, so that calls and results meet, collide, repeat and come in every order.
IDS = st.sampled_from(["1", "2", "3"])
PLAIN = st.sampled_from([user("q"), user("p"), assistant("a"), assistant("b")])
CALLS = st.lists(IDS, min_size=1, max_size=2, unique=True).map(lambda ids: asks(*ids))
MESSAGES = PLAIN | CALLS | IDS.map(result)
PIECES = st.lists(MESSAGES, min_size=1, max_size=4)
TURNS = st.lists(PIECES, min_size=1, max_size=3)


@st.composite
def good_turns(draw: st.DrawFn) -> list[list[Json]]:
    """Make a turn as a tool loop makes it, sometimes still open, sometimes in pieces."""
    counter = itertools.count(draw(st.integers(0, 10**6)))
    messages: list[Json] = [user("q")]
    for size in draw(st.lists(st.integers(1, 3), max_size=3)):
        ids = [f"call-{next(counter)}" for _ in range(size)]
        messages.append(asks(*ids))
        messages += map(result, draw(st.permutations(ids)))
    messages.append(assistant("a"))
    if draw(st.booleans()):
        messages = messages[: draw(st.integers(1, len(messages)))]
    cut = draw(st.integers(0, len(messages)))
    return [piece for piece in (messages[:cut], messages[cut:]) if piece]


def pairs_of(messages: list[Json]) -> tuple[set[str], set[str]]:
    """Give the calls that lack a result behind them, and the results that lack a call before."""
    waiting: set[str] = set()
    orphans: set[str] = set()
    for message in messages:
        for answered in CHAT.results(message):
            if answered in waiting:
                waiting.discard(answered)
            else:
                orphans.add(answered)
        waiting.update(CHAT.calls(message))
    return waiting, orphans


def injected(send: list[Json], request: list[Json]) -> list[Json]:
    """Give what was put in from the history: the copy that is no message of the request."""
    mine = {id(message) for message in request}
    return [message for message in send if id(message) not in mine]


@given(st.lists(TURNS | good_turns(), max_size=5), st.lists(MESSAGES, max_size=4), st.booleans())
def test_no_orphan_is_ever_sent(turns: Any, request: list[Json], has_older: bool) -> None:  # noqa: FBT001 - drawn
    past = history(*turns, has_older=has_older)
    request = [dict(message) for message in request]
    try:
        send, new, continued = compose(past, request, CHAT, "raise")
    except ValueError:
        event("refused")
        return
    past_sent = injected(send, request)
    open_calls, orphans = pairs_of(past_sent)
    event("continued" if continued is not None else "new")
    assert not orphans, "a result from the history stands without its call"
    # Calls may be open only in the turn that the request continues, by answering them.
    answered = {id_ for message in new for id_ in CHAT.results(message)}
    if continued is None:
        assert not open_calls
    else:
        assert answered & open_calls
        assert pairs_of(send)[0] >= open_calls - answered


@given(st.lists(TURNS | good_turns(), max_size=5), st.lists(MESSAGES, max_size=4))
def test_what_the_request_brings_is_sent_and_stored_once(turns: Any, request: list[Json]) -> None:
    request = [dict(message) for message in [system("s"), *request]]
    try:
        send, new, _ = compose(history(*turns), request, CHAT, "raise")
    except ValueError:
        return
    assert send[0] is request[0]
    assert send[len(send) - len(new) :] == new
    assert new == request[len(request) - len(new) :], "new is the end of the request"
    assert not any(map(CHAT.is_instruction, new))


@given(st.lists(good_turns(), max_size=6))
def test_finished_turns_are_sent_whole_and_in_order(turns: list[list[list[Json]]]) -> None:
    finished = [
        message
        for pieces in turns
        if not pairs_of([m for piece in pieces for m in piece])[0]
        for piece in pieces
        for message in piece
    ]
    past = history(*turns)
    assert compose(past, [user("new")], CHAT, "raise").send == [*finished, user("new")]


@given(st.lists(good_turns(), min_size=1, max_size=4))
def test_sending_everything_back_changes_nothing(turns: list[list[list[Json]]]) -> None:
    """A caller that keeps the whole transcript, as many libraries do (D2, D5)."""
    past: History = history(*turns)
    if not any(map(CHAT.is_reply, past)):
        return
    try:
        plan = compose(past, [*past, user("new")], CHAT, "raise")
    except ValueError:
        raise AssertionError("it was not recognised") from None
    assert plan.new == [user("new")]
    assert plan.send == compose(past, [user("new")], CHAT, "raise").send
