"""The search for a window, against a list in Python: exact whatever the estimate was."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.histories import raw_elements, user
from turnstore import History, Window
from turnstore._calls import Call
from turnstore._history import read
from turnstore._keys import Keys
from turnstore._windowing import Density

TURNS = st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=4), max_size=12)
LIMITS = st.none() | st.integers(1, 30)
WINDOWS = st.builds(Window, turns=LIMITS, messages=LIMITS)


def stored(turns: list[list[int]]) -> list[list[list[dict[str, Any]]]]:
    """Make turns of pieces of so many messages; each message says where it stands."""
    return [
        [[user(f"{t}.{p}.{m}") for m in range(count)] for p, count in enumerate(pieces)]
        for t, pieces in enumerate(turns)
    ]


def redis_list(turns: list[list[list[dict[str, Any]]]]) -> list[bytes]:
    raws = raw_elements(turns)
    ids = " ".join(f"id-{no}" for no in range(1, len(raws) + 1))
    total = sum(len(piece) for pieces in turns for piece in pieces)
    head = (
        f"head 1 {len(raws)} {len(turns)} {total} {10 * total} 1 1 0 0 {len(raws)} {ids}".encode()
    )
    return [head, *raws] if raws else []


def run(elements: list[bytes], window: Window, density: Density) -> tuple[History, int]:
    """Run a read on a list in Python; give the history, and how many commands it took."""
    flow = read(Keys(b"turns", b"summary", b"lease", b"queue"), window, density)
    call = next(flow)
    sent = 0
    while True:
        assert isinstance(call, Call)
        start, stop = call.arguments
        assert (stop, isinstance(start, int)) == (-1, True)
        found = elements[int(start) :] if start else elements
        sent += 1
        try:
            call = flow.send(call.read(list(found)))
        except StopIteration as end:
            return end.value, sent


def expected(turns: list[list[list[dict[str, Any]]]], window: Window) -> list[dict[str, Any]]:
    """Say it the slow way: whole turns from the newest backwards, while they fit."""
    kept: list[list[dict[str, Any]]] = []
    for pieces in reversed(turns):
        messages = [message for piece in pieces for message in piece]
        held = sum(map(len, kept))
        too_many = window.turns is not None and len(kept) == window.turns
        too_long = window.messages is not None and held + len(messages) > window.messages
        if kept and (too_many or too_long):
            break
        kept.insert(0, messages)
    return [message for messages in kept for message in messages]


@given(TURNS, WINDOWS, st.floats(0, 50, allow_nan=False))
def test_a_window_is_exact(turns: list[list[int]], window: Window, seen: float) -> None:
    made = stored(turns)
    density = Density()
    density._messages = seen  # whatever other conversations were like
    found, _ = run(redis_list(made), window, density)
    assert found == expected(made, window)
    assert found.has_older == (len(found) < sum(map(sum, turns)))
    assert sum(len(turn.messages) for turn in found.turns) == len(found)
    assert [turn.tokens for turn in found.turns] == [
        10 * len(turn.messages) for turn in found.turns
    ]


@given(st.lists(st.tuples(TURNS, WINDOWS), min_size=1, max_size=6))
def test_what_was_read_before_never_changes_an_answer(reads: list[tuple[Any, Window]]) -> None:
    shared = Density()
    for turns, window in reads:
        made = stored(turns)
        assert run(redis_list(made), window, shared)[0] == expected(made, window)


def test_even_conversations_take_one_command() -> None:
    density = Density()
    elements = redis_list(stored([[2]] * 500))
    counts = [run(elements, Window(messages=100), density)[1] for _ in range(50)]
    assert counts == [1] * 50


def test_the_estimate_reads_little_more_than_the_window() -> None:
    density = Density()
    elements = redis_list(stored([[4]] * 500))
    for _ in range(50):
        run(elements, Window(messages=100), density)
    assert 26 <= density.elements(Window(messages=100)) <= 30


def test_short_turns_after_long_ones_take_few_commands() -> None:
    density = Density()
    for _ in range(50):
        run(redis_list(stored([[20]] * 100)), Window(messages=100), density)
    short = redis_list(stored([[1]] * 500))
    assert run(short, Window(messages=100), density)[1] <= 6
    assert run(short, Window(messages=100), density)[1] == 1, "it learns at once"


def test_a_window_of_turns_asks_for_just_these() -> None:
    assert Density().elements(Window(turns=20)) == 21
    assert Density().elements(Window()) == 0
    assert Density().elements(Window(turns=20, messages=5)) < 21
