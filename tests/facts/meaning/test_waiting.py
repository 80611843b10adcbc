"""Turns that wait are noted in Redis, seen from outside, and read at last, whatever ends."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
import threading
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.meaning.kit import new, note
from tests.facts.store.raw import place_of
from tests.facts.store.test_each_owner import close
from tests.servers.facade import inner
from tests.waiting import wait_until_async
from turnstore import CorruptTurnError, ErasedError
from turnstore.context import Context
from turnstore.errors import UnavailableError
from turnstore.facts._learning.schedule import due

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import NewStore
    from tests.facts.meaning.kit import Kit
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore import AsyncConversation, AsyncStore

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis-7", "redis-8", "valkey")]

NEVER = timedelta(days=1)
AT_ONCE = timedelta(0)


def quiet(_: str) -> str:
    return '{"facts": []}'


def chat_of(kit: Kit, name: str, owner: str = "ada") -> AsyncConversation:
    return kit.store.conversation(name, owner=owner)


async def talk(kit: Kit, extraction: Any, name: str, owner: str = "ada") -> None:
    """Have a turn in a conversation, of which the extraction is told."""
    context = Context(after=[inner(extraction)])
    async with chat_of(kit, name, owner).turn(f"I sail in {name}.", context=context) as turn:
        turn.reply("Nice.")


async def is_stranded(kit: Kit, name: str) -> None:
    """Save a turn, of which the extraction was told, and which it does not read any more."""
    async with kit.extraction(idle=NEVER) as extraction:
        await talk(kit, extraction, name)


# What waits is noted


async def test_a_turn_is_noted_though_it_is_closed_at_once(kit: Kit) -> None:
    for number in range(1, 6):
        await is_stranded(kit, f"c{number}")
        assert (await kit.facts.health("ada")).lag == number
    assert (await kit.facts.health()).lag == 5, "of an owner without a fact, too"
    assert (await kit.facts.health()).owners == 0
    assert kit.model.prompts == []


async def test_it_is_noted_though_the_model_is_busy_with_another_one(kit: Kit) -> None:
    go_on, asked = threading.Event(), threading.Event()

    def model(_: str) -> str:
        asked.set()
        assert go_on.wait(60)
        return quiet(_)

    kit.model = model  # type: ignore[assignment]  # as said
    async with kit.extraction(idle=AT_ONCE, deadline=60.0) as extraction:
        await talk(kit, extraction, "c1")
        await wait_until_async(asked.is_set)
        await talk(kit, extraction, "c2")
        await talk(kit, extraction, "c3", owner="bob")
        await kit.lag_is(2)
        await kit.lag_is(1, "bob")
        assert (await kit.facts.health()).lag == 3
        go_on.set()
        await wait_until_async(lambda: extraction.counts["extracted"] == 3)
    assert (await kit.facts.health()).lag == 0


async def test_what_cannot_be_noted_is_counted_and_said(
    new_store: NewStore,
    new_kit: Callable[[AsyncStore], Kit],
    proxy: Proxy,
    caplog: pytest.LogCaptureFixture,
) -> None:
    kit = new_kit(new_store(at=proxy))
    await kit.say("I sail.")
    async with kit.extraction(idle=NEVER) as extraction:
        proxy.go_down()
        await note(extraction, kit.chat)
    assert extraction.counts["unnoted"] >= 1
    assert "could not be noted (" in caplog.text
    proxy.come_up()
    assert (await kit.facts.health("ada")).lag == 0
    kit.model.answers = [[new("Ada sails.")]]
    assert (await kit.extraction().run("ada")).turns == 1, "it is in the conversation"


async def test_after_the_end_it_says_that_it_is_closed(
    kit: Kit, caplog: pytest.LogCaptureFixture
) -> None:
    extraction = kit.extraction()
    await extraction.close()
    await kit.say("I sail.")
    assert not await note(extraction, kit.chat)
    assert "the extraction is closed" in caplog.text
    assert extraction.counts == {"dropped": 1}


SCRIPT = """
    import sys
    from datetime import timedelta
    from tests.facts.begun import facts_of
    from turnstore import Store
    from turnstore.context import Context
    from turnstore.facts import Extraction

    port, prefix, engine = sys.argv[1:]
    store = Store.from_url(f"redis://localhost:{port}", name="test", prefix=prefix)
    facts = facts_of(store, engine)
    context = Context(after=[Extraction(facts, print, idle=timedelta(1))])
    chat = store.conversation("c1", owner="ada")
    with chat.turn("I sail.", context=context) as turn:
        turn.reply("Nice.")
"""


@pytest.mark.servers("redis-7")
async def test_a_process_that_ends_without_closing_it_notes_what_waits(
    kit: Kit, server: Server, prefix: str, engine: str
) -> None:
    ((_, port),) = server.addresses
    code = textwrap.dedent(SCRIPT)
    command = [sys.executable, "-c", code, str(port), prefix, engine]
    run = partial(subprocess.run, check=False, capture_output=True, text=True, timeout=120)
    done = await asyncio.to_thread(run, command)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (await kit.facts.health("ada")).lag == 1


# What it costs


async def trips(kit: Kit, flow: Any) -> int:
    """Run a flow, and say in how many round trips."""
    made = 0

    def counted() -> Any:
        nonlocal made
        step, reply = next(flow), None
        while True:
            made += 1
            reply = yield step
            try:
                step = flow.send(reply)
            except StopIteration:
                return None

    await kit.run(counted())
    return made


async def test_what_it_costs(kit: Kit) -> None:
    for number in range(1, 31):
        await chat_of(kit, f"c{number}").append("I sail.")
    kit.model.answers = [[new("Ada sails.")]]
    await kit.extraction().extract(chat_of(kit, "c2"))  # the engine is chosen by now
    extraction: Any = inner(kit.extraction())
    place, trigger = inner(chat_of(kit, "c1"))._place, extraction._trigger
    assert await trips(kit, due(extraction._base, place, trigger)) == 4
    assert await trips(kit, due(extraction._base, place, trigger)) == 2
    assert await trips(kit, extraction._others(place)) == 3
    assert await trips(kit, extraction._places(extraction._owner("ada"))) == 2 + 3


# What waits is read at last


@pytest.mark.servers("redis-7", "redis-8", "valkey", "cluster")
async def test_a_turn_in_another_conversation_has_all_read_that_waits(kit: Kit) -> None:
    for name in ("c1", "c2", "c3"):
        await is_stranded(kit, name)
    kit.model.answers = [quiet] * 4
    async with kit.extraction(idle=AT_ONCE) as extraction:
        await talk(kit, extraction, "c4")
        await wait_until_async(lambda: extraction.counts["extracted"] == 4)
    assert (await kit.facts.health("ada")).lag == 0
    shown = "".join(kit.model.prompts)
    assert all(f"I sail in c{number}." in shown for number in range(1, 5))


async def test_what_is_not_due_waits_on(kit: Kit) -> None:
    await is_stranded(kit, "c1")
    kit.model.answers = [quiet]
    async with kit.extraction(every=2, idle=NEVER) as extraction:
        await talk(kit, extraction, "c2")
        await talk(kit, extraction, "c2")
        await wait_until_async(lambda: extraction.counts["extracted"])
        assert (await kit.facts.health("ada")).lag == 1
        kit.model.answers = [quiet]
        assert (await extraction.flush(timeout=30)).turns == 1, "it is taken up here"


async def test_conversations_that_no_extraction_was_told_of_are_left_alone(kit: Kit) -> None:
    await chat_of(kit, "private").append("I have a secret.")
    await is_stranded(kit, "c1")
    kit.model.answers = [quiet] * 2
    async with kit.extraction(idle=AT_ONCE) as extraction:
        await talk(kit, extraction, "c2")
        await wait_until_async(lambda: extraction.counts["extracted"] == 2)
        assert (await extraction.flush(timeout=30)).turns == 0
    assert "secret" not in "".join(kit.model.prompts)


async def test_what_waits_of_others_is_left_alone(kit: Kit) -> None:
    async with kit.extraction(idle=NEVER) as gone:
        await talk(kit, gone, "c1", owner="bob")
    kit.model.answers = [quiet]
    async with kit.extraction(idle=AT_ONCE) as extraction:
        await talk(kit, extraction, "c2")
        await wait_until_async(lambda: extraction.counts["extracted"])
    assert (await kit.facts.health()).lag == 1


async def test_where_it_cannot_be_looked_for_what_was_read_is_read(
    kit: Kit, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    keys = place_of(kit.facts, "ada").owner_keys

    def model(_: str) -> str:
        server.raw.delete(keys.names)
        server.raw.set(keys.names, "no hash", ex=3600)
        return quiet(_)

    kit.model.answers = [model]
    async with kit.extraction(idle=AT_ONCE) as extraction:
        await talk(kit, extraction, "c1")
        await wait_until_async(lambda: extraction.counts["extracted"])
    assert extraction.counts == {"extracted": 1, "failed": 1}
    assert "was not looked for (" in caplog.text
    assert (await kit.facts.health("ada")).lag == 0


async def test_a_turn_that_comes_again_under_its_id_is_read_again(kit: Kit) -> None:
    await kit.say("I live in Paris.", turn_id="t1")
    kit.model.answers = [[new("Ada lives in Paris.")]]
    async with kit.extraction(idle=AT_ONCE) as extraction:
        await note(extraction, kit.chat)
        await wait_until_async(lambda: extraction.counts["extracted"] == 1)
        await kit.chat.rewind()
        await kit.say("I live in Rome.", turn_id="t1")
        kit.model.answers = [[new("Ada lives in Rome.")]]
        await note(extraction, kit.chat)
        await wait_until_async(lambda: extraction.counts["extracted"] == 2)
    assert await kit.texts() == ["Ada lives in Rome."]


# All owners


@pytest.mark.servers("redis-7", "redis-8", "valkey", "cluster")
async def test_one_run_reads_all_conversations_of_all_owners(kit: Kit) -> None:
    await is_stranded(kit, "c1")
    await chat_of(kit, "c2").append("I bake.")
    await chat_of(kit, "c1", "bob").append("I paint.")
    await kit.store.conversation("c1").append("I am nobody.")
    kit.model.answers = [quiet] * 3
    done = await kit.extraction().run()
    assert (done.turns, len(kit.model.prompts)) == (3, 3)
    assert "nobody" not in "".join(kit.model.prompts)
    assert (await kit.extraction().run()).turns == 0
    await chat_of(kit, "c1", "bob").append("I sing.")
    kit.model.answers = [[new("Bob sings.")]]
    assert (await kit.extraction().run()).turns == 1
    assert [fact.text for fact in await kit.facts.list("bob")] == ["Bob sings."]


async def test_it_reads_the_owners_of_this_store_alone(
    kit: Kit, new_store: NewStore, new_kit: Callable[[AsyncStore], Kit]
) -> None:
    await kit.say("I sail.")
    other = new_kit(new_store(name="another"))
    assert (await other.extraction().run()).turns == 0
    kit.model.answers = [quiet]
    assert (await kit.extraction().run()).turns == 1


async def test_a_cleared_conversation_is_undone_by_it(kit: Kit) -> None:
    await kit.say("I sail.")
    kit.model.answers = [[new("Ada sails.")]]
    assert len((await kit.extraction().run()).new) == 1
    await kit.chat.clear()
    assert (await kit.extraction().run()).undone == 1
    assert await kit.texts() == []


async def test_one_that_fails_is_raised_when_the_others_were_read(kit: Kit, server: Server) -> None:
    for owner in ("ada", "bob", "eve"):
        await chat_of(kit, "c1", owner).append(f"I am {owner}.")

    def model(prompt: str) -> str:
        if "I am bob." in prompt:
            raise ConnectionError("the model is down")
        return json.dumps({"facts": [new("Somebody is here.")]})

    kit.model.answers = [model] * 3
    with pytest.raises(ConnectionError, match="the model is down"):
        await kit.extraction().run()
    assert (await kit.facts.health()).facts == 2
    cursors = place_of(kit.facts, "ada").keys.cursors
    (digest,) = server.raw.hkeys(cursors)
    server.raw.hset(cursors, digest, "none of ours")
    kit.model.answers = [quiet]
    with pytest.raises(CorruptTurnError):
        await kit.extraction().run()
    assert (await kit.facts.health("bob")).lag == 0


async def test_where_redis_is_gone_it_goes_no_further(
    new_store: NewStore, new_kit: Callable[[AsyncStore], Kit], proxy: Proxy, server: Server
) -> None:
    kit = new_kit(new_store(at=proxy))
    for owner in ("ada", "bob"):
        await chat_of(kit, "c1", owner).append("I sail.")

    def model(_: str) -> str:
        proxy.go_down()
        return quiet(_)

    kit.model.answers = [model]
    with pytest.raises(UnavailableError):
        await kit.extraction().run()
    assert len(kit.model.prompts) == 1
    proxy.come_up()
    for owner in ("ada", "bob"):  # one of them could not be given back
        server.raw.delete(place_of(kit.facts, owner).keys.lease)
    kit.model.answers = [quiet] * 2
    assert (await kit.extraction().run()).turns == 2


async def test_where_redis_is_gone_it_tries_no_other_conversation(
    new_store: NewStore, new_kit: Callable[[AsyncStore], Kit], proxy: Proxy
) -> None:
    kit = new_kit(new_store(at=proxy))
    for number in range(5):
        await chat_of(kit, f"c{number}").append("I sail.")

    def model(_: str) -> str:
        proxy.go_down()
        return quiet(_)

    kit.model.answers = [model]
    extraction = kit.extraction()
    made, tried = inner(extraction), list[str]()
    session = made._session

    def noted(place: Any, *args: Any, **options: Any) -> Any:
        tried.append(place.identifier)
        return session(place, *args, **options)

    made._session = noted
    with pytest.raises(UnavailableError):
        await extraction.run("ada")
    assert len(tried) == 1


@pytest.mark.parametrize("begins", ["before", "meanwhile"])
async def test_who_is_being_erased_is_passed_over(kit: Kit, server: Server, begins: str) -> None:
    for name, owner in (("c1", "ada"), ("c2", "ada"), ("c1", "bob"), ("c1", "eve")):
        await chat_of(kit, name, owner).append(f"I am {owner}.")

    def is_erased() -> None:
        close(server, kit.facts, "ada")

    def model(prompt: str) -> str:
        if "I am ada." in prompt:
            is_erased()
        return quiet(prompt)

    if begins == "before":
        is_erased()
    kit.model.answers = [model] * 3
    assert (await kit.extraction().run()).turns == 2
    with pytest.raises(ErasedError) as caught:
        await kit.extraction().run("ada")
    assert caught.value.reason == "closed"
    assert len(kit.model.prompts) == (2 if begins == "before" else 3)


async def test_where_nothing_waits_nobody_takes_a_lease(
    new_store: NewStore, new_kit: Callable[[AsyncStore], Kit], proxy: Proxy
) -> None:
    kit = new_kit(new_store(at=proxy))
    for number in range(20):
        await chat_of(kit, f"c{number}").append("I sail.")
    kit.model.answers = [quiet] * 20
    assert (await kit.extraction().run("ada")).turns == 20
    before = proxy.count("EVALSHA")
    assert (await kit.extraction().run("ada")).turns == 0
    assert proxy.count("EVALSHA") - before == 3, "it begins, and lists the conversations"


@pytest.mark.parametrize("owner", ["", None, 7, b"ada"])
async def test_who_is_no_owner_is_not_everybody(kit: Kit, owner: Any) -> None:
    await kit.say("I sail.")
    with pytest.raises((TypeError, ValueError), match="owner"):
        await kit.extraction().run(owner)
    assert kit.model.prompts == []
