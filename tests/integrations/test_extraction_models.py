"""The model of an extraction is a client of an SDK, sync or async: the real ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.meaning.kit import Kit, Model, facts_in, new
from tests.servers.facade import inner
from turnstore.testing import Reply

if TYPE_CHECKING:
    from turnstore import AsyncStore
    from turnstore.testing import ModelServer

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]


@pytest.fixture
def kit(store: AsyncStore, client: Any) -> Kit:
    """Give a conversation of Ada's, and facts that the client draws."""
    return Kit(store, facts_in(store, engine="plain"), client)


async def test_a_client_draws_facts(kit: Kit, model: ModelServer) -> None:
    await kit.say("I sail.")
    model.script(Reply(json.dumps({"facts": [new("Ada sails.")]})), to="extraction")
    assert (await kit.extraction(model="small").extract(kit.chat)).turns == 1
    assert await kit.texts() == ["Ada sails."]
    (request,) = model.requests
    assert "small" in (request.body.get("model") or request.path)
    assert "user: I sail." in str(request.messages)


async def test_a_client_that_fails_loses_nothing(kit: Kit, client: Any, model: ModelServer) -> None:
    await kit.say("I sail.")
    model.script(Reply.error(400, "no"), to="extraction")
    with pytest.raises(Exception, match="no"):
        await kit.extraction(model="small").extract(kit.chat)
    kit.model = Model()
    await kit.reads_it_later()
    with pytest.raises(TypeError, match='name of the model too, as in model="gpt-x"'):
        Kit(kit.store, kit.facts, client).extraction()


async def test_a_client_with_a_memory_is_refused(kit: Kit, client: Any) -> None:
    """Its questions would be turns of the conversation, and facts would be drawn from them."""
    if hasattr(client, "live"):
        client = getattr(client, "aio", client)
    with pytest.raises(TypeError, match="a client without a memory"):
        Kit(kit.store, kit.facts, inner(kit.chat).wrap(client)).extraction(model="small")
