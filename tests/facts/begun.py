"""Erases an owner, or a conversation, between any two calls of an operation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tests.facts.meaning.kit import DIMENSIONS, embed
from tests.servers.facade import inner
from tests.servers.setups import Setup
from turnstore import ErasedError, Store
from turnstore.facts import Facts

if TYPE_CHECKING:
    from tests.servers.running import Server

MOST_CALLS = 60  # no operation of these tests makes more


@contextmanager
def another(server: Server, prefix: str) -> Generator[Store]:
    """Give the store of another process."""
    client = server.client(Setup("sync", 2, decode=False))
    yield Store(client, name="test", prefix=prefix)
    client.close()


def facts_of(store: Store, engine: str) -> Facts:
    """Keep facts in the store of another process."""
    return Facts(
        store,
        embed=embed,
        dimensions=DIMENSIONS,
        embedder="words:1",
        engine=engine,
        ttl=timedelta(hours=1),
    )


def erase(store: Store, what: str) -> bool:
    """Erase Ada, the owner, or her conversation `c1`; whether all was looked at, and it is gone."""
    if what == "owner":
        return store.erase("ada", verify=True).verified
    return store.conversation("c1", owner="ada").erase(verify=True).verified


async def meanwhile(
    operation: Callable[[], Awaitable[object]], made: Any, act: Any, at: int
) -> int:
    """Do something after a call of an operation, and say how many calls there were up to it.

    Args:
        operation: What is done.
        made: What does it: facts, extraction, or a working memory, as a test is given it.
        act: What is done after the call.
        at: Which call that is, from 1.
    """
    doing, calls = inner(made), 0
    run = doing._run

    def stepped(flow: Any) -> Any:
        nonlocal calls
        asked, reply = next(flow), None
        while True:
            try:
                reply = yield asked
            except Exception as error:  # noqa: BLE001 - the flow's
                asked = flow.throw(error)
                continue
            calls += 1
            if calls == at:
                act()
            try:
                asked = flow.send(reply)
            except StopIteration as done:
                return done.value

    doing._run = lambda flow: run(stepped(flow))
    try:
        await operation()
    except ErasedError:
        assert calls >= at, "nobody has erased anything"
    finally:
        doing._run = run
    return calls
