"""Anthropic's messages: a reply as the JSON of POST /v1/messages, whole and in events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ._answers import answer, text_of
from ._replies import Json, Reply, ToolCall, as_dict, dicts, halves, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

_STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
_FIELDS = {"role", "content", "clear_at", "output_config"}
# What a block's deltas add up, by the type of the delta; a signature comes at once.
_TEXTS = {"text": "text_delta", "thinking": "thinking_delta", "signature": "signature_delta"}


def message(reply: Reply, request: Json, number: int) -> Json:
    """The whole message."""
    said = reply.text or reply.refusal
    content: list[Json] = [{"type": "text", "text": said}] if said else []
    content += [_call(call, f"toolu_{number}_{n}") for n, call in enumerate(reply.tool_calls, 1)]
    reason = "refusal" if reply.refusal is not None else reply.finish_reason
    whole: Json = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": request.get("model"),
        "content": content,
        "stop_reason": _STOP_REASONS.get(reason, reason),
        "stop_sequence": None,
    }
    sent, written = len(str(request.get("messages"))) // 4, len(str(content)) // 4
    return whole | {"usage": {"input_tokens": sent, "output_tokens": written}} | dict(reply.fields)


def _call(call: ToolCall, made_id: str) -> Json:
    arguments = json.loads(call.text)
    return {"type": "tool_use", "id": call.id or made_id, "name": call.name, "input": arguments}


def events(whole: Json, finish: str) -> Iterator[Json]:
    """The events that add up to the whole message."""
    usage = {**whole["usage"], "output_tokens": 1}
    begun = {**whole, "content": [], "stop_reason": None, "usage": usage}
    yield {"type": "message_start", "message": begun}
    yield {"type": "ping"}
    for index, block in enumerate(whole["content"]):
        yield from _block_events(block, index)
    if finish == "error":
        error = {"type": "overloaded_error", "message": "scripted"}
        yield {"type": "error", "error": error}
        return
    delta = {key: whole.get(key) for key in ("stop_reason", "stop_sequence")}
    if "container" in whole:
        delta["container"] = whole["container"]
    written = {"output_tokens": whole["usage"]["output_tokens"]}
    yield {"type": "message_delta", "delta": delta, "usage": written}
    yield {"type": "message_stop"}


def _block_events(block: Json, index: int) -> Iterator[Json]:
    texts = {key: block[key] for key in _TEXTS if isinstance(block.get(key), str)}
    begun = block | dict.fromkeys(texts, "")
    has_input = block["type"] == "tool_use"
    if has_input:
        begun["input"] = {}
    citations = begun.pop("citations", None)
    if isinstance(citations, list):
        begun["citations"] = []
    yield {"type": "content_block_start", "index": index, "content_block": begun}

    def delta(kind: str, **said: object) -> Json:
        made = {"type": kind, **said}
        return {"type": "content_block_delta", "index": index, "delta": made}

    for key, text in texts.items():
        for piece in [text] if key == "signature" else pieces(text):
            yield delta(_TEXTS[key], **{key: piece})
    for citation in citations if isinstance(citations, list) else []:
        yield delta("citations_delta", citation=citation)
    if has_input:
        for half in halves(json.dumps(block["input"])):
            yield delta("input_json_delta", partial_json=half)
    yield {"type": "content_block_stop", "index": index}


def terminal(event: Json) -> bool:
    """Whether an event is one of those that end the message, well or not."""
    return event.get("type") in {"message_delta", "message_stop", "error"}


def error(status: int, text: str | None) -> Json:
    """The body of an error."""
    kind = "invalid_request_error" if status < 500 else "api_error"  # noqa: PLR2004 - HTTP's
    return {"type": "error", "error": {"type": kind, "message": text}, "request_id": "req_1"}


def said(messages: list[Json], instructions: str) -> str:
    """What the model answers by itself."""
    return answer([part for one in messages for part in _parts(one)], instructions)


def _parts(one: Json) -> list[Json]:
    """A message as chat has it: results of tools are messages of their own."""
    blocks = dicts(one.get("content"))
    results = [block for block in blocks if block.get("type") == "tool_result"]
    parts: list[Json] = [{"role": "tool", "content": text_of(block)} for block in results]
    if len(results) < len(blocks) or not blocks:
        parts.append({"role": one.get("role"), "content": text_of(one)})
    return parts


def complaint(messages: list[Json]) -> str | None:  # noqa: PLR0911 - one for each complaint
    """What Anthropic would refuse these messages for, as an HTTP 400; None if it takes them."""
    if not messages or messages[0].get("role") != "user":
        return "messages: the first message is not one of the user"
    waiting: set[str] = set()
    for number, one in enumerate(messages):
        where = f"messages.{number}"
        if further := one.keys() - _FIELDS:
            return f"{where}: Extra inputs are not permitted: {', '.join(sorted(further))}"
        last = number == len(messages) - 1
        content = one.get("content")
        if not content and not (last and one["role"] == "assistant"):
            return f"{where}.content: must be non-empty"
        blocks = dicts(content)
        if any(not block.get("text", "x").strip() for block in blocks):
            return f"{where}.content: text content blocks must be non-empty"
        results = {str(b["tool_use_id"]) for b in blocks if b.get("type") == "tool_result"}
        if one["role"] == "user" and results != waiting:
            odd = ", ".join(sorted(results ^ waiting))
            return f"{where}: tool_use and tool_result do not match: {odd}"
        if one["role"] != "system":
            waiting = {str(b["id"]) for b in blocks if b.get("type") == "tool_use"}
    text = text_of(messages[-1]) if messages[-1]["role"] == "assistant" else ""
    if text != text.rstrip():
        return "messages: final assistant content cannot end with trailing whitespace"
    return f"tool_use without tool_result: {', '.join(sorted(waiting))}" if waiting else None


def count(body: Json) -> Json:
    """The answer of POST /v1/messages/count_tokens."""
    return {"input_tokens": len(str(as_dict(body).get("messages"))) // 4}
