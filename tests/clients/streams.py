"""Chunks and deltas of a streamed reply, and what they fold into."""

from __future__ import annotations

from typing import Any

from turnstore.clients._folding import ChatFolding

Json = dict[str, Any]


def chunk(delta: Json | None, finish: str | None = None, index: int = 0, **beside: object) -> Json:
    choice = {"index": index, "delta": delta, "finish_reason": finish, **beside}
    return {
        "id": "c-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
    }


def folded(*chunks: Json) -> ChatFolding:
    folding = ChatFolding()
    for one in chunks:
        folding.add(one)
    return folding


def message(*deltas: Json) -> Json:
    """The message that these deltas make; the last one ends it."""
    folding = folded(*map(chunk, deltas), chunk({}, "stop"))
    assert folding.complete
    reply: Json = folding.reply()["choices"][0]["message"]
    return reply


def call(name: str, arguments: str, call_id: str = "call_1") -> Json:
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def calls(*deltas: Json) -> list[Json]:
    reply = message({"role": "assistant"}, *({"tool_calls": [delta]} for delta in deltas))
    made: list[Json] = reply["tool_calls"]
    return made


def piece(arguments: str | None, *, index: int | None = 0, **said: object) -> Json:
    """One delta of a function call; `name` goes into the function, the rest beside it."""
    function: Json = {"name": said.pop("name")} if "name" in said else {}
    if arguments is not None:
        function["arguments"] = arguments
    place = {} if index is None else {"index": index}
    return {**place, **said, "function": function}
