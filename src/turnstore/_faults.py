"""Which of our errors stands for which of redis-py's, and what it says."""

from __future__ import annotations

import errno
import re
import socket
import ssl
import traceback

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
    TurnGoneError,
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
    "GONE": (
        TurnGoneError,
        "revision {} is not held any more, or a summary has taken it in; nothing was written",
    ),
    "CORRUPT": (CorruptTurnError, "{}; nothing was written"),
    "FORMAT": (
        FormatError,
        "stored in format {}, and this version reads 1; nothing was written",
    ),
}

# What was erased, by the word of `lua/lib/begun.lua`, which is the reason of the error.
_ERASED = {
    "closed": "everything of its owner is being erased just now",
    "owner": "everything of its owner was erased after it had begun",
    "conversation": (
        "the conversation was cleared, or what was remembered of its turns forgotten, after it had "
        "begun"
    ),
    "late": "it began more than a day ago, and what was erased before that is forgotten",
    "lost": (
        "Redis has lost what had begun for its owner, as in a restart without a file, and all of "
        "it might have been erased since; what begins now is not concerned"
    ),
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


# Why no connection came about, and what helps, by the error of the system below redis-py's.
# The first line that fits counts.
_NO_CONNECTION: tuple[tuple[type[Exception], str, str], ...] = (
    (
        ssl.SSLCertVerificationError,
        "the server's certificate was not accepted",
        "Name who vouches for it (ssl_ca_certs), and the host as the certificate does",
    ),
    (
        ssl.SSLError,
        "the TLS handshake failed",
        "Check that the port speaks TLS, and whether it wants a certificate of yours",
    ),
    (
        socket.gaierror,
        "the name of the host was not found",
        "Check the URL",
    ),
    (
        ConnectionRefusedError,
        "the connection was refused",
        "Start the server, or check the host and the port",
    ),
    (
        FileNotFoundError,
        "there is no such file",
        "Check the paths of the Unix socket and of the certificates",
    ),
    (
        TimeoutError,
        "no connection in time",
        "Check the host, the port and whether it speaks TLS, or try again",
    ),
)
_ALL_TAKEN = (
    "all connections of its client are in use",
    "Let the client have more (max_connections), or wait for one: redis.BlockingConnectionPool",
)
_UNUSABLE = (
    "no connection that can be used",
    "Try again, or check that the URL and the port agree about TLS (redis://, rediss://)",
)
# What asyncio says where a name stands for several addresses, and none of them takes it.
_REFUSED_AT_EACH = f"[Errno {errno.ECONNREFUSED}]"


_ANOTHER_LOOP = re.compile("(another|different) (event )?loop|loop is closed")
_ONE_LOOP = (
    "an AsyncStore belongs to the loop in which it first sent something. Make one in each loop, "
    "inside each asyncio.run, or close its client in its own loop before (await redis.aclose())"
)


def another_loop() -> RuntimeError:
    """Give the error of a client that has connections of another event loop."""
    return RuntimeError(
        f"nothing was sent: the connections are those of another event loop; {_ONE_LOOP}"
    )


def is_of_another_loop(error: BaseException) -> bool:
    """Tell whether asyncio complains of another event loop, or one that has ended."""
    return isinstance(error, RuntimeError) and _ANOTHER_LOOP.search(str(error)) is not None


def translated(error: Exception, call: Call, *, again: bool = False) -> TurnstoreError:
    """Find the error of ours that says what happened, to which key, and what is left.

    Args:
        error: What redis-py raised.
        call: What was to be done.
        again: Whether we had sent it before.
    """
    what = f"{call.operation} of {call.keys[0].decode()}"
    code = next((f"{code} " for kind, code in _CODES if isinstance(error, kind)), "")
    text = f"{code}{error}"
    unsent = not again and _had_no_connection(error)
    return (
        _refused_by_script(what, text, call)
        or _refused_by_server(what, text, call, unsent=unsent)
        or _unavailable(what, text, error, call, unsent=unsent)
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
    msg = f"{what}: {said.format(_ERASED.get(detail, detail))}"
    return ErasedError(msg, reason=detail) if kind is ErasedError else kind(msg)


def _had_no_connection(error: Exception) -> bool:
    """Tell whether redis-py failed before it sent anything, as only the traceback shows.

    It takes a connection from its pool, which connects it, once; what follows are sendings, the
    first and those after a failure, each of which may connect anew. A Cluster client takes one
    for each sending, so that of it only the look for the nodes is known to come before. What
    runs between us and redis-py may send again by itself, so that then nothing is known.
    """
    for frame, _ in traceback.walk_tb(error.__traceback__):
        module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        if module.startswith("turnstore."):
            continue
        if not module.startswith("redis."):
            return False
        if module in ("redis.cluster", "redis.asyncio.cluster"):
            return name == "initialize"
        if name in ("get_connection", "call_with_retry"):
            return name == "get_connection"
    return False


def _refused_by_server(what: str, text: str, call: Call, *, unsent: bool) -> ServerError | None:
    for pattern, kind, meaning in _REFUSALS:
        if re.search(pattern, text):
            # An earlier sending by redis-py, whose answer was lost, may have been carried out.
            written = "nothing was written" + ("" if unsent else " by this sending")
            said = meaning.replace("nothing was written", written)
            msg = f"{what}: {said}. The server said: {text}"
            if kind is UnavailableError:
                return UnavailableError(msg, outcome_unknown=call.writes and not unsent)
            return kind(msg)
    return None


def _unavailable(
    what: str, text: str, error: Exception, call: Call, *, unsent: bool
) -> ServerError | None:
    if isinstance(error, fault.AuthenticationError | fault.AuthorizationError):
        state = "nothing was sent" if unsent else "nothing was written by this sending"
        msg = (
            f"{what}: the server did not accept the credentials; {state}. Check the user and the "
            f"password. The server said: {error}"
        )
        return DeniedError(msg)
    is_ready = _NOT_READY.search(text) is None
    refusals = fault.ResponseError | fault.DataError | fault.InvalidResponse
    if is_ready and isinstance(error, refusals):
        return None
    reason, advice = _why(text, error, is_ready=is_ready, unsent=unsent)
    # redis-py may have sent the command several times, and any of them may have arrived.
    unknown = call.writes and not unsent
    if unsent:
        state = f"nothing was sent. {advice}"
    elif unknown:
        state = (
            "it is not known whether it was carried out; an append is safe to repeat with the "
            "same turn id"
        )
    else:
        state = "nothing was changed; try again"
    return UnavailableError(
        f"{what}: {reason}; {state}. The client said: {text}",
        outcome_unknown=unknown,
    )


def _why(text: str, error: Exception, *, is_ready: bool, unsent: bool) -> tuple[str, str]:
    """Give why there was no answer, and what helps."""
    if is_of_another_loop(error):
        return f"the connection is one of another event loop, and {_ONE_LOOP}", "Use one loop"
    if not is_ready:
        return "the server is not ready", "Try again"
    below: BaseException | None = error
    while below is not None and not isinstance(below, TurnstoreError):
        for kind, reason, advice in _NO_CONNECTION:
            # An answer may be too late, or break off under TLS, too.
            if isinstance(below, kind) and (unsent or kind not in (ssl.SSLError, TimeoutError)):
                return reason, advice
        below = below.__cause__ or below.__context__
    if unsent and "Too many connections" in text:
        return _ALL_TAKEN
    if _REFUSED_AT_EACH in text:
        return _why(text, ConnectionRefusedError(), is_ready=is_ready, unsent=unsent)
    return _UNUSABLE if unsent else ("no answer from the server", "")


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
