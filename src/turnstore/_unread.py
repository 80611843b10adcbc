"""What an interrupted command leaves behind: a connection with a reply that nobody has read.

So it is where a signal handler raises in the middle of a command: Ctrl-C in a notebook, the time
limit of a job. redis-py gives the connection back to its pool, and whoever takes it next would be
answered with that reply, which may be another user's. It looks whether there is one, but not with
the default options of version 8, nor for one that is on its way, nor on a client with a single
connection.

So the pools of a client close such a connection before they take it back, when no other thread can
have it yet. An asyncio Cluster client has no pools: of its connections, those that nobody uses are
closed when the command has failed, before another task runs.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

from redis import RedisError
from redis.exceptions import RedisClusterException, ResponseError

from ._calls import Ask, Pause, Step
from ._faults import is_of_another_loop
from .errors import TurnstoreError

__all__ = ["aclose", "guard"]

_MOST_WRAPPERS = 3


def guard(client: Any, *, asynchronous: bool) -> None:
    """Have a client close the connection of each command that is interrupted.

    The client and its pools do so from now on, whoever uses them. Doing it again changes nothing.
    """
    manager = getattr(client, "nodes_manager", None)
    if manager is None:
        _guard_pool(getattr(client, "connection_pool", None), asynchronous=asynchronous)
        _guard_single(client, asynchronous=asynchronous)
    elif not asynchronous:
        _guard_nodes(manager)


def _guard_pool(pool: Any, *, asynchronous: bool) -> None:
    whole: Any = getattr(type(pool), "release", None)
    if whole is None:  # a stand-in of a test
        return
    laid: Any = vars(pool).get("release")  # over it, by another library or by us
    if hasattr(laid, "guards"):
        return
    known = weakref.ref(pool)  # a pool that held itself would outlive its client

    def release(connection: Any) -> Any:
        return whole(known(), connection) if laid is None else laid(connection)

    def give_back(connection: Any) -> None:
        if sys.exception() is not None and _is_interrupted():
            connection.disconnect()
        release(connection)

    def agive_back(connection: Any) -> Awaitable[None]:
        # Looks at once, since redis-py may have the rest done by another task.
        if sys.exception() is not None and _is_interrupted():
            return _close_and_release(connection)
        returned: Awaitable[None] = release(connection)
        return returned

    async def _close_and_release(connection: Any) -> None:
        await connection.disconnect(nowait=True)
        await release(connection)

    guarded: Any = agive_back if asynchronous else give_back
    guarded.guards = True
    pool.release = guarded


def _is_interrupted() -> bool:
    """Tell whether an error passes through the function that gives a connection back.

    One that somebody further up is just handling, and that Python gives here too, has come to
    rest in another frame. An answer of the server that is an error was read.
    """
    error = sys.exception()
    if error is None or error.__traceback__ is None or isinstance(error, ResponseError):
        return False
    if is_of_another_loop(error):  # where nothing can be closed
        return False
    # Of whoever calls `release`; the standard library has no public word for it that is as short.
    giver = sys._getframe(2)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    frames = [giver]
    for _ in range(_MOST_WRAPPERS):  # another library may have laid its own over ours
        if giver.f_back is None or giver.f_globals.get("__name__", "").startswith("redis."):
            break
        giver = giver.f_back
        frames.append(giver)
    if giver.f_code.co_name == "reset" and giver.f_back:  # of a pipeline, whose `execute` fails
        if giver.f_back.f_code.co_name in {"__exit__", "__aexit__"}:  # or its block
            return not isinstance(error, RedisError)
        frames.append(giver.f_back)
    return error.__traceback__.tb_frame in frames


def _guard_single(client: Any, *, asynchronous: bool) -> None:
    """Guard a client with one connection, which is never given back.

    redis-py calls the function that is guarded here while it holds the lock of that connection.
    """
    name = "_send_command_parse_response"  # redis-py has no public one
    send: Callable[..., Any] | None = getattr(type(client), name, None)
    is_single = getattr(client, "connection", None) or getattr(
        client, "single_connection_client", False
    )
    if send is None or not is_single or name in vars(client):
        return
    known = weakref.ref(client)
    is_unread = False  # the reply to what was sent last

    def send_and_read(connection: Any, *args: Any, **options: Any) -> Any:
        nonlocal is_unread
        if is_unread:
            connection.disconnect()
        is_unread = True
        try:
            reply = send(known(), connection, *args, **options)
        except ResponseError:
            is_unread = False
            raise
        is_unread = False
        return reply

    async def asend_and_read(connection: Any, *args: Any, **options: Any) -> Any:
        nonlocal is_unread
        if is_unread:
            await connection.disconnect(nowait=True)
        is_unread = True
        try:
            reply = await send(known(), connection, *args, **options)
        except ResponseError:
            is_unread = False
            raise
        is_unread = False
        return reply

    setattr(client, name, asend_and_read if asynchronous else send_and_read)


def _guard_nodes(manager: Any) -> None:
    """Guard the pools of a Cluster's nodes, and those of the nodes that are found later."""
    create = type(manager).create_redis_node
    known = weakref.ref(manager)

    def create_redis_node(*args: Any, **options: Any) -> Any:
        made = create(known(), *args, **options)
        _guard_pool(made.connection_pool, asynchronous=False)
        return made

    manager.create_redis_node = create_redis_node
    for node in (*manager.startup_nodes.values(), *manager.nodes_cache.values()):
        if node.redis_connection is not None:
            _guard_pool(node.redis_connection.connection_pool, asynchronous=False)


async def aclose(client: Any, step: Step, error: BaseException) -> None:
    """Close the connections of a Cluster that nobody uses, unless a step failed as steps do."""
    if not hasattr(client, "get_nodes") or isinstance(step, Ask | Pause) or _is_ordinary(error):
        return
    # redis-py has no public word for the connections that nobody uses; its own ways of closing
    # them wait, and another task can take one meanwhile. None of these waits.
    for connection in [one for node in client.get_nodes() for one in getattr(node, "_free", ())]:
        await connection.disconnect(nowait=True)


def _is_ordinary(error: BaseException) -> bool:
    """Tell whether the reply was read, or redis-py knows that it was not, or nothing can be done.

    What a handler raises may be an `OSError`, as `TimeoutError` is, which is taken for one of the
    connection. A cancellation makes redis-py close the connection.
    """
    if isinstance(error, TurnstoreError):
        if error.__cause__ is None:
            return True
        error = error.__cause__
        if isinstance(error, RedisError | RedisClusterException):
            return True
    # Where a coroutine is thrown away, none can be waited for.
    return isinstance(error, GeneratorExit) or is_of_another_loop(error)
