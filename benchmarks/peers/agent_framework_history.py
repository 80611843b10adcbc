"""agent-framework-redis: RedisHistoryProvider. It reads all, also before each append."""

# ruff: noqa: D102 (subjects.Subject says what the methods do)

from __future__ import annotations

from typing import Any

from agent_framework import Content, Message
from agent_framework_redis import RedisHistoryProvider
from base import Subject
from redis.asyncio import Redis


def _message(message: dict[str, Any]) -> Any:
    text = message["content"] or ""
    if message["role"] == "tool":
        result = Content.from_function_result(message["tool_call_id"], result=text)
        return Message("tool", [result])
    calls = [
        Content.from_function_call(
            c["id"], c["function"]["name"], arguments=c["function"]["arguments"]
        )
        for c in message.get("tool_calls", ())
    ]
    return Message(message["role"], [Content.from_text(text), *calls])


class Peer(Subject):
    """One provider for all sessions."""

    name = "agent-framework"
    kind = "async"

    def __init__(self, url: str, limit: int = 0) -> None:
        super().__init__(url, limit)
        self.client = Redis.from_url(url, decode_responses=True)
        self.provider = RedisHistoryProvider(redis_client=self.client, application_id="bench")

    def native(self, turn: Any) -> Any:
        return [_message(message) for message in turn]

    async def fill(self, key: str, turns: list[Any]) -> None:
        await self.provider.save_messages(key, [message for turn in turns for message in turn])

    def append(self, key: str, turn: Any) -> Any:
        return self.provider.save_messages(key, turn)

    async def read(self, key: str, count: int) -> Any:
        return (await self.provider.get_messages(key))[-count:]

    async def texts(self, key: str) -> list[str]:
        return [message.text for message in await self.provider.get_messages(key)]

    async def close(self) -> None:
        await self.client.aclose()
