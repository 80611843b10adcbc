"""A server without room: it takes nothing new, and lets go of everything."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import redis

from tests.facts.store.raw import kinds_of
from turnstore import OutOfMemoryError
from turnstore.facts import NewFact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.facts.store.conftest import NewFacts
    from tests.servers.running import Server
    from turnstore import AsyncStore

CHATS = ("cleared", "cut", "turned", "forgotten", "erased", "stays")

pytestmark = pytest.mark.one_setup


@contextmanager
def filled_up(server: Server) -> Iterator[None]:
    """Leave the server, or each node of a Cluster, no room for anything."""
    if not server.addresses:
        pytest.skip("this server has no limit")
    with ExitStack() as stack:
        for host, port in server.addresses:
            node = stack.enter_context(redis.Redis(host=host, port=port))
            stack.callback(node.config_set, "maxmemory", 0)
            node.config_set("maxmemory-policy", "noeviction")
            node.config_set("maxmemory", 1)
        yield


async def test_a_full_server_lets_go_of_everything(
    store: AsyncStore, new_facts: NewFacts, server: Server
) -> None:
    facts = new_facts(store)
    for name in CHATS:
        for number in range(3):
            id_ = f"{name}:{number}"
            await store.conversation(name, owner="ada").append(f"Ada says {id_}.", turn_id=id_)
            told = NewFact(text=f"{id_}.", conversation=name, sources=(id_,))
            await facts.add_many("ada", [told])
        await facts.add_exchange("ada", name, f"{name}:0", f"Ada says 0 in {name}.")
    one, *_ = await facts.list("ada")
    cut = store.conversation("cut", owner="ada")
    with filled_up(server):
        for refused in (
            lambda: cut.append("Ada says more."),
            lambda: facts.add("ada", "Ada dives."),
            lambda: facts.update("ada", one.id, pinned=True),
        ):
            with pytest.raises(OutOfMemoryError, match="nothing was written"):
                await refused()
        assert await store.conversation("cleared", owner="ada").clear()
        assert await cut.expire(timedelta(hours=1))
        assert len(await cut.rewind()) == 1
        assert await cut.trim(turns=1) == 1
        assert await facts.forget("ada", one.id)
        assert await facts.forget_turns("ada", "turned", ["turned:1"]) == 1
        assert await facts.forget_conversation("ada", "forgotten") == 4
        gone = await store.conversation("erased", owner="ada").erase(verify=True)
        assert (gone.turns, gone.parts) == (3, {"facts": 3, "exchanges": 1})
        assert (await facts.retain("ada", most=5)).facts > 5
        receipt = await store.erase("ada", verify=True)
        assert receipt.verified
        assert receipt.conversations == 4
        assert sum(receipt.parts.values()) == 5
    assert kinds_of(server, facts, "ada") <= {b"generation"}
    assert (await facts.add("ada", "Ada dives.")).id, "there is room again"
