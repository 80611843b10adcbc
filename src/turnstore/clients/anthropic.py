"""Clients of the `anthropic` package with a memory, for the API, Bedrock, Vertex and Foundry.

The SDK has a middleware of its own, which runs once for each HTTP attempt, below the retries. A
turn begins and ends with the call: a middleware could not tell the last attempt from one that is
repeated, so it would read the history again each time, and could not give up the turn (or the
lease of a turn) when the call fails. So the memory stands where a call is one call, before the
client's `request`, as it does for OpenAI. The caller's own middleware runs below it, and sees
what the model is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin

from anthropic import AsyncStream, Stream
from anthropic._base_client import AsyncAPIClient, SyncAPIClient
from anthropic._utils._json import openapi_dumps
from anthropic.types import Message
from anthropic.types.beta import BetaMessage

from turnstore import _json
from turnstore.clients import _anthropic_messages as messages_api
from turnstore.clients._calling import Answer, Call
from turnstore.clients._deriving import ask, async_ask, derive
from turnstore.clients._streams import AsyncRemembered, Remembered

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from turnstore._compose import Plan
    from turnstore.aio import AsyncConversation
    from turnstore.clients._deltas import Json
    from turnstore.conversation import Conversation
    from turnstore.turn import AsyncPendingTurn, PendingTurn, TurnOptions

__all__ = ["wrap"]

C = TypeVar("C")
T = TypeVar("T")

_PATH = "/v1/messages"  # count_tokens and batches are below it, and none of ours

# How the SDK asks itself for the raw response; what `with_raw_response` sets.
_RAW = "X-Stainless-Raw-Response"


def wrap(
    conversation: Conversation | AsyncConversation,
    client: C,
    options: TurnOptions,
) -> C:
    """Give a client the memory of a conversation; see `Conversation.wrap`."""
    kind = _AsyncRemembering if isinstance(client, AsyncAPIClient) else _Remembering
    return derive(conversation, client, options, kind)


class _Prepared(dict[str, Any]):
    """A body that the SDK need not look through: the caller's part was, and the rest is JSON."""


def _written(options: Any) -> Any:
    """Write a prepared body, for an attempt that is sent as it is: a history is long.

    The SDK's own encoder takes five times as long for it. It is left what orjson cannot write.
    """
    body: Any = options.json_data
    if not isinstance(body, _Prepared):  # of no call of ours, or a middleware put another there
        return options
    codec, messages = _json.dumps(body["messages"])
    if codec != _json.FAST:
        return options
    rest = openapi_dumps({name: value for name, value in body.items() if name != "messages"})
    content = b'%b%b"messages":%b}' % (rest[:-1], b"," if len(rest) > len("{}") else b"", messages)
    return options.model_copy(update={"json_data": None, "content": content})


class _Call(Call):
    """One call of the Messages API."""

    def __init__(self, options: Any) -> None:
        headers = dict(options.headers or {})  # false also if they were not given
        raw = next((v for k, v in headers.items() if k.lower() == _RAW.lower()), "")
        body: Any = options.json_data
        if not isinstance(body, Mapping):
            raise TypeError(f"turnstore reads the body of {_PATH} only where it is a dict")
        self._options, self._headers = options, headers
        self._body: Json = {**body, **(options.extra_json or {})}
        self._prefill: Json | None = None
        super().__init__(
            messages_api.given(self._body),
            format="anthropic.messages",
            read=self._answer,
            folding=messages_api.MessageFolding(),
            model=(BetaMessage if "beta=true" in options.url else Message).construct,
            raw=str(raw or ""),
        )

    def loaded(self, turn: PendingTurn | AsyncPendingTurn) -> None:
        """Take the words that the model is to begin with off what is stored as the caller's."""
        owner: Any = turn
        plan: Plan = owner._plan  # noqa: SLF001 - of the same house
        if plan.new and plan.new[-1].get("role") == "assistant":
            self._prefill = plan.new[-1]
            owner._plan = plan._replace(new=plan.new[:-1])  # noqa: SLF001 - as above

    def sending(self, messages: list[Json]) -> Any:
        """The options for the provider, with these messages in place of the caller's.

        They ask for the raw response: it has the reply as JSON, before the SDK made objects of it.
        """
        as_it_is = self.raw or self._body.get("stream")
        return self._options.model_copy(
            update={
                "json_data": _Prepared(messages_api.sending(self._body, messages)),
                "extra_json": None,
                "headers": self._headers if as_it_is else {**self._headers, _RAW: "raw"},
            }
        )

    def _answer(self, reply: Json) -> Answer:
        answer = messages_api.read(reply)
        if self._prefill is None or answer.unfit:
            return answer
        (message,) = answer.messages
        return answer._replace(messages=[messages_api.joined(self._prefill, message)])


def _is_call(options: Any) -> bool:
    return bool(options.method.lower() == "post" and options.url.partition("?")[0] == _PATH)


class _Remembering(SyncAPIClient):
    # What begins a turn; None in a client that somebody makes of this class anew.
    _turnstore: Callable[..., PendingTurn] | None = None

    # The SDK's tool runner keeps the history at the provider where it can.
    _supports_message_threads = False

    def request(
        self, cast_to: Any, options: Any, *, stream: bool = False, stream_cls: Any = None
    ) -> Any:
        request: Any = super().request
        if self._turnstore is None or not _is_call(options):
            return request(cast_to, options, stream=stream, stream_cls=stream_cls)
        call = _Call(self._copy_and_prepare(options))
        twin = _twin(stream_cls) if stream else None
        return ask(self._turnstore, call, request, cast_to, stream=stream, stream_cls=twin)

    def _copy_and_prepare(self, options: Any) -> Any:
        prepare: Any = getattr(super(), "_copy_and_prepare", None)  # since anthropic 2
        if prepare is None or isinstance(options.json_data, _Prepared):
            return options.model_copy()
        return prepare(options)

    def _build_request(self, options: Any, **more: Any) -> Any:
        return super()._build_request(_written(options), **more)

    def copy(self, **options: Any) -> Self:
        parent: Any = super()
        copied: Self = parent.copy(**options)
        copied._turnstore = self._turnstore
        return copied

    with_options = copy

    def close(self) -> None:
        """Leave the connections open: they are those of the client that was wrapped."""


class _AsyncRemembering(AsyncAPIClient):
    _turnstore: Callable[..., AsyncPendingTurn] | None = None
    _supports_message_threads = False

    async def request(
        self, cast_to: Any, options: Any, *, stream: bool = False, stream_cls: Any = None
    ) -> Any:
        request: Any = super().request
        if self._turnstore is None or not _is_call(options):
            return await request(cast_to, options, stream=stream, stream_cls=stream_cls)
        call = _Call(await self._copy_and_prepare(options))
        twin = _twin(stream_cls) if stream else None
        return await async_ask(
            self._turnstore, call, request, cast_to, stream=stream, stream_cls=twin
        )

    async def _copy_and_prepare(self, options: Any) -> Any:
        prepare: Any = getattr(super(), "_copy_and_prepare", None)  # since anthropic 2
        if prepare is None or isinstance(options.json_data, _Prepared):
            return options.model_copy()
        return await prepare(options)

    def _build_request(self, options: Any, **more: Any) -> Any:
        return super()._build_request(_written(options), **more)

    def copy(self, **options: Any) -> Self:
        parent: Any = super()
        copied: Self = parent.copy(**options)
        copied._turnstore = self._turnstore
        return copied

    with_options = copy

    async def close(self) -> None:
        """Leave the connections open: they are those of the client that was wrapped."""


class RememberedStream(Remembered[T], Stream[T]):
    """A stream of the SDK that saves its turn."""


class AsyncRememberedStream(AsyncRemembered[T], AsyncStream[T]):
    """An async stream of the SDK that saves its turn."""


def _twin(stream_cls: object) -> Any:
    twins: dict[object, Any] = {Stream: RememberedStream, AsyncStream: AsyncRememberedStream}
    twin = twins.get(get_origin(stream_cls))
    if twin is None:
        raise TypeError(f"a client with a memory streams anthropic.Stream, and not {stream_cls!r}")
    return twin[get_args(stream_cls)]
