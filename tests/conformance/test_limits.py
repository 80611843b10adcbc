"""What drivers declare to be impossible are tests that are there, and are run with them."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

import pytest

from tests.conformance.drivers import Missing, drivers

ASYNC_ALONE = {"make_async_store", "async_redis_client"}


def _tests() -> dict[str, set[str]]:
    """The tests of the suite, with the fixtures that they take."""
    found = {}
    for file in sorted(Path(__file__).parent.glob("test_*.py")):
        module = import_module(f"tests.conformance.{file.stem}")
        for name, value in vars(module).items():
            if name.startswith("test_") and inspect.isfunction(value):
                found[name] = set(inspect.signature(value).parameters)
    return found


@pytest.mark.parametrize("made", drivers(), ids=lambda one: one.name)
def test_each_is_run(made: object) -> None:
    if isinstance(made, Missing):
        pytest.skip(made.reason)
    known = _tests()
    for name in made.cannot:  # type: ignore[attr-defined]
        assert "driver" in known[name]
        assert "async" in made.kinds or not known[name] & ASYNC_ALONE, name  # type: ignore[attr-defined]
