"""redisvl: MessageHistory, one index for all conversations, told apart by their session tag."""

# ruff: noqa: D102 (subjects.Subject says what the methods do)

from __future__ import annotations

import json
from typing import Any

from base import Subject
from redis import Redis
from redisvl.extensions.message_history import MessageHistory

_ROLES = {"assistant": "llm"}


class Peer(Subject):
    """One history object for all conversations."""

    name = "redisvl MessageHistory"

    def __init__(self, url: str, limit: int = 0) -> None:
        super().__init__(url, limit)
        self.client = Redis.from_url(url)
        self.history: Any = MessageHistory(name="bench", redis_client=self.client)

    def native(self, turn: Any) -> Any:
        made = []
        for message in turn:
            entry = {
                "role": _ROLES.get(message["role"], message["role"]),
                "content": message["content"] or "",
            }
            if "tool_call_id" in message:
                entry["tool_call_id"] = message["tool_call_id"]
            if "tool_calls" in message:
                entry["metadata"] = {"tool_calls": json.dumps(message["tool_calls"])}
            made.append(entry)
        return made

    def fill(self, key: str, turns: list[Any]) -> None:
        for turn in turns:
            self.append(key, turn)

    def append(self, key: str, turn: Any) -> None:
        self.history.add_messages(turn, session_tag=key)

    def read(self, key: str, count: int) -> Any:
        return self.history.get_recent(top_k=count, session_tag=key)

    def texts(self, key: str) -> list[str]:
        return [m["content"] for m in self.history.get_recent(top_k=10_000, session_tag=key)]

    def close(self) -> None:
        self.client.close()
