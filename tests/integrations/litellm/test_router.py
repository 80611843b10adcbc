"""LiteLLM's Router with a memory."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

import pytest
from litellm.router import Router

from tests.integrations.litellm.talking import CLAUDE, Scripted, at, router, said, text, user
from turnstore.testing import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from tests.servers.setups import Setup
    from turnstore import AsyncConversation, Conversation, Store
    from turnstore.testing import ModelServer

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]


def test_it_is_a_router_and_the_callers_own_is_untouched(
    chat: Conversation, model: ModelServer
) -> None:
    plain = router(at(model))
    before = dict(vars(plain))
    told = chat.wrap(plain)
    assert type(told) is Router
    assert isinstance(told, Router)
    assert len(told.registry().all()) == 1
    told.completion("m", [user("My name is Ada.")])
    assert said(told.completion("m", [user("What is my name?")])) == "Your name is Ada."
    assert (
        said(plain.completion("m", [user("What is my name?")])) == "You have not told me your name."
    )
    assert vars(plain) == before
    assert len(chat.turns()) == 2


def test_many_conversations_share_one_router(
    make_store: Callable[..., Store], model: ModelServer
) -> None:
    store, plain = make_store(), router(at(model))
    ada, bob = (store.conversation(name).wrap(plain) for name in ("ada", "bob"))
    ada.completion("m", [user("My name is Ada.")])
    bob.completion("m", [user("My name is Bob.")])
    assert said(ada.completion("m", [user("What is my name?")])) == "Your name is Ada."
    assert said(bob.completion("m", [user("What is my name?")])) == "Your name is Bob."


def test_what_has_no_memory_refuses_to_be_called(
    nowhere: Conversation, anowhere: AsyncConversation
) -> None:
    plain = router()
    told, atold = nowhere.wrap(plain), anowhere.wrap(plain)
    for memory, names in (
        (told, ("acompletion", "aresponses")),
        (atold, ("completion", "responses")),
    ):
        for name in names:
            with pytest.raises(TypeError, match=f"{name} needs a conversation of"):
                getattr(memory, name)(model="m", messages=[user("Hi")])
    for memory in (told, atold):
        with pytest.raises(TypeError, match="memory already"):
            nowhere.wrap(memory)


def test_its_other_ways_to_ask(chat: Conversation, model: ModelServer) -> None:
    plain = router(at(model))
    told = chat.wrap(plain)
    bound: Any = chat.wrap(plain.completion)
    bound("m", [user("My name is Ada.")])
    create = told.chat.completions.create
    assert said(create(model="m", messages=[user("What is my name?")])) == "Your name is Ada."
    assert plain.chat.completions.router_obj is not told
    assert "messages" not in plain.chat.completions.params
    assert len(chat.turns()) == 2


def test_it_lives_without_the_one_that_was_wrapped(chat: Conversation, model: ModelServer) -> None:
    told = chat.wrap(router(at(model)))
    gc.collect()
    told.completion("m", [user("My name is Ada.")])
    stream = told.completion("m", [user("What is my name?")], stream=True)
    assert text(list(stream)) == "Your name is Ada."
    assert len(chat.turns()) == 2


@pytest.mark.parametrize("stream", [False, True])
async def test_the_history_is_read_once_however_often_the_router_tries(
    new_store: NewStore, setup: Setup, proxy: Proxy, model: ModelServer, *, stream: bool
) -> None:
    """Each deployment is sent all of it, in its own provider's form."""
    plain = Router(
        model_list=[
            {"model_name": "first", "litellm_params": at(model)},
            {"model_name": "second", "litellm_params": at(model, CLAUDE)},
        ],
        num_retries=1,
        retry_after=0,
        fallbacks=[{"first": ["second"]}],
        disable_cooldowns=True,
    )
    chat = new_store(at=proxy).conversation("ada")
    told = chat.wrap(plain)

    async def ask(words: str) -> str:
        call: Any = {"model": "first", "messages": [user(words)], "stream": stream}
        if setup.client == "async":
            reply: Any = await told.acompletion(**call)
            return text([chunk async for chunk in reply]) if stream else said(reply)
        reply = await asyncio.to_thread(told.completion, **call)
        return text(await asyncio.to_thread(list, reply)) if stream else said(reply)

    await ask("My name is Ada.")
    model.script(Reply.error(500), Reply.error(500))
    proxy.clear()
    assert await ask("What is my name?") == "Your name is Ada."
    assert (proxy.count("LRANGE"), proxy.count("EVALSHA")) == (1, 1)
    assert [request.path for request in model.requests][1:] == [
        *["/v1/chat/completions"] * 2,
        "/v1/messages",
    ]
    assert {len(request.messages) for request in model.requests[1:]} == {3}


@pytest.mark.parametrize("finish", ["", "stop"], ids=["cut short", "complete"])
async def test_a_stream_that_another_deployment_goes_on_with(
    achat: AsyncConversation, model: ModelServer, scripted: Scripted, finish: str
) -> None:
    """It opens at the first, which then has nothing to say but an error."""
    scripted.finish = finish
    plain = Router(
        model_list=[
            {"model_name": "first", "litellm_params": at(model)},
            {"model_name": "second", "litellm_params": {"model": "scripted/m"}},
        ],
        num_retries=0,
        fallbacks=[{"first": ["second"]}],
        disable_cooldowns=True,
    )
    model.script(Reply(events=[{"error": {"message": "scripted", "code": 500}}]))
    told: Any = achat.wrap(plain)
    stream = await told.acompletion("first", [user("Hi")], stream=True)
    assert text([chunk async for chunk in stream]) == "Hello you"
    assert len(await achat.turns()) == bool(finish)
