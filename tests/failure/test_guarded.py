"""The guard of a client's pools, beside what the application and other libraries do with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.failure.test_interrupted import Interruption, TimeIsUp
from tests.store.talk import texts
from turnstore import Store

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.one_setup


@pytest.mark.servers("redis-8")
def test_a_pipeline_of_the_application_leaves_nothing_unread_either(
    make_store: Callable[..., Store],
    redis_client: Any,
    prefix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chat = make_store().conversation("c")
    chat.append("of c")
    redis_client.set(f"{prefix}x", "x")
    interruption = Interruption(monkeypatch, TimeIsUp)
    for nth in (1, 2):
        interruption.left = nth
        with pytest.raises(TimeIsUp), redis_client.pipeline() as pipeline:  # noqa: PT012 - a block
            pipeline.watch(f"{prefix}x")
            pipeline.get(f"{prefix}x")
        assert [texts(chat.read()) for _ in range(3)] == [["of c"]] * 3
    redis_client.delete(f"{prefix}x")


@pytest.mark.servers("redis-8")
@pytest.mark.parametrize("laid", ["before", "after"])
def test_what_another_library_lays_over_a_pool(
    redis_client: Any, prefix: str, monkeypatch: pytest.MonkeyPatch, laid: str
) -> None:
    pool, released = redis_client.connection_pool, 0

    def lay() -> None:
        whole = pool.release

        def release(connection: Any) -> None:
            nonlocal released
            released += 1
            whole(connection)

        pool.release = release

    if laid == "before":
        lay()
    store = Store(redis_client, name="test", prefix=prefix)
    if laid == "after":
        lay()
    Store(redis_client, name="test", prefix=prefix)
    mine, other = store.conversation("mine"), store.conversation("other")
    mine.append("mine")
    other.append("other")
    assert released == 2
    interruption = Interruption(monkeypatch, TimeIsUp)
    interruption.left = 1
    with pytest.raises(TimeIsUp):
        mine.read()
    assert [texts(other.read()) for _ in range(2)] == [["other"]] * 2
