"""Send calls to Redis: the only module that knows redis-py.

Two short loops, sync and async, run a flow. Around them stands what both share: how a
command is spelled for redis-py, how a script is sent (by its hash, in full where the
server does not know it), and which of our errors stands for which of redis-py's.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import re
import time
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias, TypeVar

import redis
import redis.asyncio
from redis import cluster
from redis import exceptions as fault
from redis.asyncio import cluster as aio_cluster
from redis.asyncio.client import Pipeline as AsyncPipeline
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import ExponentialBackoff
from redis.client import Pipeline as SyncPipeline
from redis.retry import Retry

from ._calls import Ask, Call, Flow, Pause
from ._scripts import Script
from .errors import (
    ConflictError,
    CorruptTurnError,
    DeniedError,
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

__all__ = [
    "AsyncClient",
    "Client",
    "aconnect",
    "arun",
    "check_client",
    "connect",
    "run",
    "unbroken",
]

R = TypeVar("R")

log = logging.getLogger("turnstore")

Client: TypeAlias = "redis.Redis | redis.RedisCluster"
AsyncClient: TypeAlias = "redis.asyncio.Redis | redis.asyncio.RedisCluster"

# What redis-py may let through: its own errors, cluster errors that are not among them,
# and the socket's.
_FAULTS = (fault.RedisError, fault.RedisClusterException, OSError)

# How a client that was made from a URL sends again: some 1.5 seconds in all, in seconds.
_RETRIES, _BACKOFF_BASE, _BACKOFF_CAP = 4, 0.05, 1.0

# Where the server says which line of a script failed: Redis 7, Redis 6, fakeredis.
_SCRIPT_LINE = re.compile(r'(?:user_script|\[string "[^"]*"\]|<python>):(\d+)')


def run(client: Client, flow: Flow[R]) -> R:
    """Run a flow to its end and give back its result."""
    try:
        step = next(flow)
        while True:
            try:
                reply = _send(client, step) if isinstance(step, Call) else _ask(step)
            except Exception as error:  # noqa: BLE001 - the flow knows what to do with it
                step = flow.throw(error)
            else:
                step = flow.send(reply)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # StopIteration.value is Any


async def arun(client: AsyncClient, flow: Flow[R]) -> R:
    """Run a flow to its end and give back its result."""
    task = asyncio.current_task()
    cancelled = task.cancelling() if task else 0
    try:
        step = next(flow)
        while True:
            try:
                reply = await _asend(client, step) if isinstance(step, Call) else await _aask(step)
            except Exception as error:  # noqa: BLE001 - the flow knows what to do with it
                step = flow.throw(error)
            else:
                if task and task.cancelling() > cancelled:
                    # redis-py waits with asyncio.wait_for, which swallows a cancellation in
                    # Python 3.11 where it comes just as the command was sent.
                    raise asyncio.CancelledError
                step = flow.send(reply)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # StopIteration.value is Any


async def unbroken(work: Awaitable[R]) -> R:
    """Finish a piece of work even where the caller is cancelled meanwhile.

    The cancellation goes on when the work is done. What the work then raises is noted in
    the log alone, since the caller asked for an end and not for a result.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})  # does not pass a cancellation on to the task
        except asyncio.CancelledError as error:
            if task.cancelled():  # by the end of the event loop, which waits for nothing
                raise
            cancelled = error
    if cancelled is None:
        return await task
    if not task.cancelled() and task.exception() is not None:
        log.warning("cancelled during a save, which failed: %s", task.exception())
    raise cancelled


def _send(client: Client, call: Call) -> Any:
    for whole in (False, True):
        try:
            # redis-py leaves this one method of its clients without types.
            reply = client.execute_command(  # type: ignore[no-untyped-call]
                *_command(call, whole=whole), NEVER_DECODE=True
            )
        except _FAULTS as error:
            if isinstance(error, fault.NoScriptError) and not whole:
                continue
            raise _translated(error, call) from error
        return call.read(reply)
    raise AssertionError  # the second round returns or raises


async def _asend(client: AsyncClient, call: Call) -> Any:
    faults: tuple[type[Exception], ...] = _FAULTS
    if isinstance(client, redis.asyncio.RedisCluster):
        # A lost connection makes it close the node's others too, in the middle of what they
        # do for other tasks: these meet a stream that is None.
        faults = (*_FAULTS, AttributeError)
        # It fetches its slots with the first command; others that come meanwhile find it
        # without connections. This waits for that, and is free afterwards.
        try:
            await client.initialize()
        except _FAULTS as error:
            raise _translated(error, call) from error
    for whole in (False, True):
        try:
            reply = await client.execute_command(*_command(call, whole=whole), NEVER_DECODE=True)
        except faults as error:
            if isinstance(error, fault.NoScriptError) and not whole:
                continue
            raise _translated(error, call) from error
        return call.read(reply)
    raise AssertionError  # the second round returns or raises


def _ask(question: Ask | Pause) -> Any:
    if isinstance(question, Pause):
        return time.sleep(question.seconds)
    function, arguments, deadline = question
    if deadline is None:
        answer = function(*arguments)
    else:
        # Not as a `with` block, whose end would wait for a function that is too late.
        pool = ThreadPoolExecutor(1, thread_name_prefix="turnstore-ask")
        try:
            context = contextvars.copy_context()
            answer = pool.submit(context.run, function, *arguments).result(deadline)
        finally:
            pool.shutdown(wait=False)
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        msg = f"{_name(function)} is async, and this store is not; use AsyncStore"
        raise TypeError(msg)
    return answer


async def _aask(question: Ask | Pause) -> Any:
    if isinstance(question, Pause):
        return await asyncio.sleep(question.seconds)
    function, arguments, deadline = question
    async with asyncio.timeout(deadline):
        if inspect.iscoroutinefunction(function):
            return await function(*arguments)
        answer = await asyncio.to_thread(function, *arguments)
        return await answer if inspect.isawaitable(answer) else answer


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", type(function).__name__)


def _command(call: Call, *, whole: bool = False) -> tuple[Any, ...]:
    command = call.command
    if isinstance(command, Script):
        if whole:
            return ("EVAL", command.source, len(call.keys), *call.keys, *call.arguments)
        return ("EVALSHA", command.sha, len(call.keys), *call.keys, *call.arguments)
    return (command, *call.keys, *call.arguments)


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


def _translated(error: Exception, call: Call) -> TurnstoreError:
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
    if code == "LOST":
        msg = f"{what}: its lease ran out, and others may have begun since; nothing was written"
        return LeaseLostError(msg)
    if code == "FULL":
        msg = f"{what}: {detail} turns wait for it already; the model was not asked. Try later"
        return LeaseQueueFullError(msg)
    if code == "CORRUPT":
        return CorruptTurnError(f"{what}: {detail}; nothing was written")
    if code == "FORMAT":
        msg = f"{what}: stored in format {detail}, and this version reads 1; nothing was written"
        return FormatError(msg)
    return None


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
    refusals = fault.ResponseError | fault.DataError | fault.InvalidResponse
    if is_ready and isinstance(error, refusals):
        return None
    # redis-py may have sent the command several times, and any of them may have arrived.
    # Only where no connection was to be had is it sure that none did.
    unknown = call.writes and not isinstance(error, fault.MaxConnectionsError)
    state = (
        "it is not known whether it was carried out; an append is safe to repeat with the "
        "same turn id"
        if unknown
        else "nothing was changed; try again"
    )
    reason = "no answer from the server" if is_ready else "the server is not ready"
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


def connect(url: str, *, is_cluster: bool) -> Client:
    """Make a client from a URL, which goes to redis-py untouched.

    It sends again after a lost connection, as clients that are not made from a URL do; a
    URL alone would give one that fails on the first connection that went stale. A cluster
    client asks the server for its slots at once; a plain one connects when it is first used.

    Raises:
        ValueError: The URL is not one of redis-py's.
        UnavailableError: No node of the cluster answered.
    """
    check_url(url)
    if not is_cluster:
        backoff = ExponentialBackoff(cap=_BACKOFF_CAP, base=_BACKOFF_BASE)
        return redis.Redis.from_url(url, retry=Retry(backoff, _RETRIES))
    try:
        return redis.RedisCluster.from_url(url)
    except _FAULTS as error:
        msg = f"no node of the cluster answered; nothing was sent. The client said: {error}"
        raise UnavailableError(msg) from error


def aconnect(url: str, *, is_cluster: bool) -> AsyncClient:
    """Make an asyncio client from a URL; see `connect`."""
    check_url(url)
    if is_cluster:
        return redis.asyncio.RedisCluster.from_url(url)
    backoff = ExponentialBackoff(cap=_BACKOFF_CAP, base=_BACKOFF_BASE)
    return redis.asyncio.Redis.from_url(url, retry=AsyncRetry(backoff, _RETRIES))


def check_url(url: str) -> None:
    """Refuse what is no URL, such as an environment variable that is not set.

    Raises:
        TypeError: It is not text.
    """
    if not isinstance(url, str):
        msg = f"url is text, as in redis://localhost:6379; not {type(url).__name__}"
        raise TypeError(msg)


def check_client(client: Any, *, asynchronous: bool) -> None:
    """Refuse a client of the other kind, and a pipeline, which would answer nothing.

    Raises:
        TypeError: It is not a client that the store can use; the text says which is.
    """
    ours, other = ("AsyncStore", "Store") if asynchronous else ("Store", "AsyncStore")
    pipelines = (
        SyncPipeline,
        cluster.ClusterPipeline,
        AsyncPipeline,
        aio_cluster.ClusterPipeline,
    )
    if isinstance(client, pipelines):
        msg = f"{ours} takes a client; a pipeline collects commands and answers none"
        raise TypeError(msg)
    if not callable(getattr(client, "execute_command", None)):
        msg = f"{ours} takes a client of redis-py, not {type(client).__name__}; see from_url"
        raise TypeError(msg)
    is_async = isinstance(client, redis.asyncio.Redis | redis.asyncio.RedisCluster)
    is_sync = isinstance(client, redis.Redis | redis.RedisCluster)
    if is_async != asynchronous and (is_async or is_sync):
        kind = "an asyncio" if is_async else "a sync"
        msg = f"{ours} cannot use {kind} client; use {other}"
        raise TypeError(msg)
