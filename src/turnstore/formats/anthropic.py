"""The format of Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._format import Format, Message
from .replies import field, known

__all__ = ["AnthropicMessages", "blocks"]


class AnthropicMessages(Format):
    """Messages of content blocks: `tool_use` in the assistant's, `tool_result` in the user's.

    Blocks are kept as they came. Those that a signature covers are refused by the API
    where anything in them was changed. Tools that the provider runs itself
    (`server_tool_use` and the like) bring their results along: nobody answers them.
    """

    resumes = True
    user_first = True

    def unpacked(self, item: Any) -> Any:
        # What the API answers has more fields than a message may have that is sent: the SDK's
        # Message, and the same as a dict.
        if not _is_whole(item) or hasattr(item, "model_dump"):
            return item
        return {"role": "assistant", "content": field(item, "content")}

    def bare(self, message: Message) -> Message:
        said: Message = self.unpacked(message)
        if said.get("type") == "message" and "content" in said:  # made without a stop reason
            said = {"role": "assistant", "content": said["content"]}
        if not isinstance(said.get("content"), list):
            return said
        return {**said, "content": list(map(_unparsed, said["content"]))}

    def check(self, message: Message) -> None:
        role = message.get("role")
        if not isinstance(role, str) or not role or "content" not in message:
            msg = f"a message of {self.name} has role and content; found {list(message)}"
            raise ValueError(msg)

    def calls(self, message: Message) -> list[str]:
        if not self.is_reply(message):
            return []
        return _ids(message, "tool_use", "id")

    def results(self, message: Message) -> list[str]:
        return _ids(message, "tool_result", "tool_use_id")

    def outgoing(self, message: Message) -> Message:
        # The model may answer with a text that is empty, which the API does not take back.
        content = message["content"]
        if not isinstance(content, list) or not any(map(_is_empty, content)):
            return message
        said = [block for block in content if not _is_empty(block)]
        return {**message, "content": said} if said else message

    def comparable(self, message: Message) -> Message:
        # Text alone is short for one block of text.
        return {**message, "content": list(map(_unparsed, blocks(message)))}

    def about(self, reply: Any) -> Message:
        if not _is_whole(reply):
            return {}
        return known(
            model=field(reply, "model"),
            finish_reason=field(reply, "stop_reason"),
            usage=field(reply, "usage"),
            response_id=field(reply, "id"),
            container=field(field(reply, "container"), "id"),
        )


def blocks(message: Message) -> list[Any]:
    """Give the content of a message as blocks."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def _is_whole(reply: Any) -> bool:
    if isinstance(reply, Mapping):
        return "stop_reason" in reply and "content" in reply
    return hasattr(reply, "stop_reason") and hasattr(reply, "content")


def _unparsed(block: Any) -> Any:
    """Leave out what the SDK's `parse` adds to a text: what it made of it."""
    if not isinstance(block, dict):
        return block
    return {name: value for name, value in block.items() if name != "parsed_output"}


def _ids(message: Message, kind: str, field: str) -> list[str]:
    content = message.get("content")
    if not isinstance(content, list):
        return []
    return [
        str(block.get(field))
        for block in content
        if isinstance(block, dict) and block.get("type") == kind
    ]


def _is_empty(block: Any) -> bool:
    if not isinstance(block, dict) or block.get("type") != "text":
        return False
    text = block.get("text")
    return isinstance(text, str) and not text.strip()
