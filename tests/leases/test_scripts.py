"""The scripts of leases against a plain model, and what they do with what is not theirs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
import redis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.leases.line import EMPTY, Line, parsed
from turnstore import _scripts

if TYPE_CHECKING:
    from tests.servers.running import Server

GONE_KEPT = 16
KEPT_MS = 600_000


class Raw:
    """The scripts, on one conversation."""

    def __init__(self, server: Server, prefix: str) -> None:
        self.redis = server.raw
        self.turns = f"{prefix}:{{{uuid4().hex}}}:turns"
        self.queue = self.turns.replace(":turns", ":queue")

    def run(self, name: str, **values: Any) -> Any:
        """Run a script."""
        script = _scripts.load(name)
        keys = [self.turns.replace(":turns", f":{part}") for part in script.keys]
        return self.redis.eval(script.source, len(keys), *keys, *script.order(values))

    def take(self, token: str, *, places: int = 4, lease_ms: int = 60_000) -> list[int]:
        """Ask for the lease; no number is 0 and an error is its text."""
        values = {"lease_ms": lease_ms, "ticket_ms": 50_000, "max_waiters": places}
        answer: list[int] = self.run("lease_take", token=token, **values)
        return answer[:2]

    def renew(self, token: str, lease: str, lease_ms: int = 60_000) -> int:
        """Renew a lease."""
        return int(self.run("lease_renew", token=token, lease=lease, lease_ms=lease_ms))

    def release(self, token: str) -> int:
        """Give back."""
        return int(self.run("lease_release", token=token))

    def append(self, turn_id: str, lease: str) -> int:
        """Save a turn; 1 if it was stored, 0 if it was already."""
        values = {
            "turn_id": turn_id, "ttl_ms": 60_000, "max_messages": 0, "expected": "",
            "continues": 0, "count": 1, "tokens": 0, "counter": "", "codec": "",
            "format": "f", "payload": "[{}]", "lease": lease,
        }  # fmt: skip
        return int(self.run("append", **values)[0])

    @property
    def line(self) -> Line:
        """What the queue holds."""
        return parsed(self.redis.get(self.queue))

    @line.setter
    def line(self, line: Line) -> None:
        self.redis.set(self.queue, line.text, px=KEPT_MS)


@pytest.fixture
def raw(server: Server, prefix: str) -> Raw:
    return Raw(server, prefix)


def error(call: Any, *arguments: Any, **options: Any) -> str:
    """Give the code of the refusal."""
    with pytest.raises(redis.ResponseError) as caught:
        call(*arguments, **options)
    return str(caught.value).split()[0]


def test_golden_line(raw: Raw) -> None:
    """The whole of what is stored, but for the times."""
    number, place = raw.take("a")
    assert place == 0
    assert raw.take("b") == [0, 1]
    assert raw.take("c") == [0, 2]
    line = raw.line
    (b, b_until), (c, c_until) = line.waiting
    assert (b, c) == ("b", "c")
    text = f"queue 1 {number} a {line.until_ms} || b:{b_until} c:{c_until}"
    assert raw.redis.get(raw.queue) == text.encode()
    now_ms = number // 1000
    assert line.until_ms - 60_000 == pytest.approx(now_ms, abs=10_000)
    assert b_until - 50_000 == pytest.approx(now_ms, abs=10_000)
    raw.release("a")
    raw.release("c")
    text = f"queue 1 {number} a 0 | a c| b:{b_until}"
    assert raw.redis.get(raw.queue) == text.encode()
    assert 50_000 < raw.redis.pttl(raw.queue) - KEPT_MS + 10_000 <= 60_000


def test_the_key_outlives_all_that_is_in_it(raw: Raw) -> None:
    raw.take("a", lease_ms=7_000_000)
    assert 7_590_000 < raw.redis.pttl(raw.queue) <= 7_600_000
    raw.release("a")
    assert 590_000 < raw.redis.pttl(raw.queue) <= 600_000


@pytest.mark.parametrize("until_ms", [10**13, 9 * 10**15])
def test_a_clock_that_went_back_does_not_turn_the_fence_back(raw: Raw, until_ms: int) -> None:
    raw.line = replace(EMPTY, number=4 * 10**15, token="x", until_ms=1)  # noqa: S106 - no password
    assert raw.take("a") == [4 * 10**15 + 1, 0]
    raw.line = replace(raw.line, until_ms=until_ms)
    assert raw.take("b") == [0, 1]
    assert raw.redis.pttl(raw.queue) > 0


def test_a_lease_that_ran_out_saves_until_another_is_granted(raw: Raw) -> None:
    number, _ = raw.take("a")
    raw.line = replace(raw.line, until_ms=1)
    assert raw.take("b", places=0) != [0, 1]
    assert error(raw.append, "t", f"{number} a") == "LOST"
    raw.release("b")
    assert error(raw.append, "t", f"{number} a") == "LOST", "b may have saved"
    number, _ = raw.take("c")
    raw.line = replace(raw.line, until_ms=1)
    assert raw.append("t", f"{number} c") == 1


def test_a_save_gives_the_lease_back_also_the_second_time(raw: Raw) -> None:
    number, _ = raw.take("a")
    raw.append("t", "")
    assert raw.line.held, "an append without a lease leaves it"
    assert raw.append("t", f"{number} a") == 0, "stored before: the answer was lost"
    assert raw.line.gone == ("a",)
    assert raw.append("u", f"{number} a") == 1, "still the newest"
    assert raw.line.gone == ("a",)


def test_a_refused_save_writes_nothing(raw: Raw) -> None:
    raw.take("a")
    before = raw.redis.get(raw.queue)
    for lease in ("1 a", "x", " ", "1 ", f"{raw.line.number} b", "a"):
        assert error(raw.append, "t", lease) == "LOST"
    assert raw.redis.get(raw.queue) == before
    raw.redis.delete(raw.queue)
    assert error(raw.append, "t", "1 a") == "LOST", "it is not known who came between"
    assert not raw.redis.exists(raw.queue, raw.turns)


@pytest.mark.parametrize(
    "text, code",
    [
        ("hello", "CORRUPT"),
        ("", "CORRUPT"),
        ("queue 1 1 a", "CORRUPT"),
        ("queue 1 x a 0 ||", "CORRUPT"),
        ("queue 2 anything", "FORMAT"),
    ],
)
def test_a_queue_that_cannot_be_read_is_told_and_left(raw: Raw, text: str, code: str) -> None:
    raw.redis.set(raw.queue, text, px=60_000)
    assert error(raw.take, "a") == code
    assert error(raw.renew, "a", "1 a") == code
    assert error(raw.release, "a") == code
    assert error(raw.append, "t", "1 a") == "LOST"
    assert raw.append("t", "") == 1, "without a lease it is not looked at"
    assert raw.redis.get(raw.queue) == text.encode()


def test_a_key_of_another_type_is_left(raw: Raw) -> None:
    raw.redis.rpush(raw.queue, "mine")
    raw.redis.pexpire(raw.queue, 60_000)
    for call in (lambda: raw.take("a"), lambda: raw.release("a"), lambda: raw.append("t", "1 a")):
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            call()
    assert raw.redis.lrange(raw.queue, 0, -1) == [b"mine"]


def test_a_thousand_may_wait(raw: Raw) -> None:
    raw.take("owner")
    waiting = tuple((f"w{number}", raw.line.until_ms) for number in range(999))
    raw.line = replace(raw.line, waiting=waiting)
    assert raw.take("last", places=1000) == [0, 1000]
    assert error(raw.take, "more", places=1000) == "FULL"
    raw.release("owner")
    assert raw.take("w1", places=1000) == [0, 2]
    assert raw.take("w0", places=1000)[1] == 0
    assert len(raw.line.waiting) == 999


# Against a model

TOKENS = st.integers(0, 25).map("t{}".format)


class Machine(RuleBasedStateMachine):
    """Random commands, some of them twice, some of them late; times run out by hand."""

    raw: Raw
    server: Server
    prefix: str

    def __init__(self) -> None:
        super().__init__()
        self.raw = Raw(self.server, self.prefix)
        self.number, self.token, self.in_time = 0, "-", False
        self.waiting: list[tuple[str, bool]] = []  # a token, and whether it is in time
        self.gone: list[str] = []
        self.leases: dict[str, int] = {}  # the newest grant of each token
        self.stored: set[str] = set()

    @rule(token=TOKENS, places=st.integers(0, 3), again=st.booleans())
    def take(self, token: str, places: int, *, again: bool) -> None:
        if token in self.gone:
            assert error(self.raw.take, token, places=places) == "LOST"
            return
        waiting = [(one, alive) for one, alive in self.waiting if alive or one == token]
        tokens = [one for one, _ in waiting]
        if self.token == token:
            answer = [self.number, 0]
            self.in_time = True
        elif not self.in_time and (tokens[:1] == [token] or not tokens):
            answer = self.raw.take(token, places=places)
            assert answer[0] > self.number, "the fence grows"
            assert answer[1] == 0
            self.number, self.token, self.in_time = answer[0], token, True
            self.leases[token] = self.number
            waiting = [pair for pair in waiting if pair[0] != token]
        elif token in tokens:
            answer = [0, tokens.index(token) + 1]
            waiting[tokens.index(token)] = (token, True)
        elif len(waiting) >= places:
            assert error(self.raw.take, token, places=places) == "FULL"
            return
        else:
            answer = [0, len(waiting) + 1]
            waiting.append((token, True))
        self.waiting = waiting
        assert self.raw.take(token, places=places) == answer
        if again:
            assert self.raw.take(token, places=places) == answer

    def is_newest(self, token: str) -> bool:
        return self.leases.get(token) == self.number and self.token == token

    def leave(self, token: str) -> None:
        if token not in self.gone:
            if token == self.token:
                self.in_time = False
            self.waiting = [pair for pair in self.waiting if pair[0] != token]
            self.gone = [*self.gone, token][-GONE_KEPT:]

    @precondition(lambda self: self.leases)
    @rule(token=TOKENS, again=st.booleans())
    def renew(self, token: str, *, again: bool) -> None:
        held = self.is_newest(token) and token not in self.gone
        self.in_time = self.in_time or held
        lease = f"{self.leases.get(token, 1)} {token}"
        for _ in range(1 + again):
            assert self.raw.renew(token, lease) == held

    @rule(token=TOKENS, again=st.booleans())
    def release(self, token: str, *, again: bool) -> None:
        self.leave(token)
        for _ in range(1 + again):
            assert self.raw.release(token) == 1

    @rule(token=TOKENS, again=st.booleans())
    def append(self, token: str, *, again: bool) -> None:
        lease = f"{self.leases.get(token, 1)} {token}"
        turn_id = f"{token}-{self.leases.get(token, 1)}"
        if turn_id not in self.stored and not self.is_newest(token):
            assert error(self.raw.append, turn_id, lease) == "LOST"
            return
        new = turn_id not in self.stored
        self.stored.add(turn_id)
        self.leave(token)
        assert self.raw.append(turn_id, lease) == new
        if again:
            assert self.raw.append(turn_id, lease) == 0

    @precondition(lambda self: self.in_time)
    @rule()
    def the_lease_runs_out(self) -> None:
        self.in_time = False
        self.raw.line = replace(self.raw.line, until_ms=1)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def a_waiter_dies(self, data: st.DataObject) -> None:
        place = data.draw(st.integers(0, len(self.waiting) - 1))
        self.waiting[place] = (self.waiting[place][0], False)
        waiting = list(self.raw.line.waiting)
        waiting[place] = (waiting[place][0], 1)
        self.raw.line = replace(self.raw.line, waiting=tuple(waiting))

    @invariant()
    def they_agree(self) -> None:
        line = self.raw.line
        assert (line.number, line.token) == (self.number, self.token)
        assert (line.until_ms > 1) == self.in_time
        assert list(line.gone) == self.gone
        assert [(token, until > 1) for token, until in line.waiting] == self.waiting
        assert line == EMPTY or self.raw.redis.pttl(self.raw.queue) > 0


def _run(server: Server, prefix: str, *, examples: int, steps: int) -> None:
    machine = type("Made", (Machine,), {"server": server, "prefix": prefix})
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    run_state_machine_as_test(machine, settings=chosen)


def test_the_scripts_do_what_the_model_does(server: Server, prefix: str) -> None:
    _run(server, prefix, examples=30, steps=40)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_scripts_do_what_the_model_does_at_length(server: Server, prefix: str) -> None:
    _run(server, prefix, examples=500, steps=100)
