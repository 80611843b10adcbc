"""A running server of the matrix: a single one, a Cluster, or fakeredis."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import fakeredis
import redis
import redis.asyncio
import redis.asyncio.cluster
import redis.asyncio.retry
import redis.retry
from redis.backoff import ExponentialBackoff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tests.servers.proxy import Proxy
    from tests.servers.setups import Setup

# What the tests hand to a store; redis-py's classes are alike enough for the commands tests use.
Client = Any
AsyncClient = Any
Address = tuple[str, int]

# redis.Redis(host=…) of redis-py 6 and later sends a command again after a lost connection, up to
# ten times; redis.Redis.from_url does not, nor does redis-py 5. Clients here do, whatever the
# version, unless a test says `retry=None`.
_BACKOFF = ExponentialBackoff(cap=0.1, base=0.01)
_LOST = [redis.ConnectionError, redis.TimeoutError]


class Server(ABC):
    """A running server, and how to connect to it."""

    #: where it listens; empty where there is no socket
    addresses: Sequence[Address] = ()

    @abstractmethod
    def client(self, setup: Setup, through: Proxy | None = None, **options: Any) -> Client:
        """Make a sync client; the caller closes it."""

    @abstractmethod
    def async_client(
        self, setup: Setup, through: Proxy | None = None, **options: Any
    ) -> AsyncClient:
        """Make an asyncio client; the caller closes it."""

    @abstractmethod
    def _raw(self) -> Client: ...

    @cached_property
    def raw(self) -> Client:
        """A sync client that gives bytes, to look behind a store's back."""
        return self._raw()

    def lives(self, prefix: str) -> dict[bytes, int]:
        """Give each key that begins with `prefix` and its PTTL: -1 is for ever."""
        keys = list(self.raw.scan_iter(match=f"{prefix}*", count=1000))
        return {key: self.raw.pttl(key) for key in keys}

    def delete(self, keys: Iterable[bytes]) -> None:
        """Delete `keys`, one by one: in a Cluster they live in several slots."""
        for key in keys:
            self.raw.delete(key)

    def close(self) -> None:
        """Close what belongs to the tests' side, then the server."""
        if "raw" in self.__dict__:
            self.raw.close()


class Single(Server):
    """One server, at a URL."""

    def __init__(self, url: str, stop: Callable[[], None] | None = None) -> None:
        self._url = url
        self._stop = stop
        parts = urlsplit(url)
        # A proxy cannot look into TLS, nor stand before a path.
        if parts.scheme == "redis":
            self.addresses = [(parts.hostname or "localhost", parts.port or 6379)]

    def client(self, setup: Setup, through: Proxy | None = None, **options: Any) -> Client:
        options = _sending_again(redis.retry.Retry(_BACKOFF, 5), options)
        return redis.Redis.from_url(self._address(through), **_choices(setup), **options)

    def async_client(
        self, setup: Setup, through: Proxy | None = None, **options: Any
    ) -> AsyncClient:
        options = _sending_again(redis.asyncio.retry.Retry(_BACKOFF, 5), options)
        return redis.asyncio.Redis.from_url(self._address(through), **_choices(setup), **options)

    def _raw(self) -> Client:
        return redis.Redis.from_url(self._url)

    def _address(self, through: Proxy | None) -> str:
        if through is None:
            return self._url
        parts = urlsplit(self._url)
        login, at, _ = parts.netloc.rpartition("@")
        host, port = through.address(self.addresses[0])
        return parts._replace(netloc=f"{login}{at}{host}:{port}").geturl()

    def close(self) -> None:
        super().close()
        if self._stop:
            self._stop()


class Clustered(Server):
    """A Cluster, known by the addresses of its masters."""

    def __init__(
        self, addresses: Sequence[Address], stop: Callable[[], None] | None = None
    ) -> None:
        self.addresses = addresses
        self._stop = stop

    def client(self, setup: Setup, through: Proxy | None = None, **options: Any) -> Client:
        return redis.RedisCluster(**self._where(through), **_choices(setup), **options)

    def async_client(
        self, setup: Setup, through: Proxy | None = None, **options: Any
    ) -> AsyncClient:
        return redis.asyncio.cluster.RedisCluster(
            **self._where(through), **_choices(setup), **options
        )

    def _raw(self) -> Client:
        return redis.RedisCluster(**self._where(None))

    def _where(self, through: Proxy | None) -> dict[str, Any]:
        host, port = self.addresses[0]
        # The nodes name one another by their real addresses, which the client has to translate.
        remap = {"address_remap": through.address} if through else {}
        return {"host": host, "port": port, **remap}

    def close(self) -> None:
        super().close()
        if self._stop:
            self._stop()


class Fake(Server):
    """Fakeredis: a server made of Python, in this process, without a socket."""

    def __init__(self) -> None:
        self._server = fakeredis.FakeServer()

    def client(self, setup: Setup, through: Proxy | None = None, **options: Any) -> Client:
        assert through is None, "fakeredis has no connection to stand before"
        return fakeredis.FakeRedis(server=self._server, **_choices(setup), **options)

    def async_client(
        self, setup: Setup, through: Proxy | None = None, **options: Any
    ) -> AsyncClient:
        assert through is None, "fakeredis has no connection to stand before"
        return fakeredis.FakeAsyncRedis(server=self._server, **_choices(setup), **options)

    def _raw(self) -> Client:
        return fakeredis.FakeRedis(server=self._server)


def _choices(setup: Setup) -> dict[str, Any]:
    return {"protocol": setup.protocol, "decode_responses": setup.decode}


def _sending_again(retry: object, options: dict[str, Any]) -> dict[str, Any]:
    if "retry" in options:
        return options
    return {"retry": retry, "retry_on_error": _LOST, **options}
