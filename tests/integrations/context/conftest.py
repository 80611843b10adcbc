"""The settings of hypothesis are those of the other tests of contexts; no proxy is asked."""

from __future__ import annotations

import pytest

import tests.context.conftest  # noqa: F401 - it loads them


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
