"""What is remembered, what is not, and that it stays as it was."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conformance.marks import ONE_SERVER
from tests.conformance.process import Asked
from tests.conformance.views import heard, kept, stored, text_of
from tests.servers.running import Clustered
from turnstore import Window
from turnstore.context import Context, Query, SavedTurn
from turnstore.testing import Reply

if TYPE_CHECKING:
    from tests.conformance.driver import Driver
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore import AsyncConversation, AsyncStore
    from turnstore.testing import ModelServer

pytestmark = ONE_SERVER

ROOT = Path(__file__).parents[2]


async def test_another_process_knows_what_this_one_was_told(
    driver: Driver, chat: AsyncConversation, server: Server, prefix: str, model: ModelServer
) -> None:
    await driver.say(driver.remember(chat), "My name is Ada.")
    host, port = server.addresses[0]
    asked = Asked(
        driver=driver.name,
        kind=driver.kind,
        redis_url=f"redis://{host}:{port}",
        cluster=isinstance(server, Clustered),
        prefix=prefix,
        model_url=model.base_url,
        conversation="ada",
        text="What is my name?",
    )
    ran = await asyncio.to_thread(
        subprocess.run, asked.command(), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (ran.stdout.strip(), ran.returncode) == ("Your name is Ada.", 0), ran.stderr
    assert [turn[0] for turn in await stored(chat)] == ["My name is Ada.", "What is my name?"]


async def test_a_call_is_one_turn(driver: Driver, chat: AsyncConversation) -> None:
    memory = driver.remember(chat)
    for text in ("My name is Ada.", "What is my name?"):
        answer = await driver.say(memory, text)
        assert (await stored(chat))[-1] == [text, answer]
    assert len(await chat.turns()) == 2


async def test_another_conversation_knows_nothing(driver: Driver, store: AsyncStore) -> None:
    ada, bob = (driver.remember(store.conversation(name)) for name in ("ada", "bob"))
    await driver.say(ada, "My name is Ada.")
    assert await driver.say(bob, "What is my name?") == "You have not told me your name."


async def test_one_load_and_one_save(driver: Driver, far: AsyncConversation, proxy: Proxy) -> None:
    memory = driver.remember(far)
    await driver.say(memory, "Hello")
    proxy.clear()
    await driver.say(memory, "Hello again")
    assert (proxy.count("LRANGE"), proxy.count("EVALSHA")) == (1, 1)


async def test_instructions_reach_the_model_once_and_are_not_stored(
    driver: Driver, chat: AsyncConversation
) -> None:
    memory = driver.remember(chat)
    for _ in range(3):
        await driver.say(memory, "Hello", system="Be brief.")
        texts = [text for _, text in heard(driver.asked[-1])]
        assert "".join(texts).count("Be brief.") == 1
        assert "Be brief." in texts[0]
    assert "Be brief." not in str(await kept(chat))


async def test_what_was_sent_before_it_is_not_stored_again(
    driver: Driver, chat: AsyncConversation
) -> None:
    memory = driver.remember(chat)
    for n in range(4):
        await driver.say(memory, f"number {n}")
    turns = await stored(chat)
    assert [turn[0] for turn in turns] == [f"number {n}" for n in range(4)]
    assert {len(turn) for turn in turns} == {2}
    said = [text for role, text in heard(driver.asked[-1]) if role == "user"]
    assert said == [f"number {n}" for n in range(4)]


async def test_what_a_context_adds_is_sent_and_not_stored(
    driver: Driver, chat: AsyncConversation
) -> None:
    def handbook(query: Query) -> list[str]:
        return ["The office opens at nine."] if "open" in query.text else []

    memory = driver.remember(chat, context=Context(sources=[handbook]))
    for _ in range(2):
        await driver.say(memory, "When do you open?")
        assert str(driver.asked[-1]).count("opens at nine") == 1
    assert "at nine" not in str(await kept(chat))
    assert {len(turn) for turn in await stored(chat)} == {2}


async def test_what_comes_after_a_save_is_given_each_turn_once(
    driver: Driver, chat: AsyncConversation
) -> None:
    given: list[SavedTurn] = []
    memory = driver.remember(chat, context=Context(after=[given.append]))
    await driver.say(memory, "My name is Ada.")
    assert "".join([piece async for piece in driver.stream(memory, "What is my name?")])
    driver.script(Reply.error(400))
    with pytest.raises(Exception, match="scripted error"):
        await driver.say(memory, "Hello")
    assert [turn.turn_id for turn in given] == [turn.id for turn in await chat.turns()]
    assert [turn.messages for turn in given] == [turn.messages for turn in await chat.turns()]


async def test_a_window_limits_what_is_sent(driver: Driver, chat: AsyncConversation) -> None:
    memory = driver.remember(chat, window=Window(turns=1))
    for n in range(3):
        await driver.say(memory, f"number {n}")
    said = [text for role, text in heard(driver.asked[-1]) if role == "user"]
    assert said == ["number 1", "number 2"]


@pytest.mark.parametrize("stream", [False, True])
async def test_what_the_model_said_is_kept_byte_for_byte(
    driver: Driver, chat: AsyncConversation, *, stream: bool
) -> None:
    memory = driver.remember(chat)
    reply, expected = driver.odd
    driver.script(driver.odd_streamed or reply if stream else reply)
    if stream:
        _ = [text async for text in driver.stream(memory, "Hello")]
    else:
        await driver.say(memory, "Hello")
    said = (await kept(chat))[1:]
    if isinstance(expected, str):
        assert expected in _bytes(said), f"the field {expected} was dropped"
        await driver.say(memory, "And?")
        assert expected in _bytes(driver.asked[-1])
        return
    assert _bytes(said) == _bytes(expected)
    await driver.say(memory, "And?")
    sent = [message for message in driver.asked[-1] if text_of(message) not in {"Hello", "And?"}]
    assert _bytes(sent) == _bytes(expected)


def _bytes(value: object) -> str:
    return json.dumps(value)


async def test_options_in_conflict_are_refused_before_anything_is_asked(
    driver: Driver, chat: AsyncConversation
) -> None:
    memory = driver.remember(chat)
    assert driver.conflicts, "a driver names what its SDK has, or says in `cannot` why not"
    for options in driver.conflicts:
        name = next(iter(options))
        with pytest.raises(ValueError, match=r"\w"):
            await driver.say(memory, "Hello", **options)
        assert driver.asked == [], name
    assert await kept(chat) == []


async def test_what_the_provider_keeps_beside_it_is_no_second_history(
    driver: Driver, chat: AsyncConversation, model: ModelServer
) -> None:
    if not driver.passes:
        pytest.skip("its SDK has no such option, or a memory does not see it")
    memory = driver.remember(chat)
    for options, sent in driver.passes:
        await driver.say(memory, "My name is Ada.", **options)
        assert await driver.say(memory, "What is my name?", **options) == "Your name is Ada."
        assert sent.items() <= model.requests[-1].body.items()
        said = [text for role, text in heard(driver.asked[-1]) if role == "user"]
        assert said == ["My name is Ada.", "What is my name?"]
    assert {len(turn) for turn in await stored(chat)} == {2}
