"""Chat completions and responses of the `openai` package."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from openai import AsyncOpenAI, OpenAI

from tests.conformance.driver import Driver, Json
from turnstore.testing import Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

_CITY = {"type": "object", "properties": {"city": {"type": "string"}}}


class _OpenAI(Driver):
    unfit = (Reply(refusal="No."), Reply("Wel", finish="content_filter"))
    _opened: OpenAI | AsyncOpenAI | None = None

    def client(self) -> Any:
        if self._opened is None:
            kind = OpenAI if self.kind == "sync" else AsyncOpenAI
            self._opened = kind(base_url=self.url, api_key="none", max_retries=0)
        return self._opened

    async def close(self) -> None:
        if self._opened is not None:
            await self.run(self._opened.close)


class Chat(_OpenAI):
    name = "openai-chat"
    conflicts = ({"n": 2}, {"extra_body": {"previous_response_id": "r"}})
    passes = (({"store": True}, {"store": True}),)
    _odd = {  # noqa: RUF012
        "role": "assistant",  # first, as a stream has it
        "zz": [1.0, 2**70, {"x": None}],
        "content": "\x00 \u2028 é",
        "reasoning_content": "hm",
    }
    odd = (
        Reply(
            body={"id": "c", "choices": [{"index": 0, "finish_reason": "stop", "message": _odd}]}
        ),
        [_odd],
    )
    odd_streamed = Reply(
        events=[
            {"choices": [{"index": 0, "delta": _odd, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ]
    )

    async def say(self, memory: Any, text: str, *, system: str = "", **options: Any) -> str:
        messages: list[Json] = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": text})
        return str((await self._ask(memory, messages, **options)).choices[0].message.content)

    async def _ask(self, memory: Any, messages: list[Json], **options: Any) -> Any:
        create = memory.chat.completions.create
        return await self.run(create, model="m", messages=messages, **options)

    async def stream(self, memory: Any, text: str) -> AsyncIterator[str]:
        asked = [{"role": "user", "content": text}]
        async for chunk in self.items(await self._ask(memory, asked, stream=True)):
            for choice in chunk.choices:
                if choice.delta.content:
                    yield choice.delta.content

    async def use_tool(self, memory: Any, text: str, tool: Callable[[str], str]) -> str:
        tools = [{"type": "function", "function": {"name": "weather", "parameters": _CITY}}]
        reply = await self._ask(memory, [{"role": "user", "content": text}], tools=tools)
        (call,) = reply.choices[0].message.tool_calls
        said = tool(json.loads(call.function.arguments)["city"])
        result = {"role": "tool", "tool_call_id": call.id, "content": said}
        reply = await self._ask(memory, [result], tools=tools)
        return str(reply.choices[0].message.content)


class Responses(_OpenAI):
    name = "openai-responses"
    conflicts = (
        {"previous_response_id": "r"},
        {"conversation": "c"},
        {"background": True},
        {"prompt": {"id": "p"}},
    )
    passes = (({"store": True}, {"store": True}),)
    _odd = (
        {"type": "reasoning", "id": "rs", "encrypted_content": "x+/=", "summary": [], "new": 1.0},
        {"type": "thing_of_2031", "id": "t", "nothing": None},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
    )
    odd = (Reply(body={"id": "r", "status": "completed", "output": _odd}), list(_odd))
    odd_streamed = Reply(
        events=[
            {
                "type": "response.completed",
                "sequence_number": 0,
                "response": {
                    "id": "r",
                    "object": "response",
                    "status": "completed",
                    "output": _odd,
                },
            }
        ]
    )

    async def say(self, memory: Any, text: str, *, system: str = "", **options: Any) -> str:
        beside = {"instructions": system} if system else {}
        return str((await self._ask(memory, text, **beside, **options)).output_text)

    async def _ask(self, memory: Any, given: Any, **options: Any) -> Any:
        return await self.run(memory.responses.create, model="m", input=given, **options)

    async def stream(self, memory: Any, text: str) -> AsyncIterator[str]:
        async for event in self.items(await self._ask(memory, text, stream=True)):
            if event.type == "response.output_text.delta":
                yield event.delta

    async def use_tool(self, memory: Any, text: str, tool: Callable[[str], str]) -> str:
        tools = [{"type": "function", "name": "weather", "parameters": _CITY, "strict": False}]
        reply = await self._ask(memory, text, tools=tools)
        (call,) = reply.output
        said = tool(json.loads(call.arguments)["city"])
        result = {"type": "function_call_output", "call_id": call.call_id, "output": said}
        return str((await self._ask(memory, [result], tools=tools)).output_text)


DRIVERS = [Chat, Responses]
