"""A sync handle on one conversation."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

from ._carrying import summarize
from ._keeping import Keeping
from ._leases import Lease
from ._place import Place
from .context import Context
from .messages import Input
from .results import Appended, History, Stat, Turn, TurnPage
from .turn import PendingTurn, Runner, TurnOptions, begin
from .window import Window

__all__ = ["Conversation"]

C = TypeVar("C")


class Conversation(Keeping):
    """One conversation: a handle without a connection or state of its own.

    `Store.conversation` makes it. Threads may share it. Every method below sends its
    commands when it is called. Any of them raises a `ServerError` where Redis refuses or
    does not answer, and a `CorruptTurnError` or `FormatError` where what is stored cannot
    be read: a failure never looks like an empty conversation.
    """

    _turn_kind = PendingTurn

    def __init__(self, place: Place, run: Runner) -> None:
        self._place = place
        self._run = run

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.key!r})"

    @property
    def key(self) -> str:
        """The Redis key of its turns. It holds digests, never the id."""
        return str(self._place.keys)

    def append(  # noqa: PLR0913 - options by keyword
        self,
        messages: Input,
        *,
        turn_id: str | None = None,
        expected_revision: str | None = None,
        continues: bool = False,
        format: str = "openai.chat",  # noqa: A002 - the field's word for it
        meta: dict[str, Any] | None = None,
    ) -> Appended:
        """Add messages as one turn, and start the time to live anew.

        Everything is checked and serialised before anything is sent. No messages write
        nothing and renew nothing.

        Args:
            messages: Text for one user message, a dict, a message object of an SDK
                (anything with pydantic's `model_dump`), or several of these. Dicts are
                stored as they are, unknown fields included.
            turn_id: The idempotency key: 1 to 64 visible ASCII characters, no blanks, double
                quotes or backslashes; random by default. If it is among the ids of the newest
                32 turns, nothing is written and the answer says `duplicate`: so that a retry,
                be it redis-py's or the caller's, stores a turn once.
            expected_revision: Append only if the conversation has this revision.
            continues: Join the messages to the newest turn, so that trims and windows
                keep them together.
            format: Whose JSON the messages are.
            meta: What else to keep with the turn: JSON.

        Returns:
            The new revision and totals, and how many old turns were dropped for
            `max_messages`.

        Raises:
            TypeError, ValueError: A message is not JSON, or not one of this format.
            LimitError: More messages or bytes than a turn may have.
            ConflictError: The conversation has another revision, or has no turn to
                continue.
            UnavailableError: No answer; `outcome_unknown` says whether it may have been
                written. Repeat it with the same `turn_id`.
            ErasedError: The owner was erased meanwhile; nothing was written.
            ServerError: Redis refused. In all cases but `outcome_unknown`, nothing was
                written.

        Atomicity:
            One script: the turn, the trim and the time to live, or nothing.

        Cost:
            One round trip, with an owner two, independent of the length of the conversation.

        Example:
            >>> chat.append([{"role": "user", "content": "Hi"}], turn_id="req-7").duplicate
            False
            >>> chat.append([{"role": "user", "content": "Hi"}], turn_id="req-7").duplicate
            True
        """
        return self._run(
            self._place.append(
                messages,
                turn_id=turn_id,
                expected_revision=expected_revision,
                continues=continues,
                format=format,
                meta=meta,
            )
        )

    def read(self, window: Window | None = None) -> History:
        """Read the newest messages.

        Args:
            window: How much; by default the newest turns with at most 100 messages
                together. `Window()` reads everything.

        Returns:
            Plain dicts, oldest first, to be passed to an SDK as they are; whole turns
            only. The list also has `revision`, `turns` and `has_older`. A conversation
            that does not exist is an empty list.

        Raises:
            TypeError: The window is not a `Window`.

        Atomicity:
            One command: the state of one moment.

        Cost:
            One round trip and O(window), at any length. A second one where the newest
            turns are much smaller than those that this store read before.

        Example:
            >>> chat.append("Hi")  # doctest: +ELLIPSIS
            Appended(...)
            >>> chat.read(Window(turns=20))
            [{'role': 'user', 'content': 'Hi'}]
        """
        return self._run(self._place.read(window))

    def turns(self, limit: int = 50, *, before: int | None = None) -> TurnPage:
        """Read a page of turns, from the newest backwards.

        Args:
            limit: Turns on the page, at most.
            before: The `cursor` of the page before, or the number of a turn: only older
                ones are read.

        Returns:
            Turns, oldest first, 0 to `limit`, with the `cursor` of the next older page
            (None where there is none). Appends meanwhile do not shift the pages.

        Raises:
            TypeError, ValueError: A number is below 1.

        Cost:
            One round trip, O(page + log(turns)).

        Example:
            >>> page = chat.turns(10)
            >>> while page.cursor:
            ...     page = chat.turns(10, before=page.cursor)
        """
        return self._run(self._place.turns(limit, before))

    def trim(self, messages: int | None = None, *, turns: int | None = None) -> int:
        """Drop the oldest turns until at most so many messages or turns are left.

        The newest turn stays, however large; a limit of 0 drops everything. The time to
        live is not renewed.

        Args:
            messages: Messages to keep, at most.
            turns: Turns to keep, at most.

        Returns:
            How many turns were dropped.

        Raises:
            TypeError, ValueError: No limit was given, or one is below 0.

        Atomicity:
            One script.

        Cost:
            One round trip, O(log(turns dropped)).

        Example:
            >>> chat.trim(messages=200)
            0
        """
        return self._run(self._place.trim(messages, turns))

    def rewind(self, turns: int = 1, *, expected_revision: str | None = None) -> list[Turn]:
        """Undo the newest turns and give them back.

        The time to live is not renewed. Long-term facts that were drawn from them stay until
        an extraction notices, exchanges until `Facts.forget_turns`, which takes what this
        gives back. Where all turns that are held are undone, the conversation begins anew, and
        a summary of older ones goes with them.

        Args:
            turns: How many; fewer where there are fewer.
            expected_revision: Rewind only if the conversation has this revision. Without
                it, the newest turns at that moment are meant: done again after an error, it
                may undo others.

        Returns:
            The undone turns, oldest first. Two rewinds at once may give back the same.

        Raises:
            TypeError, ValueError: `turns` is below 1.
            ConflictError: Another revision, or somebody appends without pause; nothing
                was undone.

        Atomicity:
            All of them go in one step, from the revision that was read to an exact
            earlier one: a command that is sent twice undoes nothing more.

        Cost:
            Two round trips, O(turns undone + log(turns)).

        Example:
            >>> chat.append("Wrong").duplicate
            False
            >>> [turn.messages for turn in chat.rewind()]
            [[{'role': 'user', 'content': 'Wrong'}]]
        """
        return self._run(self._place.rewind(turns, expected_revision))

    def fork(
        self,
        id: str,  # noqa: A002 - as above
        *,
        upto: int | None = None,
        owner: str | None = None,
    ) -> Conversation:
        """Copy the conversation to another one, up to a turn.

        Args:
            id: The new conversation, in the same store. It has to be empty, or to hold
                just this copy already: repeating a fork is safe.
            upto: The number of the last turn to copy; by default all are.
            owner: The owner of the copy, where this conversation has none; by default, the
                copy has the owner of this one, or none.

        Returns:
            The new conversation, with the store's time to live, and the same turns. It has no
            title, and no summary: it may go another way.

        Raises:
            TypeError, ValueError: An argument is of no use, the id is this one's own, or
                the turn is not held any more.
            ErasedError: The owner was erased meanwhile; nothing was written.
            ConflictError: The new conversation holds something else; it stays as it is.

        Atomicity:
            Read in one step, written in one step.

        Cost:
            Two round trips, with an owner three, and O(turns copied).

        Example:
            >>> chat.append("Shared past").messages
            1
            >>> chat.fork("conv-2").read()
            [{'role': 'user', 'content': 'Shared past'}]
        """
        target = self._place.sibling(id, owner)
        self._run(self._place.fork(target, upto))
        return Conversation(target, self._run)

    def stat(self) -> Stat:
        """Measure the conversation without reading its messages.

        Returns:
            Turns, messages, tokens, bytes, time left to live, first and last time, and
            the revision. Zeros where there is no such conversation.

        Cost:
            One round trip.

        Example:
            >>> chat.stat().turns
            0
        """
        return self._run(self._place.stat())

    def summarize(self, context: Context) -> str:
        """Fold what stands before the window of a context into its summary, now.

        Args:
            context: A context with a summary; its window says what is left out.

        Returns:
            The summary as it is stored then; empty where there is nothing to summarise.

        Raises:
            TypeError: The context has no summary.
            Exception: What the model raised; the summary stays as it was.

        Cost:
            Two round trips; for each 50 turns, two more and the model.
        """
        return self._run(summarize(self._place, context))

    def turn(  # noqa: PLR0913 - options by keyword
        self,
        messages: Input,
        *,
        window: Window | None = None,
        context: Context | None = None,
        turn_id: str | None = None,
        format: str = "openai.chat",  # noqa: A002 - the field's word for it
        meta: dict[str, Any] | None = None,
        on_conflict: Literal["append", "reject", "serialize"] = "append",
        lease: Lease | None = None,
        on_load_error: Literal["raise", "continue"] = "raise",
        on_other_format: Literal["raise", "text"] = "raise",
        on_duplicate: Literal["ask", "raise"] = "ask",
        replaces: Turn | str | None = None,
    ) -> PendingTurn:
        """Put a memory around one call of any model: read before, save after.

        Args:
            messages: The new messages, as for `append`. System and developer messages
                reach the model and are not stored.
            window: How much history to send; by default at most 100 messages.
            context: What else to send: a window with a summary, sources, topics.
            turn_id: The idempotency key of the save, as for `append`; random by default.
            format: Whose JSON the messages are.
            meta: What else to keep with the turn: JSON.
            on_conflict: Where another turn was saved meanwhile: "append" saves this one
                after it, "reject" raises `TurnConflictError` with the reply. With "serialize"
                there is no meanwhile: a turn waits on entering until those before it are
                saved, and so sees them. Turns with another policy, and `append`, do not wait.
            lease: How long to wait, and how many may, under "serialize".
            on_load_error: Where the history cannot be read: "raise", or "continue"
                without it. The turn is then saved if the server is back.
            on_other_format: Where a stored turn has another format: "raise", or send its
                "text" alone.
            on_duplicate: Where a turn with this `turn_id` is saved already: "ask" goes on, and
                stores no second reply; "raise" raises `AlreadySavedError` with what is stored,
                before the model is asked. It is found among the turns of the window, and
                the newest 32.
            replaces: A turn, or its id, that this one takes the place of: to answer anew, or
                to edit. The history ends before it; it and all after it, `turn.replaced`, go
                in the step that saves this one, and stay where nothing is saved. Another turn
                that is saved meanwhile is a `TurnConflictError`, whatever `on_conflict` says.

        Returns:
            A context manager. Inside it, `messages` is what to send, and `reply(…)` takes
            what came back. On a clean exit after a reply the turn is saved, otherwise
            nothing is.

        Raises:
            TypeError, ValueError: An argument is of no use; nothing was sent.
            ServerError, CorruptTurnError, FormatError: On entering, from the read.
            LeaseTimeoutError, LeaseQueueFullError: On entering, under "serialize".
            AlreadySavedError: On entering, with `on_duplicate="raise"`.
            TurnIdReusedError: The same, where the saved turn was asked something else.
            TurnGoneError: On entering, where the turn to be replaced is not held any more, or
                a summary has taken it in.
            SaveError: On leaving; it carries the reply, and `error.turn.save()` tries
                again.
            ErasedError: On entering, while everything of the owner is erased; on leaving,
                where that was done, or the conversation cleared, since it began.

        Cost:
            Nothing here; one round trip on entering, one on leaving. "serialize" takes one
            more on entering, some each second while it waits, and one in ten seconds then.
            `on_duplicate="raise"` takes one more where the window shows less than 32 turns, and
            `replaces` one on a Cluster, and some where many turns go; where only the id of a turn
            is given, and it is not held, all of the conversation is read.

        Example:
            >>> with chat.turn("My name is Ada.") as turn:
            ...     turn.reply(model(turn.messages))
            >>> len(chat.read())
            2
        """
        options = TurnOptions.of(
            window,
            context,
            on_conflict=on_conflict,
            lease=lease,
            on_load_error=on_load_error,
            on_other_format=on_other_format,
            on_duplicate=on_duplicate,
            replaces=replaces,
        )
        return begin(self, messages, options, format=format, turn_id=turn_id, meta=meta)

    def wrap(  # noqa: PLR0913 - options by keyword
        self,
        client: C,
        *,
        window: Window | None = None,
        context: Context | None = None,
        turn_id: str | None = None,
        on_conflict: Literal["append", "reject", "serialize"] = "append",
        lease: Lease | None = None,
        on_load_error: Literal["raise", "continue"] = "raise",
        on_other_format: Literal["raise", "text"] = "raise",
        on_duplicate: Literal["ask", "raise"] = "ask",
        replaces: Turn | str | None = None,
    ) -> C:
        """Give an LLM client a memory: the same type, the same methods.

        Pass only the new messages to a call. The history goes before them, and request
        and reply are saved as one turn when the call, or the stream to its last chunk,
        has succeeded.

        Args:
            client: A client of the SDKs `openai`, `anthropic` or `google-genai`, for any
                provider, a function or a Router of `litellm`, or a function of messages.
                It stays as it is; the wrapped one shares its connections.
            window: As for `turn`.
            context: As for `turn`.
            turn_id: The idempotency key of the first call, for a job that may be repeated: as
                for `append`, but at most 59 characters, since further calls have `.2`, `.3`, …
                behind it. A call that stores nothing leaves its id to the next that asks the same.
            on_conflict: As for `turn`. A lease is given back after tool calls, and taken
                again by the call with their results.
            lease: As for `turn`.
            on_load_error: As for `turn`.
            on_other_format: As for `turn`.
            on_duplicate: As for `turn`; a call raises `AlreadySavedError`, a stream where it
                is made.
            replaces: As for `turn`, for the first call that is saved; later ones follow it.

        Raises:
            TypeError: No client that is known, or an async one.

        Cost:
            No I/O, some microseconds: wrap anew for each request. A call costs two round
            trips more than before.
        """
        from .clients import wrap  # noqa: PLC0415 - SDKs are looked at when one is wrapped

        options = TurnOptions.of(
            window,
            context,
            on_conflict=on_conflict,
            lease=lease,
            on_load_error=on_load_error,
            on_other_format=on_other_format,
            on_duplicate=on_duplicate,
            replaces=replaces,
            **({} if turn_id is None else {"turn_id": turn_id}),
        )
        return wrap(self, client, options)
