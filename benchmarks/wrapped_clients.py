"""The clients that `wrap` gives a memory to, each behind one face: what the case `wrap` measures.

For another client, write a class and name it in `CLIENTS`. It imports its SDK when it is made, so
that one which is not installed is left out; the model server answers it at `url`.
"""

# ruff: noqa: D102 (Client says what the methods do)

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from harness import Kind
    from mix import Message, Turn

MODEL = "bench"


class Client:
    """One SDK.

    Args:
        kind: Which of its clients.
        url: Where the model server listens, without a path.
    """

    name: ClassVar[str]
    format: ClassVar[str] = "openai.chat"

    def __init__(self, kind: Kind, url: str) -> None:
        self.kind = kind
        self.url = url
        self.client = self.make()

    def make(self) -> Any:
        """Make the client that is wrapped."""
        raise NotImplementedError

    def native(self, turn: Turn) -> Turn:
        """A turn of the mix as this provider's JSON has it."""
        return turn

    def call(self, client: Any, messages: list[Message], *, stream: bool, past: bool) -> Any:
        """Call a model, by a client with or without a memory.

        Args:
            client: The client.
            messages: What it is sent.
            stream: Whether the answer is streamed.
            past: Whether the messages go past what the SDK does with each of them.
        """
        raise NotImplementedError

    def text(self, answer: Any) -> str:
        """The text of an answer, or of a chunk of one."""
        raise NotImplementedError

    def close(self) -> Any:
        """Close the client."""
        return self.client.close()


class OpenAI(Client):
    """The `openai` package."""

    name = "openai"

    def make(self) -> Any:
        import openai  # noqa: PLC0415 (an extra)

        kind = openai.OpenAI if self.kind == "sync" else openai.AsyncOpenAI
        return kind(api_key="none", base_url=f"{self.url}/v1", max_retries=0)

    def call(self, client: Any, messages: list[Message], *, stream: bool, past: bool) -> Any:
        more: dict[str, Any] = {"stream": True} if stream else {}
        if past:
            messages, more["extra_body"] = [], {"messages": messages}
        return client.chat.completions.create(model=MODEL, messages=messages, **more)

    def text(self, answer: Any) -> str:
        choice = answer.choices[0]
        said = choice.delta if hasattr(choice, "delta") else choice.message
        return said.content or ""


class Responses(OpenAI):
    """The other endpoint of the `openai` package."""

    name = "openai responses"
    format = "openai.responses"

    def native(self, turn: Turn) -> Turn:
        return list(map(self.item, turn))

    @staticmethod
    def item(message: Message) -> Message:
        """A message as an item of the endpoint."""
        if message["role"] == "tool":
            about = {"type": "function_call_output", "call_id": message["tool_call_id"]}
            return about | {"output": message["content"]}
        for call in message.get("tool_calls", ()):  # one at most, and then nothing else is said
            return {"type": "function_call", "call_id": call["id"], **call["function"]}
        if message["role"] == "user":
            return message
        part = {"type": "output_text", "text": message["content"], "annotations": []}
        return {"type": "message", "role": "assistant", "content": [part]}

    def call(self, client: Any, messages: list[Message], *, stream: bool, past: bool) -> Any:
        more: dict[str, Any] = {"stream": True} if stream else {}
        if past:
            messages, more["extra_body"] = [], {"input": messages}
        return client.responses.create(model=MODEL, input=messages, **more)

    def text(self, answer: Any) -> str:
        if hasattr(answer, "output_text"):
            return answer.output_text
        return answer.delta if answer.type == "response.output_text.delta" else ""


class Anthropic(Client):
    """The `anthropic` package."""

    name = "anthropic"
    format = "anthropic.messages"

    def make(self) -> Any:
        import anthropic  # noqa: PLC0415 (an extra)

        kind = anthropic.Anthropic if self.kind == "sync" else anthropic.AsyncAnthropic
        return kind(api_key="none", base_url=self.url, max_retries=0)

    def native(self, turn: Turn) -> Turn:
        return [self._message(message) for message in turn]

    def _message(self, message: Message) -> Message:
        if message["role"] == "tool":
            result = {"type": "tool_result", "tool_use_id": message["tool_call_id"]}
            return {"role": "user", "content": [result | {"content": message["content"]}]}
        if message["role"] == "user":
            return message
        blocks: list[Message] = [
            {
                "type": "tool_use",
                "id": call["id"],
                "name": call["function"]["name"],
                "input": json.loads(call["function"]["arguments"]),
            }
            for call in message.get("tool_calls", ())
        ]
        if message["content"]:
            blocks.append({"type": "text", "text": message["content"]})
        return {"role": "assistant", "content": blocks}

    def call(self, client: Any, messages: list[Message], *, stream: bool, past: bool) -> Any:
        more: dict[str, Any] = {"stream": True} if stream else {}
        if past:
            messages, more["extra_body"] = [], {"messages": messages}
        return client.messages.create(model=MODEL, max_tokens=999, messages=messages, **more)

    def text(self, answer: Any) -> str:
        if answer.type == "message":
            return answer.content[0].text
        return answer.delta.text if answer.type == "content_block_delta" else ""


class Google(Client):
    """The `google-genai` package."""

    name = "google"
    format = "google.contents"

    def make(self) -> Any:
        import httpx2  # noqa: PLC0415 (comes with the SDK)
        from google import genai  # noqa: PLC0415 (an extra)

        # Without a transport the SDK takes aiohttp, where that is installed.
        transport = {"transport": httpx2.AsyncHTTPTransport()}
        http = {"base_url": self.url, "async_client_args": transport}
        return genai.Client(api_key="none", http_options=http)

    def native(self, turn: Turn) -> Turn:
        names = {
            call["id"]: call["function"]["name"]
            for message in turn
            for call in message.get("tool_calls", ())
        }
        return [self._content(message, names) for message in turn]

    def _content(self, message: Message, names: dict[str, str]) -> Message:
        if message["role"] == "tool":
            said = {"result": message["content"]}
            response = {"name": names[message["tool_call_id"]], "response": said}
            return {"role": "user", "parts": [{"functionResponse": response}]}
        calls = [call["function"] for call in message.get("tool_calls", ())]
        parts: list[Message] = [
            {"functionCall": {"name": call["name"], "args": json.loads(call["arguments"])}}
            for call in calls
        ]
        if message["content"]:
            parts.append({"text": message["content"]})
        return {"role": "user" if message["role"] == "user" else "model", "parts": parts}

    def call(self, client: Any, messages: list[Message], *, stream: bool, past: bool) -> Any:
        more: dict[str, Any] = {}
        if past:  # it wants some contents
            more["config"] = {"http_options": {"extra_body": {"contents": messages}}}
            messages = messages[-1:]
        models = client.models if self.kind == "sync" else client.aio.models
        ask = models.generate_content_stream if stream else models.generate_content
        return ask(model=MODEL, contents=messages, **more)

    def text(self, answer: Any) -> str:
        return answer.text or ""

    def close(self) -> Any:
        if self.kind == "async":
            return self._aclose()
        return self.client.close()

    async def _aclose(self) -> None:
        await self.client.aio.aclose()
        self.client.close()


class LiteLLM(OpenAI):
    """The functions of the `litellm` package, before the `openai` package."""

    name = "litellm"

    def make(self) -> Any:
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it asks the network
        import litellm  # noqa: PLC0415 (an extra)

        self._kept: Any = litellm.in_memory_llm_clients_cache
        return litellm.completion if self.kind == "sync" else litellm.acompletion

    def call(self, client: Any, messages: list[Message], *, stream: bool, past: bool) -> Any:
        more: dict[str, Any] = {"api_base": f"{self.url}/v1", "api_key": "none", "stream": stream}
        if past:
            messages, more["extra_body"] = [], {"messages": messages}
        return client(model=f"openai/{MODEL}", messages=messages, max_retries=0, **more)

    def close(self) -> Any:
        clients = [one for one in self._kept.cache_dict.values() if hasattr(one, "close")]
        self._kept.flush_cache()
        return self._aclose(clients) if self.kind == "async" else self._close(clients)

    def _close(self, clients: list[Any]) -> None:
        for client in clients:
            client.close()

    async def _aclose(self, clients: list[Any]) -> None:
        for client in clients:
            await client.close()


class Router(LiteLLM):
    """The `Router` of the `litellm` package, with one deployment."""

    name = "litellm router"

    def make(self) -> Any:
        super().make()
        from litellm.router import Router as Made  # noqa: PLC0415 (an extra)

        at = {"api_base": f"{self.url}/v1", "api_key": "none", "max_retries": 0}
        deployment = {"model_name": MODEL, "litellm_params": {"model": f"openai/{MODEL}", **at}}
        return Made(model_list=[deployment], num_retries=0)

    def call(self, client: Any, messages: list[Message], *, stream: bool, past: bool) -> Any:
        more: dict[str, Any] = {"stream": stream}
        if past:
            messages, more["extra_body"] = [], {"messages": messages}
        ask = client.completion if self.kind == "sync" else client.acompletion
        return ask(model=MODEL, messages=messages, **more)


class Function(Client):
    """A function of one's own that asks the chat API by HTTP."""

    name = "function"

    def make(self) -> Any:
        import httpx2  # noqa: PLC0415 (comes with the SDKs)

        to = f"{self.url}/v1/chat/completions"
        self._http: Any = httpx2.Client() if self.kind == "sync" else httpx2.AsyncClient()

        def ask(messages: list[Message], *, stream: bool = False) -> Any:
            body = {"model": MODEL, "messages": messages}
            if stream:
                return pieces(body)
            return self._http.post(to, content=_json(body)).json()["choices"][0]["message"]

        def pieces(body: dict[str, Any]) -> Any:
            with self._http.stream("POST", to, content=_json(body, stream=True)) as answer:
                yield from filter(None, map(_piece, answer.iter_lines()))

        async def ask_async(messages: list[Message], *, stream: bool = False) -> Any:
            body = {"model": MODEL, "messages": messages}
            if stream:
                return pieces_async(body)
            answer = await self._http.post(to, content=_json(body))
            return answer.json()["choices"][0]["message"]

        async def pieces_async(body: dict[str, Any]) -> Any:
            async with self._http.stream("POST", to, content=_json(body, stream=True)) as answer:
                async for line in answer.aiter_lines():
                    if piece := _piece(line):
                        yield piece

        return ask if self.kind == "sync" else ask_async

    def call(self, client: Any, messages: list[Message], *, stream: bool, past: bool) -> Any:
        del past  # nothing here looks at the messages
        return client(messages, stream=stream)

    def text(self, answer: Any) -> str:
        return answer if isinstance(answer, str) else answer["content"]

    def close(self) -> Any:
        return self._http.close() if self.kind == "sync" else self._http.aclose()


def _json(body: dict[str, Any], **more: bool) -> bytes:
    return json.dumps({**body, **more}, separators=(",", ":")).encode()


def _piece(line: str) -> str:
    """The text in a line of a stream."""
    if not line.startswith("data: {"):
        return ""
    return json.loads(line[6:])["choices"][0]["delta"].get("content", "")


CLIENTS: tuple[type[Client], ...] = (
    OpenAI,
    Responses,
    Anthropic,
    Google,
    LiteLLM,
    Router,
    Function,
)
