"""The element and the head as they lie in Redis: golden bytes, later versions, damage."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstore import CorruptTurnError, FormatError, _element
from turnstore._element import Element

# What was written once is read for ever: these bytes may be added to, never changed.
GOLDEN: dict[bytes, tuple[Any, ...]] = {
    b'[1,1,1,2,0,1764452513000,2,"openai.chat","req-7","cl100k_base",'
    b'[{"role":"user","content":"hi"},{"role":"assistant","content":"\xc3\xa9"}]]': (
        (1, 1, 2, 0, 1764452513000, 2, "openai.chat", "req-7"),
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "é"}],
        {},
    ),
    b'[1,7,5,20,331,1764452513001,1,"openai.responses","x!~","",'
    b'[{"type":"reasoning"}],{"model":"m"}]': (
        (7, 5, 20, 331, 1764452513001, 1, "openai.responses", "x!~"),
        [{"type": "reasoning"}],
        {"model": "m"},
    ),
    b'w[1,2,2,3,0,1,1,"f","i","",'
    b'[{"n":1180591620717411303424,"t":"\\ud800"}],{"m":18446744073709551616}]': (
        (2, 2, 3, 0, 1, 1, "f", "i"),
        [{"n": 2**70, "t": "\ud800"}],
        {"m": 2**64},
    ),
}


def parse(raws: list[bytes]) -> list[Element]:
    return [Element(*row) for row in _element.parse(raws)]


def element(
    no: int = 1, payload: bytes = b"[{}]", count: int = 1, *, total: int | None = None
) -> bytes:
    totals = f"{no},{no},{no if total is None else total},0,1764452513000,{count}"
    return f'[1,{totals},"f","id-{no}","",'.encode() + payload + b"]"


@pytest.mark.parametrize("raw", GOLDEN, ids=["plain", "with meta", "wide"])
def test_golden_elements(raw: bytes) -> None:
    header, messages, meta = GOLDEN[raw]
    (read,) = parse([raw])
    assert read[1:9] == header
    assert read.messages == messages
    assert read.meta == meta
    assert read.revision == f"{header[0]}-{header[7]}"


@pytest.mark.parametrize("second", [element(2), b"w" + element(2, b'[{"n":18446744073709551616}]')])
def test_several_elements_at_once(second: bytes) -> None:
    read = parse([element(1), second, element(3)])
    assert [one.revision for one in read] == ["1-id-1", "2-id-2", "3-id-3"]
    assert [len(one.messages) for one in read] == [1, 1, 1]


def test_golden_payloads() -> None:
    messages = [{"role": "user", "content": "é"}]
    data = '[{"role":"user","content":"é"}]'.encode()
    assert _element.encode(messages, {}) == ("", data)
    assert _element.encode(messages, {"model": "m"}) == ("", data + b',{"model":"m"}')
    assert _element.encode(messages, {"n": 2**64}) == ("w", data + b',{"n":18446744073709551616}')
    assert _element.encode([{"n": 2**64}], {"a": 1}) == (
        "w",
        b'[{"n":18446744073709551616}],{"a":1}',
    )


def test_nothing_is_nothing() -> None:
    assert _element.parse([]) == []


@pytest.mark.parametrize("number", [b"2", b"10", b"999"])
@pytest.mark.parametrize(
    "before", [[], [element(1)], [b'w[1,1,1,1,0,1,1,"f","i","",[{"n":18446744073709551616}]]']]
)
def test_a_later_format_number_is_never_guessed(number: bytes, before: list[bytes]) -> None:
    later = [
        element(2).replace(b"[1,", b"[" + number + b",", 1),
        b"[" + number + b',{"new":"layout"}]',
    ]
    for raw in later:
        with pytest.raises(
            FormatError, match=f"format number {number.decode()}; this version reads 1"
        ):
            _element.parse([*before, raw])


DAMAGED = {
    "empty": b"",
    "not ours": b"hello",
    "a message of another library": b'{"role":"user","content":"hi"}',
    "an array of messages": b'[{"role":"user"}]',
    "cut short": element(2)[:-3],
    "one byte lost": element(2).replace(b"1764", b"17 64"),
    "more behind it": element(2) + b"]",
    "two in one": element(2) + b"," + element(3),
    "no messages": b'[1,2,2,2,0,1,1,"f","i",""]',
    "messages are an object": element(2, b'{"a":1}'),
    "a field too many": element(2, b"[{}],{},1"),
    "count too small": element(2, b"[{},{}]"),
    "count too large": element(2, b"[]"),
    "bytes that are no UTF-8": element(2, b'[{"a":"\xff"}]'),
    "a lone surrogate without its mark": element(2, rb'[{"a":"\ud800"}]'),
    "marked wide and cut": b"w" + element(2)[:-1],
    "another mark": b"z" + element(2),
    "the head in the middle": b"head 1 1 1 1 0 1 1 0 0 id",
    "only spaces": b"   ",
    "huge number": b"[1," + b"9" * 5000 + b"]",
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("raw", DAMAGED.values(), ids=DAMAGED.keys())
def test_damage_is_told_and_not_guessed(raw: bytes) -> None:
    for raws in ([raw], [element(1), raw], [element(1), raw, element(3)]):
        with pytest.raises(CorruptTurnError):
            _element.parse(raws)


@pytest.mark.parametrize(
    "raw",
    [
        element(2, b"[{}],[]"),
        b'[1,"2",2,2,0,1,1,"f","i","",[{}]]',
        b'[1,2,2,2,0,1,1,"f",7,"",[{}]]',
    ],
    ids=["meta is a list", "a number as text", "an id as a number"],
)
def test_odd_types_in_a_header_are_told_or_do_no_harm(raw: bytes) -> None:
    """Elements that are read at once are not looked at field by field."""
    try:
        rows = _element.parse([element(1), raw, element(3)])
    except CorruptTurnError:
        return
    assert list(_element.messages_of(rows)) == [{}, {}, {}]


def test_an_error_shows_only_the_beginning() -> None:
    with pytest.raises(CorruptTurnError) as told:
        _element.parse([b"[" + b"x" * 100_000])
    assert len(str(told.value)) < 400


@given(st.integers(0, len(element(2)) - 1), st.integers(0, 255))
def test_no_damaged_byte_is_a_crash(at: int, byte: int) -> None:
    raw = bytearray(element(2, b'[{"a":"b"}]'))
    raw[at] = byte
    try:
        (read,) = parse([bytes(raw)])
    except (CorruptTurnError, FormatError):
        return
    assert len(read.messages) == read.message_count


@pytest.mark.parametrize(
    "raw, is_head",
    [(b"head 1 1", True), (b"head 2 ", True), (b"header", False), (b"[1,", False), (b"", False)],
)
def test_the_head_is_known_by_its_first_word(raw: bytes, *, is_head: bool) -> None:
    assert _element.is_head(raw) is is_head


def test_golden_head() -> None:
    assert _element.head_tokens_before(b"head 1 7 5 20 331 3 2 4 99 3 a b c") == 99


def test_a_later_head_is_never_guessed() -> None:
    with pytest.raises(FormatError, match="format number 2"):
        _element.head_tokens_before(b"head 2 7 5 20 331 3 2 4 99 3 a b c")


@pytest.mark.parametrize(
    "raw", [b"head 1 7", b"head ", b"head 1 7 5 20 331 3 2 4 x a", b"head one 2 3"]
)
def test_a_damaged_head_is_told(raw: bytes) -> None:
    with pytest.raises((CorruptTurnError, FormatError)):
        _element.head_tokens_before(raw)
