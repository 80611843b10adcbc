"""The format of Railtracks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._format import Format, Message

__all__ = ["Railtracks"]

_ROLES = ("user", "assistant", "tool", "system")
_CALL = ("identifier", "name", "arguments")
_RESULT = ("identifier", "name", "result")


class Railtracks(Format):
    """Messages of a role and a content: text, the tool calls of the model, or a tool's result.

    Objects of Railtracks are taken as they are, with what they have beside their content:
    attachments, reasoning, thinking blocks, `raw_litellm_message`. A structured answer becomes
    the text that Railtracks sends for it.
    """

    resumes = True

    def unpacked(self, item: Any) -> Any:
        role = getattr(getattr(item, "role", None), "value", None)
        if role is None or not hasattr(item, "content"):
            return item
        beside = {
            name: value
            for name, value in vars(item).items()
            if value is not None and not name.startswith("_")
        }
        if beside.get("attachment"):
            beside["attachment"] = [vars(one) for one in beside["attachment"]]
        return {"role": role, **_said(role, item.content), **beside}

    def check(self, message: Message) -> None:
        role, content = message.get("role"), message.get("content")
        if role not in _ROLES or "content" not in message:
            msg = (
                f"a message of {self.name} has one of the roles {', '.join(_ROLES)}, and content; "
                f"found the role {role!r} and the keys {list(message)}"
            )
            raise ValueError(msg)
        if role in ("user", "system") and not isinstance(content, str):
            msg = f"the content of a {role} message is text, not {type(content).__name__}"
            raise ValueError(msg)
        if role == "tool" and not _has(content, _RESULT):
            msg = f"the content of a tool message has {', '.join(_RESULT)}"
            raise ValueError(msg)
        if role == "assistant" and not _is_answer(content):
            msg = f"an assistant message has text, or tool calls with {', '.join(_CALL)}"
            raise ValueError(msg)

    def calls(self, message: Message) -> list[str]:
        content = message["content"]
        if not self.is_reply(message) or not isinstance(content, list):
            return []
        return [str(call["identifier"]) for call in content]

    def results(self, message: Message) -> list[str]:
        return [str(message["content"]["identifier"])] if message["role"] == "tool" else []

    def unfit(self, message: Message) -> str:
        # So a refusal looks in a stream, and so providers take no message back.
        is_empty = self.is_reply(message) and message["content"] == ""
        return "the model said nothing, or refused" if is_empty else ""

    def text(self, message: Message) -> str:
        content = message["content"]
        if message["role"] == "tool":
            content = content["result"]
        return content if isinstance(content, str) else str(message.get("text") or "")


def _said(role: str, content: Any) -> Message:
    """Give the content of an object, and the text that stands beside tool calls."""
    if isinstance(content, list):
        text = getattr(content, "text", None)
        return {"content": content} if text is None else {"content": content, "text": text}
    if role == "assistant" and hasattr(content, "model_dump_json"):
        return {"content": content.model_dump_json()}  # a structured answer, as it is sent
    return {"content": content}


def _is_answer(content: Any) -> bool:
    if isinstance(content, list):
        return all(_has(call, _CALL) for call in content)
    return content is None or isinstance(content, str)


def _has(value: Any, names: tuple[str, ...]) -> bool:
    return isinstance(value, Mapping) and all(name in value for name in names)
