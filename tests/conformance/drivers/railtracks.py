"""Agents of Railtracks, where it is: it has an environment of its own, `make test-railtracks`."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conformance.driver import Driver

DRIVERS: list[type[Driver]] = []

if find_spec("railtracks"):
    DRIVERS += import_module("tests.integrations.railtracks.driver").DRIVERS
