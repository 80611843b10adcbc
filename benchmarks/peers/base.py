"""What the adapters share: messages as LangChain has them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from subjects import Subject as Subject  # noqa: PLC0414 (re-exported for the adapters)

if TYPE_CHECKING:
    from mix import Turn


def langchain_messages(turn: Turn) -> list[Any]:
    """The turn as LangChain's message objects."""
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage  # noqa: PLC0415

    made: list[Any] = []
    for message in turn:
        content = message["content"] or ""
        if message["role"] == "user":
            made.append(HumanMessage(content))
        elif message["role"] == "tool":
            made.append(ToolMessage(content, tool_call_id=message["tool_call_id"]))
        else:
            calls = [
                {
                    "id": call["id"],
                    "name": call["function"]["name"],
                    "args": json.loads(call["function"]["arguments"]),
                }
                for call in message.get("tool_calls", ())
            ]
            made.append(AIMessage(content, tool_calls=calls))
    return made
