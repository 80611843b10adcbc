"""How many connections a store takes: one client's, however many conversations there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import redis

from tests.store.talk import texts

if TYPE_CHECKING:
    from tests.conftest import NewStore, OwnServer

pytestmark = pytest.mark.one_setup


async def test_many_conversations_share_the_connections_of_a_client(
    new_store: NewStore, own_server: OwnServer
) -> None:
    """K4: one for each message, or for each run, exhausts a server."""
    server = own_server()
    store = new_store(at=server)
    await store.conversation("first").append("a")
    with redis.Redis.from_url(server.url) as raw:
        before = int(raw.info("stats")["total_connections_received"])
        for number in range(100):
            chat = store.conversation(f"{number}", owner=f"user {number % 7}")
            async with chat.turn("q") as turn:
                turn.reply("a")
            assert texts(await chat.read()) == ["q", "a"]
        after = int(raw.info("stats")["total_connections_received"])
    # On a sync store each call is made in some thread; those of a pool take one each at most.
    assert after - before < 20
