"""A conversation that grew without a limit, and then meets one: the server stays free."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import redis

from tests.invariants.raw import look

if TYPE_CHECKING:
    from tests.conftest import NewStore, OwnServer

pytestmark = pytest.mark.one_setup

TURNS = 3000


@pytest.mark.parametrize("how", ["append", "trim"])
async def test_dropping_many_turns_looks_at_few(
    new_store: NewStore, own_server: OwnServer, how: str
) -> None:
    server = own_server()
    grown = new_store(at=server, max_messages=None).conversation("ada")
    limited = new_store(at=server, max_messages=100).conversation("ada")
    for start in range(0, TURNS, 500):
        for number in range(start, start + 500):
            await grown.append(f"question {number}", continues=number % 7 == 6)
    with redis.Redis.from_url(server.url) as raw:
        raw.config_resetstat()
        if how == "append":
            await limited.append("the last")
        else:
            await limited.trim(messages=100)
        looks: dict[str, Any] = raw.info("commandstats")
        assert looks["cmdstat_lindex"]["calls"] < 40, "one look for each turn that goes"
        look(raw, grown.key)
    history = await grown.read()
    assert 93 < len(history) <= 100
    assert not history.has_older
