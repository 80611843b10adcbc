"""A repeated job: a wrapped client with a turn id stores each of its turns once."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from openai import APIStatusError, OpenAI

from tests.clients.talking import BROKEN, texts
from tests.waiting import wait_until_async
from turnstore import AlreadySavedError, SaveError, TurnIdReusedError, remember
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


# A job whose calls fail now and then: each question keeps its id

ONCE: dict[str, Any] = {"turn_id": "job", "on_duplicate": "raise"}


async def answered(api: Api, client: Any, given: Any) -> str:
    """Ask, and give the text of the answer, be it a stored one."""
    try:
        return await api.say(client, given)
    except AlreadySavedError as error:
        return str(error.reply)


async def ids(chat: AsyncConversation) -> list[str]:
    return [turn.id for turn in await chat.turns()]


@pytest.mark.one_setup
@pytest.mark.servers("redis-8", "redis-url")
@pytest.mark.parametrize("policy", ["append", "serialize"])
@pytest.mark.parametrize("again", [True, False], ids=["tried again", "given up"])
async def test_after_a_call_that_failed_each_question_finds_its_own_answer(  # noqa: PLR0913 - fixtures
    wrap: Wrap, chat: AsyncConversation, model: ModelServer, api: Api, *, again: bool, policy: str
) -> None:
    options = ONCE | {"on_conflict": policy}
    first = wrap(chat, **options)
    model.script(Reply.error(500), *[Reply("one")] * again, Reply("two"))
    with pytest.raises(APIStatusError):
        await api.say(first, "the first")
    if again:
        assert await api.say(first, "the first") == "one"
    assert await api.say(first, "the second") == "two"
    assert await ids(chat) == (["job", "job.2"] if again else ["job.2"])
    second = wrap(chat, **options)
    if not again:
        model.script(Reply("one"))
    assert "one" in await answered(api, second, "the first")
    assert "two" in await answered(api, second, "the second")
    assert sorted(await ids(chat)) == ["job", "job.2"]
    assert len(model.requests) == 3


@pytest.mark.one_setup
@pytest.mark.servers("redis-8", "redis-url")
@pytest.mark.parametrize("how", ["closed", "dropped", "kept", "broken", "cut", "refused"])
async def test_a_reply_that_was_not_stored_leaves_its_id_to_the_same_question(
    wrap: Wrap, chat: AsyncConversation, model: ModelServer, api: Api, how: str
) -> None:
    client = wrap(chat, **ONCE)
    left = await unstored(api, client, model, how)
    model.script(Reply("one"), Reply("two"))
    assert await api.say(client, "the first") == "one"
    assert await api.say(client, "the second") == "two"
    assert await ids(chat) == ["job", "job.2"]
    assert len(left) == (how == "kept")


async def unstored(api: Api, client: Any, model: ModelServer, how: str) -> list[Any]:
    """Ask for a reply that is not stored; give the stream that somebody has still."""
    if how == "refused":
        model.script(Reply(refusal="No."))
        await api.say(client, "the first")
        return []
    ending = {"broken": "truncated", "cut": "cut"}.get(how, "complete")
    model.script(Reply("one or two words", ending=ending))  # type: ignore[arg-type]  # one of them
    stream = await api.create(client, "the first", stream=True)
    if how in ("broken", "cut"):
        with suppress(*BROKEN):
            await api.read(stream)
        return []
    async for _ in stream:
        break
    if how == "closed":
        await stream.close()
    return [stream] if how == "kept" else []


@pytest.mark.one_setup
@pytest.mark.servers("redis-8", "redis-url")
async def test_two_streams_of_one_question_are_two_turns(
    wrap: Wrap, chat: AsyncConversation, model: ModelServer, api: Api
) -> None:
    client = wrap(chat, **ONCE)
    model.script(Reply("one"), Reply("two"))
    first = await api.create(client, "Go on.", stream=True)
    second = await api.create(client, "Go on.", stream=True)
    assert await api.read(first) == "one"
    assert await api.read(second) == "two"
    assert sorted(await ids(chat)) == ["job", "job.2"]
    assert await api.say(client, "Go on.")
    assert sorted(await ids(chat)) == ["job", "job.2", "job.3"]


@pytest.mark.one_setup
@pytest.mark.servers("redis-8", "redis-url")
async def test_a_tool_loop_that_failed_goes_on_where_it_had_stopped(
    wrap: Wrap, chat: AsyncConversation, model: ModelServer, api: Api
) -> None:
    client = wrap(chat, **ONCE)
    model.script(Reply.tool_call("f"), Reply.error(500), Reply("done"), Reply("two"))
    result = answer_to(await api.create(client, "the first"))
    with pytest.raises(APIStatusError):
        await api.say(client, [result])
    assert await api.say(client, [result]) == "done"
    assert await api.say(client, "the second") == "two"
    again = wrap(chat, **ONCE)
    for given, said in (("the first", "f"), ([result], "done"), ("the second", "two")):
        with pytest.raises(AlreadySavedError) as caught:
            await api.say(again, given)
        assert f"'{said}'" in str(caught.value.reply)
    other = wrap(chat, **ONCE)
    with pytest.raises(AlreadySavedError):
        await api.say(other, "the first")
    with pytest.raises(TurnIdReusedError):
        await api.say(other, "the second")


def answer_to(reply: Any) -> dict[str, Any]:
    """Give the result of the tool that a reply calls."""
    if hasattr(reply, "choices"):
        call = reply.choices[0].message.tool_calls[0].id
        return {"role": "tool", "tool_call_id": call, "content": "r"}
    call = next(item.call_id for item in reply.output if item.type == "function_call")
    return {"type": "function_call_output", "call_id": call, "output": "r"}


@pytest.mark.one_setup
@pytest.mark.servers("redis-8", "redis-url")
def test_calls_at_the_same_time_have_ids_of_their_own(make_store: Callable[..., Store]) -> None:
    chat = make_store().conversation("ada")
    all_ask = threading.Barrier(4)

    def ask(messages: list[dict[str, Any]]) -> str:
        all_ask.wait(60)
        return f"an answer to {len(messages)}"

    client = chat.wrap(ask, turn_id="job")
    threads = [threading.Thread(target=client, args=("Go on.",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(turn.id for turn in chat.turns()) == ["job", "job.2", "job.3", "job.4"]


@pytest.mark.one_setup
@pytest.mark.servers("redis-8", "redis-url")
def test_a_request_that_its_function_changes_is_known_again(
    make_store: Callable[..., Store],
) -> None:
    chat = make_store().conversation("ada")
    answers: list[Any] = [ConnectionError("down"), "one"]

    def ask(messages: list[dict[str, Any]]) -> str:
        messages[-1]["content"] += "!"
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    client: Any = chat.wrap(ask, turn_id="job")
    with pytest.raises(ConnectionError):
        client("Hi")
    assert client("Hi") == "one"
    assert [turn.id for turn in chat.turns()] == ["job"]


@pytest.mark.one_setup
@pytest.mark.servers("redis-8", "redis-url")
async def test_an_answer_that_could_not_be_saved_keeps_its_id(
    wrap: Wrap, chat: AsyncConversation, model: ModelServer, api: Api
) -> None:
    client = wrap(chat, **ONCE, on_conflict="reject", on_other_format="text")
    held = threading.Event()
    model.script(Reply("one", hold=held), Reply("two"))
    asked = asyncio.ensure_future(api.say(client, "the first"))
    await wait_until_async(lambda: len(model.requests) == 1)
    await chat.append("meanwhile")
    held.set()
    with pytest.raises(SaveError) as caught:
        await asked
    assert caught.value.turn.turn_id == "job"
    assert await api.say(client, "the second") == "two"
    assert (await ids(chat))[1:] == ["job.2"]
