"""The asyncio store: the same names, signatures and texts as `store`, with `await`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Self, TypeVar, Unpack

from turnstore import _io
from turnstore._calls import Flow
from turnstore._place import Home, Settings, StoreOptions
from turnstore.context.tokens import TokenCounter
from turnstore.errors import ClosedError
from turnstore.messages import Message

from .conversation import AsyncConversation

__all__ = ["AsyncStore"]

R = TypeVar("R")


class AsyncStore:
    """Keep the conversations of one application in Redis.

    A store is made once and shared by all tasks and requests of a process; processes
    that give it the same name, prefix and secret share its conversations.

    Args:
        client: A client of redis-py: `redis.asyncio.Redis`, `redis.asyncio.RedisCluster`, or what
            `Sentinel.master_for` gives. It is used as it is, whatever its protocol and
            `decode_responses`, and never closed. `AsyncStore.from_url` makes one.
        name: The application or tenant. Two names share nothing.
        prefix: What every key begins with; visible ASCII without braces.
        secret: 16 to 64 bytes that key the digests in the key names, so that nobody who
            knows an id can tell its key. All processes need the same one.
        max_messages: Messages held per conversation. An append drops the oldest whole
            turns beyond; the newest turn always stays. None sets no limit.
        ttl: How long a conversation outlives its last append; None keeps it forever.
            Reads do not renew it.
        max_turn_messages: Messages that one append may hold; None sets no limit.
        max_turn_bytes: Bytes of JSON that one append may hold; None sets no limit.
        count_tokens: What counts the tokens of a message, once, when it is appended: the
            name of an encoding or a model, for tiktoken, or a function of a message.
            Without it, nothing is counted until a window limits tokens; `cl100k_base`
            counts from then on.

    Raises:
        TypeError, ValueError: An argument is of no use; nothing was sent.

    Cost:
        No I/O. Connections are made when they are needed.

    Example:
        >>> store = AsyncStore(async_redis_client, name="support", ttl=timedelta(hours=1))
        >>> (await store.conversation("conv-1").append("Hello")).messages
        1
    """

    def __init__(  # noqa: PLR0913 - settings, by keyword, each with a default but the name
        self,
        client: _io.AsyncClient,
        *,
        name: str,
        prefix: str = "turnstore",
        secret: bytes | None = None,
        max_messages: int | None = 1000,
        ttl: timedelta | None = timedelta(days=1),
        max_turn_messages: int | None = 1000,
        max_turn_bytes: int | None = 16 * 1024 * 1024,
        count_tokens: str | Callable[[Message], int] | TokenCounter | None = None,
    ) -> None:
        _io.check_client(client, asynchronous=True)
        settings = Settings(
            max_messages=max_messages,
            ttl=ttl,
            max_turn_messages=max_turn_messages,
            max_turn_bytes=max_turn_bytes,
            count_tokens=count_tokens,
        )
        self._home = Home(name, prefix, secret, settings)
        self._client = client
        self._owns_client = False
        self._closed = False

    @classmethod
    def from_url(
        cls, url: str, *, cluster: bool = False, name: str, **settings: Unpack[StoreOptions]
    ) -> Self:
        """Make a store with a client of its own, which `close` closes.

        Args:
            url: `redis://`, `rediss://` or `unix://`, with any option of redis-py's
                `from_url` in its query; it goes there untouched.
            cluster: Whether it is a node of a Redis Cluster. Such a client asks for the
                slots at once; a plain one connects when it is first used.
            name: The application or tenant, as for `AsyncStore`.
            **settings: What else `AsyncStore` takes.

        Raises:
            TypeError, ValueError: An argument is of no use; nothing was sent.
            UnavailableError: No node of the cluster answered.

        Example:
            >>> async with AsyncStore.from_url(redis_url, name="support") as store:
            ...     await store.conversation("conv-1").read()
            []
        """
        client = _io.aconnect(url, is_cluster=cluster)
        store = cls(client, name=name, **settings)
        store._owns_client = True
        return store

    def conversation(self, id: str) -> AsyncConversation:  # noqa: A002 - the field's word for it
        """Give the handle of a conversation, which need not exist yet.

        Args:
            id: Any non-empty text. It is not kept: the key has its digest. Ids keep
                conversations apart; whether a user may read one is for the caller to check.

        Raises:
            TypeError, ValueError: It is not text, is empty, or holds a lone surrogate.

        Cost:
            No I/O, some microseconds: make one wherever it is needed.
        """
        return AsyncConversation(self._home.place(id), self._run)

    async def close(self) -> None:
        """Close the store for good; a client that was handed in stays open.

        Any later use raises `ClosedError`. Closing twice does nothing.
        """
        self._closed = True
        if self._owns_client:
            await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def _run(self, flow: Flow[R], /) -> R:
        if self._closed:
            msg = "the store was closed; nothing was sent. Make a new one"
            raise ClosedError(msg)
        return await _io.arun(self._client, flow)
