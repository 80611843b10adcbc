"""The APIs of OpenAI, Anthropic and Gemini in a process of its own that answers at once.

It reads a request and writes an answer made beforehand, always the same, so what is measured is the
SDK and what is put around it. Started by the case `wrap`; prints its port, ends when its input
closes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from typing import Any

import mix

_ANSWER = mix.fresh_turns(1)[0][1]["content"]
_WORDS = _ANSWER.split(" ")
_PIECES = [" ".join(_WORDS[at : at + 3]) + " " for at in range(0, len(_WORDS), 3)]
_SENT, _SAID = 9_000, 200


def _openai() -> tuple[bytes, bytes]:
    head = {"id": "chatcmpl-1", "created": 1_764_000_000, "model": "bench"}
    usage = {"prompt_tokens": _SENT, "completion_tokens": _SAID, "total_tokens": _SENT + _SAID}
    message = {"role": "assistant", "content": _ANSWER, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
    deltas: list[dict[str, str]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in _PIECES] + [{}]
    chunks = []
    for delta in deltas:
        one = {"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}
        chunks.append({**head, "object": "chat.completion.chunk", "choices": [one]})
    return _plain(whole), _events(chunks, end="data: [DONE]\n\n")


def _responses() -> tuple[bytes, bytes]:
    usage = {"input_tokens": _SENT, "output_tokens": _SAID, "total_tokens": _SENT + _SAID}
    head = {"id": "resp_1", "object": "response", "created_at": 1_764_000_000, "model": "bench"}
    part = {"type": "output_text", "text": _ANSWER, "annotations": []}
    item: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant"}
    item |= {"status": "completed", "content": [part]}
    whole = {**head, "status": "completed", "output": [item], "usage": usage}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**head, "status": "in_progress", "output": []}},
        *({"type": "response.output_text.delta", **place, "delta": piece} for piece in _PIECES),
        {"type": "response.completed", "response": whole},
    ]
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    return _plain(whole), _events(numbered, named=True)


def _anthropic() -> tuple[bytes, bytes]:
    usage = {"input_tokens": _SENT, "output_tokens": _SAID}
    head: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": "bench"}
    content = [{"type": "text", "text": _ANSWER}]
    stop = {"stop_reason": "end_turn", "stop_sequence": None}
    whole = {**head, "content": content, **stop, "usage": usage}
    begun = {**head, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    block = {"type": "text", "text": ""}
    deltas = [{"type": "text_delta", "text": piece} for piece in _PIECES]
    events = [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": {"output_tokens": _SAID}},
        {"type": "message_stop"},
    ]
    return _plain(whole), _events(events, named=True)


def _gemini() -> tuple[bytes, bytes]:
    usage = {
        "promptTokenCount": _SENT,
        "candidatesTokenCount": _SAID,
        "totalTokenCount": _SENT + _SAID,
    }
    head = {"usageMetadata": usage, "modelVersion": "bench", "responseId": "1"}

    def said(text: str, **more: str) -> dict[str, Any]:
        content = {"parts": [{"text": text}], "role": "model"}
        return {"candidates": [{"content": content, **more, "index": 0}], **head}

    chunks = [*map(said, _PIECES), said("", finishReason="STOP")]
    return _plain(said(_ANSWER, finishReason="STOP")), _events(chunks)


def _plain(body: dict[str, Any]) -> bytes:
    return _response("application/json", json.dumps(body))


def _events(events: list[dict[str, Any]], *, named: bool = False, end: str = "") -> bytes:
    lines = [
        (f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n"
        for event in events
    ]
    return _response("text/event-stream", "".join(lines) + end)


def _response(kind: str, text: str) -> bytes:
    body = text.encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


# By the end of a request's path: what is answered to it, and to one that is to be streamed.
_ANSWERS = {
    b"/chat/completions": _openai(),
    b"/responses": _responses(),
    b"/messages": _anthropic(),
}
_CONTENTS, _STREAMED_CONTENTS = _gemini()


def _answer(path: bytes, body: bytes) -> bytes:
    if path.endswith(b":generateContent"):
        return _CONTENTS
    if path.endswith(b":streamGenerateContent"):
        return _STREAMED_CONTENTS
    whole, stream = next(found for end, found in _ANSWERS.items() if path.endswith(end))
    return stream if b'"stream":true' in body else whole


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length")
            )
            body = await reader.readexactly(length)
            writer.write(_answer(head.split(b" ")[1].partition(b"?")[0], body))
            await writer.drain()
    writer.close()


async def _main() -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", 0, limit=1 << 24)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(_main())
