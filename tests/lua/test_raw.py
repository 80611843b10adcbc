"""What scripts do with lists that Python would never make: damaged, later, not ours."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import redis

from tests.lua import headers
from turnstore import _scripts

if TYPE_CHECKING:
    from tests.servers.running import Server

NAMES = headers.CORE

# What each script is sent in these tests, but for what a test changes.
VALUES: dict[str, dict[str, Any]] = {
    "append": {
        "turn_id": "new", "ttl_ms": 60_000, "max_messages": 0, "expected": "", "continues": 0,
        "count": 1, "tokens": 5, "counter": "c", "codec": "", "format": "f", "payload": "[{}]",
        "lease": "",
    },
    "clear": {},
    "expire": {"ttl_ms": 60_000},
    "fold": {"token": "t", "lease_ms": 0, "covered": 0, "upto": "1-a", "value": "[1,1]"},
    "fold_begin": {"token": "t", "lease_ms": 60_000},
    "erase_begin": {"again": 0},
    "erase_end": {"number": 1},
    "erase_some": {"number": 1},
    "lease_release": {"token": "t"},
    "lease_renew": {"token": "t", "lease": "1 t", "lease_ms": 60_000},
    "lease_take": {"token": "t", "lease_ms": 60_000, "ticket_ms": 5_000, "max_waiters": 4},
    "owner_begin": {},
    "owner_counts": {},
    "owner_name": {"member": "m"},
    "owner_page": {"before": 0, "limit": 10},
    "owner_title": {"began": 1, "member": "m", "title": "[]"},
    "page": {"before": 0, "max_turns": 0},
    "replace": {
        "turn_id": "new", "ttl_ms": 60_000, "max_messages": 0, "expected": "3-c",
        "replaced": "2-b", "continues": 0, "count": 1, "tokens": 5, "counter": "c", "codec": "",
        "format": "f", "payload": "[{}]", "lease": "",
    },
    "rewind": {"expected": "3-c", "target": "1-a"},
    "seed": {"ttl_ms": 60_000},
    "stat": {},
    "trim": {"max_messages": 1, "max_turns": 0},
}  # fmt: skip


def element(no: int, id_: str, *, turn: int | None = None) -> str:
    row = [1, no, turn or no, no, 0, 1_700_000_000_000, 1, "f", id_, "", [{}]]
    return json.dumps(row, separators=(",", ":"))


HEAD = "head 1 3 3 3 0 1 1 0 0 3 a b c"
THREE = [HEAD, element(1, "a"), element(2, "b"), element(3, "c")]


class Raw:
    """A key, what scripts do with it, and what it holds."""

    def __init__(self, server: Server, key: str) -> None:
        self.redis = server.raw
        self.key = key

    def run(self, name: str, **changed: Any) -> Any:
        """Run a script whole, as a client does that sends it for the first time."""
        script = _scripts.load(name)
        values = {**VALUES[name], **changed}
        keys = [self.key.replace(":turns", f":{part}") for part in script.keys]
        further = ("head 1 1 1 1 0 1 1 0 0 1 a", "[1]") if name == "seed" else ()
        return self.redis.eval(script.source, len(keys), *keys, *script.order(values), *further)

    def put(self, elements: list[str]) -> None:
        """Put a list there by hand."""
        self.redis.delete(self.key)
        self.redis.rpush(self.key, *elements)
        self.redis.pexpire(self.key, 60_000)

    @property
    def held(self) -> list[bytes]:
        found: list[bytes] = self.redis.lrange(self.key, 0, -1)
        return found


@pytest.fixture
def raw(server: Server, prefix: str) -> Raw:
    return Raw(server, f"{prefix}:{{raw}}:turns")


@pytest.mark.parametrize("name", NAMES)
def test_the_joined_script_compiles(name: str, raw: Raw) -> None:
    script = _scripts.load(name)
    if hasattr(raw.redis, "get_primaries"):
        nodes = raw.redis.get_primaries()
        shas = {
            raw.redis.execute_command("SCRIPT LOAD", script.source, target_nodes=n) for n in nodes
        }
    else:
        shas = {raw.redis.script_load(script.source)}
    assert {sha.decode() if isinstance(sha, bytes) else sha for sha in shas} == {script.sha}


def test_a_script_leaves_no_global(raw: Raw) -> None:
    """A global would be an error in Redis, and shared between scripts elsewhere."""
    for name in NAMES:
        script = _scripts.load(name)
        assert "_G" not in script.source
    assert raw.redis.eval("return redis.call('EXISTS', KEYS[1])", 1, raw.key) == 0


# The scripts of leases read the queue alone; tests/leases has their tests. Those of owners have
# theirs in tests/owners.
UNREAD = ("expire", "clear", "owner_name", "owner_title")
READERS = [name for name in NAMES if "turns" in _scripts.load(name).keys and name not in UNREAD]


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "head",
    [
        "",
        "hello",
        "head 1",
        "head 1 3 3 3",
        "head 1 3 3 3 0 1 1 0 0 x a",
        "head one",
        element(1, "a"),
    ],
)
def test_a_damaged_head_is_told_and_nothing_is_written(name: str, head: str, raw: Raw) -> None:
    raw.put([head, *THREE[1:]])
    before = raw.held
    with pytest.raises(redis.ResponseError, match=r"^CORRUPT the list does not begin with a head"):
        raw.run(name)
    assert raw.held == before


@pytest.mark.parametrize("name", READERS)
def test_a_later_head_is_told_and_nothing_is_written(name: str, raw: Raw) -> None:
    raw.put([HEAD.replace("head 1", "head 2"), *THREE[1:]])
    before = raw.held
    with pytest.raises(redis.ResponseError, match=r"^FORMAT 2$"):
        raw.run(name)
    assert raw.held == before


# Which scripts read an element's header here, and which element that is.
LOOKS = [
    ("trim", 1), ("page", 2), ("stat", 1), ("stat", 3), ("rewind", 1), ("replace", 2),
    ("replace", 1),
]  # fmt: skip


@pytest.mark.parametrize("look", LOOKS, ids=str)
@pytest.mark.parametrize(
    "damaged, says",
    [
        ("hello", "^CORRUPT the element at index .* has no header of ours"),
        ("", "^CORRUPT"),
        ("[1,2,", "^CORRUPT"),
        ('[2,{"new":"layout"}]', "^FORMAT 2$"),
        ("w[17,1,1]", "^FORMAT 17$"),
    ],
)
def test_a_damaged_element_is_told_and_nothing_is_written(
    look: tuple[str, int], damaged: str, says: str, raw: Raw
) -> None:
    name, index = look
    raw.put([damaged if at == index else element_ for at, element_ in enumerate(THREE)])
    before = raw.held
    with pytest.raises(redis.ResponseError, match=says):
        raw.run(name)
    assert raw.held == before


@pytest.mark.parametrize("lease_ms", [0, 60_000])
@pytest.mark.parametrize(
    "content, says",
    [
        (["hello", *THREE[1:]], "CORRUPT"),
        (["head 2 x", *THREE[1:]], "FORMAT"),
        ([*THREE[:3], "hello"], "CORRUPT"),
    ],
)
def test_a_summary_that_is_refused_leaves_the_lease(
    content: list[str], says: str, lease_ms: int, raw: Raw
) -> None:
    raw.put(content)
    lease = raw.key.replace(":turns", ":lease")
    raw.redis.set(lease, "t", px=30_000)
    with pytest.raises(redis.ResponseError, match=f"^{says}"):
        raw.run("fold", upto="3-c", value="[1,3]", lease_ms=lease_ms)
    assert raw.redis.get(lease) == b"t"
    assert raw.redis.pttl(lease) <= 30_000
    raw.run("fold", upto="", value="", lease_ms=0)
    assert raw.redis.exists(lease) == 0, "given back, whatever is stored"


def test_an_append_that_would_have_to_drop_a_damaged_element(raw: Raw) -> None:
    raw.put([HEAD, "hello", *THREE[2:]])
    before = raw.held
    with pytest.raises(redis.ResponseError, match=r"^CORRUPT"):
        raw.run("append", max_messages=2)
    assert raw.held == before
    assert raw.run("append")[0] == 1, "without a limit nothing old is looked at"


def test_a_list_that_lost_elements_is_told(raw: Raw) -> None:
    raw.put([HEAD])
    for name in ("trim", "stat", "page", "rewind", "replace"):
        with pytest.raises(redis.ResponseError, match=r"^CORRUPT"):
            raw.run(name)


def test_an_element_in_the_wrong_place_is_no_target(raw: Raw) -> None:
    raw.put([HEAD, element(1, "other"), *THREE[2:]])
    before = raw.held
    with pytest.raises(redis.ResponseError, match=r"^(CORRUPT|CONFLICT)"):
        raw.run("rewind")
    assert raw.held == before


@pytest.mark.parametrize("name", sorted({*READERS, "expire", "clear"}))
def test_a_key_of_another_type_is_left_alone(name: str, raw: Raw) -> None:
    raw.redis.set(raw.key, "mine", px=60_000)
    if name == "expire":
        assert raw.run(name) == 1, "a time to live fits any type"
    else:
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            raw.run(name)
    assert raw.redis.get(raw.key) == b"mine"


@pytest.mark.parametrize(
    "content, counted",
    [(THREE, [3, 3, 0, 1]), (["hello"], [1, 0, 0, 1]), (["head 2 x", "a"], [2, 0, 0, 1])],
)
def test_clear_deletes_what_cannot_be_read(
    content: list[str], counted: list[int], raw: Raw
) -> None:
    raw.put(content)
    assert raw.run("clear") == counted
    assert raw.redis.exists(raw.key) == 0


@pytest.mark.parametrize("name", sorted({*READERS, "expire", "clear"} - {"append", "seed"}))
def test_an_empty_conversation_stays_empty(name: str, raw: Raw) -> None:
    try:
        raw.run(name)
    except redis.ResponseError as error:
        assert str(error) == "CONFLICT 0"  # noqa: PT017 - one script refuses, the others answer
    assert raw.redis.exists(raw.key) == 0


def test_an_append_of_nothing_writes_nothing(raw: Raw) -> None:
    assert raw.run("append", count=0) == [0, b"0", 0, 0, 0, 0]
    assert raw.redis.exists(raw.key) == 0
    raw.put(THREE)
    raw.redis.pexpire(raw.key, 30_000)
    assert raw.run("append", count=0) == [0, b"3-c", 3, 3, 0, 0]
    assert raw.held == [item.encode() for item in THREE]
    assert raw.redis.pttl(raw.key) <= 30_000


def test_golden_list(raw: Raw) -> None:
    """The whole of what three appends leave, but for the time."""
    raw.run("append", turn_id="a")
    raw.run("append", turn_id="b", count=2, payload="[{},{}]", tokens=7)
    raw.run("append", turn_id="c", continues=1, codec="w", payload='[{}],{"m":1}')
    head, *elements = [item.decode() for item in raw.held]
    assert head == "head 1 3 2 4 17 1 1 0 0 3 a b c"
    times = [json.loads(item.removeprefix("w"))[5] for item in elements]
    assert elements == [
        f'[1,1,1,1,5,{times[0]},1,"f","a","c",[{{}}]]',
        f'[1,2,2,3,12,{times[1]},2,"f","b","c",[{{}},{{}}]]',
        f'w[1,3,2,4,17,{times[2]},1,"f","c","c",[{{}}],{{"m":1}}]',
    ]
    assert times == sorted(times)


def test_the_head_after_a_drop(raw: Raw) -> None:
    raw.put(THREE)
    assert raw.run("append", max_messages=2) == [1, b"4-new", 2, 2, 5, 2]
    assert raw.held[0] == b"head 1 4 4 4 5 3 3 2 0 4 a b c new"
    assert len(raw.held) == 3


@pytest.mark.parametrize("count", [31, 32, 33, 80])
def test_the_head_keeps_the_newest_32_ids(count: int, raw: Raw) -> None:
    for number in range(count):
        raw.run("append", turn_id=f"id{number}")
    ids = raw.held[0].decode().split()[11:]
    assert ids == [f"id{number}" for number in range(count)][-32:]


@pytest.mark.parametrize(
    "id_", ["%d", "%", "a.b", "a-b", "a*", "(a", "[a]", "^a$", "-", "1-1", "a" * 64, "{}"]
)
def test_ids_that_mean_something_to_lua(id_: str, raw: Raw) -> None:
    assert raw.run("append", turn_id="first")[1] == b"1-first"
    assert raw.run("append", turn_id=id_) == [1, f"2-{id_}".encode(), 2, 2, 10, 0]
    raw.run("append", turn_id="last")
    assert raw.run("append", turn_id=id_)[:2] == [0, f"2-{id_}".encode()], "known again"
    assert raw.run("append", turn_id=id_[:-1] + "~")[0] == 1, "not by its beginning"


def test_large_totals_stay_whole_numbers(raw: Raw) -> None:
    raw.run("append", turn_id="a", tokens=2**50)
    assert raw.run("append", turn_id="b", tokens=2**50)[4] == 2**51
    assert b"e+" not in b"".join(raw.held)


@pytest.mark.parametrize("ttl_ms", [1_000_000, 86_399_999_999_999_999])
def test_the_longest_time_to_live_is_taken(ttl_ms: int, raw: Raw) -> None:
    raw.run("append", ttl_ms=ttl_ms)
    assert abs(raw.redis.pttl(raw.key) - ttl_ms) < 600_000
    raw.run("expire", ttl_ms=ttl_ms)
    assert abs(raw.redis.pttl(raw.key) - ttl_ms) < 600_000
