"""The two classes of facts are alike, thin, and brought in by nothing else."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from tests.lua import headers
from tests.unit.test_package import imported
from tests.unit.test_parity import members, names, plain, signature
from turnstore import _scripts, facts
from turnstore.facts._owner import FactKeys

SHELLS = (facts.Facts, facts.AsyncFacts)
OURS = [name for name in _scripts.names() if name.startswith("facts_")]


def test_names_signatures_and_texts_are_equal() -> None:
    sync, asyncio_ = SHELLS
    assert names(sync) == names(asyncio_)
    assert plain(sync.__doc__) == plain(asyncio_.__doc__)
    assert signature(sync.__init__) == signature(asyncio_.__init__)
    theirs = members(asyncio_)
    for name, member in members(sync).items():
        assert type(member) is type(theirs[name]), name
        assert plain(member.__doc__) == plain(theirs[name].__doc__), name
        if not isinstance(member, property):
            assert signature(member) == signature(theirs[name]), name


def test_what_sends_something_is_awaited() -> None:
    for name, member in members(facts.AsyncFacts).items():
        if not isinstance(member, property):
            assert inspect.iscoroutinefunction(member), name


@pytest.mark.parametrize("shell", SHELLS)
def test_each_method_says_what_it_does_costs_and_raises(shell: type[Any]) -> None:
    for name, member in members(shell).items():
        text = member.__doc__ or ""
        assert text, name
        if not isinstance(member, property):
            for section in ("Raises:", "Cost:", "Example:"):
                assert section in text, f"{name} has no {section}"


def test_nothing_of_it_comes_with_turnstore() -> None:
    brought = imported("import turnstore, turnstore.context, turnstore.cli")
    assert "numpy" not in brought
    assert not any(name.startswith("turnstore.facts") for name in brought)


@pytest.mark.parametrize("name", OURS)
def test_a_script_touches_one_owner_alone(name: str) -> None:
    header = headers.read(name)
    many = {key for key, mark in header.marks.items() if mark == "*"}
    assert set(header.keys) - many <= set(FactKeys._fields)


@pytest.mark.parametrize("name", OURS)
def test_no_key_is_built(name: str) -> None:
    code = headers.included(name)
    called = re.findall(r'redis\.p?call\(\s*"(\w+)"(?:, "\w+")?(?:, ([\w.]+))?', code)
    known = {"key", "KEYS", *FactKeys._fields, *(f"keys.{key}" for key in FactKeys._fields)}
    keys = {key for command, key in called if command != "TIME"}
    assert keys - known <= {"queue", "list", "change.vectors"}
