"""What wrapping does to a client, and what it leaves alone."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest
from openai import AsyncAzureOpenAI, AsyncOpenAI, AzureOpenAI, OpenAI

from tests.clients.talking import CHAT, texts
from tests.clients.views import as_async
from turnstore import AsyncStore, Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.conftest import Wrap
    from tests.clients.talking import Api
    from tests.servers.proxy import Proxy
    from turnstore import AsyncConversation
    from turnstore.testing import ModelServer

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]

NOWHERE = "redis://127.0.0.1:1"


class Mine(OpenAI):
    """A client as a user may have derived it, with a constructor of its own."""

    def __init__(self, url: str) -> None:
        super().__init__(base_url=url, api_key="none", max_retries=0)
        self.label = "mine"


async def test_the_type_stays(chat: AsyncConversation, base: OpenAI | AsyncOpenAI) -> None:
    wrapped = chat.wrap(base)
    assert isinstance(wrapped, type(base))
    assert type(wrapped).__name__ == type(base).__name__
    assert wrapped is not base


async def test_the_client_that_was_wrapped_stays_as_it_was(
    chat: AsyncConversation, base: OpenAI | AsyncOpenAI, model: ModelServer
) -> None:
    resources, before = base.chat, dict(vars(base))
    wrapped = chat.wrap(base)
    assert vars(base) == before
    assert base.chat is resources
    assert wrapped.chat is not resources
    await CHAT.say(as_async(wrapped), "My name is Ada.")
    assert await CHAT.say(as_async(base), "What is my name?") == "You have not told me your name."
    assert len(await chat.read()) == 2
    assert [request.headers["user-agent"] for request in model.requests][:1] * 2 == [
        request.headers["user-agent"] for request in model.requests
    ]


async def test_two_memories_of_one_client_do_not_mix(
    wrap: Wrap, store: AsyncStore, api: Api
) -> None:
    ada, bob = (wrap(store.conversation(name)) for name in ("ada", "bob"))
    await api.say(ada, "My name is Ada.")
    await api.say(bob, "My name is Bob.")
    assert await api.say(ada, "What is my name?") == "Your name is Ada."
    assert await api.say(bob, "What is my name?") == "Your name is Bob."


async def test_wrapping_sends_nothing(
    far: AsyncConversation, proxy: Proxy, base: OpenAI | AsyncOpenAI, model: ModelServer
) -> None:
    far.wrap(base)
    assert model.requests == []
    assert proxy.count("LRANGE") == 0


@pytest.mark.parametrize("method", ["with_options", "copy"])
async def test_a_copy_with_other_options_keeps_the_memory(
    ada: AsyncOpenAI, model: ModelServer, method: str
) -> None:
    await CHAT.say(ada, "My name is Ada.")
    other = getattr(ada, method)(timeout=20, default_headers={"X-Mine": "1"})
    again = other.with_options(max_retries=1)
    assert await CHAT.say(again, "What is my name?") == "Your name is Ada."
    assert model.requests[-1].headers["x-mine"] == "1"


async def test_other_endpoints_are_the_sdks_own(
    far: AsyncConversation, proxy: Proxy, wrap: Wrap, model: ModelServer
) -> None:
    client = wrap(far)
    response = await client.responses.create(model="m", input="Hello")
    proxy.clear()
    embedded = await client.embeddings.create(model="m", input="a")
    assert len(embedded.data[0].embedding) == 1536
    assert (await client.responses.retrieve(response.id)).id == response.id
    listed: Any = await client.get("/models", cast_to=object)
    assert listed["data"]
    assert proxy.count("LRANGE") == proxy.count("EVALSHA") == 0
    assert len(model.requests) == 1


async def test_closing_a_wrapped_client_leaves_the_other_open(
    chat: AsyncConversation, base: OpenAI | AsyncOpenAI
) -> None:
    for _ in range(2):
        wrapped: Any = chat.wrap(base)
        if isinstance(base, AsyncOpenAI):
            async with wrapped:
                await CHAT.say(wrapped, "Hello")
            await wrapped.close()
        else:
            with wrapped:
                await CHAT.say(as_async(wrapped), "Hello")
            wrapped.close()
    assert not base.is_closed()
    assert len(await chat.read()) == 4


async def test_azure(chat: AsyncConversation, base: OpenAI | AsyncOpenAI) -> None:
    endpoint = str(base.base_url).removesuffix("/v1/")
    options: Any = {"azure_endpoint": endpoint, "api_key": "none", "api_version": "1"}
    azure: Any = (AsyncAzureOpenAI if isinstance(base, AsyncOpenAI) else AzureOpenAI)(**options)
    client = as_async(chat.wrap(azure))
    assert isinstance(chat.wrap(azure), type(azure))
    await CHAT.say(client, "My name is Ada.")
    stream = await CHAT.create(client.with_options(timeout=9), "What is my name?", stream=True)
    assert await CHAT.read(stream) == "Your name is Ada."
    assert len(await chat.read()) == 4
    await as_async(azure).close()


def test_a_client_class_of_the_users_own(
    make_store: Callable[..., Store], model: ModelServer
) -> None:
    chat = make_store().conversation("ada")
    with Mine(model.base_url) as client:
        wrapped = chat.wrap(client)
        assert (type(wrapped).__name__, wrapped.label) == ("Mine", "mine")
        wrapped.responses.create(model="m", input="Hello")
        assert len(chat.read()) == 2


def test_a_shallow_copy_keeps_the_memory(make_store: Callable[..., Store], client: OpenAI) -> None:
    chat = make_store().conversation("ada")
    copy.copy(chat.wrap(client)).responses.create(model="m", input="Hello")
    assert len(chat.read()) == 2


def test_a_client_that_its_class_made_anew_has_no_memory(
    make_store: Callable[..., Store], client: OpenAI, model: ModelServer
) -> None:
    chat = make_store().conversation("ada")
    with type(chat.wrap(client))(base_url=model.base_url, api_key="none") as other:
        other.responses.create(model="m", input="Hello")
    assert chat.read() == []


class TestRefused:
    """Before anything is sent, and with what to do instead."""

    def test_an_async_client_with_a_sync_conversation(self) -> None:
        with Store.from_url(NOWHERE, name="t") as store:
            client = AsyncOpenAI(api_key="none")
            with pytest.raises(TypeError, match=r"AsyncOpenAI needs a conversation of AsyncStore"):
                store.conversation("ada").wrap(client)

    async def test_a_sync_client_with_an_async_conversation(self) -> None:
        async with AsyncStore.from_url(NOWHERE, name="t") as store:
            with (
                OpenAI(api_key="none") as client,
                pytest.raises(
                    TypeError, match=r"OpenAI needs a conversation of Store.*AsyncOpenAI"
                ),
            ):
                store.conversation("ada").wrap(client)

    def test_a_client_that_has_a_memory(self) -> None:
        with Store.from_url(NOWHERE, name="t") as store, OpenAI(api_key="none") as client:
            wrapped = store.conversation("ada").wrap(client)
            with pytest.raises(TypeError, match="memory already"):
                store.conversation("bob").wrap(wrapped)

    @pytest.mark.parametrize("thing", [object(), OpenAI, "gpt", None])
    def test_what_is_no_client(self, thing: object) -> None:
        with (
            Store.from_url(NOWHERE, name="t") as store,
            pytest.raises(TypeError, match=r"conversation\.turn"),
        ):
            store.conversation("ada").wrap(thing)

    def test_options_that_do_not_exist(self) -> None:
        options: Any = {"on_conflict": "merge"}
        with Store.from_url(NOWHERE, name="t") as store, OpenAI(api_key="none") as client:
            chat = store.conversation("ada")
            with pytest.raises(ValueError, match="on_conflict"):
                chat.wrap(client, **options)


async def test_a_stream_class_of_the_users_own_is_refused_before_anything_is_sent(
    ada: AsyncOpenAI, chat: AsyncConversation, model: ModelServer
) -> None:
    asked: Any = {"body": CHAT.asked("Hello", stream=True), "cast_to": object, "stream": True}
    asked["stream_cls"] = dict
    with pytest.raises(TypeError, match="streams"):
        await ada.post("/chat/completions", **asked)
    assert model.requests == []
    assert await texts(chat) == []
