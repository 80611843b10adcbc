"""The fixtures that every test may use; tests/README.md says how.

Nothing is started before a test asks for it, and each server is started once in a run (once in
each process, with pytest-xdist, so that processes do not share one).
"""

from __future__ import annotations

import gc
import importlib.metadata
import os
import sys
from contextlib import AsyncExitStack, ExitStack
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import pytest

from tests.servers import found as finding
from tests.servers import setups
from tests.servers.facade import as_async
from tests.servers.proxy import Proxy
from tests.servers.running import AsyncClient, Client, Server, Single
from turnstore.server import EmbeddedServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping
    from pathlib import Path

    from tests.servers.found import Found
    from tests.servers.setups import Setup
    from turnstore import AsyncStore, Conversation, Store
    from turnstore.testing import ModelServer

# LiteLLM asks the network for prices when it is imported, unless it is told to use its own.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")


def pytest_report_header() -> list[str]:
    servers = (*finding.servers(), *finding.with_search())
    found = ", ".join(f"{one.name} ({one.about})" for one in servers)
    lacking = ", ".join(one.name for one in finding.missing())
    clients = ", ".join(f"{name} {_version(name)}" for name in ("redis", "hiredis", "orjson"))
    return [f"servers: {found}", *([f"not here: {lacking}"] if lacking else []), f"with: {clients}"]


def pytest_collection_finish() -> None:
    """Let no collection of garbage look at the tests themselves: tens of thousands, all to stay.

    A collection goes through all that lives, which for them alone takes longer than most tests.
    """
    gc.collect()
    gc.freeze()


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


# Which servers and which client setups a test runs on follows from the fixtures it uses.

_SYNC = {"redis_client", "make_store"}
_ASYNC = {"async_redis_client", "make_async_store"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    names = set(metafunc.fixturenames)
    if "server" not in names:
        return
    servers = _servers(names, metafunc.definition.get_closest_marker("servers"))
    if "setup" not in names and "engine" in names:
        of_engines = [(one, engine) for one in servers for engine in one.engines]
        ids = [f"{one.name}-{engine}" for one, engine in of_engines]
        metafunc.parametrize("server, engine", of_engines, ids=ids, indirect=["server"])
        return
    if "setup" not in names:
        metafunc.parametrize("server", servers, ids=[one.name for one in servers], indirect=True)
        return
    one_setup = metafunc.definition.get_closest_marker("one_setup") or "own_server" in names
    pairs = [
        (one, setup)
        for one in servers
        for setup in _setups(one, metafunc.definition.nodeid if one_setup else None)
        if not (names & _SYNC and setup.client == "async")
        if not (names & _ASYNC and setup.client == "sync")
    ]
    if "engine" in names:  # of facts, in tests/facts
        metafunc.parametrize(
            "server, setup, engine",
            [
                pytest.param(one, setup, engine, id=f"{one.name}-{setup}-{engine}")
                for one, setup in pairs
                for engine in one.engines
            ],
            indirect=["server", "setup"],
        )
        return
    params = [pytest.param(one, setup, id=f"{one.name}-{setup}") for one, setup in pairs]
    metafunc.parametrize("server, setup", params, indirect=True)


def _servers(names: set[str], marker: pytest.Mark | None) -> list[Found]:
    """Give the servers that a test runs on; one that is not here, where there would be none."""
    wanted: tuple[str, ...] = marker.args if marker else ("",)
    of_facts = finding.with_search() if "engine" in names else ()
    fitting = [
        one
        for one in (*finding.servers(), *of_facts)
        if one.name.startswith(wanted)
        and (one.engines or "engine" not in names)
        and (one.has_socket or not names & {"proxy", "own_server"})
        and (one.name != "cluster" or "own_server" not in names)
    ]
    if marker and marker.kwargs.get("first"):
        fitting.sort(key=lambda one: [one.name.startswith(name) for name in wanted], reverse=True)
        fitting = fitting[:1]
    return fitting or [finding.absent(wanted)]


def _setups(server: Found, one_setup_of: str | None) -> tuple[Setup, ...]:
    if one_setup_of:
        return setups.one_for_each_client(f"{one_setup_of} on {server.name}")
    return setups.ALL if server is finding.servers()[0] else setups.PAIRWISE


@pytest.fixture(scope="session")
def running() -> Iterator[dict[str, Server]]:
    """Hold the servers that were started in this process."""
    servers: dict[str, Server] = {}
    yield servers
    for server in servers.values():
        server.close()


@pytest.fixture
def server(request: pytest.FixtureRequest, running: dict[str, Server]) -> Server:
    """Give one server of the matrix, running."""
    found: Found = request.param
    if found.name not in running:
        running[found.name] = found.start()
    return running[found.name]


@pytest.fixture
def setup(request: pytest.FixtureRequest) -> Setup:
    """Say how the client is to be set up."""
    chosen: Setup = request.param
    return chosen


@pytest.fixture
def prefix(request: pytest.FixtureRequest, server: Server) -> Iterator[str]:
    """Give a key prefix of the test's own; what is left under it is looked at, and removed.

    A key that would live for ever fails the test, unless it is marked `keeps_keys`.
    """
    prefix = f"test-{uuid4().hex}"
    yield prefix
    lives = server.lives(prefix)
    server.delete(lives)
    immortal = sorted(key.decode() for key, ttl in lives.items() if ttl == -1)
    if immortal and not request.node.get_closest_marker("keeps_keys"):
        pytest.fail(f"left without a time to live: {', '.join(immortal)}", pytrace=False)


@pytest.fixture
def redis_client(server: Server, setup: Setup) -> Iterator[Client]:
    """Give a sync Redis client, set up in each way."""
    client = server.client(setup)
    yield client
    client.close()


@pytest.fixture
async def async_redis_client(server: Server, setup: Setup) -> AsyncIterator[AsyncClient]:
    """Give an asyncio Redis client, set up in each way."""
    client = server.async_client(setup)
    yield client
    await client.aclose()


# Stores


class NewStore(Protocol):
    """Makes stores that run on both clients; see the fixture `new_store`."""

    def __call__(
        self,
        *,
        at: EmbeddedServer | Proxy | None = ...,
        redis: Mapping[str, object] = ...,
        **options: Any,
    ) -> AsyncStore: ...


@pytest.fixture
async def new_store(server: Server, setup: Setup, prefix: str) -> AsyncIterator[NewStore]:
    """Make stores for a test that is written once, for AsyncStore, and runs on Store too.

    `at` is a server of the test's own, or a proxy, to be used instead of `server`; `redis` are
    options for the Redis client; the others are the store's.
    """
    async with AsyncExitStack() as stack:

        def make(
            *,
            at: EmbeddedServer | Proxy | None = None,
            redis: Mapping[str, object] | None = None,
            **options: Any,
        ) -> AsyncStore:
            from turnstore import AsyncStore, Store  # noqa: PLC0415 (a fault in it fails tests alone)

            where = Single(at.url) if isinstance(at, EmbeddedServer) else server
            through = at if isinstance(at, Proxy) else None
            options = {"name": "test", "prefix": prefix, **options}
            if setup.client == "async":
                client = where.async_client(setup, through, **(redis or {}))
                stack.push_async_callback(client.aclose)
                return AsyncStore(client, **options)
            client = where.client(setup, through, **(redis or {}))
            stack.callback(client.close)
            return as_async(Store(client, **options))

        yield make


@pytest.fixture
def store(new_store: NewStore) -> AsyncStore:
    """Give a store with the default options, for a test that is written once."""
    return new_store()


@pytest.fixture
def make_store(redis_client: Client, prefix: str) -> Callable[..., Store]:
    """Make sync stores, for the few tests that are about Store alone."""

    def make(**options: Any) -> Store:
        from turnstore import Store  # noqa: PLC0415 (as above)

        return Store(redis_client, **{"name": "test", "prefix": prefix, **options})

    return make


@pytest.fixture
def make_async_store(async_redis_client: AsyncClient, prefix: str) -> Callable[..., AsyncStore]:
    """Make asyncio stores, for the few tests that are about AsyncStore alone."""

    def make(**options: Any) -> AsyncStore:
        from turnstore import AsyncStore  # noqa: PLC0415 (as above)

        return AsyncStore(async_redis_client, **{"name": "test", "prefix": prefix, **options})

    return make


@pytest.fixture
def chat(make_store: Callable[..., Store]) -> Conversation:
    """Give a conversation of a sync store with the default options."""
    return make_store().conversation("ada")


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """Give a model server of the test's own."""
    from turnstore.testing import ModelServer  # noqa: PLC0415 (as above)

    with ModelServer() as running:
        yield running


@pytest.fixture
def django_urls(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Give the module that Django, in this process, takes its URLs from; it is empty."""
    from django.conf import settings  # noqa: PLC0415 - only `make test-web` has it
    from django.urls import clear_url_caches  # noqa: PLC0415 - as above

    module = ModuleType("django_urls")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    if not settings.configured:
        settings.configure(ROOT_URLCONF=module.__name__, ALLOWED_HOSTS=["*"])
    clear_url_caches()
    return module


# Faults


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    """Give a proxy before `server` that cuts connections where it is told to."""
    if not server.addresses:
        pytest.skip("no proxy can stand before TLS or a Unix socket")
    with Proxy(server.addresses) as proxy:
        yield proxy


class OwnServer(Protocol):
    """Starts servers that a test may break; see the fixture `own_server`."""

    def __call__(
        self, *, appendonly: bool = ..., config: Mapping[str, str] | None = ...
    ) -> EmbeddedServer: ...


@pytest.fixture
def own_server(request: pytest.FixtureRequest) -> Iterator[OwnServer]:
    """Start servers of the test's own, with the binary of the server it is parametrised with.

    Such a test runs on each local binary, once for each client.
    """
    binary = _binary(request)
    with ExitStack() as stack:

        def start(
            *, appendonly: bool = False, config: Mapping[str, str] | None = None
        ) -> EmbeddedServer:
            server = EmbeddedServer(binary=binary, appendonly=appendonly, config=config)
            stack.enter_context(server)
            stack.callback(server.kill)  # nobody waits for the data of a test that is over
            return server

        yield start


def _binary(request: pytest.FixtureRequest) -> Path:
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    found: Found | None = parameters.get("server")
    if found and found.binary:
        return found.binary
    if not finding.binaries():
        finding.lack("no server binary on this machine, and the test has to break one")
    return finding.binaries()[0]
