"""An OpenAI client with a memory: a stream, a tool loop, and the same from asyncio.

    python examples/wrap_openai.py     with the server at REDIS_URL, or one of its own

It asks the provider that OPENAI_BASE_URL and OPENAI_API_KEY name (set EXAMPLE_MODEL to a model of
theirs), or a local model server that answers from the messages it is sent.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import ExitStack
from typing import Any

from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionFunctionToolParam

from turnstore import AsyncStore, Store
from turnstore.server import EmbeddedServer
from turnstore.testing import ModelServer, Reply

MODEL = os.environ.get("EXAMPLE_MODEL", "any")
WEATHER: ChatCompletionFunctionToolParam = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


def stream(client: OpenAI, text: str) -> None:
    """Print an answer while it arrives; it is saved when it has."""
    print(f"you    {text}\nmodel  ", end="")
    for chunk in client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": text}], stream=True
    ):
        if chunk.choices:
            print(chunk.choices[0].delta.content or "", end="", flush=True)
    print()


def use_a_tool(client: OpenAI, text: str) -> None:
    """Answer the model's tool calls: only what is new is sent, and all of it is one turn."""
    print(f"you    {text}")
    messages: list[Any] = [{"role": "user", "content": text}]
    while True:
        answer = client.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER])
        message = answer.choices[0].message
        if not message.tool_calls:
            print(f"model  {message.content}")
            return
        messages = []
        for call in message.tool_calls:
            if call.type != "function":
                raise TypeError(f"this program has no tool of the type {call.type}")
            print(f"tool   {call.function.name}({call.function.arguments})")
            result = json.dumps({"sky": "clear", "degrees": 21})
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


async def ask_again(url: str, text: str) -> None:
    """Go on with the same conversation from asyncio."""
    async with AsyncStore.from_url(url, name="example") as store, AsyncOpenAI() as openai:
        client = store.conversation("wrap").wrap(openai)
        answer = await client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": text}]
        )
        print(f"you    {text}\nmodel  {answer.choices[0].message.content}")


def main() -> None:
    """Run it all, and delete what it made."""
    with ExitStack() as stack:
        url = os.environ.get("REDIS_URL") or stack.enter_context(EmbeddedServer()).url
        local = None
        if "OPENAI_BASE_URL" not in os.environ and "OPENAI_API_KEY" not in os.environ:
            local = stack.enter_context(ModelServer())
            os.environ |= {"OPENAI_BASE_URL": local.base_url, "OPENAI_API_KEY": "none-is-needed"}
        store = stack.enter_context(Store.from_url(url, name="example"))
        openai = stack.enter_context(OpenAI())
        chat = store.conversation("wrap")
        stack.callback(chat.clear)

        client = chat.wrap(openai)
        stream(client, "My name is Ada.")
        stream(client, "What is my name?")
        if local:  # a model of its own mind decides by itself
            local.script(Reply.tool_call("weather", city="Paris"))
        use_a_tool(client, "How is the weather in Paris?")
        asyncio.run(ask_again(url, "And what is my name?"))
        for turn in chat.turns():
            print(f"turn {turn.number}: {', '.join(m['role'] for m in turn.messages)}")


if __name__ == "__main__":
    main()
