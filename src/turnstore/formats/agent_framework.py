"""The format of Microsoft's Agent Framework."""

from __future__ import annotations

from typing import Any

from ._format import Format, Message

__all__ = ["AgentFramework"]


class AgentFramework(Format):
    """Messages of contents: `function_call` in the assistant's, `function_result` in the tool's."""

    def _message(self, role: str, text: str) -> Message:
        return {"type": "message", "role": role, "contents": [{"type": "text", "text": text}]}

    def check(self, message: Message) -> None:
        has = isinstance(message.get("role"), str), isinstance(message.get("contents"), list)
        if not all(has):
            msg = f"a message of {self.name} has a role and contents; found {list(message)}"
            raise ValueError(msg)

    def calls(self, message: Message) -> list[str]:
        if not self.is_reply(message):
            return []
        waiting = [
            call
            for call in _contents(message, "function_call")
            if not call.get("informational_only")
        ]
        return [str(call.get("call_id")) for call in waiting] + [
            f"approval:{asked.get('id')}"
            for asked in _contents(message, "function_approval_request")
        ]

    def results(self, message: Message) -> list[str]:
        return [str(one.get("call_id")) for one in _contents(message, "function_result")] + [
            f"approval:{one.get('id')}" for one in _contents(message, "function_approval_response")
        ]

    def text(self, message: Message) -> str:
        said = [str(content.get("text") or "") for content in _contents(message, "text")]
        results = [content.get("result") for content in _contents(message, "function_result")]
        return "".join([*said, *(result for result in results if isinstance(result, str))])

    def unfit(self, message: Message) -> str:
        refused = any(
            (content.get("additional_properties") or {}).get("model_output_kind") == "refusal"
            for content in _contents(message, "text")
        )
        return "the model refused" if refused else ""


def _contents(message: Message, kind: str) -> list[dict[str, Any]]:
    return [
        content
        for content in message.get("contents") or ()
        if isinstance(content, dict) and content.get("type") == kind
    ]
