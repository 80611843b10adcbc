"""langchain-redis: RedisChatMessageHistory. It has no way to read the newest few: it reads all."""

# ruff: noqa: D102 (subjects.Subject says what the methods do)

from __future__ import annotations

from typing import Any

from base import Subject, langchain_messages
from langchain_redis import RedisChatMessageHistory
from redis import Redis


class Peer(Subject):
    """One history object a conversation, one client for all."""

    name = "langchain-redis"

    def __init__(self, url: str, limit: int = 0) -> None:
        super().__init__(url, limit)
        self.client = Redis.from_url(
            url, protocol=2
        )  # it cannot read RESP3 replies (0.2.6, redis-py 8)
        self.histories: dict[str, Any] = {}

    def native(self, turn: Any) -> Any:
        return langchain_messages(turn)

    def history(self, key: str) -> Any:
        """The history, made once."""
        if key not in self.histories:
            self.histories[key] = RedisChatMessageHistory(key, redis_client=self.client, ttl=86_400)
        return self.histories[key]

    def fill(self, key: str, turns: list[Any]) -> None:
        self.history(key).add_messages([message for turn in turns for message in turn])

    def append(self, key: str, turn: Any) -> None:
        self.history(key).add_messages(turn)

    def read(self, key: str, count: int) -> Any:
        return self.history(key).messages[-count:]

    def texts(self, key: str) -> list[str]:
        return [message.content for message in self.history(key).messages]

    def close(self) -> None:
        self.client.close()
