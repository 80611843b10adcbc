"""The errors that turnstore raises on its own account.

::

    TurnstoreError
    ├── ConflictError           the conversation is not at the expected revision
    ├── AlreadySavedError       this turn id was saved before, and the model was not asked
    ├── TurnIdReusedError       this turn id was saved before, with another request
    ├── TurnGoneError           the turn that is to be replaced is not there any more
    ├── LimitError              a turn is larger than the store allows (also a ValueError)
    ├── CorruptTurnError        a stored element cannot be read
    ├── FormatError             stored by a later version, or in another message format
    ├── EngineMismatchError     vectors were made by another embedder or engine
    ├── ClosedError             the store was closed
    ├── LeaseError              the lease of a conversation was not to be had
    │   ├── LeaseTimeoutError   … in time
    │   └── LeaseQueueFullError … since too many turns wait for it
    ├── SaveError               the model answered, but its turn was not saved
    │   ├── TurnConflictError   … because another turn came first (also a ConflictError)
    │   ├── ErasedError         … because what it belongs to was erased since it began
    │   └── LeaseLostError      … because its lease was lost (also a LeaseError)
    └── ServerError             Redis refused, or could not be asked
        ├── UnavailableError    no connection, no answer in time, loading, failing over
        ├── OutOfMemoryError    maxmemory is reached
        ├── ReadOnlyError       the server is a replica
        ├── WrongTypeError      the key holds something that is not ours
        ├── DeniedError         authentication or ACL
        ├── UnsupportedError    the server lacks a command that is needed
        └── ScriptError         one of our Lua scripts failed: a bug of ours

Wrong arguments are `ValueError` or `TypeError`, raised before anything is sent. A missing
extra is an `ImportError` and a missing table of tiktoken an `OSError`, both at the first call
that needs it; a turn that is used out of order is a `RuntimeError`. What the SDK of a wrapped
client raises passes through as it is.

Where an operation fails, the message names it and its key, and says what was written as
far as that is known. Where redis-py raised, its error is the `__cause__`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .results import Turn

__all__ = [
    "AlreadySavedError",
    "ClosedError",
    "ConflictError",
    "CorruptTurnError",
    "DeniedError",
    "EngineMismatchError",
    "ErasedError",
    "FormatError",
    "LeaseError",
    "LeaseLostError",
    "LeaseQueueFullError",
    "LeaseTimeoutError",
    "LimitError",
    "OutOfMemoryError",
    "ReadOnlyError",
    "SaveError",
    "ScriptError",
    "ServerError",
    "TurnConflictError",
    "TurnGoneError",
    "TurnIdReusedError",
    "TurnstoreError",
    "UnavailableError",
    "UnsupportedError",
    "WrongTypeError",
]


class TurnstoreError(Exception):
    """The base of every error that turnstore raises on its own account."""


class ConflictError(TurnstoreError):
    """The conversation is not at the revision that was expected; nothing was written.

    Or others have changed a fact of the owner each time that it was tried.

    Attributes:
        expected: The revision that the caller demanded, or None where there was none.
        actual: The revision that the conversation has now; None of a fact.
    """

    def __init__(
        self, message: str, *, expected: str | None = None, actual: str | None = None
    ) -> None:
        super().__init__(message)
        self.expected = expected
        self.actual = actual


class AlreadySavedError(TurnstoreError):
    """A turn with this id was saved before, so that the model was not asked; nothing was written.

    Raised with `on_duplicate="raise"`.

    Attributes:
        saved: What was saved with this id: messages, revision, meta. Of a turn that was saved
            in pieces, as a tool loop is, it is that piece.
        reply: Those of its messages that the model said, as they were saved.
    """

    def __init__(self, message: str, *, saved: Any = None, reply: Any = ()) -> None:
        super().__init__(message)
        self.saved: Turn = saved
        self.reply: list[dict[str, Any]] = list(reply)


class TurnIdReusedError(TurnstoreError):
    """A turn with this id was saved before, and what was asked then is something else.

    Raised with `on_duplicate="raise"`: the answer that is stored is none to this request. The
    model was not asked, and nothing was written.

    Attributes:
        saved: What was saved with this id, as of `AlreadySavedError`.
    """

    def __init__(self, message: str, *, saved: Any = None) -> None:
        super().__init__(message)
        self.saved: Turn = saved


class TurnGoneError(TurnstoreError):
    """The turn that another one was to replace is not held any more, or a summary tells of it.

    It was undone or replaced before, dropped as one of the oldest, or has expired with its
    conversation; or a summary has taken it in, which would go on telling of it. Raised on
    entering a turn: the model was not asked, and nothing was written. What comes while the model
    answers is a `TurnConflictError`.
    """


class LimitError(TurnstoreError, ValueError):
    """A turn has more messages or bytes than the store allows; nothing was written."""


class CorruptTurnError(TurnstoreError):
    """A stored element cannot be read; it was left as it is."""


class FormatError(TurnstoreError):
    """What is stored has a format that this caller does not read; it was left as it is."""


class EngineMismatchError(TurnstoreError):
    """Vectors of facts were made by another embedder, or are kept by another engine.

    They were left as they are, and nothing was written. `Facts.migrate` moves them.
    """


class ClosedError(TurnstoreError):
    """The store was closed; nothing was sent."""


class LeaseError(TurnstoreError):
    """The lease of a conversation, under `on_conflict="serialize"`, was not to be had."""


class LeaseTimeoutError(LeaseError):
    """Other turns kept the lease for longer than this one was to wait.

    Nothing was loaded, no model was asked, and the place in the queue is given up.
    """


class LeaseQueueFullError(LeaseError):
    """As many turns as may wait for the lease do so already; this one did not join them.

    Nothing was loaded, and no model was asked.
    """


class SaveError(TurnstoreError):
    """The model answered, but the turn could not be saved.

    The answer is not lost: it is here. `turn.save()` (awaited on an async turn) tries
    again; the turn keeps its id, so that a save which did reach the server after all
    is recognised and not stored twice.

    Attributes:
        reply: What the model answered, as the client returned it.
        turn: The turn that was not saved.
    """

    def __init__(self, message: str, *, reply: Any = None, turn: Any = None) -> None:
        super().__init__(message)
        self.reply = reply
        self.turn = turn

    def __reduce__(self) -> tuple[Any, ...]:
        # A turn holds a connection, which cannot travel to another process.
        return (_restore_save_error, (type(self), self.args, {**self.__dict__, "turn": None}))


def _restore_save_error(kind: type[SaveError], args: tuple[Any, ...], state: Any) -> SaveError:
    error = kind(*args)
    error.__dict__.update(state)
    return error


class TurnConflictError(SaveError, ConflictError):
    """Another turn was saved first, and this one was told not to follow it.

    Raised with `on_conflict="reject"`, and with `replaces`: there also, without revisions, where
    the turn to be replaced was dropped, or taken in by a summary, while the model answered.
    Nothing was written, and saving again does not help; `reply` is the answer.
    """

    def __init__(
        self,
        message: str,
        *,
        expected: str | None = None,
        actual: str | None = None,
        reply: Any = None,
        turn: Any = None,
    ) -> None:
        SaveError.__init__(self, message, reply=reply, turn=turn)
        self.expected = expected
        self.actual = actual


class ErasedError(SaveError):
    """What would have been written began before its owner was erased, or is erased just now.

    Nothing was written. After the end of a turn `reply` is the answer, and saving again does
    not help: what began before an erasure never comes back. What begins now is not concerned.

    So it is where the conversation was cleared since, where the turn began more than a day
    ago, and where Redis has lost what it knew of the owner: then it might have been erased.

    Attributes:
        reason: "owner": everything of the owner was erased; "conversation": the conversation
            was cleared or erased; "closed": the owner is being erased just now; "late": it
            began too long ago; "lost": nobody erased it as far as one knows, and it is right
            to do it anew, from its beginning.
    """

    def __init__(
        self, message: str, *, reason: str = "owner", reply: Any = None, turn: Any = None
    ) -> None:
        super().__init__(message, reply=reply, turn=turn)
        self.reason = reason


class LeaseLostError(SaveError, LeaseError):
    """The lease ran out, or its key was lost, and another turn may have begun since.

    Nothing was written; `reply` is the answer, and saving again does not help. To keep it
    nevertheless, append `turn.new`: it then follows what others have saved.
    """


class ServerError(TurnstoreError):
    """Redis refused a command, or could not be asked."""


class UnavailableError(ServerError):
    """The server could not be reached, did not answer in time, or is not ready.

    Attributes:
        outcome_unknown: True when the command may have been carried out although no
            answer arrived, or a part of what was asked for was. An append is safe to repeat
            with the same turn id, and so is what takes away.
        turn_id: The turn id of the append that failed, the caller's or a random one; None
            where it was no append.
    """

    def __init__(
        self, message: str, *, outcome_unknown: bool = False, turn_id: str | None = None
    ) -> None:
        super().__init__(message)
        self.outcome_unknown = outcome_unknown
        self.turn_id = turn_id


class OutOfMemoryError(ServerError):
    """The server has reached `maxmemory` and evicts nothing; nothing was written."""


class ReadOnlyError(ServerError):
    """The server is a read-only replica; nothing was written."""


class WrongTypeError(ServerError):
    """The key holds a value that turnstore did not write; it was left as it is."""


class DeniedError(ServerError):
    """The server did not accept the credentials, or an ACL forbids a command or the key."""


class UnsupportedError(ServerError):
    """The server does not know a command or an option that turnstore needs."""


class ScriptError(ServerError):
    """A Lua script of ours failed: a bug, please report it with this text.

    Attributes:
        file: The script's file below `lua/`, or None where the server did not say.
        line: The line in that file.
    """

    def __init__(self, message: str, *, file: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.file = file
        self.line = line
