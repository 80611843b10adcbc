"""The model of a summary is a client of an SDK, sync or async: the real ones, on a model server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from anthropic import Anthropic
from openai import OpenAI

from tests.context.folds import HEADING, fill
from tests.integrations.google.talking import client_of
from turnstore import Window
from turnstore.context import Context, Summary
from turnstore.testing import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import NewStore
    from turnstore import AsyncConversation, Store
    from turnstore.testing import ModelServer

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]


@pytest.fixture
def chat(new_store: NewStore) -> AsyncConversation:
    return new_store().conversation("c")


async def test_a_client_writes_the_summary(
    chat: AsyncConversation, client: Any, model: ModelServer
) -> None:
    await fill(chat, 1, 3)
    model.script(Reply("They spoke of q1."), to="summary")
    context = Context(Window(turns=1), summary=Summary(client, model="small", heading=HEADING))
    async with chat.turn("q4", context=context) as turn:
        assert turn.messages[0] == {"role": "system", "content": f"{HEADING}\nThey spoke of q1."}
        turn.reply("a4")
    (request,) = model.requests
    assert "small" in (request.body.get("model") or request.path)
    assert "user: q2" in str(request.messages)
    assert context.counts == {}


async def test_a_client_that_fails_is_counted(
    chat: AsyncConversation, client: Any, model: ModelServer
) -> None:
    await fill(chat, 1, 3)
    model.script(Reply.error(400, "no"), to="summary")
    context = Context(Window(turns=1), summary=Summary(client, model="small"))
    async with chat.turn("q4", context=context) as turn:
        assert turn.messages[0]["content"] == "q3"
        turn.reply("a4")
    assert context.counts == {"summary": 1}


def test_a_client_with_a_memory_is_refused(
    make_store: Callable[..., Store], model: ModelServer
) -> None:
    """Its prompts and answers would be turns of the conversation, and be summarised in turn."""
    chat = make_store().conversation("c")
    with (
        OpenAI(base_url=model.base_url, api_key="none") as openai,
        Anthropic(base_url=model.url, api_key="none") as anthropic,
        client_of(model) as gemini,
    ):
        for base in (openai, anthropic, gemini):
            with pytest.raises(TypeError, match="a client without a memory"):
                Summary(chat.wrap(base), model="m")
            with pytest.raises(TypeError, match="needs the name of the model"):
                Summary(base)
