"""langchain-community: RedisChatMessageHistory. It cannot read the newest few: it reads all."""

# ruff: noqa: D102 (subjects.Subject says what the methods do)

from __future__ import annotations

from typing import Any

from base import Subject, langchain_messages
from langchain_community.chat_message_histories import RedisChatMessageHistory


class Peer(Subject):
    """One history object a conversation; each opens a client of its own."""

    name = "langchain-community"

    def __init__(self, url: str, limit: int = 0) -> None:
        super().__init__(url, limit)
        self.histories: dict[str, Any] = {}

    def native(self, turn: Any) -> Any:
        return langchain_messages(turn)

    def history(self, key: str) -> Any:
        """The history, made once."""
        if key not in self.histories:
            self.histories[key] = RedisChatMessageHistory(key, url=self.url, ttl=86_400)
        return self.histories[key]

    def fill(self, key: str, turns: list[Any]) -> None:
        for turn in turns:
            self.history(key).add_messages(turn)

    def append(self, key: str, turn: Any) -> None:
        self.history(key).add_messages(turn)

    def read(self, key: str, count: int) -> Any:
        return self.history(key).messages[-count:]

    def texts(self, key: str) -> list[str]:
        return [message.content for message in self.history(key).messages]
