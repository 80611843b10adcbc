"""The straight way of an append, and the way of all others: what they leave is the same."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.lua import headers
from tests.lua.test_raw import Raw

if TYPE_CHECKING:
    from tests.servers.running import Server

_TIME = re.compile(rb"(\[1(?:,\d+){4}),\d+")


class Pair:
    """Two lists that are given the same turns, each in its own way."""

    def __init__(self, server: Server, prefix: str) -> None:
        self.straight = Raw(server, f"{prefix}:{{straight}}:turns")
        self.other = Raw(server, f"{prefix}:{{other}}:turns")
        self.revision = "0"

    def append(self, **values: Any) -> None:
        """Append to both; the other one demands the revision that is there anyway."""
        answer = self.straight.run("append", **values)
        assert self.other.run("append", **values, expected=self.revision) == answer
        assert self._held(self.straight) == self._held(self.other)
        lives = [raw.redis.pttl(raw.key) for raw in (self.straight, self.other)]
        assert [life > 0 for life in lives] == [True, True]
        self.revision = answer[1].decode()

    def _held(self, raw: Raw) -> list[bytes]:
        return [_TIME.sub(rb"\1,time", element) for element in raw.held]


@pytest.fixture
def pair(server: Server, prefix: str) -> Pair:
    return Pair(server, prefix)


@pytest.mark.parametrize("limit", [0, 1, 5, 12])
def test_both_ways_leave_the_same(pair: Pair, limit: int) -> None:
    drawn = random.Random(limit)
    for number in range(80):
        pair.append(
            turn_id=f"id-{number}",
            count=drawn.choice((1, 1, 1, 2, 4, 9)),
            tokens=drawn.randrange(100),
            # Now and then a piece of the turn before, for which there is one way alone.
            continues=int(number > 0 and drawn.random() < 0.1),
            max_messages=limit,
        )


def test_both_ways_drop_many_turns_at_once(pair: Pair) -> None:
    for number in range(30):
        pair.append(turn_id=f"id-{number}")
    pair.append(turn_id="more", max_messages=9)
    pair.append(turn_id="most", max_messages=1)


def test_an_id_that_is_a_part_of_another_one_is_new(pair: Pair) -> None:
    for turn_id in ("abc", "b", "abcd", "bc"):
        pair.append(turn_id=turn_id)
    assert len(pair.straight.held) == 1 + 4


def test_the_head_is_spelled_alike_in_both() -> None:
    code = headers.included("append")
    spelled = re.findall(r'"(\^head 1 \(.*)"$', code, re.MULTILINE)
    assert len(spelled) == 2
    assert len(set(spelled)) == 1
    (kept,) = re.findall(r"^local IDS_KEPT = (\d+)$", code, re.MULTILINE)
    assert f'if known == "{kept}" then' in code
