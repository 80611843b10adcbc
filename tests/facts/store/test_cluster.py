"""RediSearch on a Cluster: an index has what lies on its node, so that it is refused at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.asyncio

from tests.facts.meaning.kit import DIMENSIONS, embed
from tests.servers import found
from tests.servers.cluster import start_cluster
from tests.servers.setups import ONE
from turnstore import AsyncStore, Store, UnsupportedError
from turnstore.facts import AsyncFacts, Facts, Search

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.running import Clustered

OPTIONS: dict[str, Any] = {"embed": embed, "dimensions": DIMENSIONS, "embedder": "words:1"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Clustered]:
    servers, module = found.with_search(), found.search_module()
    if not servers:
        found.absent(("Redis with RediSearch",)).start()
    assert servers[0].binary
    running = start_cluster(servers[0].binary, loadmodule=str(module))
    yield running
    running.close()


def test_the_engine_is_refused_before_anything_is_written(cluster: Clustered) -> None:
    client = cluster.client(ONE[0])
    facts = Facts(Store(client, name="refused"), engine=Search(), **OPTIONS)
    for call in (
        lambda: facts.add("ada", "Ada swims."),
        lambda: facts.search("ada", "Ada"),
        lambda: facts.add("ada", "Ada swims."),
    ):
        with pytest.raises(UnsupportedError, match="no Redis Cluster"):
            call()
    left = client.scan_iter(target_nodes=redis.RedisCluster.PRIMARIES)
    assert {key.rpartition(b":")[2] for key in left} <= {b"generation"}, "that something began"
    client.close()


async def test_async_facts_refuse_it_too(cluster: Clustered) -> None:
    client = cluster.async_client(ONE[1])
    facts = AsyncFacts(AsyncStore(client, name="refused"), engine=Search(), **OPTIONS)
    with pytest.raises(UnsupportedError, match="no Redis Cluster"):
        await facts.add("ada", "Ada swims.")
    await client.aclose()


def test_one_that_its_register_says_is_refused_too(cluster: Clustered) -> None:
    """A Cluster can have got the data of a single server."""
    client = cluster.client(ONE[0])
    facts = Facts(Store(client, name="moved"), engine=Search(), **OPTIONS)
    base = facts._base
    token = Search().space(base.embedder).token
    client.hset(base.ground.registry, "current", token)
    with pytest.raises(UnsupportedError, match="does not work on a Redis Cluster"):
        facts.search("ada", "Ada")
    client.delete(base.ground.registry)
    client.close()


@pytest.mark.parametrize("engine, taken", [("auto", "plain"), ("vectorset", "vectorset")])
def test_auto_takes_what_works_there(cluster: Clustered, engine: str, taken: str) -> None:
    client = cluster.client(ONE[0])
    facts = Facts(Store(client, name=engine), engine=engine, **OPTIONS)
    owners = [f"owner {number}" for number in range(12)]
    for owner in owners:
        facts.add(owner, f"The secret of {owner}.")
    assert facts.engine == taken
    nodes = {
        client.get_node_from_key(facts._base.ground.owner(one).keys.facts.decode())
        for one in owners
    }
    assert len(nodes) > 1
    for owner in owners:
        hits = facts.search(owner, "secret", min_score=None)
        assert [hit.fact.text for hit in hits] == [f"The secret of {owner}."]
        assert facts.erase(owner).parts == {"facts": 1}
    client.close()
