"""What is async has the names, signatures and texts of what is sync."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from tests.unit.test_parity import members, names, plain, signature
from turnstore import facts

PAIRS = [
    (facts.Exchanges, facts.AsyncExchanges),
    (facts.Extraction, facts.AsyncExtraction),
    (facts.WorkingMemory, facts.AsyncWorkingMemory),
    (facts.MemoryTools, facts.AsyncMemoryTools),
]
IDS = [pair[0].__name__ for pair in PAIRS]


@pytest.mark.parametrize("sync, asyncio_", PAIRS, ids=IDS)
def test_names_signatures_and_texts_are_equal(sync: type[Any], asyncio_: type[Any]) -> None:
    assert names(sync) == names(asyncio_)
    assert plain(sync.__doc__) == plain(asyncio_.__doc__)
    assert signature(sync.__init__) == signature(asyncio_.__init__)
    ours, theirs = members(sync), members(asyncio_)
    for name, member in ours.items():
        assert plain(member.__doc__) == plain(theirs[name].__doc__), name
        if inspect.isfunction(member):
            assert signature(member) == signature(theirs[name]), name


@pytest.mark.parametrize("sync, asyncio_", PAIRS, ids=IDS)
def test_what_waits_is_awaited(sync: type[Any], asyncio_: type[Any]) -> None:
    own = {name for name, member in vars(sync).items() if inspect.isfunction(member)}
    private = {name for name in own if name.startswith("_") and not name.endswith("__")}
    for name in own - private - {"__init__", "__enter__", "__exit__"}:
        assert inspect.iscoroutinefunction(getattr(asyncio_, name)), name
