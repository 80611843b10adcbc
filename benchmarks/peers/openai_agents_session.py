"""openai-agents: RedisSession."""

# ruff: noqa: D102 (subjects.Subject says what the methods do)

from __future__ import annotations

from typing import Any

from agents.extensions.memory import RedisSession
from base import Subject
from redis.asyncio import Redis


class Peer(Subject):
    """One session object a conversation, one client for all."""

    name = "openai-agents RedisSession"
    kind = "async"

    def __init__(self, url: str, limit: int = 0) -> None:
        super().__init__(url, limit)
        self.client = Redis.from_url(url)
        self.sessions: dict[str, Any] = {}

    def session(self, key: str) -> Any:
        """The session, made once."""
        if key not in self.sessions:
            self.sessions[key] = RedisSession(key, redis_client=self.client, ttl=86_400)
        return self.sessions[key]

    async def fill(self, key: str, turns: list[Any]) -> None:
        await self.session(key).add_items([message for turn in turns for message in turn])

    def append(self, key: str, turn: Any) -> Any:
        return self.session(key).add_items(turn)

    def read(self, key: str, count: int) -> Any:
        return self.session(key).get_items(limit=count)

    async def texts(self, key: str) -> list[str]:
        return [item["content"] for item in await self.session(key).get_items(limit=10**6)]

    async def close(self) -> None:
        await self.client.aclose()
