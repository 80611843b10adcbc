"""Remember what was said, on an asyncio store: the same as `exchanges`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from turnstore._holding import AsyncRunner
from turnstore.context import SavedTurn
from turnstore.errors import ErasedError

from ._exchanging import Exchange, ExchangesBase, waits_for
from ._storing.handles import base_in, run_in
from .aio import AsyncFacts

__all__ = ["AsyncExchanges"]


class AsyncExchanges(ExchangesBase):
    """Store what was said in each saved turn among the facts of its owner.

    Given to a context, as in `Context(after=[exchanges])`. What the user and the model said is
    stored as one text, under the conversation's owner and id and the id of the turn: once for
    each turn, whoever does it and however often. Instructions, tool calls and their results,
    and what was recalled are no part of it.

    They live as the facts do: for good, unless `Facts` has a `ttl`, though the conversation
    goes a day after its last turn by default. Those of turns that were undone or cleared stay
    and are recalled, until `Facts.forget_turns` or `Facts.forget_conversation`. Where a turn
    replaces others, what these alone have said is forgotten at once, also with `background`.

    Nothing of it fails a turn. In line, a failure is logged and counted by the context; in the
    background, it is tried again for some ten seconds first, but for what is forgotten.

    Args:
        facts: Where they are stored.
        background: Whether it is done in the background, so that the turn does not wait for
            the embedder: by a thread, which works through what waits before the interpreter
            ends, unless nothing is stored for half a minute, as by an embedder that hangs; on an
            asyncio store by a task, which does not. `close` waits for either.
        limit: How many may wait in the background; beyond, they are stored in line.
        most: Characters that are kept of each side; of more, the middle is left out.
        speakers: What the user and the model are called in the text.
        owner: Whose they are in conversations that have no owner. Their ids must not be those of
            the owner's own conversations.

    Attributes:
        counts: `stored`; `duplicate` where the turn was stored before; `left_out` where one
            side said nothing, or the model waits for a tool; `failed`; `erased` where the
            owner was erased since the turn began, the conversation cleared, or its facts
            forgotten.

    Raises:
        TypeError, ValueError: An argument is of no use.

    Cost:
        For each turn, that of `Facts.add_exchange`; one round trip more in the background
        where the conversation has no owner. Where it replaces others, `Facts.forget_turns`.

    Example:
        >>> from turnstore.context import Context
        >>> exchanges = AsyncExchanges(facts)
        >>> chat = store.conversation("trip", owner="ada")
        >>> async with chat.turn("I have a cat.", context=Context(after=[exchanges])) as turn:
        ...     turn.reply("What is it called?")
        >>> print((await facts.list("ada", kinds=["exchange"]))[0].text)
        User: I have a cat.
        Assistant: What is it called?
    """

    def __init__(  # noqa: PLR0913 - settings, by keyword
        self,
        facts: AsyncFacts,
        *,
        background: bool = False,
        limit: int = 1000,
        most: int = 2000,
        speakers: Sequence[str] = ("User", "Assistant"),
        owner: str | None = None,
    ) -> None:
        super().__init__(
            base_in("Exchanges", facts, asynchronous=True),
            background=background,
            limit_=limit,
            most=most,
            speakers=speakers,
            owner=owner,
        )
        self._run: AsyncRunner = run_in(facts)
        self._queue: list[Exchange] = []
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def __call__(self, turn: SavedTurn, /) -> None:
        """Store what was said in a turn, now or soon."""
        try:
            if turn.appended.replaced_ids:
                await self._run(self._forgetting(turn))
        finally:
            await self._remember(turn)

    async def _remember(self, turn: SavedTurn) -> None:
        exchange = self._exchange(turn)
        if exchange is None:
            return
        if self._background:
            exchange = await self._run(self._begun(exchange))
        if self._background and self._put(exchange):
            return
        try:
            await self._store(exchange)
        except ErasedError as error:
            self._failed(exchange, error)

    @property
    def waiting(self) -> int:
        """How many wait in the background."""
        return len(self._queue)

    async def close(self, timeout: float | None = None) -> int:  # noqa: ASYNC109 - its twin's
        """Wait until nothing waits any more. What comes afterwards is stored in line.

        Args:
            timeout: Seconds to wait at most; None waits as long as it takes. What failed is
                tried once more, and no longer.

        Returns:
            How many were not stored by then, and will be if the process lives on.
        """
        self._closing.set()
        if self._queue and (self._task is None or self._task.done()):  # it was cancelled
            self._task = asyncio.get_running_loop().create_task(self._work())
        if self._task is not None and not self._task.done():
            await asyncio.wait({self._task}, timeout=timeout)
        return len(self._queue)

    def _put(self, exchange: Exchange) -> bool:
        if self._closing.is_set() or len(self._queue) >= self._limit:
            return False
        self._queue.append(exchange)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())
        return True

    async def _work(self) -> None:
        while self._queue:
            await self._keep_trying(self._queue[0])
            del self._queue[0]

    async def _keep_trying(self, exchange: Exchange) -> None:
        tries = 0
        while True:
            try:
                return await self._store(exchange)
            except Exception as error:  # noqa: BLE001 - nobody is there to be told
                tries += 1
                seconds = waits_for(error, tries)
                if seconds is None or self._closing.is_set():
                    return self._failed(exchange, error)
                try:
                    async with asyncio.timeout(seconds):
                        await self._closing.wait()
                except TimeoutError:
                    pass

    async def _store(self, exchange: Exchange) -> None:
        await self._run(self._storing(exchange))
