"""Remember what was said, without any model: each saved turn as one text."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from turnstore._holding import Runner
from turnstore.context import SavedTurn
from turnstore.errors import ErasedError

from ._exchanging import Exchange, ExchangesBase, log, waits_for
from ._storing.handles import base_in, run_in
from ._workers import Worker
from .facts import Facts

__all__ = ["Exchanges"]

_PATIENCE = 30.0  # seconds in which nothing is stored, at the end of the interpreter


class Exchanges(ExchangesBase):
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
        >>> exchanges = Exchanges(facts)
        >>> chat = store.conversation("trip", owner="ada")
        >>> with chat.turn("I have a cat.", context=Context(after=[exchanges])) as turn:
        ...     turn.reply("What is it called?")
        >>> print(facts.list("ada", kinds=["exchange"])[0].text)
        User: I have a cat.
        Assistant: What is it called?
    """

    def __init__(  # noqa: PLR0913 - settings, by keyword
        self,
        facts: Facts,
        *,
        background: bool = False,
        limit: int = 1000,
        most: int = 2000,
        speakers: Sequence[str] = ("User", "Assistant"),
        owner: str | None = None,
    ) -> None:
        super().__init__(
            base_in("Exchanges", facts, asynchronous=False),
            background=background,
            limit_=limit,
            most=most,
            speakers=speakers,
            owner=owner,
        )
        self._run: Runner = run_in(facts)
        self._queue = _Queue(self._keep_trying, limit)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __call__(self, turn: SavedTurn, /) -> None:
        """Store what was said in a turn, now or soon."""
        try:
            if turn.appended.replaced_ids:
                self._run(self._forgetting(turn))
        finally:
            self._remember(turn)

    def _remember(self, turn: SavedTurn) -> None:
        exchange = self._exchange(turn)
        if exchange is None:
            return
        if self._background:
            exchange = self._run(self._begun(exchange))
        if self._background and self._queue.put(exchange):
            return
        try:
            self._store(exchange)
        except ErasedError as error:
            self._failed(exchange, error)

    @property
    def waiting(self) -> int:
        """How many wait in the background."""
        return len(self._queue)

    def close(self, timeout: float | None = None) -> int:
        """Wait until nothing waits any more. What comes afterwards is stored in line.

        Args:
            timeout: Seconds to wait at most; None waits as long as it takes. What failed is
                tried once more, and no longer.

        Returns:
            How many were not stored by then, and will be if the process lives on.
        """
        return self._queue.close(timeout)

    def _keep_trying(self, exchange: Exchange) -> bool:
        """Store an exchange, or give it up in the end; tell which."""
        tries = 0
        while True:
            try:
                self._store(exchange)
            except BaseException as error:  # noqa: BLE001 - nobody is there to be told
                tries += 1
                seconds = waits_for(error, tries)
                if seconds is None or self._queue.is_closed:
                    self._failed(exchange, error)
                    return False
                self._queue.pause(seconds)
            else:
                return True

    def _store(self, exchange: Exchange) -> None:
        self._run(self._storing(exchange))


class _Queue(Worker):
    """What waits for a thread, which does one after the other.

    Other than what waits for a `Runner`, it is nowhere else: it is waited for at a close and at
    the end of the interpreter, and what fails holds up what follows it, so that a Redis that is
    away for a while loses few. On an event loop, a list is all that is needed.

    Args:
        work: Stores an exchange, or gives it up; tells which. It raises nothing.
        most: How many may wait, with the one that is worked on.
    """

    def __init__(self, work: Callable[[Exchange], bool], most: int) -> None:
        self._work = work
        self._most = most
        self.is_closed = False
        super().__init__("turnstore-exchanges", _PATIENCE)

    def __len__(self) -> int:
        with self._changed:
            return len(self._waiting)

    def begin_anew(self) -> None:
        """Forget the thread, and what waits."""
        super().begin_anew()
        self._waiting: deque[Exchange] = deque()
        self._stored = 0.0  # when one was, the last time

    def put(self, exchange: Exchange) -> bool:
        """Let an exchange wait; False where it cannot."""
        with self._changed:
            if self.is_closed or len(self._waiting) >= self._most:
                return False
            try:
                self._start()
            except RuntimeError:
                return False
            self._waiting.append(exchange)
            return True

    def pause(self, seconds: float) -> None:
        """Wait, though not beyond the close."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_closed, seconds)

    def close(self, timeout: float | None) -> int:
        """Take nothing any more, and wait until nothing waits; say how many still do."""
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._waiting, timeout)
            return len(self._waiting)

    def finish(self, since: float) -> None:
        """Wait until nothing waits, or nothing was stored for too long."""
        with self._changed:
            while self._waiting:
                seconds = max(self._stored, since) + self.patience - time.monotonic()
                if seconds <= 0:
                    log.warning(
                        "%d exchanges are not stored: none could be for %g seconds",
                        len(self._waiting),
                        self.patience,
                    )
                    return
                self._changed.wait(seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._over()
                    return
                exchange = self._waiting[0]
            is_stored = self._work(exchange)
            with self._changed:
                self._waiting.popleft()
                if is_stored:
                    self._stored = time.monotonic()
                self._changed.notify_all()
