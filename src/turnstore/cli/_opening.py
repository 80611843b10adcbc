"""The store that a command is about: opened as its arguments say."""

from __future__ import annotations

import argparse
import os

from ..store import Store

__all__ = ["opened"]


def opened(options: argparse.Namespace) -> Store:
    """Open the store that the arguments name; it is for the caller to close."""
    url = options.url
    if url is None:
        url = os.environ.get("REDIS_URL") or "redis://localhost:6379"
    secret = options.secret_file.read_bytes() if options.secret_file else None
    return Store.from_url(
        url, cluster=options.cluster, name=options.store, prefix=options.prefix, secret=secret
    )
