"""Remember what was said, without any model: each saved turn as one text."""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from turnstore._holding import Runner
from turnstore.context import SavedTurn
from turnstore.errors import ErasedError

from ._exchanging import Exchange, ExchangesBase, log, waits_for
from ._storing.handles import base_in, run_in
from .facts import Facts

__all__ = ["Exchanges"]

_PATIENCE = 30.0  # seconds without progress, at the end of the interpreter
_at_work: set[Callable[[], None]] = set()  # what is waited for there


class Exchanges(ExchangesBase):
    """Store what was said in each saved turn among the facts of its owner.

    Given to a context, as in `Context(after=[exchanges])`. What the user and the model said is
    stored as one text, under the conversation's owner and id and the id of the turn: once for
    each turn, whoever does it and however often. Instructions, tool calls and their results,
    and what was recalled are no part of it.

    They live as the facts do: for good, unless `Facts` has a `ttl`, though the conversation
    goes a day after its last turn by default. Those of turns that were undone or cleared stay
    and are recalled, until `Facts.forget_turns` or `Facts.forget_conversation`.

    Nothing of it fails a turn. In line, a failure is logged and counted by the context; in the
    background, it is tried again for some ten seconds first.

    Args:
        facts: Where they are stored.
        background: Whether it is done in the background, so that the turn does not wait for
            the embedder: by a thread, which works through what waits before the interpreter
            ends, unless nothing is stored for half a minute, as by an embedder that hangs; on an
            asyncio store by a task, which does not. `close` waits for either.
        limit: How many may wait in the background; beyond, they are stored in line.
        most: Characters that are kept of each side; of more, the middle is left out.
        speakers: What the user and the model are called in the text.
        owner: Whose they are in conversations that have no owner.

    Attributes:
        counts: `stored`; `duplicate` where the turn was stored before; `left_out` where one
            side said nothing, or the model waits for a tool; `failed`; `erased` where the
            owner was erased since the turn began, the conversation cleared, or its facts
            forgotten.

    Raises:
        TypeError, ValueError: An argument is of no use.

    Cost:
        For each turn, that of `Facts.add_exchange`; one round trip more in the background
        where the conversation has no owner.

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
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._process = 0  # whose thread it is: a fork has none
        self._waiting: deque[Exchange] = deque()
        self._closing = threading.Event()

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
        exchange = self._exchange(turn)
        if exchange is None:
            return
        if self._background:
            exchange = self._run(self._begun(exchange))
        if self._background and self._put(exchange):
            return
        try:
            self._store(exchange)
        except ErasedError as error:
            self._failed(exchange, error)

    @property
    def waiting(self) -> int:
        """How many wait in the background."""
        with self._changed:
            return len(self._waiting)

    def close(self, timeout: float | None = None) -> int:
        """Wait until nothing waits any more. What comes afterwards is stored in line.

        Args:
            timeout: Seconds to wait at most; None waits as long as it takes. What failed is
                tried once more, and no longer.

        Returns:
            How many were not stored by then, and will be if the process lives on.
        """
        self._closing.set()
        with self._changed:
            if self._process == os.getpid():
                self._changed.wait_for(lambda: not self._waiting, timeout)
                return len(self._waiting)
        return 0

    def _put(self, exchange: Exchange) -> bool:
        with self._changed:
            if self._closing.is_set():
                return False
            if self._process != os.getpid():
                self._process, self._waiting, self._thread = os.getpid(), deque(), None
            if len(self._waiting) >= self._limit:
                return False
            self._waiting.append(exchange)
            if self._thread is None:
                if not _at_work:
                    atexit.unregister(_run_out)
                    atexit.register(_run_out)
                _at_work.add(self._run_out)
                self._thread = threading.Thread(
                    target=self._work, name="turnstore-exchanges", daemon=True
                )
                self._thread.start()
        return True

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._thread = None
                    _at_work.discard(self._run_out)
                    return
                exchange = self._waiting[0]
            self._keep_trying(exchange)
            with self._changed:
                self._waiting.popleft()
                self._changed.notify_all()

    def _run_out(self) -> None:
        """Wait at the end of the interpreter, as long as one after the other is done."""
        with self._changed:
            while self._waiting:
                first = self._waiting[0]
                moves = self._changed.wait(_PATIENCE) or not self._waiting
                if not moves and self._waiting[0] is first:
                    log.warning("%d exchanges are not stored: it hangs", len(self._waiting))
                    return

    def _keep_trying(self, exchange: Exchange) -> None:
        tries = 0
        while True:
            try:
                return self._store(exchange)
            except BaseException as error:  # noqa: BLE001 - nobody is there to be told
                tries += 1
                seconds = waits_for(error, tries)
                last = self._closing.is_set()
                if seconds is None or last:
                    return self._failed(exchange, error)
                self._closing.wait(seconds)

    def _store(self, exchange: Exchange) -> None:
        self._run(self._storing(exchange))


def _run_out() -> None:
    for run_out in tuple(_at_work):
        run_out()
