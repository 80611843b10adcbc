"""Which of our errors stands for which of redis-py's, and what it says."""

from __future__ import annotations

import re

from redis import exceptions as fault

from ._calls import Call
from ._scripts import Script
from .errors import (
    ConflictError,
    CorruptTurnError,
    DeniedError,
    ErasedError,
    FormatError,
    LeaseLostError,
    LeaseQueueFullError,
    OutOfMemoryError,
    ReadOnlyError,
    ScriptError,
    ServerError,
    TurnstoreError,
    UnavailableError,
    UnsupportedError,
    WrongTypeError,
)

__all__ = ["FAULTS", "another_loop", "is_of_another_loop", "translated"]

FAULTS = (fault.RedisError, fault.RedisClusterException, OSError)
"""What redis-py may let through: its own errors, cluster errors that are not among them,
and the socket's."""

# Where the server says which line of a script failed: Redis 7, Redis 6, fakeredis.
_SCRIPT_LINE = re.compile(r'(?:user_script|\[string "[^"]*"\]|<python>):(\d+)')

# What a script refuses with, beside CONFLICT.
_SAID: dict[str, tuple[type[TurnstoreError], str]] = {
    "LOST": (
        LeaseLostError,
        "its lease ran out, and others may have begun since; nothing was written",
    ),
    "ERASED": (ErasedError, "{}; nothing was written"),
    "FULL": (
        LeaseQueueFullError,
        "{} turns wait for it already; the model was not asked. Try later",
    ),
    "CORRUPT": (CorruptTurnError, "{}; nothing was written"),
    "FORMAT": (
        FormatError,
        "stored in format {}, and this version reads 1; nothing was written",
    ),
}

# What was erased, by the word of `lua/lib/owner.lua`.
_ERASED = {
    "closed": "everything of its owner is being erased just now",
    "owner": "everything of its owner was erased after it had begun, or what was begun is lost",
    "conversation": "the conversation was cleared after it had begun",
    "late": "it began more than a day ago, and what was erased before that is forgotten",
}

# What the server's error says, and what that means here. The first line that fits counts.
# Redis 6 wraps an error inside a script into a longer text, hence the search.
_REFUSALS: tuple[tuple[str, type[ServerError], str], ...] = (
    (
        r"\bWRONGTYPE\b",
        WrongTypeError,
        (
            "the key holds a value that turnstore did not write; nothing was changed. "
            "Delete it, or give the store another prefix"
        ),
    ),
    (
        r"\bOOM\b",
        OutOfMemoryError,
        (
            "the server has reached maxmemory; nothing was written. Try again when memory "
            "was freed, or set an eviction policy"
        ),
    ),
    (
        r"\bREADONLY\b",
        ReadOnlyError,
        (
            "the server is a read-only replica; nothing was written. Connect to the primary "
            "(a Sentinel or Cluster client follows a failover)"
        ),
    ),
    (
        r"\b(NOAUTH|WRONGPASS|NOPERM)\b|unauthenticated|permissions to|can't run this command",
        DeniedError,
        (
            "the server did not allow it; nothing was written. Check the user, the password "
            "and the ACL"
        ),
    ),
    (
        r"\b(NOREPLICAS|MISCONF)\b",
        UnavailableError,
        "the server takes no writes at present; nothing was written. Try again later",
    ),
    (
        r"^(MOVED|ASK) \d",
        UnsupportedError,
        (
            "the server is a node of a Cluster, and another node has the key; nothing was "
            "written. Use a Cluster client: from_url(…, cluster=True)"
        ),
    ),
    (
        r"(?i)unknown (redis )?command",
        UnsupportedError,
        (
            "the server does not know a command; nothing was written. Redis 6.2 or later, or "
            "Valkey, is needed"
        ),
    ),
)


# Refused before it ran, this time. But redis-py may have sent the command before, to a server
# that ran it and went down before it answered, and asks again while that comes back.
_NOT_READY = re.compile(r"\b(LOADING|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY)\b")

# redis-py cuts the code off the text of an error that it has a class for.
_CODES: tuple[tuple[type[Exception], str], ...] = (
    (fault.BusyLoadingError, "LOADING"),
    (fault.MasterDownError, "MASTERDOWN"),  # before its base, as is MOVED
    (fault.ClusterDownError, "CLUSTERDOWN"),
    (fault.TryAgainError, "TRYAGAIN"),
    (fault.MovedError, "MOVED"),
    (fault.AskError, "ASK"),
    (fault.ReadOnlyError, "READONLY"),
    (fault.OutOfMemoryError, "OOM"),
    (fault.NoPermissionError, "NOPERM"),
)


_ANOTHER_LOOP = re.compile("different (event )?loop|loop is closed")
_ONE_LOOP = (
    "an AsyncStore belongs to the loop in which it first sent something. Make one in each loop, "
    "inside each asyncio.run, or close its client in its own loop before (await redis.aclose())"
)


def another_loop() -> RuntimeError:
    """Give the error of a client that has connections of another event loop."""
    return RuntimeError(
        f"nothing was sent: the connections are those of another event loop; {_ONE_LOOP}"
    )


def is_of_another_loop(error: Exception) -> bool:
    """Tell whether asyncio complains of another event loop, or one that has ended."""
    return isinstance(error, RuntimeError) and _ANOTHER_LOOP.search(str(error)) is not None


def translated(error: Exception, call: Call) -> TurnstoreError:
    """Find the error of ours that says what happened, to which key, and what is left."""
    what = f"{call.operation} of {call.keys[0].decode()}"
    code = next((f"{code} " for kind, code in _CODES if isinstance(error, kind)), "")
    text = f"{code}{error}"
    return (
        _refused_by_script(what, text, call)
        or _refused_by_server(what, text)
        or _unavailable(what, text, error, call)
        or _failed_script(what, text, call)
        or ServerError(f"{what}: the server answered with an error: {text}")
    )


def _refused_by_script(what: str, text: str, call: Call) -> TurnstoreError | None:
    code, _, detail = text.partition(" ")
    if code == "CONFLICT":
        wanted = "a turn to continue" if call.expected is None else f"revision {call.expected}"
        msg = (
            f"{what}: expected {wanted}, found revision {detail}; nothing was written. Read "
            "what is there now, and decide anew"
        )
        return ConflictError(msg, expected=call.expected, actual=detail)
    if code not in _SAID:
        return None
    kind, said = _SAID[code]
    return kind(f"{what}: {said.format(_ERASED.get(detail, detail))}")


def _refused_by_server(what: str, text: str) -> ServerError | None:
    for pattern, kind, meaning in _REFUSALS:
        if re.search(pattern, text):
            # An earlier sending by redis-py, whose answer was lost, may have been carried out.
            said = meaning.replace("nothing was written", "nothing was written by this sending")
            return kind(f"{what}: {said}. The server said: {text}")
    return None


def _unavailable(what: str, text: str, error: Exception, call: Call) -> ServerError | None:
    if isinstance(error, fault.AuthenticationError | fault.AuthorizationError):
        return DeniedError(f"{what}: the server did not accept the credentials: {error}")
    is_ready = _NOT_READY.search(text) is None
    reason = "no answer from the server" if is_ready else "the server is not ready"
    refusals = fault.ResponseError | fault.DataError | fault.InvalidResponse
    if is_ready and isinstance(error, refusals):
        return None
    # redis-py may have sent the command several times, and any of them may have arrived.
    # Only where no connection was to be had is it sure that none did.
    unknown = call.writes and not isinstance(error, fault.MaxConnectionsError)
    if is_of_another_loop(error):
        reason = f"the connection is one of another event loop, and {_ONE_LOOP}"
    state = (
        "it is not known whether it was carried out; an append is safe to repeat with the "
        "same turn id"
        if unknown
        else "nothing was changed; try again"
    )
    return UnavailableError(
        f"{what}: {reason}; {state}. The client said: {text}",
        outcome_unknown=unknown,
    )


def _failed_script(what: str, text: str, call: Call) -> ScriptError | None:
    found = _SCRIPT_LINE.search(text)
    if found is None or not isinstance(call.command, Script):
        return None
    script, line = call.command, int(found[1])
    file, number = script.lines[line - 1] if line <= len(script.lines) else (script.name, line)
    msg = (
        f"{what}: lua/{file}, line {number} failed: {text}. Scripts check before they write, so "
        "that nothing should be written; stat() says what is there. Please report this text"
    )
    return ScriptError(msg, file=file, line=number)
