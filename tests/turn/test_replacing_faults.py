"""A turn that replaces another, and lost answers, jobs that run again, and what dies meanwhile."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import redis

from tests.context.folds import Echo, carried, echoing, stored
from tests.context.folds import fill as talk
from tests.failure.helping import load_scripts
from tests.leases.helping import PATIENT
from tests.leases.line import Queue
from tests.owners.helping import NOTE, Owner
from tests.servers.proxy import Cut
from tests.store.talk import fill, numbered, raw, texts
from tests.turn.test_replacing import say
from tests.turn.test_saving import cutting, once
from turnstore import (
    AlreadySavedError,
    DeniedError,
    ErasedError,
    LeaseLostError,
    OutOfMemoryError,
    SaveError,
    Store,
    TurnConflictError,
    TurnGoneError,
    TurnIdReusedError,
    UnavailableError,
    Window,
)

if TYPE_CHECKING:
    from tests.conftest import NewStore, OwnServer
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from tests.servers.setups import Setup
    from turnstore import AsyncStore

pytestmark = pytest.mark.one_setup


@pytest.fixture
def ada(server: Server, prefix: str) -> Owner:
    return Owner(server, prefix)


# Lost answers, and jobs that run again


@cutting
@pytest.mark.parametrize("cut", [Cut.BEFORE, Cut.REPLY_LOST, Cut.IN_REPLY])
async def test_a_failed_save_can_be_repeated(
    new_store: NewStore, proxy: Proxy, setup: Setup, server: Server, cut: Cut
) -> None:
    chat = new_store(at=proxy, redis=once(setup)).conversation("c")
    load_scripts(server, chat.key)
    await fill(chat, 4)
    turn = await chat.turn("q", replaces="t3").__aenter__()
    turn.reply("a")
    proxy.next(cut, command="EVALSHA")
    with pytest.raises(SaveError) as caught:
        await turn.save()
    assert caught.value.reply == "a"
    assert isinstance(caught.value.__cause__, UnavailableError)
    assert caught.value.__cause__.turn_id == turn.turn_id
    saved = await turn.save()
    assert saved is not None
    assert (saved.duplicate, saved.replaced_ids) == (cut is not Cut.BEFORE, ("t3", "t4"))
    assert texts(await chat.read()) == [*numbered(1, 2), "q", "a"]


@cutting
async def test_a_save_that_got_there_spares_what_came_after(
    new_store: NewStore, proxy: Proxy, setup: Setup, server: Server
) -> None:
    chat = new_store(at=proxy, redis=once(setup)).conversation("c")
    load_scripts(server, chat.key)
    await fill(chat, 3)
    turn = await chat.turn("q", replaces="t2").__aenter__()
    turn.reply("a")
    proxy.next(Cut.REPLY_LOST, command="EVALSHA")
    with pytest.raises(SaveError):
        await turn.save()
    await chat.append("after")
    saved = await turn.save()
    assert saved is not None
    assert (saved.duplicate, saved.replaced_ids) == (True, ("t2", "t3"))
    assert texts(await chat.read()) == ["1.1", "q", "a", "after"]


async def test_a_job_that_runs_again_replaces_once(
    store: AsyncStore, caplog: pytest.LogCaptureFixture
) -> None:
    chat = store.conversation("c")
    await fill(chat, 3)
    old = (await chat.turns())[1]
    first = await say(chat, "q", replaces=old, turn_id="job")
    assert first.saved.replaced_ids == ("t2", "t3")
    await fill(chat, 20, start=4)
    with caplog.at_level(logging.WARNING, "turnstore"):
        again = await say(chat, "q", replaces=old, turn_id="job", window=Window(turns=3))
    assert "the reply was not stored" in caplog.text or again.saved.duplicate
    assert (again.saved.duplicate, again.saved.replaced_ids) == (True, ("t2",))
    assert again.replaced == []
    for window in (None, Window(turns=1)):
        with pytest.raises(AlreadySavedError) as caught:
            await say(chat, "q", replaces=old, turn_id="job", on_duplicate="raise", window=window)
        assert texts(caught.value.reply) == ["re q"]
    with pytest.raises(TurnIdReusedError):
        await say(chat, "other", replaces=old, turn_id="job", on_duplicate="raise")
    assert texts(await chat.read()) == ["1.1", "q", "re q", *numbered(*range(4, 24))]
    # Beyond what an append knows, nobody can tell: nothing is written.
    await fill(chat, 12, start=24)
    with pytest.raises(TurnGoneError):
        await say(chat, "q", replaces=old, turn_id="job", window=Window())


async def test_a_job_that_was_undone_while_it_runs_again(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 2)
    await say(chat, "q", replaces="t2", turn_id="job")
    again = await chat.turn("q", replaces="t2", turn_id="job").__aenter__()
    again.reply("another")
    await chat.rewind()
    with pytest.raises(TurnConflictError):
        await again.save()
    assert texts(await chat.read()) == ["1.1"]


async def test_an_id_that_is_saved_replaces_nothing(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 3)
    with pytest.raises(TurnIdReusedError):
        await say(chat, "q", replaces="t3", turn_id="t1", on_duplicate="raise")
    turn = await say(chat, "q", replaces="t3", turn_id="t1")
    assert (turn.saved.duplicate, turn.saved.replaced_ids) == (True, ())
    assert texts(await chat.read()) == numbered(1, 2, 3)


async def test_without_memory_nothing_is_replaced_and_the_reply_is_kept(
    new_store: NewStore, proxy: Proxy, setup: Setup
) -> None:
    chat = new_store(at=proxy, redis=once(setup)).conversation("c")
    await fill(chat, 2)
    proxy.go_down()
    turn = await chat.turn("q", replaces="t2", on_load_error="continue").__aenter__()
    assert isinstance(turn.load_error, UnavailableError)
    assert turn.replaced == []
    turn.reply("a")
    proxy.come_up()
    with pytest.raises(TurnConflictError, match="could not be loaded") as caught:
        await turn.__aexit__(None, None, None)
    assert caught.value.reply == "a"
    assert texts(await chat.read()) == numbered(1, 2)


DIES = """
import sys
from turnstore import Store
store = Store.from_url(sys.argv[1], cluster=sys.argv[2] == "1", name="test", prefix=sys.argv[3])
with store.conversation("c", owner=sys.argv[4] or None).turn("q", replaces="t2") as turn:
    turn.reply("a")
    print("asked", flush=True)
    sys.stdin.read()
"""


@pytest.mark.servers("redis", "valkey", "cluster")
@pytest.mark.parametrize("owner", ["", "ada"])
async def test_a_process_that_dies_leaves_all_as_it_was(
    store: AsyncStore, server: Server, prefix: str, owner: str
) -> None:
    chat = store.conversation("c", owner=owner or None)
    await fill(chat, 3)
    before = raw(server, chat)
    host, port = server.addresses[0]
    is_cluster = isinstance(server.raw, redis.RedisCluster)
    arguments = (f"redis://{host}:{port}", str(int(is_cluster)), prefix, owner)
    with subprocess.Popen(  # noqa: ASYNC220 - the test has nothing else to do
        [sys.executable, "-c", DIES, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert await asyncio.to_thread(process.stdout.readline) == b"asked\n"
        process.kill()
    assert raw(server, chat) == before
    await say(chat, "q", replaces="t2")
    assert texts(await chat.read()) == ["1.1", "q", "re q"]


async def test_a_full_server_takes_none_and_keeps_the_old_one(
    new_store: NewStore, own_server: OwnServer
) -> None:
    server = own_server(config={"maxmemory-policy": "noeviction"})
    store = new_store(at=server)
    with redis.Redis.from_url(server.url) as client:
        for chat in (store.conversation("c"), store.conversation("c", owner="ada")):
            await fill(chat, 3)
            turn = await chat.turn("q", replaces="t2").__aenter__()
            turn.reply("a")
            client.config_set("maxmemory", 1)
            with pytest.raises(SaveError) as caught:
                await turn.save()
            assert isinstance(caught.value.__cause__, OutOfMemoryError)
            assert texts(await chat.read()) == numbered(1, 2, 3)
            client.config_set("maxmemory", 0)
            assert await turn.save()
            assert texts(await chat.read()) == ["1.1", "q", "a"]


@pytest.mark.parametrize("owner", [None, "o"])
@pytest.mark.parametrize("lacking", ["lset", "ltrim", "pexpire", "set", "zadd", "hsetnx"])
async def test_who_may_not_run_a_command_changes_nothing(
    new_store: NewStore, own_server: OwnServer, lacking: str, owner: str | None
) -> None:
    server = own_server()
    ours = new_store(at=server).conversation("ada", owner=owner)
    await fill(ours, 3)
    with redis.Redis.from_url(server.url) as client:
        client.execute_command(f"ACL SETUSER user on >pw ~* +@all -{lacking}")
        login = {"username": "user", "password": "pw"}
        theirs = new_store(at=server, redis=login).conversation("ada", owner=owner)
        before = client.lrange(ours.key, 0, -1)
        if owner is None and lacking in ("set", "zadd", "hsetnx"):  # not needed
            await say(theirs, "q", replaces="t2")
            return
        with pytest.raises((SaveError, DeniedError)):
            await say(theirs, "q", replaces="t2")
        assert client.lrange(ours.key, 0, -1) == before


# Owners


@pytest.mark.parametrize("policy", ["append", "serialize"])
async def test_an_owner_that_was_erased_meanwhile(
    store: AsyncStore, ada: Owner, policy: Any
) -> None:
    chat = store.conversation("c", owner="ada")
    await fill(chat, 3)
    turn = await chat.turn("q", replaces="t2", on_conflict=policy).__aenter__()
    turn.reply("the answer")
    await store.erase("ada", verify=True)
    with pytest.raises(ErasedError) as caught:
        await turn.__aexit__(None, None, None)
    assert (caught.value.reason, caught.value.reply) == ("owner", "the answer")
    assert ada.stored == NOTE


async def test_a_conversation_that_was_cleared_or_undone_meanwhile(store: AsyncStore) -> None:
    chat = store.conversation("c", owner="ada")
    for end, kind in ((chat.clear, ErasedError), (lambda: chat.rewind(9), TurnConflictError)):
        await fill(chat, 3)
        turn = await chat.turn("q", replaces="t2").__aenter__()
        turn.reply("a")
        await end()
        with pytest.raises(kind):
            await turn.__aexit__(None, None, None)
        assert await chat.read() == []


async def test_the_list_of_an_owner_follows(store: AsyncStore, ada: Owner) -> None:
    chats = [store.conversation(name, owner="ada") for name in "ab"]
    for chat in chats:
        await fill(chat, 3)
        await chat.set_title("T")
    await say(chats[0], "q", replaces="t1")
    listed = await store.conversations("ada")
    assert [(one.id, one.title, one.turns) for one in listed] == [("a", "T", 1), ("b", "T", 3)]
    assert ada.agrees


# Turns that wait for one another


async def test_the_lease_is_given_back_with_the_save(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    await fill(chat, 2)
    queue = Queue(server, chat)
    async with chat.turn("q", replaces="t2", on_conflict="serialize") as turn:
        assert queue.line.held
        turn.reply("a")
        assert await turn.save()
        assert not queue.line.held
    assert texts(await chat.read()) == ["1.1", "q", "a"]


async def test_two_at_once_replace_once(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await fill(chat, 2)
    options: dict[str, Any] = {"replaces": "t2", "on_conflict": "serialize", "lease": PATIENT}
    done = await asyncio.gather(
        *(say(chat, "q", **options) for _ in range(3)), return_exceptions=True
    )
    refused = [one for one in done if isinstance(one, BaseException)]
    assert [type(one) for one in refused] == [TurnGoneError] * 2
    assert texts(await chat.read()) == ["1.1", "q", "re q"]
    done = await asyncio.gather(
        *(say(chat, "q", replaces="t1") for _ in range(3)), return_exceptions=True
    )
    assert len([one for one in done if isinstance(one, BaseException)]) == 2
    assert texts(await chat.read()) == ["q", "re q"]


async def test_a_lost_lease_replaces_nothing(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c")
    await fill(chat, 2)
    turn = await chat.turn("q", replaces="t2", on_conflict="serialize").__aenter__()
    turn.reply("a")
    Queue(server, chat).lose()
    with pytest.raises(LeaseLostError) as caught:
        await turn.__aexit__(None, None, None)
    assert caught.value.reply == "a"
    assert texts(await chat.read()) == numbered(1, 2)


# Summaries


async def test_a_summary_of_what_is_before_stays_and_is_sent(
    store: AsyncStore, server: Server
) -> None:
    chat, echo = store.conversation("c"), Echo()
    await talk(chat, 1, 8)
    await chat.summarize(echoing(echo))
    turns = await chat.turns()
    kept = stored(server, chat)
    assert kept is not None
    assert kept[0] == 4
    async with chat.turn("new", replaces=turns[5], context=echoing(echo, when="manual")) as turn:
        assert carried(turn.messages) == kept[1]
        assert texts(turn.history) == ["q2", "a2", "q3", "a3", "q4", "a4", "q5", "a5"]
        turn.reply("a")
    assert stored(server, chat) == kept
    # The one after what is summarised can go, too; nothing is held before it then.
    await chat.trim(turns=2)
    turns = await chat.turns()
    assert [one.number for one in turns] == [5, 6]
    async with chat.turn("new", replaces=turns[0], context=echoing(echo, when="manual")) as turn:
        assert turn.history == []
        assert carried(turn.messages) == kept[1], "of what is not held any more"
        turn.reply("a")
    assert stored(server, chat) == kept
    assert [one.number for one in await chat.turns()] == [5]


async def test_a_turn_that_the_summary_tells_of_stays(store: AsyncStore, server: Server) -> None:
    chat, echo = store.conversation("c"), Echo()
    await talk(chat, 1, 8)
    await chat.summarize(echoing(echo))
    turns, before = await chat.turns(), raw(server, chat)
    for context in (None, echoing(echo)):
        with pytest.raises(TurnGoneError, match=r"the summary of .* tells of the turn"):
            await chat.turn("q", replaces=turns[3], context=context).__aenter__()
    # Nor one that is taken in while the model is asked.
    turn = await chat.turn("q", replaces=turns[5]).__aenter__()
    turn.reply("a")
    await chat.summarize(echoing(echo, Window(turns=2)))
    with pytest.raises(TurnConflictError, match="a summary has taken it in") as caught:
        await turn.__aexit__(None, None, None)
    assert isinstance(caught.value.__cause__, TurnGoneError)
    assert raw(server, chat) == before


async def test_a_summary_of_what_was_replaced_meanwhile_is_not_kept(
    store: AsyncStore, server: Server, prefix: str
) -> None:
    chat = store.conversation("c")
    await talk(chat, 1, 8)
    turns = await chat.turns()

    def replaces(_: str) -> str:
        other = Store(server.raw, name="test", prefix=prefix).conversation("c")
        with other.turn("q", replaces=turns[2]) as turn:
            turn.reply("a")
        return "a summary of what was"

    await chat.summarize(echoing(replaces, Window(turns=5)))
    assert stored(server, chat) is None
    assert texts(await chat.read())[-2:] == ["q", "a"]
