"""Functions that are given the messages, of every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openai import AsyncOpenAI, OpenAI

from tests.conformance.driver import Driver, Json, Limit
from turnstore.testing import Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

_NO_MARK = Limit(
    "a function says what the model said, and not whether the model said it was done",
    r"Left contains 2 more items",
)


class Functions(Driver):
    """A function that answers text, and one that yields it, around OpenAI's client."""

    name = "callables"
    unfit = (Reply("Wel", finish="content_filter"),)
    cannot = {  # noqa: RUF012
        "test_options_in_conflict_are_refused_before_anything_is_asked": Limit(
            "what a function's other arguments mean is the function's own business",
            r"a driver names what its SDK has",
        ),
        "test_an_answer_that_did_not_succeed_is_not_saved": _NO_MARK,
        "test_a_truncated_stream_saves_nothing": _NO_MARK,
    }
    # In the order in which the SDK's objects have their fields.
    _message: Json = {"content": "\x00 é", "role": "assistant", "zz": [1.0, 2**70, {"x": None}]}  # noqa: RUF012
    odd = (
        Reply(
            body={
                "id": "c",
                "choices": [{"index": 0, "finish_reason": "stop", "message": _message}],
            }
        ),
        [_message],
    )
    odd_streamed = Reply(
        events=[{"choices": [{"index": 0, "delta": _message, "finish_reason": "stop"}]}]
    )
    _opened: OpenAI | AsyncOpenAI | None = None

    def client(self) -> Any:
        if self._opened is None:
            kind = OpenAI if self.kind == "sync" else AsyncOpenAI
            self._opened = kind(base_url=self.url, api_key="none", max_retries=0)
        return self._opened

    async def close(self) -> None:
        if self._opened is not None:
            await self.run(self._opened.close)

    def remember(self, chat: Any, **options: Any) -> Any:
        create = self.client().chat.completions.create

        def ask(messages: list[Json]) -> Any:
            return create(model="m", messages=messages).choices[0].message

        def words(messages: list[Json]) -> Iterator[Any]:
            for chunk in create(model="m", messages=messages, stream=True):
                for choice in chunk.choices:
                    yield _piece(choice.delta)

        async def async_ask(messages: list[Json]) -> Any:
            return (await create(model="m", messages=messages)).choices[0].message

        async def async_words(messages: list[Json]) -> AsyncIterator[Any]:
            async for chunk in await create(model="m", messages=messages, stream=True):
                for choice in chunk.choices:
                    yield _piece(choice.delta)

        both = (ask, words) if self.kind == "sync" else (async_ask, async_words)
        return [chat.wrap(function, **options) for function in both]

    async def say(self, memory: Any, text: str, *, system: str = "", **options: Any) -> str:
        messages: list[Json] = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": text})
        return str((await self.run(memory[0], messages, **options)).content)

    async def stream(self, memory: Any, text: str) -> AsyncIterator[str]:
        async for piece in self.items(memory[1](text)):
            if isinstance(piece, str) and piece:
                yield piece

    async def use_tool(self, memory: Any, text: str, tool: Callable[[str], str]) -> str:
        (call,) = (await self.run(memory[0], text)).tool_calls
        assert call.function.name == "weather"
        result = {"role": "tool", "tool_call_id": call.id, "content": tool("Rome")}
        return str((await self.run(memory[0], [result])).content)


def _piece(delta: Any) -> Any:
    """Give the text of a delta, or all of it where it has fields that nobody knows."""
    return delta if delta.model_extra else delta.content


DRIVERS = [Functions]
