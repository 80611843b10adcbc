"""A chat API in a process of its own that answers at once, always the same.

It reads a request and writes an answer made beforehand, so what is measured is the SDK and what is
put around it. Started by the case `wrap`; prints its port, ends when its input closes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress

import mix

_ANSWER = mix.fresh_turns(1)[0][1]["content"]
_HEAD = {"id": "chatcmpl-1", "created": 1_764_000_000, "model": "bench"}
_USAGE = {"prompt_tokens": 9_000, "completion_tokens": 200, "total_tokens": 9_200}


def _whole() -> bytes:
    message = {"role": "assistant", "content": _ANSWER, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    body = json.dumps(
        {**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _USAGE}
    ).encode()
    return _headers("application/json", body) + body


def _stream() -> bytes:
    words = _ANSWER.split(" ")
    pieces = [" ".join(words[at : at + 3]) + " " for at in range(0, len(words), 3)]
    deltas: list[dict[str, str]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in pieces] + [{}]
    lines = []
    for delta in deltas:
        choice = {"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}
        chunk = {**_HEAD, "object": "chat.completion.chunk", "choices": [choice]}
        lines.append(f"data: {json.dumps(chunk)}\n\n")
    body = ("".join(lines) + "data: [DONE]\n\n").encode()
    return _headers("text/event-stream", body) + body


def _headers(kind: str, body: bytes) -> bytes:
    return (
        f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    )


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    whole, stream = _whole(), _stream()
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length")
            )
            body = await reader.readexactly(length)
            writer.write(stream if b'"stream":true' in body else whole)
            await writer.drain()
    writer.close()


async def _main() -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", 0, limit=1 << 24)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(_main())
