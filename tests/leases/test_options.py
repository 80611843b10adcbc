"""What a lease may be, checked before anything is sent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import redis

from turnstore import AsyncStore, Lease, Store

HOUR = timedelta(hours=1)


def test_the_defaults() -> None:
    lease = Lease()
    assert (lease.ttl, lease.wait, lease.waiters) == (
        timedelta(seconds=30),
        timedelta(minutes=1),
        16,
    )
    assert Lease(wait=timedelta(0), waiters=0).waiters == 0
    assert len({Lease(), Lease()}) == 1


@pytest.mark.parametrize(
    "options, error",
    [
        ({"ttl": 30}, TypeError),
        ({"ttl": None}, TypeError),
        ({"ttl": timedelta(milliseconds=99)}, ValueError),
        ({"wait": 5}, TypeError),
        ({"wait": None}, TypeError),
        ({"wait": timedelta(microseconds=-1)}, ValueError),
        ({"waiters": 1.0}, TypeError),
        ({"waiters": True}, TypeError),
        ({"waiters": None}, TypeError),
        ({"waiters": -1}, ValueError),
        ({"waiters": 1001}, ValueError),
    ],
)
def test_what_is_no_lease(options: dict[str, Any], error: type[Exception]) -> None:
    (name,) = options
    with pytest.raises(error, match=rf"Lease\({name}=.*{name} is"):
        Lease(**options)


@pytest.mark.parametrize("kind", [Store, AsyncStore])
@pytest.mark.parametrize("call", ["turn", "wrap"])
def test_it_goes_with_serialize_alone(kind: Any, call: str) -> None:
    client = redis.Redis if kind is Store else redis.asyncio.Redis
    chat = kind(client(host="host.invalid"), name="a").conversation("c")
    begin = getattr(chat, call)
    for policy in ("append", "reject"):
        with pytest.raises(ValueError, match="a lease goes with on_conflict="):
            begin("hi", on_conflict=policy, lease=Lease())
    with pytest.raises(ValueError, match="serialize"):
        begin("hi", on_conflict="serialise")
    wrongs: list[Any] = [HOUR, 30, {}, "lease"]
    for wrong in wrongs:
        with pytest.raises(TypeError, match="lease is a Lease"):
            begin("hi", on_conflict="serialize", lease=wrong)


def test_a_turn_has_no_fence_before_it_has_the_lease() -> None:
    chat = Store(redis.Redis(host="host.invalid"), name="a").conversation("c")
    assert chat.turn("hi", on_conflict="serialize").fence is None
    assert chat.turn("hi").fence is None
