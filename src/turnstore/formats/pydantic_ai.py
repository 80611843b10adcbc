"""The formats of pydantic-ai: its messages, and the log of a conversation store."""

from __future__ import annotations

from typing import Any

from ._format import Format, Message

__all__ = ["PydanticAI", "PydanticAILog"]

_RESULTS = ("tool-return", "retry-prompt")


class PydanticAI(Format):
    """Requests and responses of parts: `tool-call` in a response, `tool-return` in a request.

    Tools that the provider runs itself have parts of other kinds: nobody answers them.
    """

    def user(self, text: str) -> Message:
        return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": text}]}

    def assistant(self, text: str) -> Message:
        return {"kind": "response", "parts": [{"part_kind": "text", "content": text}]}

    def context(self, text: str) -> Message:
        return {"kind": "request", "parts": [{"part_kind": "system-prompt", "content": text}]}

    def check(self, message: Message) -> None:
        if message.get("kind") not in ("request", "response") or not isinstance(
            message.get("parts"), list
        ):
            msg = f"a message of {self.name} has a kind and parts; found {list(message)}"
            raise ValueError(msg)

    def is_instruction(self, message: Message) -> bool:
        return not self.is_reply(message) and all(map(_is_system, _parts(message)))

    def is_reply(self, message: Message) -> bool:
        return message.get("kind") == "response"

    def calls(self, message: Message) -> list[str]:
        if not self.is_reply(message):
            return []
        return [str(p["tool_call_id"]) for p in _parts(message) if p["part_kind"] == "tool-call"]

    def results(self, message: Message) -> list[str]:
        # A retry that no tool asked for has no name of a tool, and an id that nobody called.
        return [
            str(part["tool_call_id"])
            for part in _parts(message)
            if part["part_kind"] in _RESULTS and part.get("tool_name")
        ]

    def text(self, message: Message) -> str:
        return "".join(
            _said(part.get("content")) for part in _parts(message) if not _is_system(part)
        )

    def unfit(self, message: Message) -> str:
        # A stream that ends early is not an error to pydantic-ai: it writes `stop` itself, and
        # what the provider said is missing from the details.
        if not self.is_reply(message):
            return ""
        reason, details = message.get("finish_reason"), message.get("provider_details") or {}
        if reason in ("content_filter", "error"):
            return f"its finish reason is {reason}"
        made_up = reason == "stop" and message.get("provider_response_id") is not None
        if made_up and "finish_reason" not in details:
            return "the provider did not say that it is complete"
        state = message.get("state", "complete")
        return "" if state == "complete" else f"it is {state}"

    def without_instructions(self, messages: list[Message]) -> list[Message]:
        """Leave out what the agent was told to be: it is told so with each run."""
        kept: list[Message] = []
        for message in messages:
            if self.is_reply(message):
                kept.append(message)
                continue
            parts = [part for part in _parts(message) if not _is_system(part)]
            if parts:
                kept.append({**message, "parts": parts, "instructions": None})
        return kept


class PydanticAILog(PydanticAI):
    """What a conversation store writes with each save: a record, and entries of one message each.

    It is never sent to a model as it is: the store reads it.
    """

    def check(self, message: Message) -> None:
        if message.get("kind") not in ("record", "message"):
            msg = f"{self.name} has records and entries; found the keys {list(message)}"
            raise ValueError(msg)

    def is_instruction(self, message: Message) -> bool:
        return message.get("kind") == "record"

    def is_reply(self, message: Message) -> bool:
        return super().is_reply(_inner(message))

    def calls(self, message: Message) -> list[str]:
        return super().calls(_inner(message))

    def results(self, message: Message) -> list[str]:
        return super().results(_inner(message))

    def text(self, message: Message) -> str:
        return super().text(_inner(message))


def _inner(message: Message) -> Message:
    inner = message.get("message")
    return inner if isinstance(inner, dict) else message


def _parts(message: Message) -> list[dict[str, Any]]:
    parts = message.get("parts")
    if not isinstance(parts, list):
        return []
    return [part for part in parts if isinstance(part, dict) and "part_kind" in part]


def _is_system(part: dict[str, Any]) -> bool:
    return bool(part["part_kind"] == "system-prompt")


def _said(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "".join(
        item if isinstance(item, str) else str(item.get("content", ""))
        for item in content
        if isinstance(item, str) or (isinstance(item, dict) and item.get("kind") == "text")
    )
