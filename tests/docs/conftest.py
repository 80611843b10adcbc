"""What the examples in pages and docstrings run on: a server and a model of their own."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import redis

from tests.servers import found
from tests.servers.cluster import start_cluster
from tests.waiting import wait_until
from turnstore.server import EmbeddedServer, free_port
from turnstore.testing import ModelServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def one_server() -> Iterator[EmbeddedServer]:
    if not found.binaries():
        found.lack("no server binary on this machine")
    with EmbeddedServer(binary=found.binaries()[0]) as server:
        yield server


@pytest.fixture
def redis_url(one_server: EmbeddedServer) -> str:
    """Give the URL of a server that is empty, and nobody else's."""
    with redis.Redis.from_url(one_server.url) as client:
        client.flushall()
    return one_server.url


@pytest.fixture
def cluster_url() -> Iterator[str]:
    """Give the URL of a node of a Cluster."""
    cluster = start_cluster(found.binaries()[0])
    host, port = cluster.addresses[0]
    yield f"redis://{host}:{port}"
    cluster.close()


@pytest.fixture
def sentinel_port(one_server: EmbeddedServer, tmp_path: Path) -> Iterator[int]:
    """Give the port of a Sentinel that watches over the server as `mymaster`."""
    port = free_port()
    conf = tmp_path / "sentinel.conf"
    conf.write_text(
        f"port {port}\nbind 127.0.0.1\nsentinel monitor mymaster 127.0.0.1 {one_server.port} 1\n"
    )
    with subprocess.Popen(
        [one_server.binary, conf, "--sentinel"], stdout=subprocess.DEVNULL, cwd=tmp_path
    ) as running:
        with redis.Redis(port=port) as client:
            wait_until(lambda: _is_ready(client))
        yield port
        running.kill()


def _is_ready(client: redis.Redis) -> bool:
    master: Any = {}
    with suppress(redis.ConnectionError):
        master = client.sentinel_master("mymaster")
    return bool(master.get("is_master"))


@pytest.fixture
def model_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """Give a model server, where `OpenAI()`, `Anthropic()` and `genai.Client()` find it."""
    with ModelServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "none-is-needed")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none-is-needed")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
        monkeypatch.setenv("GEMINI_API_KEY", "none-is-needed")
        monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
        monkeypatch.setenv("NO_PROXY", "*")
        yield server
