"""What an erasure meets in the middle of, one moment after the other: nothing comes back."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.context.folds import Echo, echoing
from tests.failure.helping import load_scripts
from tests.leases.line import Queue
from tests.owners.helping import NOTE, Owner
from tests.servers.proxy import Cut
from tests.store.talk import texts
from tests.waiting import wait_until_async
from turnstore import ErasedError, Lease, SaveError, Store, Window

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore import AsyncStore

pytestmark = pytest.mark.one_setup

POLICIES = pytest.mark.parametrize("policy", ["append", "reject", "serialize"])


# A turn


@POLICIES
@pytest.mark.parametrize("talked", [0, 2])
async def test_a_turn_that_began_before_is_not_saved_after(
    store: AsyncStore, ada: Owner, talked: int, policy: Any
) -> None:
    chat = store.conversation("c", owner="ada")
    for _ in range(talked):
        await chat.append("before")
    turn = chat.turn("q", on_conflict=policy)
    await turn.__aenter__()
    turn.reply("the answer")
    receipt = await store.erase("ada", verify=True)
    assert receipt.turns == talked
    with pytest.raises(ErasedError, match="erased after it had begun") as caught:
        await turn.__aexit__(None, None, None)
    assert (caught.value.reason, caught.value.reply) == ("owner", "the answer")
    assert ada.stored == NOTE, "neither the turn nor its lease"
    with pytest.raises(ErasedError):
        await turn.save()
    assert isinstance(caught.value, SaveError)
    assert await chat.read() == []
    async with chat.turn("q2", on_conflict=policy) as turn:
        assert turn.history == []
        turn.reply("a2")
    assert texts(await chat.read()) == ["q2", "a2"]


async def test_a_turn_in_the_middle_of_an_erasure(
    new_store: NewStore, proxy: Proxy, behind: Store, ada: Owner
) -> None:
    ada.load_scripts()
    store = new_store(at=proxy)
    behind.conversation("c", owner="ada").append("before")
    chat = behind.conversation("c", owner="ada")
    older = chat.turn("older")
    older.__enter__()
    older.reply("a")
    refused = []

    def meanwhile() -> None:
        for act in (
            older.save,
            lambda: chat.append("now"),
            lambda: chat.set_title("now"),
            lambda: chat.fork("d"),
            lambda: chat.turn("now").__enter__(),
            lambda: chat.turn("now", on_conflict="serialize").__enter__(),
        ):
            with pytest.raises(ErasedError, match="is being erased just now") as caught:
                act()
            assert caught.value.reason == "closed"
            refused.append(act)
        assert texts(chat.read()) == ["before"], "nothing was deleted yet"

    proxy.next(Cut.NEVER, command="EVALSHA", then=meanwhile)
    receipt = await store.erase("ada")
    assert len(refused) == 6
    assert (receipt.conversations, receipt.turns) == (1, 1)
    assert ada.stored == NOTE
    with pytest.raises(ErasedError, match="after it had begun"):
        older.save()


async def test_an_append_that_is_sent_again_after_an_erasure(
    new_store: NewStore, proxy: Proxy, behind: Store, ada: Owner
) -> None:
    """redis-py sends it again as its answer was lost; meanwhile all was erased."""
    ada.load_scripts()
    chat = new_store(at=proxy).conversation("c", owner="ada")
    erased = []
    proxy.next(Cut.NEVER, command="EVALSHA")
    proxy.next(Cut.REPLY_LOST, command="EVALSHA", then=lambda: erased.append(behind.erase("ada")))
    with pytest.raises(ErasedError, match=r"append of .* after it had begun"):
        await chat.append("hi", turn_id="t")
    assert [receipt.turns for receipt in erased] == [1], "the first sending had stored it"
    assert ada.stored == NOTE


async def test_a_turn_whose_beginning_is_sent_again_begins_anew(
    new_store: NewStore, proxy: Proxy, behind: Store, ada: Owner
) -> None:
    ada.load_scripts()
    chat = new_store(at=proxy).conversation("c", owner="ada")
    await chat.append("before")
    proxy.next(Cut.REPLY_LOST, command="EVALSHA", then=lambda: behind.erase("ada"))
    async with chat.turn("q") as turn:
        assert turn.history == [], "what it read before is asked for again, too"
        turn.reply("a")
    assert texts(await chat.read()) == ["q", "a"]


async def test_a_turn_between_its_beginning_and_its_read(
    new_store: NewStore, proxy: Proxy, behind: Store, ada: Owner
) -> None:
    """It has begun before and reads after: it sees nothing, and is not saved."""
    ada.load_scripts()
    chat = new_store(at=proxy).conversation("c", owner="ada")
    await chat.append("before")
    proxy.next(Cut.NEVER, command="EVALSHA")
    proxy.next(Cut.NEVER, command="EVALSHA", then=lambda: behind.erase("ada"))
    turn = chat.turn("q", on_conflict="serialize")
    await turn.__aenter__()
    assert turn.history == []
    turn.reply("a")
    with pytest.raises(ErasedError):
        await turn.__aexit__(None, None, None)
    assert ada.stored == NOTE


async def test_a_tool_loop_that_goes_on_after_an_erasure(store: AsyncStore, ada: Owner) -> None:
    chat = store.conversation("c", owner="ada")
    call = {"id": "call-1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "call-1", "content": "7"}
    async with chat.turn("q") as turn:
        turn.reply({"role": "assistant", "content": None, "tool_calls": [call]})
    second = chat.turn([result])
    await second.__aenter__()
    second.reply("a")
    await store.erase("ada")
    with pytest.raises(ErasedError):
        await second.__aexit__(None, None, None)
    with pytest.raises(ValueError, match="no stored turn waits for it"):
        await chat.turn([result]).__aenter__()
    assert ada.stored == NOTE


async def test_without_memory_nothing_tells_what_was_erased(
    new_store: NewStore, proxy: Proxy, ada: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    store = new_store(at=proxy, redis={"retry": None})
    chat = store.conversation("c", owner="ada")
    await chat.append("before")
    proxy.go_down()
    pending = chat.turn("q", on_load_error="continue")
    await pending.__aenter__()
    pending.reply("a")
    proxy.come_up()
    assert await pending.save() is None
    assert "nothing tells what was erased" in caplog.text
    assert len(ada.listed) == 1
    assert texts(await chat.read()) == ["before"]


# What else writes


async def test_a_fork_that_is_read_before_and_written_after(
    new_store: NewStore, proxy: Proxy, behind: Store, ada: Owner
) -> None:
    ada.load_scripts()
    chat = new_store(at=proxy).conversation("c", owner="ada")
    await chat.append("before")
    proxy.next(Cut.NEVER, command="EVALSHA")
    proxy.next(Cut.NEVER, command="EVALSHA", then=lambda: behind.erase("ada"))
    with pytest.raises(ErasedError, match="fork to"):
        await chat.fork("d")
    assert ada.stored == NOTE


async def test_a_fork_to_an_owner_that_is_erased_meanwhile(
    new_store: NewStore, proxy: Proxy, behind: Store, ada: Owner, server: Server
) -> None:
    ada.load_scripts()
    chat = new_store(at=proxy).conversation("c")
    load_scripts(server, chat.key)
    await chat.append("before")
    proxy.next(Cut.NEVER, command="EVALSHA")
    proxy.next(Cut.NEVER, command="EVALSHA", then=lambda: behind.erase("ada"))
    with pytest.raises(ErasedError, match="fork to"):
        await chat.fork("d", owner="ada")
    assert ada.stored == NOTE
    assert texts(await chat.read()) == ["before"]


async def test_a_title_that_arrives_after(
    new_store: NewStore, proxy: Proxy, behind: Store, ada: Owner
) -> None:
    ada.load_scripts()
    chat = new_store(at=proxy).conversation("c", owner="ada")
    await chat.append("before")

    def meanwhile() -> None:
        behind.erase("ada")
        behind.conversation("c", owner="ada").append("after")

    proxy.next(Cut.NEVER, command="EVALSHA", then=meanwhile)
    with pytest.raises(ErasedError, match="title of"):
        await chat.set_title("The old one")
    assert await chat.title() is None


@pytest.mark.parametrize("end", ["erase", "clear"])
@pytest.mark.parametrize("after", [0, 9])
async def test_a_summary_that_is_made_meanwhile(
    new_store: NewStore, behind: Store, ada: Owner, end: str, after: int
) -> None:
    """Also where just as many turns with the same ids are there again."""
    store = new_store()
    chat = store.conversation("c", owner="ada")
    for number in range(9):
        await chat.append(f"q{number}", turn_id=f"t{number}")

    def model(prompt: str) -> str:
        if end == "erase":
            behind.erase("ada")
        else:
            behind.conversation("c", owner="ada").clear()
        for number in range(after):
            behind.conversation("c", owner="ada").append("new", turn_id=f"t{number}")
        return prompt

    context = echoing(model, Window(turns=4), when="manual")
    with pytest.raises(ErasedError, match="fold of"):
        await chat.summarize(context)
    assert not {one for one in ada.stored if one.endswith((":summary", ":lease"))}
    assert context.counts["summary"] == 1
    assert len(await chat.read()) == after
    again = echoing(Echo(), Window(turns=4), when="manual")
    assert "q0" not in await chat.summarize(again)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_summary_within_a_turn(store: AsyncStore, behind: Store, when: str) -> None:
    chat = store.conversation("c", owner="ada")
    for number in range(9):
        await chat.append(f"q{number}")
    erasures = []

    def model(_: str) -> str:
        erasures.append(behind.erase("ada"))
        return "what was erased"

    turn = chat.turn("q", context=echoing(model, Window(turns=4), when=when))
    await turn.__aenter__()
    turn.reply("a")
    if when == "before":
        with pytest.raises(ErasedError):
            await turn.__aexit__(None, None, None)
    else:
        await turn.__aexit__(None, None, None)
    assert len(erasures) == 1
    assert await chat.read() == []
    assert await chat.summarize(echoing(Echo(), Window(turns=1), when="manual")) == ""


async def test_turns_that_wait_for_one_another(
    store: AsyncStore, server: Server, ada: Owner
) -> None:
    chat = store.conversation("c", owner="ada")
    lease = Lease(wait=timedelta(minutes=5))
    first = chat.turn("q", on_conflict="serialize", lease=lease)
    await first.__aenter__()
    first.reply("a")
    second = chat.turn("q2", on_conflict="serialize", lease=lease)
    waiting = asyncio.create_task(second.__aenter__())
    queue = Queue(server, chat)
    await wait_until_async(lambda: queue.has_waiting(1))
    await store.erase("ada")
    with pytest.raises(ErasedError, match="lease of"):
        await waiting
    with pytest.raises(ErasedError):
        await first.__aexit__(None, None, None)
    assert ada.stored == NOTE, "no queue either"


# A conversation that is cleared


@POLICIES
async def test_a_turn_of_a_conversation_that_was_cleared(
    store: AsyncStore, ada: Owner, policy: Any
) -> None:
    chat, other = (store.conversation(name, owner="ada") for name in ("c", "other"))
    await chat.append("before")
    turns = [one.turn("q", on_conflict=policy) for one in (chat, other)]
    for turn in turns:
        await turn.__aenter__()
        turn.reply("a")
    assert await chat.clear()
    with pytest.raises(ErasedError, match="the conversation was cleared"):
        await turns[0].__aexit__(None, None, None)
    await turns[1].__aexit__(None, None, None)
    assert await chat.read() == []
    assert texts(await other.read()) == ["q", "a"], "others are not concerned"
    assert [info.id for info in await store.conversations("ada")] == ["other"]
    async with chat.turn("q2", on_conflict=policy) as turn:
        turn.reply("a2")
    assert texts(await chat.read()) == ["q2", "a2"]
    assert ada.agrees


async def test_a_first_turn_is_cleared_before_it_is_saved(store: AsyncStore, ada: Owner) -> None:
    chat = store.conversation("c", owner="ada")
    turn = chat.turn("q")
    await turn.__aenter__()
    turn.reply("a")
    assert await chat.clear() is False
    with pytest.raises(ErasedError, match="was cleared"):
        await turn.__aexit__(None, None, None)
    assert ada.stored == {"generation", "cleared"}
