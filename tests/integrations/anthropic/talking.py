"""How these tests talk to Anthropic's clients."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


def said(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def ask(client: Any, *content: Any, **options: Any) -> Any:
    messages = [one if isinstance(one, dict) else user(one) for one in content]
    return client.messages.create(model="m", max_tokens=99, messages=messages, **options)
