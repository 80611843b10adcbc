"""The embedder is a client of the openai package: the real one, on a model server."""

from __future__ import annotations

import inspect
import json
import threading
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest
from openai import (
    APIConnectionError,
    AsyncAzureOpenAI,
    AsyncOpenAI,
    AzureOpenAI,
    DefaultAsyncHttpxClient,
    DefaultHttpxClient,
    OpenAI,
)

from tests.facts.meaning.kit import embed, facts_in
from tests.servers.facade import inner
from tests.waiting import wait_until_async
from turnstore import Store
from turnstore.context import Context
from turnstore.facts import Facts, NewFact, Recall

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.conftest import NewStore
    from turnstore import AsyncStore
    from turnstore.facts import AsyncFacts
    from turnstore.testing import ModelServer

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis-7", "redis-8.2", "redis-url")]

SMALL = {"embedder": "text-embedding-3-small", "dimensions": 1536}
HEARD = "Ada keeps bees in her garden"


class Wire:
    """Makes clients, and has what they send."""

    def __init__(self, url: str, clients: AsyncExitStack) -> None:
        self._url = url
        self._clients = clients
        self.sent: list[dict[str, Any]] = []
        self.paths: list[str] = []

    def sync(self, kind: type[OpenAI], **options: Any) -> OpenAI:
        hooks = {"request": [self._note]}
        made = DefaultHttpxClient(event_hooks=hooks)
        self._clients.enter_context(made)
        return kind(base_url=self._url, api_key="none", http_client=made, **options)

    def asyncio(self, kind: type[AsyncOpenAI], **options: Any) -> AsyncOpenAI:
        async def note(request: Any) -> None:
            self._note(request)

        made = DefaultAsyncHttpxClient(event_hooks={"request": [note]})
        self._clients.push_async_callback(made.aclose)
        return kind(base_url=self._url, api_key="none", http_client=made, **options)

    def _note(self, request: Any) -> None:
        self.paths.append(request.url.path)
        self.sent.append(json.loads(request.content))

    @property
    def texts(self) -> list[list[str]]:
        return [request["input"] for request in self.sent]


@pytest.fixture
async def wire(model: ModelServer) -> AsyncIterator[Wire]:
    async with AsyncExitStack() as clients:
        yield Wire(model.base_url, clients)


@pytest.fixture
def store(new_store: NewStore) -> AsyncStore:
    return new_store()


def is_sync(store: AsyncStore) -> bool:
    return isinstance(inner(store), Store)


@pytest.fixture(params=["sync", "asyncio"])
def client(request: pytest.FixtureRequest, wire: Wire, store: AsyncStore) -> Any:
    """Give a client of each kind that the store takes: on an async one, a sync client as well."""
    if request.param == "sync":
        return wire.sync(OpenAI)
    if is_sync(store):
        pytest.skip("a sync store takes no async client")
    return wire.asyncio(AsyncOpenAI)


async def hits(facts: AsyncFacts, text: str) -> list[str]:
    return [hit.fact.text for hit in await facts.search("ada", text, top_k=1, min_score=0.4)]


async def test_a_client_embeds_what_is_stored_and_what_is_asked(
    store: AsyncStore, client: Any, wire: Wire, engine: str
) -> None:
    facts = facts_in(store, engine=engine, embed=client, **SMALL)
    await facts.add("ada", HEARD)
    await facts.add("ada", "Bob mends old clocks")
    assert await hits(facts, "Who keeps bees") == [HEARD]
    assert wire.texts == [[HEARD], ["Bob mends old clocks"], ["Who keeps bees"]]
    assert {request["model"] for request in wire.sent} == {"text-embedding-3-small"}
    health = await facts.health("ada")
    assert (health.embedder, health.dimensions) == ("text-embedding-3-small", 1536)


async def test_it_is_given_batches(store: AsyncStore, client: Any, wire: Wire, engine: str) -> None:
    facts = facts_in(store, engine=engine, embed=client, batch=2, **SMALL)
    await facts.add_many("ada", [NewFact(text=f"Ada knows {number}") for number in range(5)])
    assert [len(texts) for texts in wire.texts] == [2, 2, 1]
    assert await hits(facts, "Ada knows 3") == ["Ada knows 3"]


@pytest.mark.parametrize(
    "embedder, dimensions, is_told",
    [
        ("text-embedding-3-small", 512, True),
        ("text-embedding-3-large", 3072, True),
        ("openai/text-embedding-3-large", 256, True),
        ("text-embedding-ada-002", 1536, False),
        ("nomic-embed-text", 1536, False),
    ],
)
async def test_a_model_that_makes_as_many_numbers_as_it_is_told_is_told(
    store: AsyncStore, wire: Wire, embedder: str, dimensions: int, *, is_told: bool
) -> None:
    options = {"embedder": embedder, "dimensions": dimensions}
    facts = facts_in(store, embed=wire.sync(OpenAI), engine="plain", **options)
    await facts.add("ada", HEARD)
    assert [request.get("dimensions") for request in wire.sent] == [dimensions if is_told else None]
    assert (await facts.health("ada")).dimensions == dimensions


async def test_a_model_of_another_size_is_an_error_and_nothing_is_written(
    store: AsyncStore, wire: Wire, engine: str
) -> None:
    facts = facts_in(
        store,
        engine=engine,
        embed=wire.sync(OpenAI),
        embedder="text-embedding-ada-002",
        dimensions=512,
    )
    with pytest.raises(ValueError, match=r"vectors of 1536 numbers.*512 numbers are wanted"):
        await facts.add("ada", HEARD)
    assert not await facts.list("ada")


async def test_in_azure_the_embedder_is_the_deployment(
    store: AsyncStore, wire: Wire, engine: str
) -> None:
    made: Any = wire.sync(AzureOpenAI, api_version="2024-10-21")
    if not is_sync(store):
        made = wire.asyncio(AsyncAzureOpenAI, api_version="2024-10-21")
    facts = facts_in(store, engine=engine, embed=made, embedder="ours", dimensions=1536)
    await facts.add("ada", HEARD)
    assert wire.paths[0].endswith("/deployments/ours/embeddings")
    assert await hits(facts, "Who keeps bees") == [HEARD]


async def test_vectors_go_to_their_texts_in_whatever_order_they_come(
    store: AsyncStore, wire: Wire, engine: str
) -> None:
    client = wire.sync(OpenAI)
    create = client.embeddings.create

    def backwards(**options: Any) -> Any:
        reply = create(**options)
        reply.data.reverse()
        return reply

    client.embeddings.create = backwards  # type: ignore[method-assign]  # as a server may answer
    facts = facts_in(store, engine=engine, embed=client, **SMALL)
    await facts.add_many("ada", [NewFact(text=HEARD), NewFact(text="Bob mends old clocks")])
    assert await hits(facts, HEARD) == [HEARD]
    assert await hits(facts, "Bob mends old clocks") == ["Bob mends old clocks"]


async def test_an_error_of_the_client_passes_and_recall_goes_on_without(
    store: AsyncStore, client: Any, engine: str
) -> None:
    facts = facts_in(store, engine=engine, embed=client, **SMALL)
    await facts.add("ada", HEARD)
    client.base_url = "http://127.0.0.1:1/v1"
    with pytest.raises(APIConnectionError):
        await facts.add("ada", "Ada sails")
    context = Context(sources=[Recall(inner(facts), deadline=None)])
    async with store.conversation("c", owner="ada").turn("bees?", context=context) as turn:
        turn.reply("I do not know.")
    assert context.counts == {"recall": 1}
    assert [fact.text for fact in await facts.list("ada")] == [HEARD]


async def test_a_client_that_does_not_say_that_it_is_async_is_awaited_all_the_same(
    store: AsyncStore, wire: Wire, engine: str
) -> None:
    client = wire.asyncio(AsyncOpenAI)
    create = client.embeddings.create

    def wrapped(**options: Any) -> Any:
        return create(**options)

    client.embeddings.create = wrapped  # type: ignore[method-assign]  # as others wrap it
    facts = facts_in(store, engine=engine, embed=client, **SMALL)
    if is_sync(store):
        with pytest.raises(TypeError, match="AsyncOpenAI is async, and this store is not"):
            await facts.add("ada", HEARD)
        assert not await facts.list("ada")
    else:
        await facts.add("ada", HEARD)
        assert await hits(facts, "Who keeps bees") == [HEARD]


async def test_a_deadline_ends_the_wait_for_a_client(
    store: AsyncStore, wire: Wire, engine: str
) -> None:
    go_on, is_over = threading.Event(), threading.Event()
    client = wire.sync(OpenAI)
    create = client.embeddings.create

    def late(**options: Any) -> Any:
        assert go_on.wait(60)
        try:
            return create(**options)
        finally:
            is_over.set()

    client.embeddings.create = late  # type: ignore[method-assign]  # a service that is slow
    facts = facts_in(store, engine=engine, embed=client, deadline=0.05, **SMALL)
    with pytest.raises(TimeoutError):
        await facts.add("ada", HEARD)
    assert not await facts.list("ada")
    go_on.set()
    await wait_until_async(is_over.is_set)


# What is refused where facts are made


async def test_an_async_client_is_refused_on_a_sync_store(
    store: AsyncStore, wire: Wire, engine: str
) -> None:
    async def function(texts: list[str]) -> Any:
        return embed(texts)

    for given in (wire.asyncio(AsyncOpenAI), function):
        if is_sync(store):
            with pytest.raises(TypeError, match="is async, and this store is not; AsyncFacts"):
                Facts(inner(store), embed=given, engine=engine, **SMALL)  # type: ignore[arg-type]  # as said
        else:
            assert inspect.iscoroutinefunction(facts_in(store, embed=given, **SMALL).add)


class Encoder:
    """Has a method that embeds, and is no function."""

    def encode(self, texts: list[str]) -> Any:
        return embed(texts)


@pytest.mark.parametrize("given", [Encoder(), None, "text-embedding-3-small", 7])
async def test_what_is_no_embedder_is_refused_with_a_line_that_is_one(
    store: AsyncStore, engine: str, given: Any
) -> None:
    kind = type(given).__name__
    with pytest.raises(TypeError, match=f"not {kind}. Write .* embed=lambda texts: \\["):
        facts_in(store, embed=given, engine=engine)


async def test_the_name_of_the_model_is_needed(store: AsyncStore, wire: Wire, engine: str) -> None:
    client = wire.sync(OpenAI)
    for name in (None, ""):
        with pytest.raises((TypeError, ValueError), match=r"^embedder "):
            facts_in(store, embed=client, embedder=name, dimensions=1536, engine=engine)
    assert wire.sent == []
