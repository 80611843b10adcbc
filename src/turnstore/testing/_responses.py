"""Responses: a reply as the JSON of POST /responses, whole and in events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._replies import Json, Reply, ToolCall, halves, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

_CREATED = 1_780_000_000  # always the same
_TERMINAL = {"response.completed", "response.incomplete", "response.failed", "error"}
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def response(reply: Reply, request: Json, number: int) -> Json:
    """The whole response."""
    status, reason = "completed", _INCOMPLETE.get(reply.finish_reason)
    if reason:
        status = "incomplete"
    elif reply.finish_reason in {"failed", "error"}:
        status = "failed"
    output = [] if status == "failed" else list(_items(reply, number))
    sent, said = len(str(request.get("input"))) // 4, len(str(output)) // 4
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": _CREATED,
        "status": status,
        "error": {"code": "server_error", "message": "scripted"} if status == "failed" else None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": request.get("instructions"),
        "model": request.get("model"),
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": request.get("tools", []),
        "usage": {
            "input_tokens": sent,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": said,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": sent + said,
        },
    }


def _items(reply: Reply, number: int) -> Iterator[Json]:
    if reply.text is not None or reply.refusal is not None:
        part: Json = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        if reply.refusal is not None:
            part = {"type": "refusal", "refusal": reply.refusal}
        yield {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [part],
            **reply.fields,
        }
    for n, call in enumerate(reply.tool_calls, 1):
        yield _call(call, f"{number}_{n}")


def _call(call: ToolCall, suffix: str) -> Json:
    head = {"call_id": call.id or f"call_{suffix}", "name": call.name, "status": "completed"}
    if call.custom:
        return {"id": f"ctc_{suffix}", "type": "custom_tool_call", **head, "input": call.text}
    return {"id": f"fc_{suffix}", "type": "function_call", **head, "arguments": call.text}


def events(whole: Json, finish: str) -> Iterator[Json]:
    """The events that lead to the whole response, numbered; the last of them carries it."""
    begun: Json = {**whole, "status": "in_progress", "output": [], "usage": None, "error": None}
    begun["incomplete_details"] = None
    last: Json = {"type": f"response.{whole['status']}", "response": whole}
    if finish == "error":
        last = {"type": "error", "code": "server_error", "message": "scripted", "param": None}
    all_events: list[Json] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        *(event for at, item in enumerate(whole["output"]) for event in _item_events(item, at)),
        last,
    ]
    for number, event in enumerate(all_events):
        yield {**event, "sequence_number": number}


def _item_events(item: Json, at: int) -> Iterator[Json]:
    place: Json = {"output_index": at}
    about: Json = {**place, "item_id": item["id"]}
    added = {**item, "status": "in_progress"}
    if item["type"] == "message":
        part = item["content"][0]
        field = "text" if part["type"] == "output_text" else "refusal"
        about["content_index"] = 0
        logprobs: Json = {"logprobs": []} if field == "text" else {}
        yield {"type": "response.output_item.added", **place, "item": {**added, "content": []}}
        yield {"type": "response.content_part.added", **about, "part": {**part, field: ""}}
        for piece in pieces(part[field]):
            yield {"type": f"response.{part['type']}.delta", **about, "delta": piece, **logprobs}
        yield {"type": f"response.{part['type']}.done", **about, field: part[field], **logprobs}
        yield {"type": "response.content_part.done", **about, "part": part}
    else:
        field = "arguments" if item["type"] == "function_call" else "input"
        name = f"response.{item['type']}_{field}"
        yield {"type": "response.output_item.added", **place, "item": {**added, field: ""}}
        for half in halves(item[field]):
            yield {"type": f"{name}.delta", **about, "delta": half}
        yield {"type": f"{name}.done", **about, field: item[field], "name": item["name"]}
    yield {"type": "response.output_item.done", **place, "item": item}


def terminal(event: dict[str, Any]) -> bool:
    """Whether an event ends the response, well or not."""
    return event.get("type") in _TERMINAL
