"""Google's client, of the `google-genai` package, with a memory; for Gemini and for Vertex.

A call of the SDK (`generate_content`, or its stream) may make several requests: for automatic
function calling, and for the rest of a reply that was broken off. A turn begins and ends with the
call. What is stored and sent is the JSON of the requests and replies, which go through the SDK's
API client, once for each request and above its retries: the objects that the SDK makes of them
lack what it does not know. So a wrapped client has models of its own, which give each call an API
client of its own; all else is the SDK's, and shared with the client that was wrapped.
"""

from __future__ import annotations

import copy
from contextlib import AsyncExitStack, ExitStack, aclosing
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar

from google.genai.chats import AsyncChats, Chats
from google.genai.client import AsyncClient, Client
from google.genai.models import AsyncModels, Models

from turnstore.aio import AsyncConversation
from turnstore.clients._deriving import derived
from turnstore.clients._google_api import Api, AsyncApi
from turnstore.turn import begin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from google.genai.types import GenerateContentResponse

    from turnstore.clients._deltas import Json
    from turnstore.clients._google_call import Call
    from turnstore.conversation import Conversation
    from turnstore.turn import TurnOptions

__all__ = ["wrap"]

C = TypeVar("C")

_NO_INTERACTIONS = (
    "a client with a memory has no interactions: Google keeps their history, and this client's "
    "comes from turnstore; use the client that was wrapped"
)


def wrap(conversation: Conversation | AsyncConversation, client: C, options: TurnOptions) -> C:
    """Give a client the memory of a conversation; see `Conversation.wrap`."""
    is_async = isinstance(conversation, AsyncConversation)
    if isinstance(client, _Remembering | _AsyncRemembering):
        raise TypeError("this client has a memory already; wrap the client that it was made from")
    if isinstance(client, AsyncClient) and not is_async:
        raise TypeError(
            "client.aio needs a conversation of AsyncStore; wrap it there, or give this "
            "conversation the client itself, for its sync methods"
        )
    begins = partial(begin, conversation, options=options)
    given: Any = client
    if isinstance(client, AsyncClient):
        made = _async_client(given, begins)
    else:
        made = _client(given, None if is_async else begins, begins if is_async else None)
    return made  # type: ignore[no-any-return]  # of the type of `client`


def _client(client: Any, begins: Any, async_begins: Any) -> Any:
    aio = _async_client(client.aio, async_begins)
    return _derived(client, _Remembering, _models(client.models, _Models, begins), _aio=aio)


def _async_client(client: Any, begins: Any) -> Any:
    return _derived(client, _AsyncRemembering, _models(client.models, _AsyncModels, begins))


def _models(sdk: Any, kind: Any, begins: Any) -> Any:
    made = copy.copy(sdk)
    made.__class__ = kind
    state = vars(made)
    for name in ("generate_content", "generate_content_stream"):  # where somebody replaced them
        state.pop(name, None)
    state.update(_turnstore=begins, _sdk=sdk)
    return made


def _derived(client: Any, remembering: type, models: Any, **state: Any) -> Any:
    kind: type = type(client)
    wrapped = copy.copy(client)
    wrapped.__class__ = derived(kind, remembering)
    # The other client is kept: the SDK closes the connections of one that nobody has any more.
    vars(wrapped).update(state, _models=models, _turnstore_of=client)
    return wrapped


class _Remembering(Client):
    @property
    def chats(self) -> Chats:
        """Chats whose history is the conversation's."""
        return _Chats(self.models)

    @property
    def interactions(self) -> Any:
        """Not there: Google keeps their history."""
        raise AttributeError(_NO_INTERACTIONS)

    def close(self) -> None:
        """Leave the connections open: they are those of the client that was wrapped."""

    def __del__(self) -> None:
        """Leave them open here, too."""


class _AsyncRemembering(AsyncClient):
    @property
    def chats(self) -> AsyncChats:
        """Chats whose history is the conversation's."""
        return _AsyncChats(self.models)

    @property
    def interactions(self) -> Any:
        """Not there: Google keeps their history."""
        raise AttributeError(_NO_INTERACTIONS)

    async def aclose(self) -> None:
        """Leave the connections open: they are those of the client that was wrapped."""


class _Chats(Chats):
    def create(self, *, history: Any = None, **options: Any) -> Any:
        return _forgetful(super().create(**options), history)


class _AsyncChats(AsyncChats):
    def create(self, *, history: Any = None, **options: Any) -> Any:
        return _forgetful(super().create(**options), history)


def _forgetful(chat: Any, history: Any) -> Any:
    """Have a chat send what is new alone; it keeps for itself what was said in it.

    Raises:
        ValueError: It was given a history of its own.
    """
    if history:
        raise ValueError(
            "history: a chat of this client has the history of its conversation. To begin with "
            'messages of your own, conversation.append(history, format="google.contents")'
        )
    state = vars(chat)
    models = state["_modules"] = copy.copy(state["_modules"])
    vars(models)["_said"] = chat.get_history(curated=True)
    return chat


class _Asking:
    """What the two kinds of models with a memory share.

    Attributes:
        _turnstore: What begins a turn; None in the models of the other kind.
        _sdk: The models of the client that was wrapped.
        _said: What a chat has kept of what was said in it, and would send again.
        _elsewhere: What to use in place of the models of the other kind.
    """

    _elsewhere = ""
    _turnstore: Callable[..., Any] | None = None
    _sdk: Any = None
    _said: Any = ()

    def _prepared(self, api: Any, opened: Any, options: Json) -> tuple[Any, Json, Call]:
        """Give the SDK's models for one call, what they are called with, and the call."""
        models = copy.copy(self._sdk)
        state = vars(models)
        made = state["_api_client"] = api(state["_api_client"], self._turnstore, opened)
        contents = options.get("contents")
        if self._said and isinstance(contents, list):
            both = zip(contents, self._said, strict=False)
            known = list(takewhile(lambda one: one[0] is one[1], both))
            options = {**options, "contents": contents[len(known) :]}
        return models, options, made.call

    def _check(self) -> None:
        if self._turnstore is None:
            raise TypeError(self._elsewhere)


class _Models(_Asking, Models):
    _elsewhere = (
        "client.models has no memory here, since the conversation is one of AsyncStore; use "
        "client.aio.models, or wrap the client with a conversation of Store"
    )

    def generate_content(self, **options: Any) -> GenerateContentResponse:
        self._check()
        with ExitStack() as opened:
            models, options, call = self._prepared(Api, opened, options)
            answer: GenerateContentResponse = models.generate_content(**options)
            call.keep(answer)
        return answer

    def generate_content_stream(self, **options: Any) -> Iterator[GenerateContentResponse]:
        self._check()
        return self._chunks(options)

    def _chunks(self, options: Json) -> Iterator[GenerateContentResponse]:
        with ExitStack() as opened:
            models, options, call = self._prepared(Api, opened, options)
            yield from models.generate_content_stream(**options)
            call.keep()


class _AsyncModels(_Asking, AsyncModels):
    _elsewhere = (
        "client.aio has no memory here, since the conversation is one of Store; use "
        "client.models, or wrap the client with a conversation of AsyncStore"
    )

    async def generate_content(self, **options: Any) -> GenerateContentResponse:
        self._check()
        async with AsyncExitStack() as opened:
            models, options, call = self._prepared(AsyncApi, opened, options)
            answer: GenerateContentResponse = await models.generate_content(**options)
            call.keep(answer)
        return answer

    async def generate_content_stream(
        self, **options: Any
    ) -> AsyncIterator[GenerateContentResponse]:
        self._check()
        return self._chunks(options)

    async def _chunks(self, options: Json) -> AsyncIterator[GenerateContentResponse]:
        async with AsyncExitStack() as opened:
            models, options, call = self._prepared(AsyncApi, opened, options)
            async with aclosing(await models.generate_content_stream(**options)) as chunks:
                async for chunk in chunks:
                    yield chunk
            call.keep()
