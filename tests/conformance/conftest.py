"""Each test of the suite, with each driver, on the first server of the matrix."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.driver import Limit
from tests.conformance.drivers import Missing, drivers
from tests.servers.found import lack
from turnstore.testing import ModelServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator

    from tests.conformance.driver import Driver
    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from tests.servers.setups import Setup
    from turnstore import AsyncConversation, AsyncStore

_HERE = Path(__file__).parent
_LIMIT = pytest.StashKey[Limit]()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "driver" in metafunc.fixturenames:
        found = drivers()
        metafunc.parametrize("driver", found, ids=[one.name for one in found], indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out a driver on stores of a kind that it is not for; mark what it cannot do."""
    left_out = []
    for item in items:
        if _HERE not in item.path.parents or not isinstance(item, pytest.Function):
            continue
        parameters: dict[str, Any] = item.callspec.params if hasattr(item, "callspec") else {}
        driver, setup = parameters.get("driver"), parameters.get("setup")
        if driver is None or isinstance(driver, Missing):
            continue
        if setup is not None and setup.client not in driver.kinds:
            left_out.append(item)
        elif limit := driver.cannot.get(item.originalname):
            reason = f"{driver.name}: {limit.reason}"
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
            item.stash[_LIMIT] = limit
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, Any]:
    """Let a test that cannot succeed fail in the way that was declared, and in no other."""
    report = yield
    limit = item.stash.get(_LIMIT, None)
    if limit is None or call.excinfo is None:
        return report
    found = f"{call.excinfo.typename}: {call.excinfo.value}"
    if call.when != "call" or not re.search(limit.failure, found, re.DOTALL):
        report.outcome = "failed"
        report.longrepr = (
            f"it had to fail with {limit.failure!r} ({limit.reason}), and did with\n\n"
            f"{call.excinfo.getrepr()}"
        )
        del report.wasxfail
    return report


@pytest.fixture
async def driver(
    request: pytest.FixtureRequest, setup: Setup, model: ModelServer
) -> AsyncIterator[Driver]:
    """Give one driver, of the kind of the store."""
    made = request.param
    if isinstance(made, Missing):
        lack(made.reason)
    driver: Driver = made(setup.client, model.base_url, model)
    yield driver
    await driver.close()


@pytest.fixture
def chat(store: AsyncStore) -> AsyncConversation:
    """Give an empty conversation."""
    return store.conversation("ada")


@pytest.fixture
def far(new_store: NewStore, proxy: Proxy) -> AsyncConversation:
    """Give an empty conversation behind the proxy."""
    return new_store(at=proxy).conversation("ada")
