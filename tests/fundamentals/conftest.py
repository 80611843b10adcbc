"""The one fixture of these tests: a plain store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnstore import Store


@pytest.fixture
def store(make_store: Callable[..., Store]) -> Store:
    return make_store()
