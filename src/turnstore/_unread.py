"""What an interrupted command leaves behind: a connection with a reply that nobody has read.

So it is where a signal handler raises in the middle of a command: Ctrl-C in a notebook, the time
limit of a job. redis-py gives the connection back to its pool, and the next command would be
answered with that reply, which may be another user's. It looks whether there is one, but not with
the default options of version 8, nor for one that is on its way, nor on a client with a single
connection.
"""

from __future__ import annotations

from typing import Any

from ._calls import Ask, Pause, Step
from .errors import TurnstoreError

__all__ = ["aclose", "close"]


def close(client: Any, step: Step, error: BaseException) -> None:
    """Close the connections that nobody uses, unless a step failed in an ordinary way."""
    if _is_ordinary(step, error):
        return
    nodes = client.get_nodes() if hasattr(client, "get_nodes") else ()
    for one in [node.redis_connection for node in nodes] or [client]:
        single = getattr(one, "connection", None)
        if single is not None:
            single.disconnect()
        pool = getattr(one, "connection_pool", None)  # a node has none before it is used
        if pool is not None:
            try:
                pool.disconnect(inuse_connections=False)
            except TypeError:  # a BlockingConnectionPool before redis-py 7, which closes them all
                pool.disconnect()


async def aclose(client: Any, step: Step, error: BaseException) -> None:
    """Close the connections that nobody uses, unless a step failed in an ordinary way."""
    # asyncio says so that the connections are of another loop, where none can be closed.
    if _is_ordinary(step, error) or isinstance(error, RuntimeError):
        return
    # redis-py has no public word for the connections that nobody uses; its own ways of closing
    # them wait, and another task can take one meanwhile. None of these waits.
    if hasattr(client, "get_nodes"):
        idle = [one for node in client.get_nodes() for one in getattr(node, "_free", ())]
    else:
        idle = [*getattr(client.connection_pool, "_available_connections", ())]
        idle += [client.connection] if getattr(client, "connection", None) else []
    for connection in idle:
        await connection.disconnect(nowait=True)


def _is_ordinary(step: Step, error: BaseException) -> bool:
    """Tell whether the error is one of ours, which have read their reply or redis-py knows of.

    What a handler raises may be an `OSError`, as `TimeoutError` is, which is taken for one of the
    connection. A cancellation makes redis-py close the connection.
    """
    if isinstance(step, Ask | Pause):  # which use no connection of ours
        return True
    return isinstance(error, TurnstoreError) and not isinstance(error.__cause__, OSError)
