"""The formats of OpenAI's two endpoints."""

from __future__ import annotations

from typing import Any

from ._format import Format, Message
from .replies import field, known

__all__ = ["OpenAIChat", "OpenAIResponses", "unparsed", "without_additions"]

# What the SDK's `parse` and `stream` add to what the model said; no provider knows it.
_PARSED = ("parsed", "parsed_arguments")


class OpenAIChat(Format):
    """Chat Completions: roles, `tool_calls` in the assistant's message, `tool` messages."""

    def bare(self, message: Message) -> Message:
        # What `create` gives has the fields that the provider sent, and no others. `parse` and
        # `stream` add to them; a refusal is null where there is none, as the content may be.
        if "parsed" not in message:
            return message
        return without_additions(unparsed(message), but=("role", "content", "refusal"))

    def check(self, message: Message) -> None:
        role = message.get("role")
        if not isinstance(role, str) or not role:
            msg = f"a message of {self.name} has a role; found the keys {list(message)}"
            raise ValueError(msg)

    def calls(self, message: Message) -> list[str]:
        if message.get("role") != "assistant":
            return []
        made = message.get("tool_calls")
        # A call without an id has the one that its result has without one.
        ids = [
            str(call.get("id"))
            for call in (made if isinstance(made, list) else ())
            if isinstance(call, dict)
        ]
        function = message.get("function_call")  # the older form, which has no id
        if isinstance(function, dict):
            ids.append(f"function:{function.get('name')}")
        return ids

    def results(self, message: Message) -> list[str]:
        if message.get("role") == "tool":
            return [str(message.get("tool_call_id"))]
        if message.get("role") == "function":
            return [f"function:{message.get('name')}"]
        return []

    def comparable(self, message: Message) -> Message:
        # Text alone is short for parts that are all text.
        content = message.get("content")
        if not isinstance(content, list) or not all(map(_is_text, content)):
            return message
        return {**message, "content": "".join(part["text"] for part in content)}

    def outgoing(self, message: Message) -> Message:
        # Not everything that a provider answers does it take back: OpenAI refuses null for
        # `tool_calls` and `function_call`, and for the content where nothing else is said;
        # of an audio it takes the id alone. Other servers answer with no calls as [].
        values = message.values()
        if None not in values and [] not in values and "audio" not in message:
            return message
        sent = {
            name: value
            for name, value in message.items()
            if name == "content" or value not in (None, [])
        }
        audio = sent.get("audio")
        if isinstance(audio, dict) and "id" in audio:
            sent["audio"] = {"id": audio["id"]}
        if (
            sent.get("content", "") is None
            and self.is_reply(sent)
            and sent.keys().isdisjoint(("tool_calls", "function_call", "audio"))
        ):
            sent["content"] = ""
        return sent

    def answer(self, reply: Any) -> Any:
        choices = getattr(reply, "choices", None)
        return choices[0].message if choices else reply

    def about(self, reply: Any) -> Message:
        choices = field(reply, "choices")
        if not isinstance(choices, list):
            return {}
        reason = field(choices[0], "finish_reason") if choices else None
        return _about(reply, reason)


class OpenAIResponses(Format):
    """Responses: a flat list of items, of which messages are one type among many."""

    def check(self, message: Message) -> None:
        if not any(isinstance(message.get(field), str) for field in ("type", "role")):
            msg = f"an item of {self.name} has a type or a role; found the keys {list(message)}"
            raise ValueError(msg)

    def is_plain(self, message: Message) -> bool:
        return "role" in message and message.get("type", "message") == "message"

    def is_reply(self, message: Message) -> bool:
        if "role" in message:
            return bool(message["role"] == "assistant")
        return not self.results(message)

    def calls(self, message: Message) -> list[str]:
        # Calls that the provider runs itself (web search, code interpreter, …) have no
        # call_id: nobody has to answer them.
        kind = str(message.get("type"))
        if kind.endswith("_call") and isinstance(message.get("call_id"), str):
            return [message["call_id"]]
        if kind == "mcp_approval_request":
            return [str(message.get("id"))]
        return []

    def results(self, message: Message) -> list[str]:
        kind = str(message.get("type"))
        if kind.endswith("_output") and isinstance(message.get("call_id"), str):
            return [message["call_id"]]
        if kind == "mcp_approval_response":
            return [str(message.get("approval_request_id"))]
        return []

    def unfit(self, message: Message) -> str:
        content = message.get("content")
        parts = content if isinstance(content, list) else []
        if any(isinstance(part, dict) and part.get("type") == "refusal" for part in parts):
            return "the model refused"
        return ""

    def bare(self, message: Message) -> Message:
        said: Message = unparsed(message)
        return said

    def answer(self, reply: Any) -> Any:
        return reply.output if hasattr(reply, "output") and _is_response(reply) else reply

    def about(self, reply: Any) -> Message:
        if not _is_response(reply):
            return {}
        return _about(reply, field(reply, "status") or "completed")


def unparsed(message: Any) -> Any:
    """Leave out of a message of the model what the SDK made of the model's words."""
    if not isinstance(message, dict) or message.get("role", "assistant") != "assistant":
        return message
    bare = {name: value for name, value in message.items() if name not in _PARSED}
    for name in ("content", "tool_calls", "function"):
        if isinstance(said := bare.get(name), list):
            bare[name] = [unparsed(part) for part in said]
        elif isinstance(said, dict):
            bare[name] = unparsed(said)
    return bare


def without_additions(message: Message, *, but: tuple[str, ...]) -> Message:
    """Leave out nulls, `but` of these fields, and the places of tool calls: an SDK adds them."""
    first: Message = {name: message[name] for name in but if name in message}
    said = first | {name: value for name, value in message.items() if value is not None}
    if isinstance(calls := said.get("tool_calls"), list):
        said["tool_calls"] = [_without_place(call) for call in calls]
    return said


def _is_response(reply: Any) -> bool:
    # The result of a tool has an output, too.
    return isinstance(field(reply, "output"), list) and field(reply, "call_id") is None


def _about(reply: Any, reason: Any) -> Message:
    return known(
        model=field(reply, "model"),
        finish_reason=reason,
        usage=field(reply, "usage"),
        response_id=field(reply, "id"),
    )


def _without_place(call: Any) -> Any:
    if not isinstance(call, dict):
        return call
    return {name: value for name, value in call.items() if name != "index"}


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and type(part.get("text")) is str
