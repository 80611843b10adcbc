"""Windows over random conversations, without a server, against a slow model of them."""

from __future__ import annotations

import logging
import math
from logging.handlers import BufferingHandler
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.context.talks import SIZES, Talk, read, size, talk, turn, windows
from tests.unit.histories import Json, asks, assistant, result, user
from turnstore import Window
from turnstore._windowing import Density
from turnstore.context import TokenCounter

if TYPE_CHECKING:
    from turnstore import History

randoms = st.integers(0, 2**32).map(Random)
shares = st.sampled_from([0.001, 0.1, 0.25, 0.3, 0.5, 0.99, 1, 1.0])


def numbers(history: History) -> list[int]:
    return [turn.number for turn in history.turns]


@given(randoms, st.data())
def test_a_window_is_what_the_slow_model_says(random: Random, data: st.DataObject) -> None:
    turns = talk(random, 30)
    held = Talk(turns, trimmed=data.draw(st.integers(0, len(turns) - 1)))
    raws, density = held.stored(), Density()
    for window in windows(random, 32):
        history, _ = read(raws, window, density)
        expected = held.window(window)
        assert numbers(history) == expected, window
        assert list(history) == held.messages(expected), "unchanged, in order, whole turns"
        assert history.has_older == (expected[0] > held.trimmed + 1)
        assert history.tokens_before == sum(map(size, held.messages([*range(1, expected[0])])))


@given(randoms)
def test_a_window_keeps_to_its_budget_save_for_the_newest_turn_alone(random: Random) -> None:
    held = Talk(talk(random, 30))
    raws, density = held.stored(), Density()
    for window in windows(random, 32):
        history, _ = read(raws, window, density)
        assert history.turns[-1].number == len(held.turns), "the newest is there"
        if len(history.turns) > 1:
            assert len(history.turns) <= (window.turns or 100)
            assert len(history) <= (window.messages or 10_000)
            assert sum(map(size, history)) <= (window.tokens or 10**9)


@given(randoms)
def test_no_call_is_parted_from_its_result(random: Random) -> None:
    held = Talk(talk(random, 30))
    for window in windows(random, 16):
        history, _ = read(held.stored(), window)
        calls = {c["id"] for m in history for c in m.get("tool_calls", ())}
        assert calls == {m["tool_call_id"] for m in history if m["role"] == "tool"}


@settings(max_examples=30)
@given(randoms)
def test_a_step_never_holds_more_and_drops_at_most_a_block_more(random: Random) -> None:
    held = Talk(talk(random, 30))
    for plain in windows(random, 8):
        for step in (0.25, 0.5, 1):
            window = Window(plain.turns, plain.messages, plain.tokens, step)
            start, stepped = held.window(plain)[0], held.window(window)[0]
            assert numbers(read(held.stored(), window)[0])[0] == stepped >= start


# The promise of `step`


@given(st.integers(1, 10**6), shares, st.integers(0, 10**9))
def test_what_is_dropped_stays_while_the_total_grows_by_a_block(
    limit: int, step: float, total: int
) -> None:
    window = Window(tokens=limit, step=step)
    block = max(1, int(limit * step))
    dropped = window.dropped(total, limit)
    assert 0 <= total - dropped <= limit or dropped == 0
    assert dropped % block == 0
    assert dropped - Window().dropped(total, limit) < block
    if dropped:
        first, last = dropped + limit - block + 1, dropped + limit
        assert {window.dropped(t, limit) for t in (first, total, last)} == {dropped}
        assert window.dropped(last + 1, limit) == dropped + block
        assert window.dropped(first - 1, limit) == dropped - block


@settings(max_examples=30)
@given(randoms, st.sampled_from(["turns", "messages", "tokens"]), st.sampled_from([0.25, 0.5, 1.0]))
def test_the_start_moves_once_in_a_block_and_else_the_prefix_stays(
    random: Random, kind: str, step: float
) -> None:
    limit = {"turns": 8, "messages": 24, "tokens": 1200}[kind]
    window = Window(**{kind: limit}, step=step)
    turns = [turn(random, number) for number in range(1, 41)]
    starts: list[int] = []
    sent: list[object] = []
    moved_at: list[int] = []
    total = 0
    held = Talk([])
    for count in range(1, len(turns) + 1):
        held = Talk(turns[:count])
        history, _ = read(held.stored(), window)
        newest = held.messages([count])
        total += {"turns": 1, "messages": len(newest), "tokens": sum(map(size, newest))}[kind]
        starts.append(numbers(history)[0])
        if len(starts) > 1 and starts[-1] == starts[-2]:
            assert list(history)[: len(sent)] == sent, "what was sent is sent again, first"
        elif len(starts) > 1:
            moved_at.append(total)
        sent = list(history)
    assert starts == sorted(starts), "it never goes back"
    block = int(limit * step)
    biggest = max(
        {"turns": 1, "messages": len(m), "tokens": sum(map(size, m))}[kind]
        for m in (held.messages([n]) for n in range(1, 41))
    )
    if biggest <= min(block, limit - block):  # otherwise the newest turn is sometimes all there is
        # Between one move and the next but one, the total has grown by more than a block.
        assert all(c - a > block for a, c in zip(moved_at, moved_at[2:], strict=False))
        assert len(moved_at) <= total // block + 1


@settings(max_examples=30)
@given(randoms, st.integers(1, 20))
def test_the_start_comes_from_the_totals_alone(random: Random, trimmed: int) -> None:
    """Other processes, which read other things before, and lists that were trimmed: all agree."""
    turns = talk(random, 30)
    for window in windows(random, 16):
        start = Talk(turns).window(window)[0]
        whole = numbers(read(Talk(turns).stored(), window)[0])[0]
        held = Talk(turns, min(trimmed, len(turns) - 1))
        shorter = numbers(read(held.stored(), window)[0])[0]
        assert (whole, shorter) == (start, max(start, held.trimmed + 1))
        undone = Talk(turns[:-1])
        if undone.turns:
            again = [*undone.turns, turns[-1]]
            assert numbers(read(undone.stored(), window)[0]) == undone.window(window)
            assert numbers(read(Talk(again).stored(), window)[0])[0] == start


# How many commands a read takes


@given(randoms)
def test_the_elements_read_double_until_they_suffice(random: Random) -> None:
    """However uneven the turns are, and whatever was read before."""
    held, density = Talk(talk(random, 60)), Density()
    raws = held.stored()
    for window in windows(random, 32):
        assert read(raws, window, density)[1] <= 1 + math.ceil(math.log2(len(raws)))


@pytest.mark.parametrize(
    "window", [Window(tokens=2000), Window(tokens=2000, step=0.25), Window(messages=50), Window(20)]
)
def test_a_growing_conversation_is_read_with_one_command_and_seldom_two(window: Window) -> None:
    random = Random(7)
    turns = [
        [[user("q " * random.randint(5, 60)), user("a " * random.randint(20, 200))]]
        for _ in range(300)
    ]
    density = Density()
    counts = [read(Talk(turns[:n]).stored(), window, density)[1] for n in range(1, 301)]
    assert max(counts) <= 2
    assert counts.count(2) <= 6, "one in fifty"


def working(random: Random) -> list[list[Json]]:
    """Make a turn of which some have tool loops, as those of an agent."""
    loops = [
        [asks(f"c{n}"), {**result(f"c{n}"), "content": "r " * random.randint(5, 300)}]
        for n in range(random.choice([0] * 7 + [1, 2, 3]))
    ]
    question = user("q " * random.randint(5, 80))
    answer = assistant("a " * random.randint(20, 300))
    return [[question, *(message for loop in loops for message in loop), answer]]


@pytest.mark.parametrize(
    "window",
    [
        Window(messages=20),
        Window(messages=50),
        Window(messages=100),
        Window(tokens=4000),
        Window(tokens=4000, step=0.5),
        Window(turns=25, messages=50, tokens=4000),
    ],
    ids=str,
)
def test_many_conversations_of_mixed_turns_are_seldom_read_with_two_commands(
    window: Window,
) -> None:
    """As users come: one of 20 conversations of a store, a read, then the turn."""
    random, density = Random(1), Density()
    talks = [Talk([]) for _ in range(20)]
    counts: list[int] = []
    for number in range(900):
        held = random.choice(talks)
        if held.turns:
            counts.append(read(held.stored(), window, density)[1])
        if number == 300:  # the store has seen some of them
            counts.clear()
        held.turns.append(working(random))
    assert max(counts) <= 2
    assert counts.count(2) <= len(counts) * 0.05, "one in twenty"


# What is said in the log


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    caplog.clear()
    return found


GIANT = "the newest turn alone has"
RECOUNTED = "tokens are counted on reading"


def test_a_newest_turn_beyond_the_token_limit_is_kept_and_warned_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    held = Talk([[[user("old")]], [[user("new " * 100)], [user("more " * 100)]]])
    tokens = sum(map(size, held.messages([2])))
    history, _ = read(held.stored(), Window(tokens=tokens - 1))
    assert numbers(history) == [2]
    assert warnings(caplog) == [
        f"{GIANT} {tokens} tokens, more than the window's {tokens - 1}; it is kept whole"
    ]
    for window in (Window(tokens=tokens), Window(turns=1), Window(messages=1)):
        assert numbers(read(held.stored(), window)[0])[-1] == 2
        assert warnings(caplog) == []
    read(Talk(held.turns[1:]).stored(), Window(tokens=10))
    (said,) = warnings(caplog)
    assert said.startswith(GIANT), "also where there is nothing before it"


def test_a_giant_turn_in_many_pieces_is_warned_about_once(caplog: pytest.LogCaptureFixture) -> None:
    held = Talk([[[user("old")]], [[user(f"piece {n} " * 9)] for n in range(100)]])
    history, commands = read(held.stored(), Window(tokens=10))
    assert (len(history), commands > 2) == (100, True)
    (said,) = warnings(caplog)
    assert said.startswith(GIANT)


@given(st.integers(0, 2**32))
def test_other_counts_are_noticed_and_counted_exactly_with_one_warning(seed: int) -> None:
    random = Random(seed)
    logger = logging.getLogger("turnstore")
    handler = BufferingHandler(10**9)
    records = handler.buffer
    logger.addHandler(handler)
    try:
        turns = talk(random, 40)
        for counter in ("", "another"):
            held = Talk(turns, counter=counter)
            for tokens in (50, 1000, 20_000):
                records.clear()
                history, _ = read(held.stored(), Window(tokens=tokens))
                assert numbers(history) == held.window(Window(tokens=tokens))
                told = [record.getMessage() for record in records]
                assert [text.startswith(RECOUNTED) for text in told].count(True) == 1
                assert [text.startswith(GIANT) for text in told].count(True) == len(told) - 1
    finally:
        logger.removeHandler(handler)


def test_counts_of_the_same_name_are_not_repeated(caplog: pytest.LogCaptureFixture) -> None:
    def never(_: object) -> int:
        raise AssertionError

    held = Talk(talk(Random(3), 30))
    history, _ = read(held.stored(), Window(tokens=10**9), counter=TokenCounter("sizes", never))
    assert len(history.turns) == len(held.turns)
    assert warnings(caplog) == []


def test_other_counts_before_the_window_do_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    """Once the conversation has moved on, nothing is counted any more."""
    turns = [[[user("word " * 30)]] for _ in range(40)]
    old, new = Talk(turns, counter="old").stored(), Talk(turns).stored()
    raws = [*old[:21], *new[21:]]
    tokens = size(turns[0][0][0])
    assert len(read(raws, Window(tokens=19 * tokens))[0].turns) == 19
    assert warnings(caplog) == []
    assert len(read(raws, Window(tokens=20 * tokens))[0].turns) == 20, "whether 21 fit is unknown"
    assert len(warnings(caplog)) == 1
    assert len(read(raws, Window(tokens=25 * tokens))[0].turns) == 25
    assert len(warnings(caplog)) == 1


def test_the_counter_of_the_model_is_the_counter_of_the_code() -> None:
    assert SIZES(user("hello " * 20)) == size(user("hello " * 20)) > 0
