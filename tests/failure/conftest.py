"""What is done after tests of failures."""

from __future__ import annotations

import gc
import warnings
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let redis-py warn of connections that it lost sight of in a test that says so."""
    if item.get_closest_marker("drops_connections"):
        item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Collect these connections when the test is over, or they would warn in another one.

    Before this moment something of the test may still hold them: a fixture, a record of the log.
    """
    result = yield
    if item.get_closest_marker("drops_connections"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gc.collect()
    return result
