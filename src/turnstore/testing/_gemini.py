"""Google's Gemini API: a reply as the JSON of POST …:generateContent, whole and in chunks."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from ._answers import answer
from ._embedding import embedding
from ._replies import Json, Reply, ToolCall, as_dict, dicts, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

_FINISH = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
}
_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


def response(reply: Reply, request: Json, number: int) -> Json:
    """The whole response."""
    said = reply.text or reply.refusal
    parts: list[Json] = [{"text": said}] if said else []
    parts += [_call(call) for call in reply.tool_calls]
    if reply.tool_calls:  # as newer models do, which want it back
        signature = base64.b64encode(f"thoughts of call {number}".encode()).decode()
        parts[-len(reply.tool_calls)]["thoughtSignature"] = signature
    content: Json = ({"parts": parts} if parts else {}) | {"role": "model"} | dict(reply.fields)
    reason = "SAFETY" if reply.refusal is not None else reply.finish_reason
    sent, written = len(str(request.get("contents"))) // 4, len(str(content)) // 4
    return {
        "candidates": [
            {"content": content, "finishReason": _FINISH.get(reason, reason), "index": 0}
        ],
        "usageMetadata": {
            "promptTokenCount": sent,
            "candidatesTokenCount": written,
            "totalTokenCount": sent + written,
        },
        "modelVersion": request.get("model"),
        "responseId": f"response-{number}",
    }


def _call(call: ToolCall) -> Json:
    own_id = {"id": call.id} if call.id else {}
    return {"functionCall": own_id | {"name": call.name, "args": json.loads(call.text)}}


def chunks(whole: Json, finish: str) -> Iterator[Json]:
    """The chunks that add up to the whole response; the last of them has the finish reason.

    Behind a text that is one with an empty text, and behind a call it is the call's own: what is
    empty is not taken back, and the SDK's function calling in streams sends all of it back.
    """
    (candidate,) = whole["candidates"]
    content = candidate["content"]

    def chunk(part: Json, **more: Any) -> Json:
        one = {"content": {**content, "parts": [part]}, **more, "index": 0}
        return {**whole, "candidates": [one]}

    parts = [piece for part in dicts(content.get("parts")) for piece in _streamed(part)]
    if not parts or "text" in parts[-1]:
        parts.append({"text": ""})
    yield from map(chunk, parts[:-1])
    yield (
        error(500, "scripted")
        if finish == "error"
        else chunk(parts[-1], finishReason=candidate["finishReason"])
    )


def _streamed(part: Json) -> list[Json]:
    if part.keys() <= {"text", "thought"}:
        return [{**part, "text": piece} for piece in pieces(part["text"])]
    return [part]


def terminal(event: Json) -> bool:
    """Whether a chunk ends the response, well or not."""
    ended = any(candidate.get("finishReason") for candidate in dicts(event.get("candidates")))
    return ended or "error" in event


def says(event: Json) -> bool:
    """Whether a chunk carries text."""
    contents = [as_dict(one.get("content")) for one in dicts(event.get("candidates"))]
    return any(part.get("text") for content in contents for part in dicts(content.get("parts")))


def error(status: int, text: str | None) -> Json:
    """The body of an error."""
    return {"error": {"code": status, "message": text, "status": _STATUS.get(status, "INTERNAL")}}


def said(contents: list[Json], instructions: str) -> str:
    """What the model answers by itself."""
    return answer([one for content in contents for one in _messages(content)], instructions)


def _messages(content: Json) -> Iterator[Json]:
    """A content as chat has it: results of tools are messages of their own."""
    texts: list[str] = []
    for part in dicts(content.get("parts")):
        if "functionResponse" in part:
            yield {"role": "tool", "content": _result(as_dict(part["functionResponse"]))}
        texts.append(part.get("text", ""))
    if any(texts):
        role = "assistant" if content.get("role") == "model" else "user"
        yield {"role": role, "content": "".join(texts)}


def _result(response: Json) -> str:
    given = as_dict(response.get("response"))
    values = list(given.values())
    return values[0] if len(values) == 1 and isinstance(values[0], str) else json.dumps(given)


def complaint(contents: list[Json]) -> str | None:
    """What Gemini would refuse these contents for, as an HTTP 400; None if it takes them."""
    waiting: list[str] = []
    for number, content in enumerate(contents):
        where = f"contents[{number}]"
        if content.get("role", "user") not in {"user", "model"}:
            return f"{where}.role: the roles are user and model"
        if number == 0 and content.get("role") == "model":
            return f"{where}.role: the first content is the user's"
        parts = dicts(content.get("parts"))
        if not parts or not all(any(part.values()) for part in parts):
            return f"{where}.parts: must not be empty"
        results = _names(parts, "functionResponse")
        if sorted(results) != sorted(waiting):
            return (
                f"{where}: the content after one with function calls has a response for each of "
                f"them, and no other has any; called were {waiting}, and responses are {results}"
            )
        waiting = _names(parts, "functionCall")
        if waiting and content.get("role") != "model":
            return f"{where}: function calls are the model's"
    return f"no response for the function calls {waiting}" if waiting else None


def _names(parts: list[Json], kind: str) -> list[str]:
    return [str(as_dict(part[kind]).get("name")) for part in parts if kind in part]


def count(body: Json) -> Json:
    """The answer of POST …:countTokens."""
    return {"totalTokens": len(str(body.get("contents"))) // 4}


def embeddings(body: Json) -> Json:
    """The answer of POST …:batchEmbedContents."""
    return {"embeddings": [{"values": _vector(one)} for one in dicts(body.get("requests"))]}


def _vector(request: Json) -> list[float]:
    parts = dicts(as_dict(request.get("content")).get("parts"))
    text = "".join(str(part.get("text", "")) for part in parts)
    return embedding(text, str(request.get("model")), request.get("outputDimensionality"))
