"""Chat completions: a reply as the JSON of POST /chat/completions, whole and in chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._embedding import embedding
from ._replies import Json, Reply, ToolCall, halves, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

_CREATED = 1_780_000_000  # always the same


def completion(reply: Reply, request: Json, number: int) -> Json:
    """The whole chat completion."""
    message: Json = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
    message |= reply.fields
    if reply.tool_calls:
        message["tool_calls"] = [
            _call(call, f"call_{number}_{n}") for n, call in enumerate(reply.tool_calls, 1)
        ]
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": reply.finish_reason,
    }
    sent, said = len(str(request.get("messages"))) // 4, len(str(message)) // 4
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": _CREATED,
        "model": request.get("model"),
        "choices": [choice],
        "usage": {
            "prompt_tokens": sent,
            "completion_tokens": said,
            "total_tokens": sent + said,
        },
    }


def _call(call: ToolCall, made_id: str) -> Json:
    head = {"id": call.id or made_id}
    if call.custom:
        return head | {"type": "custom", "custom": {"name": call.name, "input": call.text}}
    return head | {"type": "function", "function": {"name": call.name, "arguments": call.text}}


def chunks(whole: Json, *, usage: bool) -> Iterator[Json]:
    """The chunks that add up to the whole completion; the last but the usage has the reason."""
    choice = whole["choices"][0]
    head = {key: whole[key] for key in ("id", "created", "model")}

    def chunk(delta: Json, finish_reason: str | None = None) -> Json:
        one = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**head, "object": "chat.completion.chunk", "choices": [one]}

    said = {key: value for key, value in choice["message"].items() if key != "tool_calls"}
    texts = {key: text for key, text in said.items() if isinstance(text, str) and key != "role"}
    yield chunk(said | dict.fromkeys(texts, ""))
    for key in sorted(texts, key=lambda key: key == "content"):  # reasoning comes before the text
        for piece in pieces(texts[key]):
            yield chunk({key: piece})
    for index, call in enumerate(choice["message"].get("tool_calls", [])):
        for delta in _call_deltas(call):
            yield chunk({"tool_calls": [{"index": index, **delta}]})
    yield chunk({}, choice["finish_reason"])
    if usage:
        yield {**head, "object": "chat.completion.chunk", "choices": [], "usage": whole["usage"]}


def _call_deltas(call: Json) -> Iterator[Json]:
    kind = call["type"]
    field = "arguments" if kind == "function" else "input"
    yield {**call, kind: {**call[kind], field: ""}}
    for half in halves(call[kind][field]):
        yield {kind: {field: half}}


def terminal(event: dict[str, Any]) -> bool:
    """Whether a chunk says that the completion is finished."""
    return any(choice.get("finish_reason") for choice in event.get("choices", []))


def embeddings(body: dict[str, Any]) -> Json:
    """The answer of POST /embeddings."""
    given, model = body.get("input", ""), str(body.get("model"))
    # A list of numbers is one text, as tokens.
    several = isinstance(given, list) and not all(isinstance(one, int) for one in given)
    texts = [str(one) for one in (given if several else [given])]
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": embedding(text, model, body.get("dimensions")),
        }
        for index, text in enumerate(texts)
    ]
    sent = sum(map(len, texts)) // 4
    usage = {"prompt_tokens": sent, "total_tokens": sent}
    return {"object": "list", "data": data, "model": model, "usage": usage}
