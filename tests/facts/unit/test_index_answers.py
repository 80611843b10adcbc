"""What an index may answer to a search, late or in part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from turnstore import UnavailableError
from turnstore.facts import Search
from turnstore.facts._space import Space
from turnstore.facts.engines._engine import Filter, Near
from turnstore.facts.engines._index import Found, read_found

if TYPE_CHECKING:
    from collections.abc import Sequence

SPACE = Space("search", "words:1", 2, "float32")


def answered(*answers: Found | dict[str, Any]) -> Sequence[str]:
    """Run a search for the nearest two, which asks for three, on these answers of the server."""

    class Place:
        digest = "d" * 32
        keys = "facts"

        @property
        def ground(self) -> Place:
            return self

        def index(self, token: str) -> bytes:
            return token.encode()

    question = np.array([1, 0], dtype=np.float32)
    place: Any = Place()
    flow = Search().nearest(place, SPACE, question, 2, Filter(5), 9)
    try:
        next(flow)
        for answer in answers:
            flow.send(answer)
    except StopIteration as stop:
        near: Near = stop.value
        return near.ids
    raise AssertionError("it asks for more")


def found(count: int, total: int, *warnings: str, told: bool) -> Found:
    vectors = np.array([[1 - n / 10, 0] for n in range(count)], dtype=np.float32)
    rows: dict[bytes, bytes | None] = {b"x:%d" % n: row.tobytes() for n, row in enumerate(vectors)}
    return Found(total, rows, told, tuple(warnings))


def test_a_server_that_was_too_slow_gives_no_part() -> None:
    too_few = (found(1, 1, told=False), found(0, 2, told=False), found(1, 1, told=False))
    with pytest.raises(UnavailableError, match="Timeout limit"):
        answered(found(1, 1, "Timeout limit was reached", told=True))
    with pytest.raises(UnavailableError, match="fewer than there are"):
        answered(*too_few, {"indexing": 0})
    assert not answered(*too_few, {"indexing": 1})
    assert len(answered(found(1, 1, told=True))) == 1
    assert len(answered(found(1, 1, told=False), found(0, 1, told=False))) == 1
    indexed_meanwhile = (found(1, 1, told=False), found(0, 2, told=False), found(2, 2, told=False))
    assert len(answered(*indexed_meanwhile)) == 2
    more_than_asked = (found(1, 1, told=False), found(0, 5, told=False), found(3, 5, told=False))
    assert len(answered(*more_than_asked)) == 3
    assert len(answered(found(3, 3, told=False))) == 3


def test_a_document_that_expired_meanwhile_has_no_vector() -> None:
    two = [2, b"x:1", [b"emb", b"1234", b"distance", b"0"], b"x:2", None]
    assert read_found(two).rows == {b"x:1": b"1234", b"x:2": None}
    row = {b"id": b"x:1", b"extra_attributes": {b"emb": b"1234"}, b"values": []}
    gone = {b"id": b"x:2", b"values": []}
    three = {b"total_results": 2, b"results": [row, gone], b"warning": [b"late"]}
    assert read_found(three) == Found(
        2, {b"x:1": b"1234", b"x:2": None}, has_warnings=True, warnings=("late",)
    )
    assert read_found([5]) == Found(5, {}, has_warnings=False)
    assert read_found([2, b"x:1", b"x:2"]).rows == {b"x:1": None, b"x:2": None}
