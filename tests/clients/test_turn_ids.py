"""A repeated job: a wrapped client with a turn id stores each of its turns once."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

import pytest
from openai import OpenAI

from tests.clients.talking import texts
from turnstore import AlreadySavedError, remember
from turnstore.testing import ModelServer, Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.conftest import Wrap
    from tests.clients.talking import Api
    from turnstore import AsyncConversation, Store


def job(store: Store, models: ModelServer) -> None:
    with OpenAI(base_url=models.url, api_key="-", max_retries=0) as base:
        client = store.conversation("ada").wrap(base, turn_id="job-7")
        for text in ("My name is Ada.", "What is my name?"):
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])


@pytest.mark.one_setup
def test_a_job_that_runs_again_stores_nothing_twice(
    make_store: Callable[..., Store], caplog: pytest.LogCaptureFixture
) -> None:
    store = make_store()
    with ModelServer() as models, caplog.at_level(logging.WARNING, "turnstore"):
        job(store, models)
        assert not caplog.records
        job(store, models)
    assert caplog.text.count("the reply was not stored") == 2
    assert [turn.id for turn in store.conversation("ada").turns()] == ["job-7", "job-7.2"]


@pytest.mark.parametrize("turn_id", ["", "a b", 'a"b', "a\\b", "é"])
def test_what_is_no_id_of_a_job(make_store: Callable[..., Store], turn_id: str) -> None:
    why = rf"turn_id {re.escape(repr(turn_id))}: .* no blanks, double quotes or backslashes"
    with OpenAI(api_key="-") as base, pytest.raises(ValueError, match=why):
        make_store().conversation("ada").wrap(base, turn_id=turn_id)


def test_an_id_of_a_job_leaves_room_for_a_number(make_store: Callable[..., Store]) -> None:
    chat = make_store().conversation("ada")
    with OpenAI(api_key="-") as base:
        assert chat.wrap(base, turn_id="it's" + "x" * 55) is not base
        for length in (60, 64, 65):
            with pytest.raises(ValueError, match=r"use 1 to 59 visible") as caught:
                chat.wrap(base, turn_id="x" * length)
            assert f"turn_id {'x' * length!r} has {length} characters" in str(caught.value)
            assert "9999" not in str(caught.value)


@pytest.mark.one_setup
@pytest.mark.servers("redis-8", "redis-url")
@pytest.mark.parametrize("policy", ["append", "reject", "serialize"])
@pytest.mark.parametrize("how", ["create", "stream", "helper", "raw"])
async def test_a_call_that_is_saved_is_not_asked_again(  # noqa: PLR0913 - fixtures
    wrap: Wrap, chat: AsyncConversation, model: ModelServer, api: Api, *, how: str, policy: str
) -> None:
    options: dict[str, Any] = {"turn_id": "job-7", "on_duplicate": "raise", "on_conflict": policy}
    model.script(Reply("the first answer"))
    assert await api.say(wrap(chat, **options), "Hi") == "the first answer"
    with pytest.raises(AlreadySavedError) as caught:
        await asked(api, wrap(chat, **options), how)
    assert len(model.requests) == 1
    assert caught.value.saved == (await chat.turns())[0]
    assert caught.value.saved.messages[1:] == caught.value.reply
    assert "the first answer" in str(caught.value.reply)
    assert await texts(chat) == ["Hi", "the first answer"]
    # The lease is free, and the next call of this client is another turn.
    again = wrap(chat, **options)
    with pytest.raises(AlreadySavedError):
        await api.say(again, "Hi")
    assert await api.say(again, "My name is Ada.")
    assert [turn.id for turn in await chat.turns()] == ["job-7", "job-7.2"]


async def asked(api: Api, client: Any, how: str) -> None:
    if how == "helper":
        async with api.of(client).stream(**api.asked("Hi")):
            pytest.fail("the model would have been asked")
    elif how == "raw":
        await api.of(client).with_raw_response.create(**api.asked("Hi"))
    else:
        await api.create(client, "Hi", stream=how == "stream")


@pytest.mark.one_setup
@pytest.mark.servers("redis-8", "redis-url")
def test_functions_that_are_decorated(make_store: Callable[..., Store]) -> None:
    chat = make_store().conversation("ada")
    calls: list[str] = []

    def ask(messages: list[dict[str, Any]]) -> str:
        calls.append(messages[-1]["content"])
        return f"answer {len(calls)}"

    def words(messages: list[dict[str, Any]]) -> Any:
        yield ask(messages)

    for function in (ask, words):
        once: Any = remember(turn_id=function.__name__, on_duplicate="raise")(function)
        said: Any = once(chat, "Hi")
        assert "".join(said) == f"answer {len(calls)}"
        with pytest.raises(AlreadySavedError) as caught:
            list(once(chat, "Hi"))
        assert caught.value.reply == [{"role": "assistant", "content": f"answer {len(calls)}"}]
    assert len(calls) == 2
