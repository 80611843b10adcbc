"""What users of other systems reported, as it would show in the requests that reach a model."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.talking import CHAT, text_of
from turnstore import SaveError, Window
from turnstore.context import Context

if TYPE_CHECKING:
    from tests.clients.conftest import Wrap
    from tests.clients.talking import Api
    from tests.conftest import NewStore
    from turnstore import AsyncConversation, AsyncStore
    from turnstore.testing import ModelServer

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]

IMAGE = "data:image/png;base64," + "A" * 100_000


def picture(number: int) -> list[dict[str, Any]]:
    return [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": f"What is on picture {number}?"},
                {"type": "image_url", "image_url": {"url": IMAGE}},
            ],
        }
    ]


async def test_pictures_do_not_pile_up_in_requests(
    wrap: Wrap, new_store: NewStore, model: ModelServer
) -> None:
    """H1: a request grew by each picture until none was taken, not even a text."""
    chat = new_store(max_turn_bytes=150_000).conversation("ada")
    client = wrap(chat, window=Window(turns=4))
    for number in range(12):
        await CHAT.create(client, picture(number))
        assert len(json.dumps(model.requests[-1].body)) < 5 * 150_000
    with pytest.raises(SaveError, match="max_turn_bytes"):
        await CHAT.create(client, [*picture(0), *picture(1)])
    assert await CHAT.say(client, "My name is Ada.") == "I will remember that your name is Ada."
    assert len(await chat.read(Window())) == 26


@pytest.mark.parametrize("step", [0.5, 1.0])
async def test_a_request_begins_with_the_one_before_it(
    wrap: Wrap, chat: AsyncConversation, model: ModelServer, api: Api, step: float
) -> None:
    """J1, J2: the beginning moved with each turn, and no provider found it in its cache."""
    client = wrap(chat, window=Window(turns=8, step=step))
    moved = 0
    before: list[Any] = []
    for number in range(32):
        await api.say(client, [{"role": "system", "content": "Be brief."}, *_said(f"q{number}")])
        sent = model.requests[-1].messages
        if json.dumps(sent).startswith(json.dumps(before).rstrip("]")):
            assert len(sent) > len(before)
        else:
            moved += 1
        before = sent
    assert moved == (32 - 8 - 1) // int(8 * step) + 1, "once in a block, and else the prefix stays"


def _said(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


async def test_many_users_of_one_client_and_one_context_never_meet(
    wrap: Wrap, store: AsyncStore, model: ModelServer, api: Api
) -> None:
    """E6: what one user had said was shown to another through an object that both shared."""
    context = Context(Window(turns=20))

    async def talk(user: str) -> None:
        client = wrap(store.conversation("main", owner=user), context=context)
        for number in range(5):
            await api.say(client, f"<{user}> {number}")

    users = [f"user-{number}" for number in range(12)]
    await asyncio.gather(*map(talk, users))
    assert len(model.requests) == 60
    for request in model.requests:
        asked = [text_of(message) for message in request.messages if message["role"] == "user"]
        assert len(set(re.findall(r"<(user-\d+)>", json.dumps(request.messages)))) == 1
        assert [text.split()[1] for text in asked] == [f"{number}" for number in range(len(asked))]
