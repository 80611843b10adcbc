"""What a script's header says, its code does, and Python sends: checked in every direction."""

from __future__ import annotations

import re
from copy import copy
from datetime import timedelta
from hashlib import sha1
from typing import Any, cast

import pytest

from tests.lua import headers
from tests.unit.histories import raw_elements, user
from turnstore import Lease, Store, Window, _io, _scripts
from turnstore._keys import Keys, OwnerKeys
from turnstore._leases import Hold
from turnstore.context import Context, Summary

NAMES = _scripts.names()
CORE = headers.CORE


def test_there_are_scripts() -> None:
    assert set(NAMES) >= {"append", "clear", "expire", "page", "rewind", "seed", "stat", "trim"}


@pytest.mark.parametrize("name", NAMES)
def test_a_header_is_by_the_grammar(name: str) -> None:
    header = headers.read(name)
    assert header.purpose
    assert header.returns
    many = {name for name, mark in header.marks.items() if mark == "*"}
    owned = {*OwnerKeys._fields, *Keys._fields}
    assert name not in CORE or set(header.keys) - many <= owned, "one conversation or owner alone"


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
        if expected and header.marks[expected[-1][0]] == "*":
            many, number = expected.pop()
            before = [one for one, _ in expected if header.marks[one] == "?"]
            missing = f" or {number - len(before)}" if before else ""
            owned = "generation and " if before else ""
            start = f"local first_of_{many} = {owned}{number}{missing}\n"
            assert start in code or number == 1, start
        assert by_number == expected


@pytest.mark.parametrize("name", NAMES)
def test_nothing_else_is_read_from_keys_and_arguments(name: str) -> None:
    header = headers.read(name)
    code = headers.without_comments(header.code)
    for array, names in (("KEYS", header.keys), ("ARGV", header.arguments)):
        numbered = len(re.findall(rf"\b{array}\[\d+\]", code))
        mentions = len(re.findall(rf"\b{array}\b", code))
        assert numbered == len([one for one in names if header.marks[one] != "*"])
        assert numbered == mentions or header.marks[names[-1]] == "*"


@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_read_as_numbers_and_texts_as_texts(name: str) -> None:
    header = headers.read(name)
    types = dict(zip((*header.keys, *header.arguments), header.types, strict=True))
    for local, number, equals in re.findall(
        r"^local (\w+) = (tonumber\()?ARGV\[\d+\]\)?( == \"1\")?$", header.code, re.MULTILINE
    ):
        assert (types[local] == "int") == bool(number or equals), local


# What they meet and do not refuse: damage where all goes, a queue that went already; and what
# `expire` does not look at of what it includes.
QUIET = {
    "clear": {"CORRUPT"},
    "erase_some": {"CORRUPT"},
    "expire": {"FORMAT"},
    "lease_release": {"ERASED"},
}


@pytest.mark.parametrize("name", NAMES)
def test_the_errors_are_the_ones_it_returns(name: str) -> None:
    header = headers.read(name)
    code = headers.included(name)
    codes = "CONFLICT|CORRUPT|ERASED|FORMAT|FULL|GONE|LOST|WRONGTYPE"
    returned = set(re.findall(rf'"({codes})\b', code)) - QUIET.get(name, set())
    if "error_reply" not in headers.without_comments(header.code):
        returned = set()
    # Redis itself refuses a key of another type; scripts that may say it first, do.
    assert set(header.errors) - {"WRONGTYPE"} == returned - {"WRONGTYPE"}


@pytest.mark.parametrize("name", NAMES)
def test_a_refusal_is_an_error_reply(name: str) -> None:
    code = headers.included(name)
    assert "error(" not in code.replace("redis.error_reply(", "")
    assert "cjson" not in code, "it turns [] into {} and breaks big integers"


@pytest.mark.parametrize("name", CORE)
def test_no_key_is_built(name: str) -> None:
    code = headers.included(name)
    called = re.findall(r'redis\.p?call\("(\w+)"(?:, "\w+")?(?:, (\w+))?', code)
    known = {"key", *Keys._fields, *OwnerKeys._fields, "KEYS"}
    assert {key for command, key in called if command != "TIME"} <= known


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
        used = set(re.findall(r"\w+", headers.without_comments(header.code + others)))
        assert used.intersection(functions), part


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
        self.keys: dict[str, int] = {}
        self.waiting: list[Any] = []

    def pipeline(self, **_: object) -> Recorder:
        pipeline = copy(self)
        pipeline.waiting = []
        return pipeline

    def execute(self, **_: object) -> list[Any]:
        return self.waiting

    def execute_command(self, command: str, sha: str, *rest: Any, **_: object) -> Any:
        answer = self._answer(command, sha, *rest)
        self.waiting.append(answer)
        return answer

    def _answer(self, command: str, sha: str, *rest: Any) -> Any:
        if command == "lrange":
            return [HEAD, *ELEMENTS][rest[0] :]
        if command == "get":  # the summary
            return None
        assert command == "EVALSHA"
        (name,) = [name for name in NAMES if _scripts.load(name).sha == sha]
        count, *keys = rest
        arguments = keys[count:]
        assert set(map(type, keys[:count])) == {bytes}
        self.sent[name], self.keys[name] = tuple(arguments), count
        return ANSWERS[name]


ELEMENTS = raw_elements([[[user("q")]], [[user("r")]]])
HEAD = b"head 1 2 2 2 20 1 1 0 0 2 id-1 id-2"
ANSWERS: dict[str, Any] = {
    "append": [1, b"1-a", 1, 1, 0, 0],
    "clear": [1, 1, 0, 1],
    "erase_begin": [7, b"member"],
    "erase_end": [1, 1, 1, 1, 1],
    "erase_some": [1, 0],
    "expire": 1,
    "fold": 1,
    "fold_begin": [1, b"", 1],
    "lease_release": 1,
    "lease_renew": 1,
    "lease_take": [7, 0, 1],
    "owner_begin": 7,
    "owner_counts": [1, 1],
    "owner_name": b'["c"]',
    "owner_page": [b"member", 7, b'["c"]'],
    "owner_title": 1,
    "page": [b"1-id-1", b"0", 0, ELEMENTS[0]],
    "replace": [1, b"2-a", 2, 2, 0, 0, 1],
    "rewind": 1,
    "seed": 1,
    "stat": [b"0", 0, 0, 0, 0, -2, 0, 0],
    "trim": 0,
}


def do_everything(owner: str | None) -> Recorder:
    """Do everything once, with or without an owner."""
    client = Recorder()
    store = Store(cast("Any", client), name="app")
    chat = store.conversation("c", owner=owner)
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
    with chat.turn("q", replaces="id-2") as turn:
        turn.reply("a")
    hold = Hold(chat._place.keys, Lease())
    _io.run(cast("Any", client), hold.renew())
    chat.summarize(Context(Window(turns=1), summary=Summary(lambda _: "summary")))
    if owner is not None:
        chat.set_title("title")
        chat.title()
        store.conversations(owner)
        store.erase(owner)
    return client


@pytest.fixture(scope="module")
def recorders() -> dict[bool, Recorder]:
    """Give what was sent, without and with an owner, in a process that has no facts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("turnstore._erasing.ERASERS", [])
        return {False: do_everything(None), True: do_everything("ada")}


def test_every_script_is_used(recorders: dict[bool, Recorder]) -> None:
    assert recorders[True].sent.keys() == set(CORE)
    of_owners = {name for name in CORE if name.startswith(("owner_", "erase_"))}
    assert recorders[False].sent.keys() == set(CORE) - of_owners


@pytest.mark.parametrize("owned", [False, True])
@pytest.mark.parametrize("name", CORE)
def test_what_python_sends_is_what_the_header_declares(
    name: str,
    owned: bool,  # noqa: FBT001 - a parameter
    recorders: dict[bool, Recorder],
) -> None:
    header, sent = headers.read(name), recorders[owned].sent
    if name not in sent:
        assert name.startswith(("owner_", "erase_"))
        assert not owned
        return
    marks = ("", "?", "*") if owned else ("", "*")
    declared = zip((*header.keys, *header.arguments), header.types, strict=True)
    rows = [(one, kind) for one, kind in declared if header.marks[one] in marks]
    kinds = [kind for one, kind in rows if one in header.arguments]
    if len(sent[name]) > len(kinds):
        kinds += kinds[-1:] * (len(sent[name]) - len(kinds))  # the last one is many
    for value, kind in zip(sent[name], kinds, strict=True):
        assert isinstance(value, int if kind == "int" else (str, bytes))
    if "*" not in {header.marks[key] for key in header.keys}:
        assert recorders[owned].keys[name] == len([one for one, _ in rows if one in header.keys])


def test_an_owner_costs_nothing_where_there_is_none(recorders: dict[bool, Recorder]) -> None:
    """Not one key or argument more than is declared without a mark."""
    for name, sent in recorders[False].sent.items():
        script = _scripts.load(name)
        assert recorders[False].keys[name] == len(script.keys)
        assert name == "seed" or len(sent) == len(script.arguments)


@pytest.mark.parametrize("name", NAMES)
def test_python_takes_the_names_and_their_order_from_the_header(name: str) -> None:
    script, header = _scripts.load(name), headers.read(name)
    for owned, marks in ((False, ("",)), (True, ("", "?"))):
        keys = [key for key in header.keys if header.marks[key] in marks]
        arguments = [one for one in header.arguments if header.marks[one] in marks]
        assert list(script.owned_keys if owned else script.keys) == keys
        values = {argument: f"<{argument}>" for argument in arguments}
        assert script.order(dict(reversed(values.items())), owned=owned) == tuple(values.values())


@pytest.mark.parametrize("values", [{}, {"ttl_ms": 1, "more": 2}, {"ttl": 1}])
def test_a_missing_or_unknown_name_is_an_error(values: dict[str, int]) -> None:
    with pytest.raises((TypeError, KeyError)):
        _scripts.load("expire").order(values)


def test_a_script_is_read_once_in_a_process() -> None:
    script = _scripts.load("append")
    assert script is _scripts.load("append")
    assert script.sha == sha1(script.source.encode(), usedforsecurity=False).hexdigest()
