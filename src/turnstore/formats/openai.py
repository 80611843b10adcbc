"""The formats of OpenAI's two endpoints."""

from __future__ import annotations

from typing import Any

from ._format import Format, Message

__all__ = ["OpenAIChat", "OpenAIResponses"]


class OpenAIChat(Format):
    """Chat Completions: roles, `tool_calls` in the assistant's message, `tool` messages."""

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

    def answer(self, reply: Any) -> Any:
        return getattr(reply, "output", reply)


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and type(part.get("text")) is str
