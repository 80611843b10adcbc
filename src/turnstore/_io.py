"""Send calls to Redis: with `_faults` and `_unread`, the only module that knows redis-py.

Two short loops, sync and async, run a flow. Around them stands what both share: how a
command is spelled for redis-py, and how a script is sent (by its hash, in full where the
server does not know it).
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
import weakref
from collections.abc import Awaitable, Sequence
from functools import cache
from typing import Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

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

from . import _unread
from ._asking import aask, ask
from ._calls import Ask, Call, Flow, Pause, Scan, Step, Together
from ._faults import FAULTS, another_loop, is_of_another_loop, translated
from ._scripts import Script
from .errors import TurnstoreError, UnavailableError

__all__ = [
    "AsyncClient",
    "Client",
    "accept_client",
    "aconnect",
    "arun",
    "connect",
    "run",
    "unbroken",
]

R = TypeVar("R")

log = logging.getLogger("turnstore")

Client: TypeAlias = "redis.Redis | redis.RedisCluster"
AsyncClient: TypeAlias = "redis.asyncio.Redis | redis.asyncio.RedisCluster"

# How a client that was made from a URL sends again: some 1.5 seconds in all, in seconds.
_RETRIES, _BACKOFF_BASE, _BACKOFF_CAP = 4, 0.05, 1.0

# As many connections as there are operations at a time, which redis-py 8 would end at 100 with an
# error. `max_connections` of a URL counts before it.
_UNLIMITED = 2**31

# How many keys the server looks at in one step of a scan.
_SCANNED = 1000

# What a Cluster client does wrong itself. A thread that looks through the nodes while another
# learns them anew, after a lost connection, meets a dictionary that changes. In asyncio, a lost
# connection makes it close the node's others too, in the middle of what they do for other tasks:
# these meet a stream that is None. Other such errors are of whoever interrupted a command.
_CLUSTER_FAULT = re.compile(r"during iteration$|^'NoneType' object has no attribute")

# The event loop to which the connections of a client belong.
_LOOPS: weakref.WeakKeyDictionary[AsyncClient, weakref.ref[asyncio.AbstractEventLoop]] = (
    weakref.WeakKeyDictionary()
)


def run(client: Client, flow: Flow[R]) -> R:
    """Run a flow to its end and give back its result."""
    try:
        step = next(flow)
        while True:
            try:
                reply = _send(client, step) if isinstance(step, Call) else _do(client, step)
            except Exception as error:  # noqa: BLE001 - the flow knows what to do with it
                step = flow.throw(error)
            else:
                step = flow.send(reply)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # StopIteration.value is Any


async def arun(client: AsyncClient, flow: Flow[R], step: Step | None = None) -> R:
    """Run a flow to its end and give back its result.

    Args:
        client: Where its calls are sent.
        flow: What is run.
        step: The step at which a flow stands that has begun.
    """
    task = asyncio.current_task()
    cancelled = task.cancelling() if task else 0
    try:
        if step is None:
            step = next(flow)
        while True:
            try:
                _check_loop(client)
                reply = await (
                    _asend(client, step) if isinstance(step, Call) else _ado(client, step)
                )
                if task and task.cancelling() > cancelled:
                    # redis-py waits with asyncio.wait_for, which swallows a cancellation in
                    # Python 3.11 where it comes just as the command was sent.
                    raise asyncio.CancelledError  # noqa: TRY301 - as if the command had raised it
            except asyncio.CancelledError as error:
                # Raised again at once, but by a flow that has something to give back first.
                step = flow.throw(error)
                return await unbroken(arun(client, flow, step), "a cancelled operation")
            except Exception as error:  # noqa: BLE001 - the flow knows what to do with it
                await _unread.aclose(client, step, error)
                step = flow.throw(error)
            except BaseException as error:
                await _unread.aclose(client, step, error)
                raise
            else:
                step = flow.send(reply)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # StopIteration.value is Any


def _check_loop(client: AsyncClient) -> None:
    """Refuse a second event loop, where a command would be sent and its answer never come.

    A client whose connections were closed may go on in another one.

    Raises:
        RuntimeError: The client has connections of another loop.
    """
    loop, known = asyncio.get_running_loop(), _LOOPS.get(client)
    if known is not None:
        if known() is loop:
            return
        if _is_connected(client):
            raise another_loop()
    _LOOPS[client] = weakref.ref(loop)


def _is_connected(client: Any) -> bool:
    is_cluster = isinstance(client, redis.asyncio.RedisCluster)
    # redis-py has no public word for what a pool holds; one without these names holds nothing.
    pools = client.get_nodes() if is_cluster else [client.connection_pool]
    names = ("_connections",) if is_cluster else ("_available_connections", "_in_use_connections")
    held = [one for pool in pools for name in names for one in getattr(pool, name, ())]
    return any(one.is_connected for one in held)


async def unbroken(work: Awaitable[R], what: str) -> R:
    """Finish a piece of work even where the caller is cancelled meanwhile.

    The cancellation goes on when the work is done. What the work then raises is noted in
    the log alone, since the caller asked for an end and not for a result.

    Args:
        work: What is to be finished.
        what: What the log calls it.
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
        log.warning("cancelled during %s, which failed: %s", what, task.exception())
    raise cancelled


def _send(client: Client, call: Call) -> Any:
    for whole in (False, True):
        try:
            # redis-py leaves this one method of its clients without types.
            reply = client.execute_command(  # type: ignore[no-untyped-call]
                *_command(call, whole=whole), NEVER_DECODE=True
            )
        except _faults_of(client) as error:
            if isinstance(error, fault.NoScriptError) and not whole:
                continue
            raise _translated(error, call, again=whole) from error
        return call.read(reply)
    raise AssertionError  # the second round returns or raises


async def _asend(client: AsyncClient, call: Call) -> Any:
    if _is_cluster(type(client)):
        # It fetches its slots with the first command; others that come meanwhile find it
        # without connections. This waits for that, and is free afterwards.
        try:
            await client.initialize()
        except FAULTS as error:
            raise translated(error, call) from error
    for whole in (False, True):
        try:
            reply = await client.execute_command(*_command(call, whole=whole), NEVER_DECODE=True)
        except _faults_of(client) as error:
            if isinstance(error, fault.NoScriptError) and not whole:
                continue
            raise _translated(error, call, again=whole) from error
        return call.read(reply)
    raise AssertionError  # the second round returns or raises


def _translated(error: Exception, call: Call, *, again: bool = False) -> TurnstoreError:
    """Translate what a client raised; what it is not at fault for is raised as it is."""
    known = isinstance(error, FAULTS) or is_of_another_loop(error)
    if not known and _CLUSTER_FAULT.search(str(error)) is None:
        raise error
    return translated(error, call, again=again)


@cache
def _is_cluster(kind: type) -> bool:
    """Tell whether clients of a type are a Cluster's; asking redis-py's types takes a while."""
    return issubclass(kind, redis.RedisCluster | redis.asyncio.RedisCluster)


def _faults_of(client: Client | AsyncClient) -> tuple[type[Exception], ...]:
    """Give what a client may raise, also where it is at fault itself, as `_CLUSTER_FAULT` says."""
    if isinstance(client, redis.RedisCluster):
        return (*FAULTS, RuntimeError)
    if isinstance(client, redis.asyncio.RedisCluster):
        return (*FAULTS, AttributeError, RuntimeError)
    # asyncio's own word for a connection of another event loop.
    return FAULTS if isinstance(client, redis.Redis) else (*FAULTS, RuntimeError)


def _do(client: Client, step: Together | Scan | Ask | Pause) -> Any:
    if isinstance(step, Together):
        return _send_together(client, step)
    if isinstance(step, Scan):
        return _scan(client, step)
    return time.sleep(step.seconds) if isinstance(step, Pause) else ask(step)


async def _ado(client: AsyncClient, step: Together | Scan | Ask | Pause) -> Any:
    if isinstance(step, Together):
        return await _asend_together(client, step)
    if isinstance(step, Scan):
        return await _ascan(client, step)
    return await (asyncio.sleep(step.seconds) if isinstance(step, Pause) else aask(step))


def _send_together(client: Client, step: Together) -> list[Any]:
    if not isinstance(client, redis.RedisCluster):
        pipeline: Any = client.pipeline(transaction=False)
        for call in _all_of(step):
            pipeline.execute_command(*_command(call), NEVER_DECODE=True)
        try:
            replies = pipeline.execute(raise_on_error=False)
        except FAULTS as error:
            raise translated(error, step.calls[0]) from error
        if not _unknown_script(replies):
            return _read_all(step, replies)
    replies = [_send(client, call) for call in step.calls]
    return replies if step.beside is None else [*replies, None]


async def _asend_together(client: AsyncClient, step: Together) -> list[Any]:
    if not isinstance(client, redis.asyncio.RedisCluster):
        pipeline: Any = client.pipeline(transaction=False)
        for call in _all_of(step):
            pipeline.execute_command(*_command(call), NEVER_DECODE=True)
        try:
            replies = await pipeline.execute(raise_on_error=False)
        except _faults_of(client) as error:
            raise _translated(error, step.calls[0]) from error
        if not _unknown_script(replies):
            return _read_all(step, replies)
    replies = [await _asend(client, call) for call in step.calls]
    return replies if step.beside is None else [*replies, None]


def _all_of(step: Together) -> tuple[Call, ...]:
    return step.calls if step.beside is None else (*step.calls, step.beside)


def _unknown_script(replies: list[Any]) -> bool:
    """Tell whether all have to be sent anew, so that they keep their order."""
    return any(isinstance(reply, fault.NoScriptError) for reply in replies)


def _read_all(step: Together, replies: list[Any]) -> list[Any]:
    read = list(map(_read, step.calls, replies))  # of the shorter of the two
    if step.beside is not None:
        reply = replies[-1]
        read.append(None if isinstance(reply, Exception) else step.beside.read(reply))
    return read


def _read(call: Call, reply: Any) -> Any:
    if isinstance(reply, Exception):
        raise translated(reply, call) from reply
    return call.read(reply)


def _scan(client: Client, step: Scan) -> tuple[Any, list[bytes]]:
    anyone: Any = client
    options: dict[str, Any] = {"match": step.pattern, "count": _SCANNED}
    try:
        if not isinstance(client, redis.RedisCluster):
            return _scanned(anyone.scan(step.at or 0, **options), ())
        (name, cursor), *later = step.at or _nodes(client, step)
        node = anyone.get_node(node_name=name)
        return _scanned(anyone.scan(cursor, target_nodes=node, **options), later)
    except _faults_of(client) as error:
        raise _translated(error, _as_call(step)) from error


async def _ascan(client: AsyncClient, step: Scan) -> tuple[Any, list[bytes]]:
    anyone: Any = client
    options: dict[str, Any] = {"match": step.pattern, "count": _SCANNED}
    try:
        if not isinstance(client, redis.asyncio.RedisCluster):
            return _scanned(await anyone.scan(step.at or 0, **options), ())
        await client.initialize()
        (name, cursor), *later = step.at or _nodes(client, step)
        node = client.get_node(node_name=name)
        return _scanned(await anyone.scan(cursor, target_nodes=node, **options), later)
    except _faults_of(client) as error:
        raise _translated(error, _as_call(step)) from error


def _nodes(client: Any, step: Scan) -> list[tuple[str, int]]:
    """Give the nodes of a Cluster to be looked at, each with the cursor of its beginning."""
    found = [client.get_node_from_key(step.key.decode())] if step.key else client.get_primaries()
    return [(node.name, 0) for node in found]


def _scanned(
    reply: tuple[Any, list[Any]], later: Sequence[tuple[str, int]]
) -> tuple[Any, list[bytes]]:
    cursor, found = reply
    at: Any = cursor
    if isinstance(cursor, dict):  # of the node
        at = [*((name, place) for name, place in cursor.items() if place), *later]
    return at or None, [key if isinstance(key, bytes) else key.encode() for key in found]


def _as_call(step: Scan) -> Call:
    return Call(step.operation, (step.key,), "scan", (), writes=False, read=set)


def _command(call: Call, *, whole: bool = False) -> tuple[Any, ...]:
    command = call.command
    if isinstance(command, Script):
        if whole:
            return ("EVAL", command.source, len(call.keys), *call.keys, *call.arguments)
        return ("EVALSHA", command.sha, len(call.keys), *call.keys, *call.arguments)
    return (command, *call.keys, *call.arguments)


def connect(url: str, *, is_cluster: bool) -> Client:
    """Make a client from a URL, which goes to redis-py untouched.

    It sends again after a lost connection, as clients that are not made from a URL do; a
    URL alone would give one that fails on the first connection that went stale. A cluster
    client asks the server for its slots at once; a plain one connects when it is first used.

    Raises:
        ValueError: The URL is not one of redis-py's, or has an option that it does not know.
        UnavailableError: No node of the cluster answered.
    """
    check_url(url)
    if not is_cluster:
        backoff = ExponentialBackoff(cap=_BACKOFF_CAP, base=_BACKOFF_BASE)
        retry = Retry(backoff, _RETRIES)
        plain = redis.Redis.from_url(url, retry=retry, max_connections=_UNLIMITED)
        _check_options(plain.connection_pool)
        return plain
    try:
        return redis.RedisCluster.from_url(url, max_connections=_UNLIMITED)
    except FAULTS as error:
        msg = f"no node of the cluster answered; nothing was sent. The client said: {error}"
        raise UnavailableError(msg) from error


def aconnect(url: str, *, is_cluster: bool) -> AsyncClient:
    """Make an asyncio client from a URL; see `connect`."""
    check_url(url)
    if is_cluster:
        return redis.asyncio.RedisCluster.from_url(url, max_connections=_UNLIMITED)
    retry = AsyncRetry(ExponentialBackoff(cap=_BACKOFF_CAP, base=_BACKOFF_BASE), _RETRIES)
    plain = redis.asyncio.Redis.from_url(url, retry=retry, max_connections=_UNLIMITED)
    _check_options(plain.connection_pool)
    return plain


def _check_options(pool: Any) -> None:
    """Refuse options of a URL, which redis-py does only when it first connects."""
    try:
        pool.connection_class(**pool.connection_kwargs)  # it connects when it is used
    except (TypeError, fault.RedisError) as error:
        msg = f"redis-py cannot use an option of the URL; it said: {error}"
        raise ValueError(msg) from error


def check_url(url: str) -> None:
    """Refuse what is no URL, such as an environment variable that is not set.

    Raises:
        TypeError: It is no text.
        ValueError: It cannot be taken apart. What Python and redis-py say then has a part of the
            password in it.
    """
    if not isinstance(url, str):
        msg = f"url is text, as in redis://localhost:6379; not {type(url).__name__}"
        raise TypeError(msg)
    try:
        _ = urlsplit(url).port
    except ValueError:
        msg = (
            "the URL cannot be read: its port is no number, or its password has a character that "
            "is written otherwise in a URL: / as %2F, @ as %40, : as %3A, # as %23, ? as %3F"
        )
        raise ValueError(msg) from None


def accept_client(client: Any, *, asynchronous: bool) -> None:
    """Have a client guard itself, so that a command that is interrupted leaves nothing unread.

    One of the other kind is refused, as is a pipeline, which would answer nothing.

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
    _unread.guard(client, asynchronous=asynchronous)
