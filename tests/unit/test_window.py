"""Window: what may be asked for."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from turnstore import Window


def test_no_limit_is_the_default() -> None:
    assert Window() == Window(turns=None, messages=None)


def test_it_is_a_value() -> None:
    assert Window(turns=3) == Window(turns=3) != Window(messages=3)
    assert len({Window(turns=3), Window(turns=3), Window(turns=4)}) == 2
    assert repr(Window(turns=3)) == "Window(turns=3, messages=None, tokens=None, step=None)"


def test_it_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Window().turns = 3  # type: ignore[misc]  # what is tested


@pytest.mark.parametrize("field", ["turns", "messages"])
@pytest.mark.parametrize("value", [0, -1, -(2**70)])
def test_a_limit_is_at_least_one(field: str, value: int) -> None:
    with pytest.raises(ValueError, match=rf"Window\({field}={value}\)"):
        Window(**{field: value})


@pytest.mark.parametrize("field", ["turns", "messages"])
@pytest.mark.parametrize("value", [1.0, "1", True, False, [1], float("nan")])
def test_a_limit_is_a_whole_number(field: str, value: Any) -> None:
    with pytest.raises(TypeError, match=rf"Window\({field}="):
        Window(**{field: value})


@pytest.mark.parametrize("field", ["turns", "messages"])
@pytest.mark.parametrize("value", [2**53 + 1, 2**70, 10**400])
def test_a_limit_is_a_number_that_the_server_can_count_to(field: str, value: int) -> None:
    with pytest.raises(ValueError, match=rf"Window\({field}=…\): a limit is at most 2\*\*53"):
        Window(**{field: value})


@pytest.mark.parametrize("value", [1, 2**53])
def test_large_and_small_limits_are_taken(value: int) -> None:
    assert Window(turns=value, messages=value).turns == value
