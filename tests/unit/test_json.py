"""JSON comes back equal, and what is not JSON is refused with the path to it."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import json
import math
import uuid
from collections import OrderedDict, deque
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstore import _json

FAITHFUL: dict[str, Any] = {
    "float that is whole": 1.0,
    "negative zero": -0.0,
    "smallest float": 5e-324,
    "largest float": 1.7976931348623157e308,
    "shortest digits": 0.1 + 0.2,
    "64 bits": [2**63 - 1, -(2**63), 2**63, 2**64 - 1],
    "beyond 64 bits": [2**64, -(2**63) - 1, 2**70, -(10**40)],
    "as many digits as Python reads": [10**4300 - 1, 1 - 10**4300],
    "beyond in a key's value": {"a": {"b": [2**70]}},
    "NUL": "a\x00b",
    "control characters": "".join(map(chr, range(32))),
    "line ends of JavaScript": "\u2028\u2029",
    "line feed": "a\nb\r\n",
    "emoji": "😀👩‍👩‍👧",
    "right to left": "שלום مرحبا",
    "lone surrogates": ["\ud800", "\udfff", "a\ud83d", "\ude00b", "\udc00\ud800"],
    "lone surrogate as a key": {"\ud800": 1},
    "text with quotes": '"\\/\b\f\t',
    "looks like an escape": "\\ud800\\u0000",
    "empty": [[], {}, "", None, [[]], [{}], {"": {}}],
    "bools are not numbers": [True, 1, False, 0],
    "key order": {"b": 1, "a": 2, "B": 3, "": 4},
    "200 levels": None,
}


def nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


FAITHFUL["200 levels"] = nested(200)


def back(value: Any) -> Any:
    codec, data = _json.dumps(_json.plain(value))
    return _json.loads(codec.encode() + data)


def exactly(value: Any) -> str:
    """Write a value so that 1, 1.0, True, -0.0 and the order of keys differ."""
    return repr(value)


@pytest.mark.parametrize("value", FAITHFUL.values(), ids=FAITHFUL.keys())
def test_it_comes_back_equal(value: Any) -> None:
    assert exactly(back(value)) == exactly(value)


# A high surrogate before a low one is one character in JSON: the one pair of texts that it
# cannot tell apart. No JSON parser gives the two halves separately.
def one_text(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


TEXTS = st.text(st.characters(codec=None, exclude_categories=())).map(one_text)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_any_json_comes_back_equal(value: Any) -> None:
    codec, data = _json.dumps(_json.plain(value))
    assert exactly(_json.loads(codec.encode() + data)) == exactly(value)
    assert json.loads(data) == value, "any JSON library reads it"


def test_surrogates_side_by_side_are_the_character_they_stand_for() -> None:
    assert back("\ud83d\ude00") == "😀"


def test_the_codec_says_who_has_to_read() -> None:
    assert _json.dumps([2**64 - 1])[0] == _json.FAST
    assert _json.dumps([2**64])[0] == _json.WIDE
    assert _json.dumps(["\ud800"]) == (_json.WIDE, rb'["\ud800"]')
    assert _json.dumps(["é"]) == (_json.FAST, '["é"]'.encode())


def test_utf8_is_not_escaped() -> None:
    assert _json.dumps(["中文", 2**70])[1] == '["中文",1180591620717411303424]'.encode()


class Colour(enum.StrEnum):
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


class Old(str, enum.Enum):  # noqa: UP042 - what many SDKs still have
    RED = "red"


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "something else"


class Whole(int):
    def __str__(self) -> str:
        return "something else"


class Real(float):
    def __repr__(self) -> str:
        return "something else"


class Pair(NamedTuple):
    a: int
    b: int


@pytest.mark.parametrize(
    "given_, plain",
    [
        (Colour.RED, "red"),
        (Old.RED, "red"),
        (Number.ONE, 1),
        (Text("text"), "text"),
        (Whole(7), 7),
        (Real(1.5), 1.5),
        (Pair(1, 2), [1, 2]),
        ((1, (2,)), [1, [2]]),
        ({Text("key"): Colour.RED, Colour.RED: 1}, {"key": "red", "red": 1}),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
    ],
)
def test_subclasses_become_what_they_stand_for(given_: Any, plain: Any) -> None:
    made = _json.plain(given_)
    assert made == plain

    def types(value: Any) -> Any:
        if isinstance(value, dict):
            return dict, [(type(key), types(item)) for key, item in value.items()]
        return (list, [types(item) for item in value]) if isinstance(value, list) else type(value)

    assert types(made) == types(plain)


@dataclass
class Thing:
    a: int = 1


LOOP: dict[str, Any] = {}
LOOP["again"] = [LOOP]


@pytest.mark.parametrize(
    "value, says",
    [
        ({"a": [1, {"b": math.nan}]}, r"^\.a\[1\]\.b: nan is not JSON"),
        ([math.inf], r"^\[0\]: inf is not JSON"),
        ({"a": 10**4300}, r"^\.a: a whole number of more than 4,300 digits cannot be read back"),
        ([1, -(10**4300)], r"^\[1\]: a whole number of more than 4,300 digits"),
        ([0, -math.inf], r"^\[1\]: -inf is not JSON"),
        ({"a": Real("nan")}, r"^\.a: nan is not JSON"),
        ({"image": b"\x00"}, r"^\.image: bytes has no JSON form"),
        ([bytearray()], r"^\[0\]: bytearray has no JSON form"),
        ({"tags": {1}}, r"^\.tags: set has no JSON form"),
        ([frozenset()], r"^\[0\]: frozenset"),
        ({"at": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)}, r"^\.at: datetime"),
        ([dt.date(2026, 1, 1)], r"^\[0\]: date"),
        ([uuid.UUID(int=1)], r"^\[0\]: UUID"),
        ([decimal.Decimal(1)], r"^\[0\]: Decimal"),
        ([Thing()], r"^\[0\]: Thing"),
        ([1j], r"^\[0\]: complex"),
        ([deque()], r"^\[0\]: deque"),
        ([MappingProxyType({})], r"^\[0\]: mappingproxy"),
        ([object()], r"^\[0\]: object"),
        ([print], r"^\[0\]: builtin_function_or_method"),
        ([(x for x in "a")], r"^\[0\]: generator"),
        ({"a": {1: 2}}, r"^\.a: the key 1 is int"),
        ({None: 2}, r"^the key None is NoneType"),
        ({"a": [{b"k": 2}]}, r"^\.a\[0\]: the key b'k' is bytes"),
        (LOOP, "contains itself"),
        (nested(202), "nested more than 200 levels"),
    ],
)
def test_what_is_not_json_is_refused_with_its_place(value: Any, says: str) -> None:
    with pytest.raises(_json.NotJsonError, match=says):
        _json.plain(value)


def test_the_copy_shares_nothing() -> None:
    inner = {"list": [1]}
    copy = _json.plain({"inner": inner})
    inner["list"].append(2)
    assert copy == {"inner": {"list": [1]}}


class Part(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")

    type: str = "text"
    text: str | None = None
    score: float | None = None


class Aliased(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(populate_by_name=True)

    from_: str = pydantic.Field(alias="from")


class Special(Part):
    more: int = 0


class Holder(pydantic.BaseModel):
    parts: list[Part]


class Nested(pydantic.BaseModel):
    role: str = "user"
    by_name: dict[str, list[Part]]
    pair: tuple[Part, int]
    plain: dict[str, Any]


class Broken:
    def model_dump(self, **_: object) -> list[int]:
        return [1]


def test_models_become_dicts_wherever_they_stand() -> None:
    value = {"content": [Part(text="a"), {"deep": (Part(text="b"),)}]}
    expected = {
        "content": [{"type": "text", "text": "a"}, {"deep": [{"type": "text", "text": "b"}]}]
    }
    assert _json.plain(value) == expected


def test_a_model_keeps_unknown_fields_and_given_nulls_and_drops_unset_ones() -> None:
    assert _json.plain(Part.model_validate({"text": None, "signature": "x"})) == {
        "type": "text",
        "text": None,
        "signature": "x",
    }


def test_a_model_speaks_by_its_aliases() -> None:
    assert _json.plain(Aliased.model_validate({"from": "a"})) == {"from": "a"}


def test_fields_of_a_subclass_survive_a_list_of_the_base() -> None:
    """G3: pydantic drops them by default when it dumps by the declared type."""
    dumped = _json.plain(Holder(parts=[Special(text="a", more=7)]))
    assert dumped["parts"][0].get("more", "lost") == 7


def test_tags_that_are_defaults_survive_at_any_depth() -> None:
    holder = Holder(parts=[Part(text="a"), Part(type="image")])
    assert _json.plain(holder) == {"parts": [{"type": "text", "text": "a"}, {"type": "image"}]}
    nested_ = Nested(by_name={"a": [Part(text="b")]}, pair=(Part(), 1), plain={"x": [{}]})
    assert _json.plain(nested_) == {
        "role": "user",
        "by_name": {"a": [{"type": "text", "text": "b"}]},
        "pair": [{"type": "text"}, 1],
        "plain": {"x": [{}]},
    }


def test_a_model_with_nan_is_refused() -> None:
    with pytest.raises(_json.NotJsonError, match=r"^\[0\]\.score: nan"):
        _json.plain([Part(score=math.nan)])


def test_a_model_may_dump_something_else() -> None:
    """That a message is a dict is for `messages` to say."""
    assert _json.plain([Broken()]) == [[1]]
