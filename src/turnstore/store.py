"""The sync store: one application's conversations in one Redis."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Self, TypeVar, Unpack

from . import _io
from ._calls import Flow
from ._place import Home, Settings, StoreOptions
from ._redaction import Redact, check_redact
from .context.tokens import TokenCounter
from .conversation import Conversation
from .errors import ClosedError
from .messages import Message
from .results import ConversationPage, Erasure

__all__ = ["Store"]

R = TypeVar("R")


class Store:
    """Keep the conversations of one application in Redis.

    A store is made once and shared by all threads and requests of a process; processes
    that give it the same name, prefix and secret share its conversations.

    Args:
        client: A client of redis-py: `redis.Redis`, `redis.RedisCluster`, or what
            `Sentinel.master_for` gives. It is used as it is, whatever its protocol and
            `decode_responses`, and never closed. `Store.from_url` makes one.
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
        redact: A function of the new messages of a turn, a list of dicts, that gives the
            same number of them as they are to be stored. What the model is sent in this
            call stays as it is. It is also given summaries, as a message of their own.

    Raises:
        TypeError, ValueError: An argument is of no use; nothing was sent.

    Cost:
        No I/O. Connections are made when they are needed.

    Example:
        >>> store = Store(redis_client, name="support", ttl=timedelta(hours=1))
        >>> store.conversation("conv-1").append("Hello").messages
        1
    """

    def __init__(  # noqa: PLR0913 - settings, by keyword, each with a default but the name
        self,
        client: _io.Client,
        *,
        name: str,
        prefix: str = "turnstore",
        secret: bytes | None = None,
        max_messages: int | None = 1000,
        ttl: timedelta | None = timedelta(days=1),
        max_turn_messages: int | None = 1000,
        max_turn_bytes: int | None = 16 * 1024 * 1024,
        count_tokens: str | Callable[[Message], int] | TokenCounter | None = None,
        redact: Redact | None = None,
    ) -> None:
        _io.accept_client(client, asynchronous=False)
        check_redact(redact, asynchronous=False)
        settings = Settings(
            max_messages=max_messages,
            ttl=ttl,
            max_turn_messages=max_turn_messages,
            max_turn_bytes=max_turn_bytes,
            count_tokens=count_tokens,
            redact=redact,
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

        It has as many connections as there are operations at a time, unless the URL says
        `max_connections=…`.

        Args:
            url: `redis://`, `rediss://` or `unix://`, with any option of redis-py's
                `from_url` in its query; it goes there untouched.
            cluster: Whether it is a node of a Redis Cluster. Such a client asks for the
                slots at once; a plain one connects when it is first used.
            name: The application or tenant, as for `Store`.
            **settings: What else `Store` takes.

        Raises:
            TypeError, ValueError: An argument is of no use; nothing was sent.
            UnavailableError: No node of the cluster answered.

        Example:
            >>> with Store.from_url(redis_url, name="support") as store:
            ...     store.conversation("conv-1").read()
            []
        """
        client = _io.connect(url, is_cluster=cluster)
        try:
            store = cls(client, name=name, **settings)
        except BaseException:
            client.close()
            raise
        store._owns_client = True
        return store

    def conversation(
        self,
        id: str,  # noqa: A002 - the field's word for it
        *,
        owner: str | None = None,
    ) -> Conversation:
        """Give the handle of a conversation, which need not exist yet.

        Args:
            id: Any non-empty text. The key has its digest. Ids keep conversations apart;
                whether a user may read one is for the caller to check.
            owner: The id of the user whose conversation it is, by the same rules. It is
                then listed by `conversations`, and erased by `erase`; its id is kept for the
                list. The same id with another owner, or with none, is another conversation.

        Raises:
            TypeError, ValueError: It is not text, is empty, or holds a lone surrogate.

        Cost:
            No I/O, some microseconds: make one wherever it is needed.

        Example:
            >>> store.conversation("conv-1", owner="ada").key == store.conversation("conv-1").key
            False
        """
        return Conversation(self._home.place(id, owner), self._run)

    def conversations(
        self, owner: str, limit: int = 50, *, before: int | None = None
    ) -> ConversationPage:
        """List the conversations of an owner, those that were written to last first.

        Args:
            owner: The id of the owner, as for `conversation`.
            limit: Conversations on the page, at most.
            before: The `cursor` of the page before.

        Returns:
            What each is called and holds, with the `cursor` of the next page (None where
            there is none). Those that have ended are left out.

        Raises:
            TypeError, ValueError: An argument is of no use.

        Atomicity:
            Each page is of a moment; one that is written to meanwhile moves to the front.

        Cost:
            Two round trips and O(page + log(conversations)); more where some have ended.

        Example:
            >>> chat = store.conversation("conv-1", owner="ada")
            >>> chat.append("Hello").turns
            1
            >>> [chat.id for chat in store.conversations("ada")]
            ['conv-1']
        """
        return self._run(self._home.conversations(owner, limit, before))

    def erase(self, owner: str, *, verify: bool = False) -> Erasure:
        """Delete everything of an owner, for good.

        All conversations with all that belongs to them, their titles and ids, and what
        other parts of turnstore keep for the owner. What began before it does not come
        back: the save of a turn that is under way raises `ErasedError`, with the answer.
        A turn that begins after it is not concerned.

        Repeat it after any error: it goes on where the other one stopped.

        Args:
            owner: The id of the owner, as for `conversation`.
            verify: Look at every key of the server too, so that also what no list knows
                any more is found, deleted, and shown to be gone.

        Returns:
            What was removed. What is left is the note of the erasure, for two days: a
            text of numbers.

        Raises:
            TypeError, ValueError: It is no owner's id; nothing was sent.
            UnavailableError: No answer, or the server was too busy; a part may be deleted.
            ServerError: Redis refused; a part may be deleted.

        Atomicity:
            From the first step to the last nobody writes for the owner. Another erasure
            may go on at the same time.

        Cost:
            Two round trips, and one for each 100 conversations. `verify` scans all keys
            of the server, of a Cluster those of one node.

        Example:
            >>> chat = store.conversation("conv-1", owner="ada")
            >>> chat.append("Hello").turns
            1
            >>> store.erase("ada").turns
            1
            >>> chat.read()
            []
        """
        return self._run(self._home.erase(owner, verify=verify))

    def ping(self) -> None:
        """Ask the server for a key of the store: whether it can be used, for a readiness check.

        That it answers shows that the server is up and ready, lets this client in, and lets it
        look at the keys of this store; of a Cluster, the node of one key. It does not show
        that it takes writes: where it is full, or has become a replica, histories are read
        all the same, and a save says what is wrong.

        Raises:
            UnavailableError: No answer, or the server is not ready: it loads its data, or a
                Cluster lacks a node.
            DeniedError: The password or the user's permissions are not right.
            ServerError: Redis refused for another reason.

        Cost:
            One round trip. Where nothing answers, what the client's timeouts and retries take.

        Example:
            >>> store.ping()
        """
        self._run(self._home.ping())

    def close(self) -> None:
        """Close the store for good; a client that was handed in stays open.

        Any later use raises `ClosedError`. Closing twice does nothing.
        """
        self._closed = True
        if self._owns_client:
            self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self, flow: Flow[R], /) -> R:
        if self._closed:
            msg = "the store was closed; nothing was sent. Make a new one"
            raise ClosedError(msg)
        return _io.run(self._client, flow)
