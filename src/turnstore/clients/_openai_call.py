"""One call of a client with a memory, from the caller's options to what is stored."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from openai import BaseModel
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from turnstore.clients._deltas import Json, as_dict, is_dict, is_list
from turnstore.clients._endpoints import ENDPOINTS
from turnstore.errors import SaveError

if TYPE_CHECKING:
    from openai._models import FinalRequestOptions

    from turnstore.clients._endpoints import Endpoint
    from turnstore.turn import AsyncPendingTurn, PendingTurn

# How the SDK asks itself for the raw response; what `with_raw_response` sets.
_RAW: Final = "X-Stainless-Raw-Response"
_MODELS: Final[dict[str, type[BaseModel]]] = {
    "openai.chat": ChatCompletion,
    "openai.responses": Response,
}

_log = logging.getLogger("turnstore")


def call_of(options: FinalRequestOptions, *, stream: bool) -> Call | None:
    """Give the call if these options are a call of a model, else None.

    Raises:
        ValueError: An option of it does not go with a memory.
    """
    if options.method.lower() != "post":
        return None
    path = "/" + options.url.partition("?")[0].strip("/")
    endpoint = next((endpoint for endpoint in ENDPOINTS if endpoint.path == path), None)
    return None if endpoint is None else Call(endpoint, options, stream=stream)


class Call:
    """One call.

    Attributes:
        given: The messages that the caller gave.
        format: Their format.
        raw: How the caller asked for the raw response: "" if not, `true` as by
            `with_raw_response`, `stream` as by `with_streaming_response`.
    """

    def __init__(self, endpoint: Endpoint, options: FinalRequestOptions, *, stream: bool) -> None:
        body = options.json_data
        if not isinstance(body, Mapping):
            raise TypeError(f"turnstore reads the body of {endpoint.path} only where it is a dict")
        self._endpoint = endpoint
        self._options = options
        self._stream = stream
        self._body = cast("Mapping[str, Any]", body)
        self._extra: Mapping[str, Any] = options.extra_json or {}
        headers: Any = options.headers or {}  # false also if they were not given
        self._headers: dict[str, Any] = dict(headers)
        raw = next((v for k, v in self._headers.items() if k.lower() == _RAW.lower()), "")
        self.raw = str(raw or "")
        self.format = endpoint.format
        self._folding = endpoint.folding()
        self.given = endpoint.given({**self._body, **self._extra})

    def sending(self, messages: list[Json]) -> FinalRequestOptions:
        """The options for the provider, with these messages in place of the caller's.

        They ask for the raw response where nothing is streamed: it has the reply as JSON, before
        the SDK made objects of it.
        """
        field = self._endpoint.field
        extra = {name: value for name, value in self._extra.items() if name != field}
        headers = self._headers if self._stream or self.raw else {**self._headers, _RAW: "true"}
        return self._options.model_copy(
            update={
                "json_data": {**self._body, field: messages},
                "extra_json": extra or None,
                "headers": headers,
            }
        )

    def see(self, data: str) -> None:
        """Take the data of the next event of a stream."""
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):  # `[DONE]`; anything else the SDK will complain of
            return
        self._folding.add(as_dict(event))

    def keep_stream(self, turn: PendingTurn | AsyncPendingTurn) -> None:
        """Give a turn the reply that the stream made."""
        if not self._folding.complete:
            _log.warning(
                "not saved: the stream ended, and the provider did not say it was complete"
            )
            return
        reply = self._folding.reply()
        self._keep(turn, reply, _MODELS[self.format].construct(**reply))

    def keep_content(
        self, turn: PendingTurn | AsyncPendingTurn, content: bytes, answer: object
    ) -> None:
        """Give a turn the reply in the body of an HTTP response; `answer` is the SDK's object."""
        try:
            reply = json.loads(content)
        except (ValueError, RecursionError):
            reply = None
        self._keep(turn, as_dict(reply), answer)

    def _keep(self, turn: PendingTurn | AsyncPendingTurn, reply: Json, answer: object) -> None:
        messages, meta, unfit = self._endpoint.read(reply)
        if unfit:
            _log.warning("not saved: %s", unfit)
            return
        turn.meta.update(meta)
        try:
            turn.reply(messages, answer=answer)
        except ValueError as error:
            raise SaveError(
                f"the model answered, but its answer cannot be stored: {error}",
                reply=answer,
                turn=turn,
            ) from error


def mended(value: Any) -> Any:
    """Replace lone surrogates, which JSON can say and UTF-8 cannot; the SDK writes UTF-8.

    What is stored keeps them: so one half of a character that a model once answered does not end
    the conversation.
    """
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if is_list(value):
        return [mended(item) for item in value]
    if is_dict(value):
        return {mended(key): mended(item) for key, item in value.items()}
    return value
