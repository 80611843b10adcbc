"""Histories made by hand, without a server; and short names for messages."""

from __future__ import annotations

import json
from typing import Any

from turnstore import History, _element

Json = dict[str, Any]


def user(content: Any, **more: Any) -> Json:
    return {"role": "user", "content": content, **more}


def system(content: str) -> Json:
    return {"role": "system", "content": content}


def assistant(content: Any, **more: Any) -> Json:
    return {"role": "assistant", "content": content, **more}


def asks(*ids: str, content: str | None = None, **more: Any) -> Json:
    """Make a message of the model that calls a tool once for each id."""
    calls = [
        {"id": id_, "type": "function", "function": {"name": "f", "arguments": "{}"}} for id_ in ids
    ]
    return {"role": "assistant", "content": content, "tool_calls": calls, **more}


def result(id_: str) -> Json:
    return {"role": "tool", "tool_call_id": id_, "content": "1"}


def raw_elements(turns: list[list[list[Json]]], format_: str = "openai.chat") -> list[bytes]:
    """Write turns, each a list of pieces, as the elements that Redis would hold."""
    raws: list[bytes] = []
    total = 0
    for turn, pieces in enumerate(turns, start=1):
        for messages in pieces:
            no = len(raws) + 1
            total += len(messages)
            row = [
                1,
                no,
                turn,
                total,
                10 * total,
                1_700_000_000_000 + no,
                len(messages),
                format_,
                f"id-{no}",
                "",
            ]
            raws.append(json.dumps([*row, messages]).encode())
    return raws


def history(*turns: Any, format_: str = "openai.chat", has_older: bool = False) -> History:
    """Make a history out of turns: lists of messages, or lists of pieces."""
    pieces = [turn if turn and isinstance(turn[0], list) else [turn] for turn in turns]
    return History(_element.parse(raw_elements(pieces, format_)), 0, has_older=has_older)
