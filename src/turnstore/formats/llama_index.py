"""The format of LlamaIndex."""

from __future__ import annotations

from typing import Any

from ._format import Format, Message

__all__ = ["LlamaIndex"]


class LlamaIndex(Format):
    """Messages of blocks; calls are blocks, or in older models `additional_kwargs`."""

    def _message(self, role: str, text: str) -> Message:
        return {"role": role, "blocks": [{"block_type": "text", "text": text}]}

    def check(self, message: Message) -> None:
        has = isinstance(message.get("role"), str), isinstance(message.get("blocks"), list)
        if not all(has):
            msg = f"a message of {self.name} has a role and blocks; found {list(message)}"
            raise ValueError(msg)

    def calls(self, message: Message) -> list[str]:
        if not self.is_reply(message):
            return []
        older = (message.get("additional_kwargs") or {}).get("tool_calls")
        ids = [block.get("tool_call_id") for block in _blocks(message, "tool_call")]
        ids += [call.get("id") for call in older or () if isinstance(call, dict)]
        return list(dict.fromkeys(str(one) for one in ids if one is not None))

    def results(self, message: Message) -> list[str]:
        answered = (message.get("additional_kwargs") or {}).get("tool_call_id")
        return [str(answered)] if message.get("role") == "tool" and answered is not None else []

    def text(self, message: Message) -> str:
        return "".join(str(block.get("text") or "") for block in _blocks(message, "text"))


def _blocks(message: Message, kind: str) -> list[dict[str, Any]]:
    return [
        block
        for block in message.get("blocks") or ()
        if isinstance(block, dict) and block.get("block_type") == kind
    ]
