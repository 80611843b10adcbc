"""No connection came about: the error says why, and that nothing was sent, where that is sure."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from turnstore import AsyncStore, Store, UnavailableError
from turnstore.server import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

SENT, REFUSED = b"EVALSHA", b"-ERR unknown command\r\n"


@pytest.fixture(params=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _failed(kind: str, retries: int = 0, made: Any = None, **options: Any) -> UnavailableError:
    """Give the error of an append by a client with such options, or by one that is made."""
    options |= {"protocol": 2, "retry_on_error": [redis.ConnectionError]}
    if kind == "sync":
        client = (made or redis.Redis)(**options, retry=Retry(NoBackoff(), retries))
        try:
            with pytest.raises(UnavailableError) as caught:
                Store(client, name="test").conversation("ada").append("hi", turn_id="a")
        finally:
            client.close()
        return caught.value

    async def fails() -> UnavailableError:
        kept: Any = {**options, "retry": AsyncRetry(NoBackoff(), retries)}
        async with (made or redis.asyncio.Redis)(**kept) as client:
            with pytest.raises(UnavailableError) as caught:
                await AsyncStore(client, name="test").conversation("ada").append("hi", turn_id="a")
        return caught.value

    return asyncio.run(fails())


def _nothing_sent(error: UnavailableError, why: str) -> None:
    assert not error.outcome_unknown
    assert f"turns: {why}; nothing was sent. " in str(error)


@contextmanager
def _listener(answers: Callable[[socket.socket], None]) -> Generator[int]:
    """Give a port on which each connection is handled by a function until that returns."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:  # it was closed
                    return
                with connection:
                    answers(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("retries", [0, 2])
def test_a_refused_connection(kind: str, host: str, retries: int) -> None:
    error = _failed(kind, retries, host=host, port=free_port())
    _nothing_sent(error, "the connection was refused")
    assert "Start the server, or check the host and the port" in str(error)


def test_a_refusal_at_each_of_several_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """For asyncio they are one error, which says of none of them what it was."""
    ports = [free_port(), free_port()]

    def found(*_arguments: Any, **_options: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", one)) for one in ports]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    _nothing_sent(_failed("async", host="two.example"), "the connection was refused")


def test_a_host_that_is_not_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_arguments: Any, **_options: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", missing)
    _nothing_sent(_failed(kind, host="nobody.example"), "the name of the host was not found")


def test_a_unix_socket_that_is_not_there(kind: str, tmp_path: Path) -> None:
    error = _failed(kind, unix_socket_path=str(tmp_path / "s"))
    _nothing_sent(error, "there is no such file")


def test_a_server_that_speaks_no_tls(kind: str) -> None:
    with _listener(lambda connection: connection.sendall(b"-ERR what\r\n")) as port:
        error = _failed(kind, port=port, ssl=True)
    _nothing_sent(error, "the TLS handshake failed")


def test_a_connection_that_ends_before_it_is_ready(kind: str) -> None:
    """As a server does that wants TLS, or has as many clients as it may have."""
    with _listener(lambda _connection: None) as port:
        error = _failed(kind, port=port)
    _nothing_sent(error, "no connection that can be used")


def test_all_connections_of_the_pool_are_taken(kind: str) -> None:
    asynchronous: Any = redis.asyncio.ConnectionPool(max_connections=1)
    asynchronous.get_available_connection()
    pool: Any = redis.ConnectionPool(max_connections=1)
    pool.make_connection()

    def made(**_options: Any) -> Any:
        if kind == "sync":
            return redis.Redis(connection_pool=pool)
        return redis.asyncio.Redis(connection_pool=asynchronous)

    _nothing_sent(_failed(kind, made=made), "all connections of its client are in use")


@contextmanager
def _gone_after_a_command(answer: bytes) -> Generator[int]:
    """Give a port on which one command is answered, or not; then nobody is there any more."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                while SENT not in (data := connection.recv(65536)):
                    connection.sendall(REFUSED * data.count(b"SETINFO"))
                listening.close()
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


def test_a_refusal_after_a_sending_says_nothing_of_that(kind: str) -> None:
    """The server takes the command and is gone; redis-py sends again, and is refused."""
    with _gone_after_a_command(b"") as port:
        error = _failed(kind, 1, port=port)
    assert error.outcome_unknown
    assert "the connection was refused; it is not known whether it was carried out" in str(error)
    assert error.turn_id == "a"


def test_a_refusal_after_a_script_was_unknown(kind: str) -> None:
    """redis-py may have sent the script's name twice, the first time to a server that had it."""
    with _gone_after_a_command(b"-NOSCRIPT No matching script.\r\n") as port:
        error = _failed(kind, 1, port=port)
    assert error.outcome_unknown
    assert "the connection was refused; it is not known" in str(error)


def test_a_client_that_sends_again_by_itself(kind: str) -> None:
    """What a class of somebody else's did before, nobody knows."""

    class Stubborn(redis.Redis):
        def execute_command(self, *command: Any, **options: Any) -> Any:
            send: Any = super().execute_command
            try:
                return send(*command, **options)
            except redis.ConnectionError:
                return send(*command, **options)

    class AsyncStubborn(redis.asyncio.Redis):
        async def execute_command(self, *command: Any, **options: Any) -> Any:
            send: Any = super().execute_command
            try:
                return await send(*command, **options)
            except redis.ConnectionError:
                return await send(*command, **options)

    made = Stubborn if kind == "sync" else AsyncStubborn
    error = _failed(kind, made=made, port=free_port())
    assert error.outcome_unknown
    assert "the connection was refused; it is not known" in str(error)


@pytest.mark.parametrize("store", [Store, AsyncStore])
@pytest.mark.parametrize(
    "url, said",
    [
        ("redis://localhost?foo=bar", "'foo'"),
        ("redis://localhost?ssl_ca_certs=/a.pem", "'ssl_ca_certs'"),
        ("rediss://localhost?ssl_cert_reqs=perhaps", "perhaps"),
        ("unix:///a.socket?protocol=7", "2 or 3"),
    ],
)
def test_an_option_that_redis_py_does_not_know_is_refused_at_once(
    store: type[Store | AsyncStore], url: str, said: str
) -> None:
    with pytest.raises(ValueError, match=f"an option of the URL; it said: .*{said}"):
        store.from_url(url, name="test")
