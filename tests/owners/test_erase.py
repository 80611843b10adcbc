"""After an erasure nothing of the owner is left, and nothing of anybody else is gone."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from tests.owners.helping import NOTE, Owner
from tests.store.talk import texts
from turnstore import Erasure, Window
from turnstore._calls import Flow
from turnstore._keys import Keys, OwnerKeys
from turnstore.context import Context, Summary

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.running import Server
    from turnstore import AsyncStore

pytestmark = pytest.mark.one_setup

# Owners and ids that a query language, a pattern or a joined key would take for one another.
HOSTILE = [
    "*", "?", "a", "A", "a,b", "b", "a|b", "users.1", "users.10", "{a}", "}", "{", "a:b", "a b",
    " a", "a ", "\x00", "é", "e\N{COMBINING ACUTE ACCENT}", "😀", "[a-z]*", "\\", "x" * 5_000,
]  # fmt: skip


async def _everything(store: AsyncStore, owner: str) -> None:
    """Let an owner have one of each thing that is stored."""
    context = Context(Window(turns=1), summary=Summary(lambda _: "summary"))
    for name in ("one", "two"):
        chat = store.conversation(name, owner=owner)
        await chat.append(["q", {"role": "assistant", "content": "a"}])
        async with chat.turn("q2", context=context, on_conflict="serialize") as turn:
            turn.reply("a2")
        async with chat.turn("q3", context=context) as turn:
            turn.reply("a3")
        await chat.set_title(f"Title of {name}")


async def test_nothing_is_left_but_the_note(store: AsyncStore, server: Server, prefix: str) -> None:
    await _everything(store, "ada")
    ada = Owner(server, prefix)
    parts = {one.rpartition(":")[2] for one in ada.stored}
    assert parts == {
        *("turns", "summary", "queue"),
        *("generation", "conversations", "lives", "names"),
    }
    receipt = await store.erase("ada", verify=True)
    assert receipt == Erasure(
        conversations=2, turns=6, messages=12, keys=6, verified=True, parts={"summaries": 2}
    )
    assert ada.stored == NOTE
    generation = ada.generation
    assert generation
    assert generation.closed_until_ms == 0
    assert 0 < ada.pttl("generation") <= 2 * 86_400_000
    assert await store.conversations("ada") == []
    for name in ("one", "two"):
        chat = store.conversation(name, owner="ada")
        assert await chat.read() == []
        assert await chat.title() is None


async def test_an_owner_that_has_nothing(store: AsyncStore, server: Server, prefix: str) -> None:
    nothing = Erasure(conversations=0, turns=0, messages=0, keys=0, verified=False)
    assert await store.erase("ada") == nothing
    assert await store.erase("ada") == nothing
    assert Owner(server, prefix).stored == NOTE


async def test_what_begins_after_it_works(store: AsyncStore, server: Server, prefix: str) -> None:
    await _everything(store, "ada")
    await store.erase("ada")
    await _everything(store, "ada")
    assert [chat.turns for chat in await store.conversations("ada")] == [3, 3]
    assert Owner(server, prefix).agrees
    assert (await store.erase("ada")).turns == 6


async def test_others_keep_what_they_have(new_store: NewStore) -> None:
    store, other = new_store(), new_store(name="other")
    ids = HOSTILE[:8]
    chats = {
        (owner, id_): store.conversation(id_, owner=owner) for owner, id_ in product(HOSTILE, ids)
    }
    for (owner, id_), chat in chats.items():
        await chat.append(f"{owner}/{id_}")
    nobodys = store.conversation("a")
    elsewhere = other.conversation("a", owner="a")
    await nobodys.append("nobody's")
    await elsewhere.append("elsewhere")
    for gone in HOSTILE:
        receipt = await store.erase(gone, verify=gone in ("*", "[a-z]*", "\\"))
        assert (receipt.conversations, receipt.turns) == (len(ids), len(ids))
        chats = {key: chat for key, chat in chats.items() if key[0] != gone}
        for owner in {owner for owner, _ in chats}:
            listed = await store.conversations(owner)
            assert [info.id for info in listed] == ids[::-1]
        for (owner, id_), chat in list(chats.items())[::11]:
            assert texts(await chat.read()) == [f"{owner}/{id_}"]
    assert texts(await nobodys.read()) == ["nobody's"]
    assert texts(await elsewhere.read()) == ["elsewhere"]


@pytest.mark.parametrize("owner", ["", None, 7, b"ada", "\ud800"])
async def test_what_is_no_owner_is_an_error_and_never_everyone(
    store: AsyncStore, owner: Any
) -> None:
    await store.conversation("c", owner="ada").append("hi")
    with pytest.raises((TypeError, ValueError), match="the id of an owner"):
        await store.erase(owner)
    with pytest.raises((TypeError, ValueError), match="the id of an owner"):
        await store.conversations(owner)
    if owner is not None:  # none at all is a conversation without an owner
        with pytest.raises((TypeError, ValueError), match="the id of an owner"):
            store.conversation("c", owner=owner)
    assert len(await store.conversations("ada")) == 1


async def test_a_guessed_id_of_somebody_else_shows_nothing(store: AsyncStore) -> None:
    await store.conversation("c", owner="ada").append("secret")
    for other in (store.conversation("c"), store.conversation("c", owner="bob")):
        assert await other.read() == []
        assert (await other.stat()).turns == 0
        assert await other.clear() is False
        assert await other.rewind() == []
    assert len(await store.conversation("c", owner="ada").read()) == 1


async def test_more_conversations_than_go_in_one_step(
    store: AsyncStore, server: Server, prefix: str
) -> None:
    for number in range(237):
        await store.conversation(f"c{number}", owner="ada").append(["q", "r"])
    receipt = await store.erase("ada")
    assert (receipt.conversations, receipt.turns, receipt.messages) == (237, 237, 474)
    assert Owner(server, prefix).stored == NOTE


async def test_what_cannot_be_read_goes_too(store: AsyncStore, server: Server, prefix: str) -> None:
    for name, damaged in (("list", ["hello"]), ("text", None), ("fine", ...)):
        chat = store.conversation(name, owner="ada")
        await chat.append("hi")
        if damaged is not ...:
            server.raw.delete(chat.key)
        if damaged is None:
            server.raw.set(chat.key, "not a list", px=60_000)
        elif damaged is not ...:
            server.raw.rpush(chat.key, *damaged)
            server.raw.pexpire(chat.key, 60_000)
    listed = {info.id: info.turns for info in await store.conversations("ada")}
    assert listed == {"list": None, "text": None, "fine": 1}
    receipt = await store.erase("ada")
    assert (receipt.conversations, receipt.turns, receipt.keys) == (3, 1, 3)
    assert Owner(server, prefix).stored == NOTE


async def test_what_no_list_knows_is_found_by_looking_everywhere(
    store: AsyncStore, server: Server, prefix: str
) -> None:
    """An eviction may take the lists, and leave what they know."""
    await _everything(store, "ada")
    bobs = store.conversation("one", owner="bob")
    await bobs.append("hi")
    ada = Owner(server, prefix)
    for key in (ada.keys.conversations, ada.keys.lives, ada.keys.names):
        server.raw.delete(key)
    indexed = ada.keys.tag.replace(b":1:{", b":1f:{") + b"some-fact"
    alike = ada.keys.tag.replace(b":1:{", b":1:1:{") + b"another-prefix"
    for key in (indexed, alike):
        server.raw.set(key, "x", px=60_000)
    assert (await store.erase("ada")).conversations == 0
    assert len(ada.stored) > 1
    receipt = await store.erase("ada", verify=True)
    assert (receipt.conversations, receipt.turns, receipt.messages) == (2, 6, 12)
    assert receipt.keys == 7
    assert ada.stored == NOTE | {"another-prefix"}
    assert texts(await bobs.read()) == ["hi"]
    server.raw.delete(alike)


async def test_what_the_parts_of_turnstore_count_is_in_the_receipt(
    store: AsyncStore, server: Server, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Things:
        """Finds three things of an owner, and one of a conversation at the first look."""

        def __init__(self, home: Any) -> None:
            homes.append(home)

        def everything(self, keys: OwnerKeys, number: int) -> Flow[dict[str, int]]:
            seen.append(keys)
            assert number > 0
            yield from ()
            return {"things": 3, "others": 0}

        def of_conversation(self, keys: Keys) -> Flow[dict[str, int]]:
            seen.append(keys.owner)
            yield from ()
            return {"things": int(len(seen) == 1)}

    homes: list[Any] = []
    seen: list[OwnerKeys | None] = []
    monkeypatch.setattr("turnstore._erasing.ERASERS", [Things])
    chat = store.conversation("c", owner="ada")
    assert (await chat.erase(verify=True)).parts == {"things": 1}
    assert (await store.erase("ada")).parts == {"things": 3}
    assert seen == [Owner(server, prefix).keys] * 3, "a conversation twice, to verify it"
    home: Any = store._home
    assert homes == [home, home]


@pytest.mark.keeps_keys
async def test_without_a_time_to_live(new_store: NewStore, server: Server, prefix: str) -> None:
    store = new_store(ttl=None)
    await _everything(store, "ada")
    ada = Owner(server, prefix)
    for name in ("conversations", "lives", "names"):
        assert ada.pttl(name) == -1, "for ever, as what is listed"
    assert (await store.erase("ada")).conversations == 2
    assert ada.stored == NOTE


async def test_a_turn_that_waits_for_others_after_it(store: AsyncStore) -> None:
    chat = store.conversation("c", owner="ada")
    for _ in range(2):
        async with chat.turn("q", on_conflict="serialize") as turn:
            turn.reply("a")
        assert texts(await chat.read()) == ["q", "a"]
        await store.erase("ada")
