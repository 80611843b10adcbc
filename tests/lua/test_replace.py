"""What the script that replaces turns leaves, element by element, and what it refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import redis

from tests.lua.test_raw import HEAD, THREE, Raw, element

if TYPE_CHECKING:
    from tests.servers.running import Server


@pytest.fixture
def raw(server: Server, prefix: str) -> Raw:
    made = Raw(server, f"{prefix}:{{raw}}:turns")
    made.put(THREE)
    return made


def ids(raw: Raw) -> list[str]:
    return [json.loads(item.removeprefix(b"w"))[8] for item in raw.held[1:]]


def test_the_whole_of_what_it_leaves(raw: Raw) -> None:
    answer = raw.run("replace", codec="w", count=2, payload='[{},{}],{"m":1}', tokens=7)
    assert answer == [1, b"2-new", 2, 3, 7, 0, 1]
    head, first, second = [item.decode() for item in raw.held]
    assert head == "head 1 2 2 3 7 1 1 0 0 2 a new"
    assert first == THREE[1]
    time = json.loads(second.removeprefix("w"))[5]
    assert second == f'w[1,2,2,3,7,{time},2,"f","new","c",[{{}},{{}}],{{"m":1}}]'
    assert 0 < raw.redis.pttl(raw.key) <= 60_000


@pytest.mark.parametrize(
    "replaced, continues, head",
    [
        ("3-c", 0, "head 1 3 3 3 5 1 1 0 0 3 a b new"),
        ("3-c", 1, "head 1 3 2 3 5 1 1 0 0 3 a b new"),
        ("1-a", 0, "head 1 1 1 1 5 1 1 0 0 1 new"),
    ],
)
def test_the_head(raw: Raw, replaced: str, continues: int, head: str) -> None:
    assert raw.run("replace", replaced=replaced, continues=continues)[0] == 1
    assert raw.held[0].decode() == head


def test_the_oldest_that_is_held_after_others_were_dropped(raw: Raw) -> None:
    raw.put(["head 1 4 4 9 30 3 3 7 20 4 a b c d", element(3, "c"), element(4, "d")])
    assert raw.run("replace", expected="4-d", replaced="3-c") == [1, b"3-new", 1, 1, 5, 0, 1]
    assert raw.held[0] == b"head 1 3 3 8 25 3 3 7 20 3 a b new"
    assert ids(raw) == ["new"]


def test_limits_drop_what_is_before(raw: Raw) -> None:
    assert raw.run("replace", replaced="3-c", max_messages=2) == [1, b"3-new", 2, 2, 5, 1, 1]
    assert raw.held[0] == b"head 1 3 3 3 5 2 2 1 0 3 a b new"
    assert ids(raw) == ["b", "new"]


def test_sent_twice_it_happens_once_and_spares_what_came_after(raw: Raw) -> None:
    first = raw.run("replace")
    assert raw.run("replace") == [0, *first[1:5], 0, 1]
    raw.run("append", turn_id="later")
    assert raw.run("replace") == [0, b"2-new", 3, 3, 10, 0, 1]
    assert ids(raw) == ["a", "new", "later"]


def test_an_id_that_is_known_replaces_nothing(raw: Raw) -> None:
    for known in ("a", "b", "c"):
        assert raw.run("replace", turn_id=known)[0::6] == [0, 0]
    assert [item.decode() for item in raw.held] == THREE


def test_what_cannot_be_read_is_still_there(raw: Raw) -> None:
    raw.put([HEAD, THREE[1], "hello", THREE[3]])
    assert raw.run("replace", turn_id="c")[0::6] == [0, 0]


@pytest.mark.parametrize(
    "changed, says",
    [
        ({"expected": "2-b"}, "CONFLICT 3-c"),
        ({"expected": "0"}, "CONFLICT 3-c"),
        ({"expected": ""}, "CONFLICT 3-c"),
        ({"replaced": "2-x"}, "GONE 2-x"),
        ({"replaced": "4-d"}, "GONE 4-d"),
        ({"replaced": "0"}, "GONE 0"),
        ({"replaced": "1-a", "continues": 1}, "CONFLICT 3-c"),
        ({"lease": "1 t"}, "LOST the lease"),
    ],
)
def test_what_it_refuses(raw: Raw, changed: dict[str, object], says: str) -> None:
    with pytest.raises(redis.ResponseError) as caught:
        raw.run("replace", **changed)
    assert str(caught.value) == says
    assert [item.decode() for item in raw.held] == THREE


@pytest.mark.parametrize("covered, refused", [(1, False), (2, True), (3, True)])
@pytest.mark.parametrize("codec", ["", "w"])
def test_a_summary_that_tells_of_it(raw: Raw, covered: int, codec: str, *, refused: bool) -> None:
    summary = raw.key.replace(":turns", ":summary")
    raw.redis.set(summary, f'{codec}[1,{covered},{covered},0,"told"]', px=60_000)
    if refused:
        with pytest.raises(redis.ResponseError, match=r"^GONE 2-b$"):
            raw.run("replace")
        assert [item.decode() for item in raw.held] == THREE
    else:
        assert raw.run("replace", ttl_ms=90_000)[0] == 1
        assert raw.redis.pttl(summary) > 60_000, "it lives as long as the turns"


def test_an_id_that_means_something_to_lua(raw: Raw) -> None:
    raw.put([HEAD.replace("a b c", "%d a-b c"), element(1, "%d"), element(2, "a-b"), THREE[3]])
    assert raw.run("replace", replaced="2-a-b", turn_id="-%")[1] == b"2--%"
    assert ids(raw) == ["%d", "-%"]
