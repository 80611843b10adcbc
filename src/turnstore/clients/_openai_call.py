"""One call of OpenAI's client with a memory, from the caller's options to what is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from openai import BaseModel
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from turnstore.clients import _calling
from turnstore.clients._deltas import is_dict, is_list
from turnstore.clients._endpoints import ENDPOINTS

if TYPE_CHECKING:
    from openai._models import FinalRequestOptions

    from turnstore.clients._deltas import Json
    from turnstore.clients._endpoints import Endpoint

# How the SDK asks itself for the raw response; what `with_raw_response` sets.
_RAW: Final = "X-Stainless-Raw-Response"
_MODELS: Final[dict[str, type[BaseModel]]] = {
    "openai.chat": ChatCompletion,
    "openai.responses": Response,
}


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


class Call(_calling.Call):
    """One call; `raw` is `true` as by `with_raw_response`, `stream` as by the other."""

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
        given = endpoint.given({**self._body, **self._extra})
        _refuse_bytes(given)
        super().__init__(
            given,
            format=endpoint.format,
            read=endpoint.read,
            folding=endpoint.folding(),
            model=_MODELS[endpoint.format].construct,
            raw=str(raw or ""),
        )

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


def _refuse_bytes(messages: Any) -> None:
    """Refuse content in bytes, of which the SDK has made a list of their numbers by now.

    Raises:
        ValueError: There is some.
    """
    for place, message in enumerate(messages if is_list(messages) else ()):
        content = message.get("content") if is_dict(message) else None
        if is_list(content) and any(isinstance(part, int | float) for part in content):
            raise ValueError(
                f"message {place}: .content is a list of numbers, as the openai package makes one "
                "of bytes; give text or parts; nothing was sent"
            )
