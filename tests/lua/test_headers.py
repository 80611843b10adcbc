"""What a script's header says, its code does, and Python sends: checked in every direction."""

from __future__ import annotations

import re
from datetime import timedelta
from hashlib import sha1
from typing import Any, cast

import pytest

from tests.lua import headers
from tests.unit.histories import raw_elements, user
from turnstore import Lease, Store, Window, _io, _scripts
from turnstore._keys import Keys
from turnstore._leases import Hold
from turnstore.context import Context, Summary

NAMES = _scripts.names()


def test_there_are_scripts() -> None:
    assert set(NAMES) >= {"append", "clear", "expire", "page", "rewind", "seed", "stat", "trim"}


@pytest.mark.parametrize("name", NAMES)
def test_a_header_is_by_the_grammar(name: str) -> None:
    header = headers.read(name)
    assert header.purpose
    assert header.returns
    assert set(header.keys) <= set(Keys._fields), "a script touches one conversation alone"


@pytest.mark.parametrize("name", NAMES)
def test_each_key_and_argument_is_read_once_into_a_local_of_its_name(name: str) -> None:
    header = headers.read(name)
    code = headers.without_comments(header.code)
    for array, declared in (("KEYS", header.keys), ("ARGV", header.arguments)):
        read = re.findall(
            rf"^local (\w+) = (?:tonumber\()?{array}\[(\d+)\](?:\)| == \"1\")?$", code, re.MULTILINE
        )
        by_number = [(local, int(number)) for local, number in read]
        expected = list(zip(declared, range(1, len(declared) + 1), strict=True))
        if name == "seed" and array == "ARGV":
            # Its list of elements has no end that a header could name; see below.
            expected = expected[:1]
        assert by_number == expected


@pytest.mark.parametrize("name", NAMES)
def test_nothing_else_is_read_from_keys_and_arguments(name: str) -> None:
    header = headers.read(name)
    code = headers.without_comments(header.code)
    numbered = len(re.findall(r"\b(?:KEYS|ARGV)\[\d+\]", code))
    declared = len(header.keys) + len(header.arguments)
    mentions = len(re.findall(r"\b(?:KEYS|ARGV)\b", code))
    if name == "seed":
        assert re.findall(r"local first_of_list = (\d)", code) == ["2"]
        assert header.arguments == ("ttl_ms", "head", "first")
        return
    assert numbered == mentions == declared


@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_read_as_numbers_and_texts_as_texts(name: str) -> None:
    header = headers.read(name)
    types = dict(zip((*header.keys, *header.arguments), header.types, strict=True))
    for local, number, equals in re.findall(
        r"^local (\w+) = (tonumber\()?ARGV\[\d+\]\)?( == \"1\")?$", header.code, re.MULTILINE
    ):
        assert (types[local] == "int") == bool(number or equals), local


@pytest.mark.parametrize("name", NAMES)
def test_the_errors_are_the_ones_it_returns(name: str) -> None:
    header = headers.read(name)
    code = headers.included(name)
    returned = set(re.findall(r'"(CONFLICT|CORRUPT|FORMAT|FULL|LOST|WRONGTYPE)\b', code))
    if "error_reply" not in headers.without_comments(header.code):
        returned = set()
    # Redis itself refuses a key of another type; scripts that may say it first, do.
    assert set(header.errors) - {"WRONGTYPE"} == returned - {"WRONGTYPE"}


@pytest.mark.parametrize("name", NAMES)
def test_a_refusal_is_an_error_reply(name: str) -> None:
    code = headers.included(name)
    assert "error(" not in code.replace("redis.error_reply(", "")
    assert "cjson" not in code, "it turns [] into {} and breaks big integers"


@pytest.mark.parametrize("name", NAMES)
def test_no_key_is_built(name: str) -> None:
    code = headers.included(name)
    called = re.findall(r'redis\.p?call\("(\w+)"(?:, "\w+")?(?:, (\w+))?', code)
    assert {key for command, key in called if command != "TIME"} <= {"key", *Keys._fields}


@pytest.mark.parametrize("name", NAMES)
def test_includes_exist_and_are_needed(name: str) -> None:
    header = headers.read(name)
    assert len(set(header.includes)) == len(header.includes)
    for part in header.includes:
        text = (headers.FOLDER / "lib" / f"{part}.lua").read_text("utf-8")
        functions = re.findall(r"^local function (\w+)", text, re.MULTILINE)
        assert functions, f"lib/{part}.lua has functions"
        others = "".join(
            (headers.FOLDER / "lib" / f"{other}.lua").read_text("utf-8")
            for other in header.includes
            if other != part
        )
        assert any(f"{function}(" in header.code + others for function in functions), part


def test_every_part_is_included_somewhere() -> None:
    parts = {path.stem for path in headers.FOLDER.glob("lib/*.lua")}
    assert parts == {part for name in NAMES for part in headers.read(name).includes}


def test_an_include_stands_in_its_place() -> None:
    script = _scripts.load("append")
    assert "--# include" not in script.source
    lines = script.source.splitlines()
    assert len(lines) == len(script.lines)
    for line, (file, number) in zip(lines, script.lines, strict=True):
        assert (headers.FOLDER / file).read_text("utf-8").splitlines()[number - 1] == line


# The Python side


class Recorder:
    """A client that answers each script with something, and keeps what it was sent."""

    def __init__(self) -> None:
        self.sent: dict[str, tuple[Any, ...]] = {}

    def execute_command(self, command: str, sha: str, *rest: Any, **_: object) -> Any:
        if command == "lrange":
            return [HEAD, *ELEMENTS][rest[0] :]
        assert command == "EVALSHA"
        (name,) = [name for name in NAMES if _scripts.load(name).sha == sha]
        count, *keys = rest
        arguments = keys[count:]
        assert set(map(type, keys[:count])) == {bytes}
        self.sent[name] = tuple(arguments)
        return ANSWERS[name]


ELEMENTS = raw_elements([[[user("q")]], [[user("r")]]])
HEAD = b"head 1 2 2 2 20 1 1 0 0 2 id-1 id-2"
ANSWERS: dict[str, Any] = {
    "append": [1, b"1-a", 1, 1, 0, 0],
    "clear": 0,
    "expire": 1,
    "fold": 1,
    "fold_begin": [1, b"", 1],
    "lease_release": 1,
    "lease_renew": 1,
    "lease_take": [7, 0, 1],
    "page": [b"1-id-1", b"0", 0, ELEMENTS[0]],
    "rewind": 1,
    "seed": 1,
    "stat": [b"0", 0, 0, 0, 0, -2, 0, 0],
    "trim": 0,
}


@pytest.fixture(scope="module")
def sent() -> dict[str, tuple[Any, ...]]:
    """Do everything once; give what each script was sent."""
    client = Recorder()
    chat = Store(cast("Any", client), name="app").conversation("c")
    chat.append("q", turn_id="a")
    chat.clear()
    chat.expire(timedelta(seconds=1))
    chat.turns()
    chat.rewind()
    chat.fork("d")
    chat.stat()
    chat.trim(5)
    with chat.turn("q", on_conflict="serialize"):
        pass
    hold = Hold(chat._place.keys, Lease())
    _io.run(cast("Any", client), hold.renew())
    chat.summarize(Context(Window(turns=1), summary=Summary(lambda _: "summary")))
    return client.sent


def test_every_script_is_used(sent: dict[str, tuple[Any, ...]]) -> None:
    assert sent.keys() == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_what_python_sends_is_what_the_header_declares(
    name: str, sent: dict[str, tuple[Any, ...]]
) -> None:
    header = headers.read(name)
    assert len(sent[name]) == len(header.arguments)
    for value, kind in zip(sent[name], header.types[len(header.keys) :], strict=True):
        assert isinstance(value, int if kind == "int" else (str, bytes))


@pytest.mark.parametrize("name", NAMES)
def test_python_takes_the_names_and_their_order_from_the_header(name: str) -> None:
    script = _scripts.load(name)
    assert script.arguments == headers.read(name).arguments
    values = {argument: f"<{argument}>" for argument in script.arguments}
    assert script.order(dict(reversed(values.items()))) == tuple(values.values())


@pytest.mark.parametrize("values", [{}, {"ttl_ms": 1, "more": 2}, {"ttl": 1}])
def test_a_missing_or_unknown_name_is_an_error(values: dict[str, int]) -> None:
    with pytest.raises((TypeError, KeyError)):
        _scripts.load("expire").order(values)


def test_a_script_is_read_once_in_a_process() -> None:
    script = _scripts.load("append")
    assert script is _scripts.load("append")
    assert script.sha == sha1(script.source.encode(), usedforsecurity=False).hexdigest()
