"""The applications of the guides, and whether they have left the model."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turnstore.testing import ModelServer

ROOT = Path(__file__).parents[2]

_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def code_of(guide: str, redis_url: str, name: str) -> str:
    """Give the application in a guide, on this Redis, with a store of this name."""
    text = (ROOT / f"docs/guides/web/{guide}.md").read_text()
    blocks = [block for block in _BLOCK.findall(text) if "#>" not in block]
    code = "\n".join(blocks)
    return code.replace("redis://localhost:6379", redis_url).replace('"shop"', f'"{name}"')


def left(model: ModelServer) -> bool:
    """Say whether no client waits for the model: the answer that it is at has nobody any more."""
    assert model._http is not None
    return all(_is_left(connection) for connection in list(model._http.open))


def _is_left(connection: socket.socket) -> bool:
    try:
        return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:  # closed on this side too
        return True
