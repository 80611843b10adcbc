"""An exchange is stored once for its turn, also after the server and the process began anew."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.facts.recall.kit import Memory, facts_in
from tests.facts.recall.test_exchanges import text, told, turn
from tests.servers.found import search_module

if TYPE_CHECKING:
    from tests.conftest import NewStore, OwnServer

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis-7", "redis-8", "valkey")]


@pytest.mark.keeps_keys
async def test_a_restart_of_everything_stores_no_turn_twice(
    new_store: NewStore, own_server: OwnServer, engine: str
) -> None:
    config = {"loadmodule": str(search_module())} if engine == "search" else {}
    server = own_server(appendonly=True, config={**config, "appendfsync": "always"})

    def begun() -> Memory:
        store = new_store(at=server)
        return Memory(store, facts_in(store, engine=engine))

    first = begun().exchanges()
    await told(first, turn(1), turn(2))
    assert first.counts == {"stored": 2}
    server.kill()
    await asyncio.to_thread(server.restart)
    memory = begun()
    again = memory.exchanges()
    await told(again, turn(1), turn(2), turn(3))
    assert again.counts == {"duplicate": 2, "stored": 1}
    assert await memory.texts() == [text(1), text(2), text(3)]
