"""OpenAI's protocol, Anthropic's and Gemini's over HTTP/1.1."""

from __future__ import annotations

import json
import socket
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from . import _chat, _gemini, _messages, _responses
from ._answers import answer, complaint
from ._desk import Desk, Request
from ._replies import Json, Reply, as_dict, dicts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def _error(status: int, message: str | None) -> Json:
    kind = "invalid_request_error" if status < 500 else "server_error"  # noqa: PLR2004 - from there on, HTTP blames the server
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


class _Endpoint(NamedTuple):
    whole: Callable[[Reply, Json, int], Json]
    events: Callable[[Json, Json, Reply], Iterable[Json]]
    terminal: Callable[[Json], bool]
    complaint: Callable[[list[Json]], str | None] = complaint
    answer: Callable[[list[Json], str], str] = answer
    error: Callable[[int, str | None], Json] = _error
    named: bool = False  # whether each event says its type in a line of its own
    end: str = ""  # what comes after the last event


_DONE = "data: [DONE]\n\n"


def _chunks(whole: Json, request: Json, _reply: Reply) -> Iterable[Json]:
    options = as_dict(request.get("stream_options"))
    return _chat.chunks(whole, usage=bool(options.get("include_usage")))


def _events(whole: Json, _request: Json, reply: Reply) -> Iterable[Json]:
    return _responses.events(whole, reply.finish_reason)


def _message_events(whole: Json, _request: Json, reply: Reply) -> Iterable[Json]:
    return _messages.events(whole, reply.finish_reason)


def _content_chunks(whole: Json, _request: Json, reply: Reply) -> Iterable[Json]:
    return _gemini.chunks(whole, reply.finish_reason)


_GEMINI = _Endpoint(
    _gemini.response,
    _content_chunks,
    _gemini.terminal,
    complaint=_gemini.complaint,
    answer=_gemini.said,
    error=_gemini.error,
)
_STREAMED = ":streamGenerateContent"
_ENDPOINTS = {
    "/chat/completions": _Endpoint(_chat.completion, _chunks, _chat.terminal, end=_DONE),
    "/responses": _Endpoint(_responses.response, _events, _responses.terminal, named=True),
    "/messages": _Endpoint(
        _messages.message,
        _message_events,
        _messages.terminal,
        complaint=_messages.complaint,
        answer=_messages.said,
        error=_messages.error,
        named=True,
    ),
    ":generateContent": _GEMINI,
    _STREAMED: _GEMINI,
}
# What is answered, and is no request to a model.
_BESIDE = {
    "/messages/count_tokens": _messages.count,
    ":countTokens": _gemini.count,
}
_EMBEDDERS = {
    "/embeddings": (_chat.embeddings, _error),
    ":batchEmbedContents": (_gemini.embeddings, _gemini.error),
}


class Http(ThreadingHTTPServer):
    """A server with a thread for each connection.

    Args:
        port: The port on 127.0.0.1; 0 takes a free one.
        desk: Where the requests go and the replies come from.
    """

    daemon_threads = True
    request_queue_size = 128  # many clients at once, which the default of 5 would turn away

    def __init__(self, port: int, desk: Desk) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.desk = desk
        self.open: set[socket.socket] = set()

    def serve(self) -> None:
        """Serve until `end`."""
        self.serve_forever(poll_interval=0.02)

    def end(self) -> None:
        """Stop, and break the connections that are open."""
        self.shutdown()
        self.server_close()
        for connection in list(self.open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients that go away in the middle are part of the tests."""


class _BrokenError(Exception):
    """The script says to break the connection here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a chunk goes out when it is written

    def setup(self) -> None:
        super().setup()
        self._http = cast("Http", self.server)
        self.desk = self._http.desk
        self._http.open.add(self.connection)

    def finish(self) -> None:
        self._http.open.discard(self.connection)
        with suppress(OSError):
            super().finish()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Log nothing."""

    def do_GET(self) -> None:
        *_, kind, last = self.path.split("?")[0].split("/")
        found = self.desk.responses.get(last) if kind == "responses" else None
        if found is not None:
            self._send(200, found)
        elif last == "models":
            self._send(200, {"object": "list", "data": [{"id": "test-model", "object": "model"}]})
        else:
            self._send(404, _error(404, f"no such thing: {self.path}"))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{}")
        path = self.path.split("?")[0]
        endpoint = next((e for suffix, e in _ENDPOINTS.items() if path.endswith(suffix)), None)
        beside = next((b for suffix, b in _BESIDE.items() if path.endswith(suffix)), None)
        embedder = next((e for suffix, e in _EMBEDDERS.items() if path.endswith(suffix)), None)
        if embedder is not None:
            self._embed(body, *embedder)
        elif beside is not None:
            self._send(200, beside(body))
        elif endpoint is None:
            self._send(404, _error(404, f"no such thing: {path}"))
        else:
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(path, headers, body)
            with suppress(_BrokenError):
                taken = self.desk.take(request, endpoint.complaint, endpoint.answer)
                self._answer(endpoint, request, *taken)
                return
            self.close_connection = True
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

    def _embed(
        self, body: Json, embed: Callable[[Json], Json], error: Callable[[int, str | None], Json]
    ) -> None:
        reply = self.desk.scripted("embedding") or Reply()
        if reply.hold is not None:
            reply.hold.wait()
        if reply.status >= 400:  # noqa: PLR2004 - as in an answer
            self._send(reply.status, error(reply.status, reply.text), reply.headers)
        else:
            self._send(200, embed(body))

    def _answer(self, endpoint: _Endpoint, request: Request, reply: Reply, number: int) -> None:
        if reply.status >= 400:  # noqa: PLR2004 - the first of HTTP's errors
            self._send(reply.status, endpoint.error(reply.status, reply.text), reply.headers)
            return
        named = request.path.rpartition("/")[2].partition(":")[0]  # Gemini has its model there
        whole = endpoint.whole(reply, {"model": named, **request.body}, number)
        if whole.get("object") == "response":
            self.desk.responses[whole["id"]] = whole
        if request.body.get("stream") or request.path.endswith(_STREAMED):
            made = endpoint.events(whole, request.body, reply)
            self._stream(endpoint, made if reply.events is None else reply.events, reply)
        else:
            if reply.hold is not None:
                reply.hold.wait()
            self._send(
                200, whole if reply.body is None else reply.body, reply.headers, reply.ending
            )

    def _send(
        self,
        status: int,
        body: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
        ending: str = "complete",
    ) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text if ending == "complete" else text[: len(text) // 2])
        if ending != "complete":
            raise _BrokenError

    def _stream(
        self, endpoint: _Endpoint, events: Iterable[Mapping[str, Any]], reply: Reply
    ) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        held = reply.hold
        for event in events:
            made_here = reply.events is None
            if made_here and reply.ending != "complete" and endpoint.terminal(cast("Json", event)):
                break
            name = f"event: {event.get('type')}\n" if endpoint.named else ""
            self._chunk(f"{name}data: {json.dumps(event)}\n\n")
            if held is not None and _says(event):
                held.wait()
                held = None
            if reply.pause:
                time.sleep(reply.pause)
        if reply.ending == "cut":
            raise _BrokenError
        if reply.ending == "complete" and endpoint.end:
            self._chunk(endpoint.end)
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))


def _says(event: Mapping[str, Any]) -> bool:
    """Whether an event of a stream carries text."""
    deltas = [as_dict(choice.get("delta")) for choice in dicts(event.get("choices"))]
    delta = event.get("delta")
    own = as_dict(delta).get("text") if isinstance(delta, dict) else delta
    told = any(delta.get("content") for delta in deltas) or own
    return bool(told or _gemini.says(cast("Json", event)))
