"""A session of the OpenAI Agents SDK that is one unit of work.

The SDK's Runner hands a session the question before the model is asked, then each step, and
never says that the run is over. So the session stages what it is handed, and saves it as one
turn when its `async with` block ends well. Used without a block, it saves each step at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

from turnstore._compose import compose
from turnstore._windowing import start_of
from turnstore.clients._calling import sendable
from turnstore.errors import ConflictError, FormatError
from turnstore.messages import Message, format_named, plain_messages
from turnstore.results import History
from turnstore.turn import AsyncPendingTurn
from turnstore.window import Window

from ._late import check_late

if TYPE_CHECKING:
    from agents.memory import SessionSettings

    from turnstore.aio import AsyncConversation

__all__ = ["FORMAT", "AgentsSession"]

FORMAT = "openai.responses"
"""The format of a session's turns: the SDK speaks Responses with every model."""

_RULES = format_named(FORMAT)

log = logging.getLogger("turnstore")


class AgentsSession:
    """A session for `Runner.run`, `run_streamed` and whatever takes the SDK's `Session`.

    `AsyncConversation.agents_session` makes it. In an `async with` block it is one turn: what
    the Runner adds is part of what `get_items` gives, and is saved when the block ends. Where
    an exception leaves the block, or a streamed run in it has not ended well, nothing is.
    """

    session_settings: SessionSettings | None = None
    """The SDK's settings; their `limit` holds beside the window, in whole turns."""

    def __init__(
        self, conversation: AsyncConversation, *, turn_id: str | None = None, **options: Any
    ) -> None:
        check_late(options)
        self.session_id = conversation.key
        """The Redis key of the conversation: the same in every process, and no id of a user."""
        self._chat = conversation
        self._options = options
        self._turn_id = turn_id
        self._begin()  # wrong options are an error here, and not in the middle of a run
        self._turn: AsyncPendingTurn | None = None
        self._entered = False
        self._staged: list[Message] = []
        self._undone = 0  # turns that `pop_item` took apart
        self._cleared = False
        self._runs: set[asyncio.Task[Any]] = set()
        # Without a block: the revision after what each task saved last.
        self._saved: WeakKeyDictionary[asyncio.Task[Any], str] = WeakKeyDictionary()

    async def __aenter__(self) -> Self:
        if self._entered:
            msg = "a session is one unit of work; make another one"
            raise RuntimeError(msg)
        self._entered = True
        self._turn = await self._begin().__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        turn, self._turn = self._turn, None
        if turn is None:
            return
        try:
            if error is None and self._ended_well():
                await self._commit(turn)
        finally:
            await turn.__aexit__(kind, error, traceback)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Give the history and what is staged, oldest first.

        Args:
            limit: At most so many items, in whole turns; the newest turn is always whole.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit is not None and limit < 1:
            return []
        turn = self._open()
        if turn is not None:
            return self._seen(turn, limit)
        async with self._chat.turn((), format=FORMAT, **self._options) as turn:
            return self._seen(turn, limit)

    async def add_items(self, items: Sequence[Any]) -> None:
        """Stage items; without a block, save them.

        Raises:
            ValueError: They answer a tool call that neither they nor the history hold.
        """
        new = plain_messages(list(items), _RULES)
        turn = self._open()
        if turn is None:
            await self._append(new)
            return
        compose(self._history(turn, None), [*self._staged, *new], _RULES, self._other)
        self._staged += new

    async def pop_item(self) -> Any:
        """Take back the newest item, and give it; None where there is none.

        In a block, what is stored is changed when the block ends. A stored turn is taken
        apart: the rest of it is saved anew with what else is staged.
        """
        turn = self._open()
        if turn is None:
            async with AgentsSession(self._chat, **self._options) as unit:
                return await unit.pop_item()
        if not self._staged:
            turns = [] if self._cleared else turn.history.turns
            if self._undone == len(turns):
                return None
            newest = turns[-1 - self._undone]
            if newest.format != FORMAT:
                msg = f"the newest turn has the format {newest.format}; a session pops {FORMAT}"
                raise FormatError(msg)
            self._undone += 1
            self._staged = list(newest.messages)
        return self._staged.pop()

    async def clear_session(self) -> None:
        """Delete everything; in a block, when it ends."""
        if self._open() is None:
            await self._chat.clear()
            return
        self._cleared = True
        self._staged.clear()

    def _begin(self) -> AsyncPendingTurn:
        return self._chat.turn((), format=FORMAT, turn_id=self._turn_id, **self._options)

    @property
    def _other(self) -> Any:
        return self._options.get("on_other_format", "raise")

    def _open(self) -> AsyncPendingTurn | None:
        """Give the turn of the block; None where the session is used without one."""
        if self._turn is None and self._entered:
            msg = "the block of this session has ended; a run that goes on cannot be saved"
            raise RuntimeError(msg)
        policy = self._options.get("on_conflict", "append")
        if self._turn is None and policy != "append":
            msg = f'on_conflict="{policy}" needs a unit of work: async with …agents_session(…)'
            raise RuntimeError(msg)
        task = asyncio.current_task()
        if task is not None and self._turn is not None:
            self._runs.add(task)
        return self._turn

    def _ended_well(self) -> bool:
        """Tell whether the streamed runs of the block, each a task of its own, have ended."""
        for task in self._runs - {asyncio.current_task()}:
            if not task.done() or task.cancelled() or task.exception() is not None:
                log.warning("not saved: a run had not ended well when the session's block did")
                return False
        unfit = next(filter(None, map(_RULES.unfit, self._staged)), "")
        if unfit:
            log.warning("not saved: %s", unfit)
        return not unfit

    def _history(self, turn: AsyncPendingTurn, limit: int | None) -> History:
        """Give what was read, without the turns that were popped, and within a limit."""
        history = turn.history
        if limit is None and not self._undone and not self._cleared:
            return history
        elements = [] if self._cleared else history.elements
        numbers = set(sorted({element.turn for element in elements})[: -self._undone or None])
        rows = [list(element) for element in elements if element.turn in numbers]
        start = start_of(rows, None, Window(messages=limit), None)
        kept = History(rows[start:], 0, has_older=history.has_older or start > 0)
        # The newest turn is whole whatever the limit is; here that is what is staged.
        too_long = limit is not None and bool(self._staged) and len(kept) > limit
        return History([], 0, has_older=True) if too_long else kept

    def _seen(self, turn: AsyncPendingTurn, limit: int | None) -> list[Message]:
        sent = turn.messages
        if limit is None and not self._undone and not self._cleared:
            return sendable([*sent, *self._staged])
        ahead = len(sent) - len(compose(turn.history, [], _RULES, self._other).send)
        room = None if limit is None else max(limit - len(self._staged), 1)
        past = compose(self._history(turn, room), [], _RULES, self._other).send
        return sendable([*sent[:ahead], *past, *self._staged])

    async def _commit(self, turn: AsyncPendingTurn) -> None:
        """Hand the turn what is staged; it saves it at its end."""
        staged = self._staged
        if not self._undone and not self._cleared:
            first = next((at for at, one in enumerate(staged) if _RULES.is_reply(one)), None)
            if first is not None:
                late: Any = turn
                late._ask(staged[:first])  # noqa: SLF001 - of the same house
                turn.reply(staged[first:])
            return
        if self._cleared:
            await self._chat.clear()
        else:
            await self._chat.rewind(self._undone, expected_revision=turn.revision)
        if staged:
            again = self._chat.turn((), format=FORMAT, meta=turn.meta, turn_id=turn.turn_id)
            async with again:
                again.reply(staged)

    async def _append(self, new: list[Message]) -> None:
        """Save a step at once, as a piece of the turn that its run began."""
        if not new:
            return
        task = asyncio.current_task()
        begun = self._saved.get(task) if task is not None else None
        continues = begun is not None and (_RULES.is_reply(new[0]) or bool(_RULES.results(new[0])))
        append = self._chat.append
        try:
            revision = begun if continues else None
            saved = await append(
                new, format=FORMAT, expected_revision=revision, continues=continues
            )
        except ConflictError:  # another turn came between: the step is one of its own
            saved = await append(new, format=FORMAT)
        if task is not None:
            self._saved[task] = saved.revision
