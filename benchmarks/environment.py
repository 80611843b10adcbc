"""What a result was measured with. No host name, no path."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import local_server
import redis

_PACKAGES = ("turnstore", "redis", "hiredis", "orjson", "pydantic", "openai")


def versions(names: tuple[str, ...] = _PACKAGES) -> dict[str, str]:
    """The versions of those packages that are installed."""
    found: dict[str, str] = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str | None:
    """The commit that was measured, with `+` where files differ from it; None without git."""
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        head = subprocess.run(
            [*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
        )
        changed = subprocess.run(
            [*git, "diff", "--quiet", "HEAD", "--", "../src", "../lua"], check=False
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return head.stdout.strip() + ("+" if changed.returncode else "")


def describe(url: str) -> dict[str, Any]:
    """This machine, this Python, that server."""
    client: Any = redis.Redis.from_url(url)
    info = client.info("server")
    client.close()
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "server": f"Redis {info['redis_version']}",
        "server_from": local_server.binary()[1],
        "packages": versions(),
        "commit": commit(),
    }
