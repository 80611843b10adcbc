"""Google's client with a memory: calls of every kind."""

from __future__ import annotations

import asyncio
import gc
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from google.genai import Client, errors, types

from tests.integrations.google.talking import ask, client_of, model_said, said, stream, user
from turnstore import AsyncStore, Lease, SaveError, Store
from turnstore.testing import ModelServer, Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from turnstore import AsyncConversation, Conversation

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]


def test_the_type_stays_and_the_other_client_is_left_alone(
    chat: Conversation, base: Client, model: ModelServer
) -> None:
    before, models, aio = dict(vars(base)), dict(vars(base.models)), dict(vars(base.aio))
    wrapped = chat.wrap(base)
    assert isinstance(wrapped, Client)
    assert type(wrapped).__name__ == "Client"
    assert isinstance(wrapped.models, type(base.models))
    assert isinstance(wrapped.aio, type(base.aio))
    assert (vars(base), vars(base.models), vars(base.aio)) == (before, models, aio)
    ask(wrapped, "My name is Ada.")
    assert said(ask(base, "What is my name?")) == "You have not told me your name."
    one, two = (request.headers for request in model.requests)
    assert one["user-agent"] == two["user-agent"]
    with pytest.raises(TypeError, match="memory already"):
        chat.wrap(wrapped)
    with pytest.raises(TypeError, match="memory already"):
        chat.wrap(wrapped.aio)


async def test_closing_it_leaves_the_connections_to_the_other_client(
    chat: Conversation, base: Client
) -> None:
    wrapped = chat.wrap(base)
    with wrapped:
        ask(wrapped, "Hello")
    await wrapped.aio.aclose()
    del wrapped
    gc.collect()
    assert said(ask(base, "Hello"))
    assert said(await base.aio.models.generate_content(model="m", contents="Hello"))


def test_a_client_that_nobody_else_has(chat: Conversation, model: ModelServer) -> None:
    wrapped: Any = chat.wrap(client_of(model))
    gc.collect()
    ask(wrapped, "Hello")
    http = wrapped.models._api_client._httpx_client
    del wrapped
    gc.collect()
    assert http.is_closed
    assert len(chat.turns()) == 1


async def test_the_wrong_kind_of_store(model: ModelServer, base: Client) -> None:
    nowhere = "redis://127.0.0.1:1"
    asked: Any = {"model": "m", "contents": "Hi"}
    with Store.from_url(nowhere, name="t") as store:
        chat = store.conversation("a")
        with pytest.raises(TypeError, match="AsyncStore"):
            chat.wrap(base.aio)
        wrapped = chat.wrap(base)
        with pytest.raises(TypeError, match="AsyncStore"):
            await wrapped.aio.models.generate_content(**asked)
        with pytest.raises(TypeError, match="AsyncStore"):
            await wrapped.aio.models.generate_content_stream(**asked)
        with pytest.raises(TypeError, match="AsyncStore"):
            await wrapped.aio.chats.create(model="m").send_message("Hi")
    async with AsyncStore.from_url(nowhere, name="t") as other:
        wrapped = other.conversation("a").wrap(base)
        with pytest.raises(TypeError, match="conversation of Store"):
            wrapped.models.generate_content(**asked)
        with pytest.raises(TypeError, match="conversation of Store"):
            wrapped.models.generate_content_stream(**asked)
        with pytest.raises(TypeError, match="conversation of Store"):
            wrapped.chats.create(model="m").send_message("Hi")
    assert model.requests == []


async def test_the_async_half_alone(async_chat: AsyncConversation, base: Client) -> None:
    aio = async_chat.wrap(base.aio)
    assert type(aio).__name__ == "AsyncClient"
    assert isinstance(aio, type(base.aio))
    async with aio as same:
        await same.models.generate_content(model="m", contents="My name is Ada.")
    whole = async_chat.wrap(base)
    chunks = await whole.aio.models.generate_content_stream(model="m", contents="What is my name?")
    assert said([chunk async for chunk in chunks]) == "Your name is Ada."
    assert len(await async_chat.turns()) == 2


async def test_one_load_and_one_save_also_when_the_sdk_tries_again(
    new_store: NewStore, proxy: Proxy, model: ModelServer, setup: Any
) -> None:
    chat: Any = new_store(at=proxy).conversation("ada")
    retry = types.HttpRetryOptions(attempts=3, initial_delay=0, max_delay=0, jitter=0)
    client = client_of(model, retry_options=retry)
    wrapped: Any = chat.wrap(client)

    async def say(text: str, *, streamed: bool) -> None:
        asked: Any = {"model": "m", "contents": text}
        if setup.client == "sync":
            await asyncio.to_thread(stream if streamed else ask, wrapped, text)
        elif streamed:
            chunks = await wrapped.aio.models.generate_content_stream(**asked)
            assert [chunk async for chunk in chunks]
        else:
            await wrapped.aio.models.generate_content(**asked)

    await say("Hello", streamed=False)
    for streamed in (False, True):
        proxy.clear()
        model.requests.clear()
        model.script(Reply.error(500), Reply.error(503), Reply("fine"))
        await say("Again", streamed=streamed)
        assert (proxy.count("LRANGE"), proxy.count("EVALSHA")) == (1, 1)
        first, _, third = model.requests
        assert first.body == third.body
    assert len(await chat.turns()) == 3
    await client.aio.aclose()
    client.close()


PATIENT = Lease(ttl=timedelta(minutes=10), wait=timedelta(seconds=30))


def test_a_stream_that_is_left_gives_its_lease_back(chat: Conversation, base: Client) -> None:
    ada = chat.wrap(base, on_conflict="serialize", lease=PATIENT)
    chunks: Any = ada.models.generate_content_stream(model="m", contents="Hello")
    assert next(chunks).text
    chunks.close()
    ask(ada, "Again")  # it would wait in vain
    assert [turn.messages[0] for turn in chat.turns()] == [user("Again")]


async def test_an_async_stream_that_is_left_gives_its_lease_back(
    async_chat: AsyncConversation, base: Client
) -> None:
    ada = async_chat.wrap(base, on_conflict="serialize", lease=PATIENT).aio
    chunks: Any = await ada.models.generate_content_stream(model="m", contents="Hello")
    assert (await anext(chunks)).text
    await chunks.aclose()
    await ada.models.generate_content(model="m", contents="Again")
    assert [turn.messages[0] for turn in await async_chat.turns()] == [user("Again")]


def test_other_endpoints_are_the_sdks_own(
    ada: Any, base: Client, chat: Conversation, model: ModelServer
) -> None:
    ask(ada, "Hello")
    assert ada.models.count_tokens(model="m", contents="Hi").total_tokens > 0
    embedded = ada.models.embed_content(model="m", contents="Hi")
    assert len(embedded.embeddings[0].values) == 1536
    assert ada.files is base.files
    assert ada.batches is base.batches
    assert ada.caches is base.caches
    with pytest.raises(errors.ClientError):  # the model server has no such address
        ada.files.get(name="f")
    assert len(model.requests) == 1
    assert len(chat.turns()) == 1


def test_interactions_are_not_there(ada: Any, base: Client) -> None:
    for half in (ada, ada.aio):
        assert not hasattr(half, "interactions")
        with pytest.raises(AttributeError, match="Google keeps their history"):
            half.interactions.create(model="m", input="Hi")
    assert hasattr(base, "interactions")


@pytest.mark.parametrize(
    "config, named",
    [
        ({"cached_content": "cachedContents/1"}, "cachedContent"),
        ({"continuation_token": b"x"}, "continuationToken"),
        ({"candidate_count": 2}, "candidateCount"),
        ({"http_options": {"extra_body": {"cachedContent": "c"}}}, "cachedContent"),
        (
            {
                "tool_config": {
                    "function_calling_config": {"stream_function_call_arguments": True}
                },
                "automatic_function_calling": {"disable": True},
            },
            "streamFunctionCallArguments",
        ),
    ],
)
def test_options_in_conflict(ada: Any, model: ModelServer, config: Any, named: str) -> None:
    for say in (ask, stream):
        with pytest.raises(ValueError, match=rf"{named}|supported"):  # Vertex has some alone
            say(ada, "Hi", **config)
    with pytest.raises(ValueError, match=rf"{named}|supported"):
        ada.chats.create(model="m", config=config).send_message("Hi")
    assert model.requests == []


def test_options_that_say_no(ada: Any, chat: Conversation) -> None:
    ask(ada, "Hi", store=False, candidate_count=1, cached_content=None)
    assert len(chat.turns()) == 1


@pytest.mark.parametrize("whose", ["client", "call"])
def test_an_extra_body_is_part_of_the_request(
    chat: Conversation, model: ModelServer, whose: str
) -> None:
    mine = {"labels": {"a": "b"}, "contents": [user("My name is Ada.")]}
    with client_of(model, extra_body=mine if whose == "client" else None) as client:
        ada = chat.wrap(client)
        config: Any = {"http_options": {"extra_body": mine}} if whose == "call" else {}
        ask(ada, "nothing", **config)
    assert model.requests[0].body["labels"] == {"a": "b"}
    assert chat.read()[0] == user("My name is Ada.")


def test_a_raw_response(ada: Any, chat: Conversation) -> None:
    reply = ask(ada, "Hello", should_return_http_response=True)
    assert "Hello" in reply.sdk_http_response.body
    assert said_of(chat)[-1] == "I see 1 message; the last one says: Hello"


def said_of(chat: Conversation) -> list[str]:
    return [message["parts"][0]["text"] for message in chat.read()]


def test_a_method_that_somebody_replaced(chat: Conversation, base: Client) -> None:
    """Whatever it says, it cannot be saved, and that is no secret."""
    nothing: Any = types.GenerateContentResponse()
    base.models.generate_content = lambda **_: nothing  # type: ignore[method-assign]
    base.models.generate_content_stream = lambda **_: iter([nothing])  # type: ignore[method-assign]
    for say in (ask, stream):
        with pytest.raises(RuntimeError, match="nothing was saved"):
            say(chat.wrap(base), "Hello")
    assert chat.read() == []


def test_an_answer_that_cannot_be_saved_is_not_lost(
    make_store: Callable[..., Store], base: Client
) -> None:
    client = make_store(max_turn_bytes=10).conversation("ada").wrap(base)
    for say in (ask, stream):
        with pytest.raises(SaveError) as caught:
            say(client, "Hello")
        assert isinstance(caught.value.reply, types.GenerateContentResponse)
        assert said(caught.value.reply).endswith("Hello")


def test_a_turn_without_the_wrapper(chat: Conversation, base: Client) -> None:
    for text in ("My name is Ada.", "What is my name?"):
        with chat.turn(text, format="google.contents") as turn:
            turn.reply(ask(base, turn.messages))
    assert chat.read()[-1] == model_said("Your name is Ada.")


class Mine(Client):
    """A client as a user may have derived it, with a label of its own."""

    label = "mine"


def test_a_client_class_of_the_users_own(chat: Conversation, model: ModelServer) -> None:
    with client_of(model, Mine) as client:
        wrapped: Any = chat.wrap(client)
        assert (type(wrapped).__name__, wrapped.label) == ("Mine", "mine")
        ask(wrapped, "Hello")
    assert len(chat.turns()) == 1


def test_vertex(chat: Conversation, model: ModelServer) -> None:
    options = types.HttpOptions(base_url=model.url)
    with Client(vertexai=True, api_key="none", http_options=options) as client:
        ada = chat.wrap(client)
        ask(ada, "My name is Ada.")
        assert said(stream(ada, "What is my name?")) == "Your name is Ada."
    assert "publishers/google" in model.requests[0].path


@pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")
async def test_the_transport_that_the_sdk_chooses(
    async_chat: AsyncConversation, model: ModelServer
) -> None:
    """Where aiohttp is installed, that is it."""
    client = Client(api_key="none", http_options=types.HttpOptions(base_url=model.url))
    ada = async_chat.wrap(client)
    await ada.aio.models.generate_content(model="m", contents="My name is Ada.")
    chunks = await ada.aio.models.generate_content_stream(model="m", contents="What is my name?")
    assert said([chunk async for chunk in chunks]) == "Your name is Ada."
    chunks = await ada.aio.models.generate_content_stream(model="m", contents="And?")
    async for _ in chunks:
        break
    await chunks.aclose()  # type: ignore[attr-defined]
    assert len(await async_chat.turns()) == 2
    await client.aio.aclose()
    client.close()
