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
    return [driver for module in _modules() for driver in _drivers_of(module)]


def driver_named(name: str) -> type[Driver]:
    """Give a driver by its name; no more SDKs are imported than need be."""
    likely = sorted(_modules(), key=lambda module: not name.startswith(module.replace("_", "-")))
    for module in likely:
        for driver in _drivers_of(module):
            if driver.name == name and not isinstance(driver, Missing):
                return driver
    raise LookupError(name)


def _modules() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(__path__)]


def _drivers_of(module: str) -> list[type[Driver] | Missing]:
    try:
        found: list[type[Driver] | Missing] = import_module(f"{__name__}.{module}").DRIVERS
    except ModuleNotFoundError as error:
        if (error.name or "").startswith(("tests", "turnstore")):
            raise
        return [Missing(module, f"{error.name} is not installed")]
    return found
