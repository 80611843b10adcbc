"""LiteLLM: its functions for chat completions and responses, and the Router's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import litellm
from litellm.router import Router
from openai import OpenAI

from tests.conformance.driver import Driver, Json
from tests.litellms import close_clients
from turnstore.testing import Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

_CITY = {"type": "object", "properties": {"city": {"type": "string"}}}


class _LiteLLM(Driver):
    unfit = (Reply(refusal="No."), Reply("Wel", finish="content_filter"))
    model = "openai/gpt-4o"  # a name of LiteLLM's list; of others it makes the stream up itself

    @property
    def where(self) -> Json:
        return {"model": self.model, "api_base": self.url, "api_key": "none", "max_retries": 0}

    async def close(self) -> None:
        await close_clients()


class Completion(_LiteLLM):
    name = "litellm-completion"
    conflicts = (
        {"n": 2},
        {"previous_response_id": "r"},
        {"extra_body": {"conversation": "c"}},
        {"context_management": {"edits": []}},
        {"cached_content": "cachedContents/1"},
        {"extra_body": {"cachedContent": "cachedContents/1"}},
    )
    passes = (({"store": True}, {"store": True}),)
    # Fields that LiteLLM does not know go, in a plain answer, to where it keeps a provider's own.
    _said: Json = {"role": "assistant", "content": "\x00 \u2028 é", "reasoning_content": "hm"}  # noqa: RUF012
    _new = (1.0, 2**70, {"x": None})
    odd = (
        Reply(
            body={
                "id": "c",
                "choices": [
                    {"index": 0, "finish_reason": "stop", "message": {**_said, "zz": list(_new)}}
                ],
            }
        ),
        [{**_said, "provider_specific_fields": {"zz": list(_new)}}],
    )
    odd_streamed = Reply(
        events=[
            {
                "choices": [
                    {
                        "index": 0,
                        "delta": {**_said, "provider_specific_fields": {"zz": list(_new)}},
                        "finish_reason": None,
                    }
                ]
            },
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ]
    )

    _opened: OpenAI | None = None

    def client(self) -> Any:
        return litellm.completion if self.kind == "sync" else litellm.acompletion

    @property
    def below(self) -> Json:
        """The client below LiteLLM's: threads that begin at once each make one, and one is kept."""
        if self._opened is None and self.kind == "sync":
            self._opened = OpenAI(base_url=self.url, api_key="none", max_retries=0)
        return {"client": self._opened} if self._opened is not None else {}

    async def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
        await super().close()

    async def _ask(self, memory: Any, messages: list[Json], **options: Any) -> Any:
        return await self.run(memory, **self.where, **self.below, messages=messages, **options)

    async def say(self, memory: Any, text: str, *, system: str = "", **options: Any) -> str:
        messages: list[Json] = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": text})
        return str((await self._ask(memory, messages, **options)).choices[0].message.content)

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


class Responses(_LiteLLM):
    name = "litellm-responses"
    conflicts = (
        {"previous_response_id": "r"},
        {"conversation": "c"},
        {"background": True},
        {"prompt": {"id": "p"}},
    )
    passes = (({"store": True}, {"store": True}),)
    # In the order in which LiteLLM's objects have their fields.
    _odd = (
        {"id": "rs", "summary": [], "type": "reasoning", "encrypted_content": "x+/=", "new": 1.0},
        {"type": "thing_of_2031", "id": "t", "nothing": None},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
    )
    _response: Mapping[str, Any] = {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": _odd,
    }
    odd = (Reply(body=_response), list(_odd))
    odd_streamed = Reply(events=[{"type": "response.completed", "response": _response}])

    def client(self) -> Any:
        return litellm.responses if self.kind == "sync" else litellm.aresponses

    async def _ask(self, memory: Any, given: Any, **options: Any) -> Any:
        return await self.run(memory, given, **self.where, **options)

    async def say(self, memory: Any, text: str, *, system: str = "", **options: Any) -> str:
        beside = {"instructions": system} if system else {}
        return str((await self._ask(memory, text, **beside, **options)).output_text)

    async def stream(self, memory: Any, text: str) -> AsyncIterator[str]:
        async for event in self.items(await self._ask(memory, text, stream=True)):
            if event.type == "response.output_text.delta":
                yield event.delta

    async def use_tool(self, memory: Any, text: str, tool: Callable[[str], str]) -> str:
        tools = [{"type": "function", "name": "weather", "parameters": _CITY, "strict": False}]
        (call,) = (await self._ask(memory, text, tools=tools)).output
        said = tool(json.loads(call.arguments)["city"])
        result = {"type": "function_call_output", "call_id": call.call_id, "output": said}
        return str((await self._ask(memory, [result], tools=tools)).output_text)


class RouterCompletion(Completion):
    """The Router chooses among its deployments for each call."""

    name = "litellm-router"

    def client(self) -> Any:
        parameters = {**self.where, "max_retries": 0}
        return Router(
            model_list=[{"model_name": "m", "litellm_params": parameters}],
            num_retries=0,
            disable_cooldowns=True,
        )

    async def _ask(self, memory: Any, messages: list[Json], **options: Any) -> Any:
        ask = memory.completion if self.kind == "sync" else memory.acompletion
        return await self.run(ask, "m", messages, **self.below, **options)


class RouterResponses(Responses):
    name = "litellm-router-responses"
    client = RouterCompletion.client

    async def _ask(self, memory: Any, given: Any, **options: Any) -> Any:
        ask = memory.responses if self.kind == "sync" else memory.aresponses
        return await self.run(ask, model="m", input=given, **options)


DRIVERS = [Completion, Responses, RouterCompletion, RouterResponses]
