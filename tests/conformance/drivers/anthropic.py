"""The Messages API of the `anthropic` package, and its beta twin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anthropic import Anthropic, AsyncAnthropic

from tests.conformance.driver import Driver
from turnstore.testing import Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

_TOOL = {
    "name": "weather",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}


class Messages(Driver):
    name = "anthropic-messages"
    conflicts = tuple(
        {"extra_body": {option: {"type": "x"}}}
        for option in ("thread", "context_management", "compaction")
    )
    passes = (({"container": "c"}, {"container": "c"}),)
    unfit = (Reply("No.", finish="refusal"), Reply("Wel", finish="model_context_window_exceeded"))
    _content = (
        {"type": "thinking", "thinking": "", "signature": "EqQBCg+/=="},
        {"type": "redacted_thinking", "data": "EmwKAhgB+/="},
        {"type": "thing_of_2031", "new": [1.0, 2**70, {"x": None}]},
        {"type": "text", "text": " é "},
    )
    odd = (
        Reply(fields={"content": list(_content)}),
        [{"role": "assistant", "content": list(_content)}],
    )
    _opened: Anthropic | AsyncAnthropic | None = None

    def client(self) -> Any:
        if self._opened is None:
            kind = Anthropic if self.kind == "sync" else AsyncAnthropic
            url = self.url.removesuffix("/v1")
            self._opened = kind(base_url=url, api_key="none", max_retries=0)
        return self._opened

    async def close(self) -> None:
        if self._opened is not None:
            await self.run(self._opened.close)

    def api(self, memory: Any) -> Any:
        return memory.messages

    async def _ask(self, memory: Any, content: Any, **options: Any) -> Any:
        messages = [{"role": "user", "content": content}]
        create = self.api(memory).create
        return await self.run(create, model="m", max_tokens=99, messages=messages, **options)

    async def say(self, memory: Any, text: str, *, system: str = "", **options: Any) -> str:
        beside = {"system": system} if system else {}
        return _text((await self._ask(memory, text, **beside, **options)).content)

    async def stream(self, memory: Any, text: str) -> AsyncIterator[str]:
        async for event in self.items(await self._ask(memory, text, stream=True)):
            if event.type == "content_block_delta" and event.delta.type == "text_delta":
                yield event.delta.text

    async def use_tool(self, memory: Any, text: str, tool: Callable[[str], str]) -> str:
        reply = await self._ask(memory, text, tools=[_TOOL])
        (call,) = reply.content
        result = {
            "type": "tool_result",
            "tool_use_id": call.id,
            "content": tool(call.input["city"]),
        }
        return _text((await self._ask(memory, [result], tools=[_TOOL])).content)


class Beta(Messages):
    name = "anthropic-beta"

    def api(self, memory: Any) -> Any:
        return memory.beta.messages


def _text(content: list[Any]) -> str:
    return "".join(block.text for block in content if block.type == "text")


DRIVERS = [Messages, Beta]
