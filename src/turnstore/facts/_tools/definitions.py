"""The definitions of the memory tools, and how each provider writes tools, calls and results."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

from turnstore import _json

__all__ = [
    "FEW_RESULTS",
    "MOST_RESULTS",
    "Call",
    "Definition",
    "as_anthropic",
    "as_openai",
    "as_openai_responses",
    "as_schema",
    "call_in",
    "definitions",
]

MOST_RESULTS = 20
"""What one search answers at most, however many are asked for."""

FEW_RESULTS = 5
"""What one search answers where nothing is asked for."""


class Definition(NamedTuple):
    """A tool as a model is told of it.

    Attributes:
        name: What the model calls it by.
        description: What it is for.
        properties: The JSON schemas of its arguments.
        required: Which of them it has to give.
    """

    name: str
    description: str
    properties: dict[str, Any]
    required: tuple[str, ...]

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        return {
            "type": "object",
            "properties": copy.deepcopy(self.properties),
            "required": list(self.required),
            "additionalProperties": False,
        }


class Call(NamedTuple):
    """A call of a tool, as a model made it.

    Attributes:
        name: Of the tool.
        arguments: JSON as text, or read already.
        id: Of the call.
        kind: Whose call it is, and so how its result is written.
    """

    name: str
    arguments: Any
    id: str
    kind: str

    def result(self, text: str, *, failed: bool) -> dict[str, Any]:
        """Write its result as the provider takes it back."""
        if self.kind == "tool_use":
            block = {"type": "tool_result", "tool_use_id": self.id, "content": text}
            return {**block, "is_error": True} if failed else block
        if self.kind == "function_call":
            return {"type": "function_call_output", "call_id": self.id, "output": text}
        return {"role": "tool", "tool_call_id": self.id, "content": text}


def call_in(call: object) -> Call:
    """Read a call of OpenAI's chat completions or responses, or of Anthropic's messages.

    Raises:
        TypeError: It is none of these.
    """
    plain = _json.plain(call) if isinstance(call, dict) or hasattr(call, "model_dump") else {}
    function = plain.get("function")
    if plain.get("type") == "tool_use":
        read = (plain.get("name"), plain.get("input"), plain.get("id"), "tool_use")
    elif plain.get("type") == "function_call":
        read = (plain.get("name"), plain.get("arguments"), plain.get("call_id"), "function_call")
    elif isinstance(function, dict):
        read = (function.get("name"), function.get("arguments"), plain.get("id"), "tool_call")
    else:
        msg = (
            "a call of a tool is one of message.tool_calls, an item of the type function_call, "
            f"or a block of the type tool_use; not {type(call).__name__}"
        )
        raise TypeError(msg)
    name, arguments, identifier, kind = read
    return Call(str(name), arguments, str(identifier), kind)


def as_schema(tool: Definition) -> dict[str, Any]:
    """Write a tool with its arguments as plain JSON schema."""
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }


def as_openai(tool: Definition) -> dict[str, Any]:
    """Write a tool for OpenAI's chat completions."""
    return {"type": "function", "function": as_schema(tool)}


def as_openai_responses(tool: Definition) -> dict[str, Any]:
    """Write a tool for OpenAI's responses."""
    return {"type": "function", **as_schema(tool), "strict": False}


def as_anthropic(tool: Definition) -> dict[str, Any]:
    """Write a tool for Anthropic's messages."""
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.parameters,
    }


def definitions(
    labels: Sequence[tuple[str, str]], *, has_conversation: bool
) -> tuple[Definition, ...]:
    """Define the tools that there are.

    Args:
        labels: The blocks of the working memory and what each is for; without any, the
            tools that change it are left out.
        has_conversation: Whether there is a conversation to be searched.
    """
    return (
        *(_core(labels) if labels else ()),
        *_ARCHIVAL,
        *((_CONVERSATION,) if has_conversation else ()),
    )


def _core(labels: Sequence[tuple[str, str]]) -> tuple[Definition, Definition]:
    blocks = "; ".join(f"{label}: {about}" if about else label for label, about in labels)
    label = {
        "type": "string",
        "enum": [label for label, _ in labels],
        "description": f"Which block. {blocks}",
    }
    return (
        Definition(
            "core_memory_append",
            "Add a line to a block of your working memory, which you see in every turn. For "
            "what will matter again and again; keep it short.",
            {"label": label, "content": _text("What to add.")},
            ("label", "content"),
        ),
        Definition(
            "core_memory_replace",
            "Replace a part of a block of your working memory: to correct it, to shorten it, "
            "or to remove what is not true any more.",
            {
                "label": label,
                "old": _text("The part to be replaced, exactly as it stands there, and only once."),
                "new": _text("What stands there instead; empty to remove the part."),
            },
            ("label", "old", "new"),
        ),
    )


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _date(description: str) -> dict[str, Any]:
    return _text(f"{description}, as YYYY, YYYY-MM or YYYY-MM-DD.")


_LIMIT = {
    "type": "integer",
    "minimum": 1,
    "maximum": MOST_RESULTS,
    "description": f"How many to give at most; {FEW_RESULTS} if it is left out.",
}

_ARCHIVAL = (
    Definition(
        "archival_memory_insert",
        "Keep a fact for good, to be searched for later. One fact at a time, as one sentence "
        "that can be understood by itself: names instead of pronouns, dates instead of "
        '"yesterday".',
        {"content": _text("The fact.")},
        ("content",),
    ),
    Definition(
        "archival_memory_search",
        "Search the facts that were kept of this user, in all conversations, by their meaning.",
        {
            "query": _text("What to look for, as a question or a few words."),
            "limit": _LIMIT,
            "as_of": _date("Facts that were true at this time, instead of now"),
        },
        ("query",),
    ),
)

_CONVERSATION = Definition(
    "conversation_search",
    "Search the earlier messages of this conversation, by their words. For what was said "
    "before the messages that you see.",
    {
        "query": _text("The words to look for."),
        "limit": _LIMIT,
        "role": {
            "type": "string",
            "enum": ["user", "assistant"],
            "description": "Whose messages; both if it is left out.",
        },
        "start_date": _date("Nothing before this time"),
        "end_date": _date("Nothing after this time, the day, month or year included"),
    },
    ("query",),
)
