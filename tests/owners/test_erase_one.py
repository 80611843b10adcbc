"""One conversation goes with all that belongs to it, and nothing else of its owner does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.owners.helping import Owner, digest
from tests.servers.proxy import Cut
from tests.store.talk import texts
from turnstore import ErasedError, ServerError, UnsupportedError, Window, WrongTypeError
from turnstore.context import Context, Summary

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore import AsyncConversation, AsyncStore, Store
    from turnstore._calls import Flow
    from turnstore._keys import Keys

pytestmark = pytest.mark.one_setup

HOSTILE = ["*", "a", "A", "a,b", "b", "{a}", "a:b", "users.1", "users.10", "[a-z]*", "\\", "é", "?"]


async def fill(chat: AsyncConversation) -> None:
    """Leave something under each key that a conversation can have: three turns of two messages."""
    context = Context(Window(turns=1), summary=Summary(lambda _: "summary", after_turns=1))
    for question in ("q1", "q2", "q3"):
        async with chat.turn(question, context=context, on_conflict="serialize") as turn:
            turn.reply(f"re {question}")
    await chat.set_title("Title")


@pytest.mark.parametrize("verify", [False, True])
async def test_it_goes_and_others_stay(store: AsyncStore, ada: Owner, *, verify: bool) -> None:
    gone, stays = store.conversation("gone", owner="ada"), store.conversation("stays", owner="ada")
    nobodys = store.conversation("gone")
    for chat in (gone, stays):
        await fill(chat)
    await nobodys.append("nobody's")
    before = {key for key in ada.stored if key.startswith(digest(gone))}
    assert {key.partition(":")[2] for key in before} == {"turns", "summary", "queue"}
    receipt = await gone.erase(verify=verify)
    assert (receipt.conversations, receipt.turns, receipt.messages, receipt.keys) == (1, 3, 6, 3)
    assert (receipt.parts, receipt.verified) == ({"summaries": 1}, verify)
    assert not [key for key in ada.stored if key.startswith(digest(gone))]
    assert ada.agrees
    assert await gone.read() == []
    assert await gone.title() is None
    assert [(chat.id, chat.title, chat.turns) for chat in await store.conversations("ada")] == [
        ("stays", "Title", 3)
    ]
    assert texts(await nobodys.read()) == ["nobody's"]
    again = await gone.erase(verify=verify)
    assert (again.conversations, again.turns, again.keys, again.parts) == (0, 0, 0, {})


async def test_what_began_before_it_does_not_come_back(store: AsyncStore, ada: Owner) -> None:
    chat = store.conversation("c", owner="ada")
    await chat.append("q")
    turn = chat.turn("q2", on_conflict="serialize")
    await turn.__aenter__()
    await chat.erase(verify=True)
    turn.reply("the answer")
    with pytest.raises(ErasedError) as caught:
        await turn.__aexit__(None, None, None)
    assert (caught.value.reason, caught.value.reply) == ("conversation", "the answer")
    assert ada.stored == {"generation", "cleared"}
    async with chat.turn("q3") as turn:
        turn.reply("a3")
    assert texts(await chat.read()) == ["q3", "a3"], "what begins after it is not concerned"


async def test_a_turn_of_another_conversation_is_not_concerned(store: AsyncStore) -> None:
    one, other = (store.conversation(id_, owner="ada") for id_ in ("one", "other"))
    await one.append("q")
    async with other.turn("q") as turn:
        await one.erase()
        turn.reply("a")
    assert texts(await other.read()) == ["q", "a"]


async def test_hostile_ids_are_told_apart(store: AsyncStore, ada: Owner) -> None:
    chats = {id_: store.conversation(id_, owner="ada") for id_ in HOSTILE}
    elsewhere = [store.conversation(id_, owner="bob") for id_ in HOSTILE]
    for chat in (*chats.values(), *elsewhere):
        await chat.append("q")
    while chats:
        _, gone = chats.popitem()
        assert (await gone.erase(verify=len(chats) % 4 == 0)).turns == 1
        assert [info.id for info in await store.conversations("ada")] == [*chats][::-1]
        assert ada.agrees
    assert len(await store.conversations("bob")) == len(HOSTILE)


async def test_a_key_of_it_that_nobody_knows_is_found(
    store: AsyncStore, server: Server, ada: Owner
) -> None:
    chat = store.conversation("c", owner="ada")
    await chat.append("q")
    stray = chat.key.removesuffix("turns") + "later"
    server.raw.set(stray, "x", px=60_000)
    assert (await chat.erase()).keys == 1
    assert len(ada.stored) == 3
    assert (await chat.erase(verify=True)).keys == 1
    assert ada.stored == {"generation", "cleared"}


async def test_a_summary_whose_turns_were_evicted_goes_too(
    store: AsyncStore, server: Server, ada: Owner
) -> None:
    chat = store.conversation("c", owner="ada")
    await fill(chat)
    server.raw.delete(chat.key)
    receipt = await chat.erase()
    assert (receipt.turns, receipt.parts) == (0, {"summaries": 1})
    assert not [key for key in ada.stored if key.startswith(digest(chat))]


async def test_what_cannot_be_read_is_erased(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c", owner="ada")
    await chat.append("q")
    server.raw.lset(chat.key, 0, "damaged")
    receipt = await chat.erase(verify=True)
    assert (receipt.conversations, receipt.keys, receipt.verified) == (1, 1, True)
    assert await chat.read() == []


async def test_what_is_not_ours_stays(store: AsyncStore, server: Server) -> None:
    chat = store.conversation("c", owner="ada")
    server.raw.set(chat.key, "mine", px=60_000)
    with pytest.raises(WrongTypeError):
        await chat.erase()
    assert server.raw.get(chat.key) == b"mine"


async def test_without_an_owner_it_says_what_to_do(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await chat.append("q")
    with pytest.raises(TypeError, match=r"erase\(\) needs an owner"):
        await chat.erase()
    assert texts(await chat.read()) == ["q"]


async def test_a_process_that_does_not_know_facts_deletes_nothing_where_there_are_some(
    store: AsyncStore, server: Server, ada: Owner
) -> None:
    chat = store.conversation("c", owner="ada")
    await chat.append("q")
    (memory,) = (sign for sign in ada.keys.signs if sign.endswith(b":memory"))
    server.raw.hset(memory, "human", "1 - x")
    server.raw.pexpire(memory, 60_000)
    with pytest.raises(UnsupportedError, match=r"`import turnstore\.facts`"):
        await chat.erase()
    assert texts(await chat.read()) == ["q"]
    server.raw.delete(memory)
    assert (await chat.erase()).turns == 1


async def test_facts_that_come_while_it_looks_are_not_taken_for_none(
    new_store: NewStore, proxy: Proxy, server: Server, ada: Owner
) -> None:
    ada.load_scripts()
    chat = new_store(at=proxy).conversation("c", owner="ada")
    await chat.append("q")
    (memory,) = (sign for sign in ada.keys.signs if sign.endswith(b":memory"))
    proxy.next(Cut.NEVER, command="EXISTS", then=lambda: server.raw.hset(memory, "human", "x"))
    with pytest.raises(UnsupportedError, match="Its turns were deleted"):
        await chat.erase(verify=True)
    server.raw.delete(memory)


async def test_what_is_written_again_and_again_is_said(
    store: AsyncStore, behind: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Writes:
        """Appends whenever it is to delete."""

        def of_conversation(self, keys: Keys) -> Flow[dict[str, int]]:
            assert str(keys) == chat.key
            behind.conversation("c", owner="ada").append("again")
            yield from ()
            return {}

    chat = store.conversation("c", owner="ada")
    monkeypatch.setattr("turnstore._erasing.ERASERS", [lambda _: Writes()])
    with pytest.raises(ServerError, match="again and again; who writes it"):
        await chat.erase(verify=True)
    monkeypatch.setattr("turnstore._erasing.ERASERS", [])
    assert (await chat.erase(verify=True)).verified
    assert await store.conversations("ada") == []


async def test_a_fork_that_began_before_brings_no_copy(
    new_store: NewStore, proxy: Proxy, ada: Owner, behind: Store
) -> None:
    ada.load_scripts()
    chat = new_store(at=proxy).conversation("c", owner="ada")
    await chat.append("q")
    proxy.clear()
    proxy.next(Cut.NEVER, command="EVALSHA")  # it begins; then it reads what it copies
    erase = behind.conversation("c", owner="ada").erase
    proxy.next(Cut.NEVER, command="EVALSHA", then=lambda: erase(verify=True))
    with pytest.raises(ErasedError, match="fork to"):
        await chat.fork("copy")
    assert ada.stored == {"generation", "cleared"}


async def test_it_takes_as_many_round_trips_as_it_says(
    new_store: NewStore, proxy: Proxy, ada: Owner
) -> None:
    ada.load_scripts()
    chat = new_store(at=proxy).conversation("c", owner="ada")
    await chat.append("q")
    proxy.clear()
    await chat.erase()
    assert proxy.seen == ["EXISTS", "EVALSHA", "EXISTS"]


async def test_an_answer_that_is_lost_leaves_nothing(
    new_store: NewStore, proxy: Proxy, ada: Owner
) -> None:
    chat = new_store(at=proxy).conversation("c", owner="ada")
    ada.load_scripts()
    for cut in Cut:
        await chat.append("q")
        proxy.next(cut, command="EVALSHA")
        receipt = await chat.erase(verify=True)
        assert receipt.verified
        assert ada.stored == {"generation", "cleared"}
