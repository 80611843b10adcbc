"""The `google-genai` package: calls and chats, and what the SDK does with tools by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import httpx2
from google.genai import Client, types

from tests.conformance.driver import Driver, Limit
from turnstore.testing import Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

_CITY: Any = {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}}
_WEATHER = types.FunctionDeclaration(name="weather", description="How warm", parameters=_CITY)
_TOOLS = [types.Tool(function_declarations=[_WEATHER])]


class Contents(Driver):
    name = "google-contents"
    conflicts = (
        {"cached_content": "cachedContents/1"},
        {"continuation_token": b"x"},
        {"candidate_count": 2},
        {"http_options": {"extra_body": {"previousInteractionId": "x"}}},
    )
    passes = (({"store": True}, {"store": True}),)
    unfit = (
        *(Reply("No.", finish=reason) for reason in ("SAFETY", "RECITATION", "OTHER")),
        Reply(
            body={"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}},
            events=[{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}],
        ),
    )
    tool_named = 2
    _parts = (
        {"text": "Let me see", "thought": True},
        {"text": "", "thoughtSignature": "EqQBCg+//w=="},
        {"thingOf2031": {"new": [1.0, 2**70, {"x": None}]}},
        {"text": " é \u2028", "newField": None},
    )
    odd = (
        Reply(fields={"parts": list(_parts), "newer": []}),
        [{"role": "model", "parts": list(_parts), "newer": []}],
    )
    _opened: Client | None = None

    def client(self) -> Any:
        if self._opened is None:
            url = self.url.removesuffix("/v1")
            # Without a transport the SDK takes aiohttp, where it is installed, with a warning.
            args = {"transport": httpx2.AsyncHTTPTransport()} if self.kind == "async" else None
            options = types.HttpOptions(base_url=url, async_client_args=args)
            self._opened = Client(api_key="none", http_options=options)
        return self._opened

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.aio.aclose()
            self._opened.close()

    async def _ask(self, memory: Any, contents: Any, **options: Any) -> Any:
        ask = self.api(memory).models.generate_content
        config = types.GenerateContentConfig(**options)
        return await self.run(ask, model="m", contents=contents, config=config)

    def api(self, memory: Any) -> Any:
        """Give the half of the client that is of this kind."""
        return memory if self.kind == "sync" else memory.aio

    async def say(self, memory: Any, text: str, *, system: str = "", **options: Any) -> str:
        return _text(await self._ask(memory, text, system_instruction=system or None, **options))

    async def stream(self, memory: Any, text: str) -> AsyncIterator[str]:
        ask = self.api(memory).models.generate_content_stream
        async for chunk in self.items(await self.run(ask, model="m", contents=text)):
            if said := _text(chunk):
                yield said

    async def use_tool(self, memory: Any, text: str, tool: Callable[[str], str]) -> str:
        (call,) = (await self._ask(memory, text, tools=_TOOLS)).function_calls
        result = types.Part.from_function_response(
            name=call.name, response={"result": tool(call.args["city"])}
        )
        return _text(await self._ask(memory, result, tools=_TOOLS))


class Automatic(Contents):
    """The SDK calls the tool, and asks the model again."""

    name = "google-automatic"
    cannot: ClassVar = {
        "test_a_tool_that_fails_leaves_nothing_that_the_model_would_refuse": Limit(
            "the SDK tells the model what the tool raised, and raises nothing",
            r"DID NOT RAISE ToolError",
        )
    }

    async def use_tool(self, memory: Any, text: str, tool: Callable[[str], str]) -> str:
        return _text(await self._ask(memory, text, tools=[named(tool)]))


class Chat(Automatic):
    """One chat for each client with a memory, as long as the test."""

    name = "google-chat"

    def remember(self, chat: Any, **options: Any) -> Any:
        memory = super().remember(chat, **options)
        return self.api(memory).chats.create(model="m")

    async def _ask(self, memory: Any, contents: Any, **options: Any) -> Any:
        config = types.GenerateContentConfig(**options)
        return await self.run(memory.send_message, contents, config)

    async def stream(self, memory: Any, text: str) -> AsyncIterator[str]:
        async for chunk in self.items(await self.run(memory.send_message_stream, text)):
            if said := _text(chunk):
                yield said


def named(tool: Callable[[str], str]) -> Callable[[str], str]:
    """Make a tool of the name and the parameters that the suite's model calls."""

    def weather(city: str) -> str:
        """Say how warm it is."""
        return tool(city)

    return weather


def _text(reply: Any) -> str:
    """Give the text; the SDK's own property warns of parts that are not."""
    parts = reply.candidates[0].content.parts if reply.candidates else None
    return "".join(part.text or "" for part in parts or () if not part.thought)


DRIVERS = [Contents, Automatic, Chat]
