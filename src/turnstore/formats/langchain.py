"""The format of LangChain's messages, as its `message_to_dict` writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._format import Format, Message

__all__ = ["LangChain"]

# What a chunk has and its message has not: they say how a stream was put together.
_OF_CHUNKS = ("tool_call_chunks", "chunk_position")

# Why a provider stopped, where what it said must not be built upon.
_UNFIT = {"content_filter", "refusal", "safety", "prohibited_content", "blocklist", "error"}


class LangChain(Format):
    """Messages of a `type` and its `data`: everything that the object had, each field.

    Objects of LangChain are taken as they are, and chunks become the message that they
    are a part of.
    """

    def user(self, text: str) -> Message:
        return _message("human", text)

    def assistant(self, text: str) -> Message:
        return _message("ai", text)

    def context(self, text: str) -> Message:
        return _message("system", text)

    def unpacked(self, item: Any) -> Any:
        if hasattr(item, "model_dump") and isinstance(getattr(item, "type", None), str):
            # All fields, for an empty default may have been filled in place.
            item = {"type": item.type, "data": item.model_dump()}
        if not isinstance(item, Mapping) or not isinstance(item.get("data"), Mapping):
            return item
        if not str(item.get("type")).endswith("Chunk"):
            return item
        kind = str(item["type"]).removesuffix("MessageChunk").lower()
        data = {name: value for name, value in item["data"].items() if name not in _OF_CHUNKS}
        return {"type": kind, "data": {**data, "type": kind}}

    def check(self, message: Message) -> None:
        if not isinstance(message.get("type"), str) or not isinstance(message.get("data"), dict):
            msg = (
                f"a message of {self.name} is an object of LangChain, or what its "
                f"message_to_dict makes of one; found the keys {list(message)}"
            )
            raise ValueError(msg)  # noqa: TRY004 - a dict like any other, of another shape

    def is_instruction(self, message: Message) -> bool:
        role = message["data"].get("role") if message["type"] == "chat" else message["type"]
        return role in ("system", "developer")

    def is_reply(self, message: Message) -> bool:
        role = message["data"].get("role") if message["type"] == "chat" else message["type"]
        return role in ("ai", "assistant")

    def is_plain(self, message: Message) -> bool:
        data = message["data"]
        return message["type"] == "human" or (
            message["type"] == "ai"
            and not data.get("tool_calls")
            and not data.get("invalid_tool_calls")
            and not data.get("additional_kwargs")
        )

    def calls(self, message: Message) -> list[str]:
        if message["type"] != "ai":
            return []
        data = message["data"]
        # Calls with broken arguments are sent back to the provider as calls like the others.
        lists = (data.get("tool_calls"), data.get("invalid_tool_calls"))
        made = [call for calls in lists if isinstance(calls, list) for call in calls]
        ids = [
            call["id"]
            for call in made
            if isinstance(call, dict) and isinstance(call.get("id"), str)
        ]
        further = data.get("additional_kwargs")
        function = further.get("function_call") if isinstance(further, dict) else None
        if not ids and isinstance(function, dict):  # the older form, which has no id
            ids.append(f"function:{function.get('name')}")
        return ids

    def results(self, message: Message) -> list[str]:
        if message["type"] == "tool":
            return [str(message["data"].get("tool_call_id"))]
        if message["type"] == "function":
            return [f"function:{message['data'].get('name')}"]
        return []

    def comparable(self, message: Message) -> Message:
        # LangGraph gives an id to each message that has none, and another one the next time.
        bare = {name: value for name, value in message["data"].items() if name != "id"}
        return {**message, "data": bare}

    def unfit(self, message: Message) -> str:
        if message["type"] != "ai":
            return ""
        data = message["data"]
        said = data.get("response_metadata") or {}
        reason = said.get("finish_reason") or said.get("stop_reason")
        status = said.get("status")
        if str(reason).lower() in _UNFIT:
            return f"the finish reason is {reason}"
        if status in ("incomplete", "failed"):
            return f"the response is {status}"
        # A stream that broke off ends like any other; with OpenAI's models a mark is missing.
        if said.get("model_provider") == "openai" and not reason and not status:
            return "the provider did not say that it was finished"
        blocks = data.get("content")
        kinds = {one.get("type") for one in blocks or () if isinstance(one, dict)}
        further = data.get("additional_kwargs") or {}
        if further.get("refusal") or "refusal" in kinds:
            return "the model refused"
        # Of a refusal that is streamed, langchain-openai passes nothing on.
        said_at_all = (blocks, data.get("tool_calls"), data.get("invalid_tool_calls"))
        return "" if any((*said_at_all, *further.values())) else "the answer is empty"

    def text(self, message: Message) -> str:
        return super().text(message["data"])


def _message(kind: str, text: str) -> Message:
    return {"type": kind, "data": {"content": text, "type": kind}}
