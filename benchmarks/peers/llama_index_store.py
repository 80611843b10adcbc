"""llama-index: RedisChatStore. It has no way to read the newest few: it reads all."""

# ruff: noqa: D102 (subjects.Subject says what the methods do)

from __future__ import annotations

from typing import Any

from base import Subject
from llama_index.core.llms import ChatMessage
from llama_index.storage.chat_store.redis import RedisChatStore


class Peer(Subject):
    """One store for all conversations."""

    name = "llama-index"

    def __init__(self, url: str, limit: int = 0) -> None:
        super().__init__(url, limit)
        self.store = RedisChatStore(redis_url=url, ttl=86_400)

    def native(self, turn: Any) -> Any:
        made = []
        for message in turn:
            more = {k: v for k, v in message.items() if k not in {"role", "content"}}
            made.append(
                ChatMessage(
                    role=message["role"], content=message["content"], additional_kwargs=more
                )
            )
        return made

    def fill(self, key: str, turns: list[Any]) -> None:
        for turn in turns:
            self.append(key, turn)

    def append(self, key: str, turn: Any) -> None:
        for message in turn:
            self.store.add_message(key, message)

    def read(self, key: str, count: int) -> Any:
        return self.store.get_messages(key)[-count:]

    def texts(self, key: str) -> list[Any]:
        return [message.content for message in self.store.get_messages(key)]
