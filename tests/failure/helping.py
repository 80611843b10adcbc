"""What several tests of failures need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import redis

from turnstore import _scripts

if TYPE_CHECKING:
    from tests.servers.running import Server
    from turnstore import AsyncConversation


def load_scripts(server: Server, key: str) -> None:
    """Let the server of `key` know all scripts, so that none is sent twice for being unknown."""
    raw: Any = server.raw
    where = {}
    if isinstance(raw, redis.RedisCluster):
        where["target_nodes"] = server.raw.get_node_from_key(key)
    for name in _scripts.names():
        server.raw.execute_command("SCRIPT LOAD", _scripts.load(name).source, **where)


async def said(chat: AsyncConversation) -> list[str]:
    """Read what was said, oldest first."""
    return [message["content"] for message in await chat.read()]
