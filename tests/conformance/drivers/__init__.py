"""The drivers, one module for each SDK: what it names in `DRIVERS` is run."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conformance.driver import Driver


@dataclass(frozen=True)
class Missing:
    """A module of drivers whose SDK is not installed here."""

    name: str
    reason: str


def drivers() -> list[type[Driver] | Missing]:
    """Give every driver, and what stands for those that cannot be imported."""
    found: list[type[Driver] | Missing] = []
    for module in pkgutil.iter_modules(__path__):
        try:
            found += import_module(f"{__name__}.{module.name}").DRIVERS
        except ModuleNotFoundError as error:
            if (error.name or "").startswith(("tests", "turnstore")):
                raise
            found.append(Missing(module.name, f"{error.name} is not installed"))
    return found


def driver_named(name: str) -> type[Driver]:
    """Give a driver by its name."""
    for driver in drivers():
        if driver.name == name and not isinstance(driver, Missing):
            return driver
    raise LookupError(name)
