"""What the suite knows of an adapter: how to talk to a model through it, and no more."""

from __future__ import annotations

import asyncio
import inspect
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from turnstore.testing import Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from turnstore.testing import ModelServer

Json = dict[str, Any]
Kind = Literal["sync", "async"]

_END = object()


class Limit(NamedTuple):
    """What an SDK makes impossible: why, and a regular expression for how the test has to fail."""

    reason: str
    failure: str


class Driver(ABC):
    """Talks to a model through one adapter.

    The suite scripts the model with the `Reply` of turnstore.testing, and looks at what reached
    it. A driver whose SDK can be pointed at a URL uses the ModelServer that listens there, and
    needs nothing more; one that talks to a fake of its SDK overrides `script` and `asked`.

    Attributes:
        name: What a test's id calls it.
        kinds: Which stores the adapter works on.
        conflicts: Options for `say` that do not go with a memory; each must be a ValueError
            before the model is asked.
        passes: Options for `say` that leave something with the provider and are no second
            history, each with what they are in the request.
        unfit: Replies that did not succeed (a refusal, a filter): none may be saved.
        odd: A reply with fields that nobody knows, signatures and odd text, with the messages
            that have to be stored for it, and to be sent again, exactly like that. Where the
            SDK makes messages of its own: the name of such a field, which has to be in them.
        odd_streamed: The same reply for a stream; None where a stream is no other one.
        tool_named: How often the messages of one tool loop name the tool.
        cannot: Tests of the suite that the SDK makes impossible, each with the reason. They are
            run nevertheless, and have to fail as it says.
    """

    name: ClassVar[str]
    kinds: ClassVar[tuple[Kind, ...]] = ("sync", "async")
    conflicts: ClassVar[Sequence[Json]] = ()
    passes: ClassVar[Sequence[tuple[Json, Json]]] = ()
    unfit: ClassVar[Sequence[Reply]] = ()
    odd: ClassVar[tuple[Reply, list[Json] | str]]
    odd_streamed: ClassVar[Reply | None] = None
    tool_named: ClassVar[int] = 1
    cannot: ClassVar[Mapping[str, Limit]] = {}

    def __init__(self, kind: Kind, url: str, server: ModelServer | None = None) -> None:
        self.kind = kind
        self.url = url
        self._server = server

    def remember(self, chat: Any, **options: Any) -> Any:
        """Bind the adapter to a conversation; what the methods below get as `memory`.

        Args:
            chat: The conversation: a Conversation seen as an async one if the kind is sync.
            options: What `wrap` and `turn` take, such as `on_conflict`.
        """
        return chat.wrap(self.client(), **options)

    def client(self) -> Any:
        """Give the SDK's own client, which has no memory yet."""
        raise NotImplementedError

    @abstractmethod
    async def say(self, memory: Any, text: str, *, system: str = "", **options: Any) -> str:
        """Say one thing to the model, with instructions if there are any; give its answer."""

    @abstractmethod
    def stream(self, memory: Any, text: str) -> AsyncIterator[str]:
        """Do the same in a stream, and give the texts as they come; `self.items` helps."""

    @abstractmethod
    async def use_tool(self, memory: Any, text: str, tool: Callable[[str], str]) -> str:
        """Say one thing to a model that calls the tool `weather` with a `city`; give its answer.

        Where the tool raises, so does this.
        """

    async def close(self) -> None:  # noqa: B027 - most have something to close, none must
        """Close what was opened."""

    # The model

    def script(self, *replies: Reply) -> None:
        """Queue replies of the model."""
        assert self._server is not None
        self._server.script(*replies)

    @property
    def asked(self) -> list[list[Json]]:
        """The messages that reached the model, request by request, as they are on the wire.

        Instructions that travel beside them are put first, as a message of the role `system`.
        """
        assert self._server is not None
        return [
            [{"role": "system", "content": said} for said in _beside(request.body)]
            + request.messages
            for request in self._server.requests
        ]

    # For drivers

    async def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function of the SDK: in a thread if the kind is sync, else awaited."""
        if self.kind == "sync":
            return await asyncio.to_thread(function, *args, **kwargs)
        made = function(*args, **kwargs)
        return await made if inspect.isawaitable(made) else made

    async def items(self, iterable: Any) -> AsyncIterator[Any]:
        """Go through what the SDK iterates, of either kind, and close it if it is left."""
        try:
            if self.kind == "async" or not hasattr(iterable, "__iter__"):  # some have both
                async for item in iterable:
                    yield item
                return
            iterator = iter(iterable)
            while (item := await asyncio.to_thread(next, iterator, _END)) is not _END:
                yield item
        finally:
            close = getattr(iterable, "aclose", None) or getattr(iterable, "close", None)
            if close is not None and inspect.isawaitable(closing := close()):
                await closing


def _beside(body: Json) -> list[Any]:
    places = ("system", "instructions", "systemInstruction")
    return [body[name] for name in places if body.get(name)]
