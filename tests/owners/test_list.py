"""The list of an owner's conversations, and their titles."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.owners.helping import Owner, digest
from tests.store.talk import texts
from tests.waiting import wait_until_async
from turnstore import ConflictError, ConversationPage

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore import AsyncStore


pytestmark = pytest.mark.one_setup


async def listed(store: AsyncStore, owner: str = "ada") -> list[str]:
    return [info.id for info in await store.conversations(owner)]


async def test_an_owner_without_conversations(store: AsyncStore) -> None:
    page = await store.conversations("ada")
    assert page == []
    assert type(page) is ConversationPage
    assert page.cursor is None


async def test_what_is_said_of_a_conversation(store: AsyncStore, server: Server) -> None:
    before = datetime.now(UTC) - timedelta(seconds=5)
    chat = store.conversation("c", owner="ada")
    await chat.append(["one", "two"])
    await chat.append("three")
    (info,) = await store.conversations("ada")
    assert (info.id, info.title, info.turns, info.messages) == ("c", None, 2, 3)
    assert before < info.last_activity < datetime.now(UTC) + timedelta(seconds=5)
    assert abs(info.last_activity.timestamp() - server.raw.time()[0]) < 60 or _cluster(server)


def _cluster(server: Server) -> bool:
    return hasattr(server.raw, "get_primaries")


async def test_the_newest_comes_first(store: AsyncStore) -> None:
    for name in "abc":
        await store.conversation(name, owner="ada").append("hi")
    assert await listed(store) == ["c", "b", "a"]
    await store.conversation("a", owner="ada").append("again")
    assert await listed(store) == ["a", "c", "b"]
    async with store.conversation("b", owner="ada").turn("q") as turn:
        turn.reply("a")
    assert await listed(store) == ["b", "a", "c"]


async def test_what_does_not_move_a_conversation(store: AsyncStore) -> None:
    for name in "ab":
        await store.conversation(name, owner="ada").append(["hi"], turn_id="t")
    first = store.conversation("a", owner="ada")
    await first.read()
    await first.append("hi", turn_id="t")  # sent again
    await first.append([])
    await first.set_title("A")
    await first.expire(timedelta(hours=1))
    await first.stat()
    with pytest.raises(ConflictError):
        await first.append("hi", expected_revision="7-never")
    assert await listed(store) == ["b", "a"]


async def test_pages(store: AsyncStore) -> None:
    names = [f"c{number:02}" for number in range(25)]
    for name in names:
        await store.conversation(name, owner="ada").append("hi")
    for limit in (1, 7, 24, 25, 26):
        seen: list[str] = []
        before = None
        while True:
            page = await store.conversations("ada", limit, before=before)
            assert 1 <= len(page) <= limit
            seen += [info.id for info in page]
            before = page.cursor
            if before is None:
                break
        assert seen == names[::-1], limit


async def test_a_conversation_that_moves_between_two_pages(store: AsyncStore) -> None:
    for name in "abcd":
        await store.conversation(name, owner="ada").append("hi")
    page = await store.conversations("ada", 2)
    assert [info.id for info in page] == ["d", "c"]
    await store.conversation("a", owner="ada").append("again")
    rest = await store.conversations("ada", 2, before=page.cursor)
    assert [info.id for info in rest] == ["b"]
    assert rest.cursor is None


@pytest.mark.parametrize(
    "limit, before, error",
    [
        (0, None, ValueError), (-1, None, ValueError), (1.5, None, TypeError),
        (True, None, TypeError), (5, 0, ValueError), (5, "1", TypeError),
    ],
)  # fmt: skip
async def test_what_is_no_page(
    store: AsyncStore, limit: Any, before: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match="conversations"):
        await store.conversations("ada", limit, before=before)


async def test_one_that_has_ended_is_left_out_and_forgotten(
    store: AsyncStore, server: Server, prefix: str
) -> None:
    for name in "abc":
        await store.conversation(name, owner="ada").append("hi")
    gone = store.conversation("b", owner="ada")
    await gone.expire(timedelta(milliseconds=1))
    await wait_until_async(lambda: not server.raw.exists(gone.key))
    undone = store.conversation("c", owner="ada")
    await undone.rewind()
    ada = Owner(server, prefix)
    assert len(ada.listed) == 3
    for _ in range(2):
        page = await store.conversations("ada", 1)
        assert [info.id for info in page] == ["a"]
        assert page.cursor is None
    a = digest(store.conversation("a", owner="ada"))
    assert ada.listed == [a, digest(undone)], "its title waits for what is said instead"
    assert ada.agrees
    ada.age_undone(undone)
    assert await listed(store) == ["a"]
    assert ada.listed == [a]
    assert ada.agrees


async def test_an_active_owner_s_list_does_not_grow_for_ever(
    store: AsyncStore, server: Server, prefix: str
) -> None:
    """Nobody has to list it: what ended a day ago is taken off by those who write."""
    ada = Owner(server, prefix)
    for name in "abcde":
        chat = store.conversation(name, owner="ada")
        await chat.append("hi")
        server.raw.delete(chat.key)
        server.raw.zadd(ada.keys.lives, {digest(chat): 1_000})
    last = store.conversation("last", owner="ada")
    for _ in range(3):
        await last.append("hi")
    assert ada.listed == [digest(last)]
    assert ada.agrees


async def test_the_lists_outlive_what_is_listed(
    new_store: NewStore, server: Server, prefix: str
) -> None:
    ada = Owner(server, prefix)
    day = 86_400_000

    def lives() -> set[bool]:
        names = ("conversations", "lives", "names")
        return {expected < ada.pttl(name) <= expected + 2 * day for name in names}

    expected = day
    await new_store().conversation("a", owner="ada").append("hi")
    assert lives() == {True}
    expected = 9 * day
    await new_store(ttl=timedelta(days=9)).conversation("b", owner="ada").append("hi")
    assert lives() == {True}
    await new_store(ttl=timedelta(hours=1)).conversation("c", owner="ada").append("hi")
    assert lives() == {True}, "never shorter"
    expected = 40 * day
    await new_store().conversation("a", owner="ada").expire(timedelta(days=40))
    assert lives() == {True}
    member = digest(new_store().conversation("a", owner="ada"))
    until = server.raw.zscore(ada.keys.lives, member)
    assert until - server.raw.zscore(ada.keys.conversations, member) / 1000 > 39 * day


@pytest.mark.keeps_keys
async def test_one_that_is_kept_for_ever_keeps_the_lists(
    store: AsyncStore, server: Server, prefix: str
) -> None:
    ada = Owner(server, prefix)
    chat = store.conversation("a", owner="ada")
    await chat.append("hi")
    await chat.expire(None)
    assert {ada.pttl(name) for name in ("conversations", "lives", "names")} == {-1}
    await store.conversation("b", owner="ada").append("hi")
    assert ada.pttl("conversations") == -1
    assert server.raw.zscore(ada.keys.lives, digest(chat)) == float("inf")
    await store.erase("ada")


async def test_expire_of_what_is_not_there_makes_no_list(
    store: AsyncStore, server: Server, prefix: str
) -> None:
    assert not await store.conversation("a", owner="ada").expire(timedelta(hours=1))
    assert Owner(server, prefix).stored == set()


async def test_clear_takes_it_off_the_lists(store: AsyncStore, server: Server, prefix: str) -> None:
    ada = Owner(server, prefix)
    for name in "ab":
        chat = store.conversation(name, owner="ada")
        await chat.append("hi")
        await chat.set_title(name)
    first = store.conversation("a", owner="ada")
    assert await first.clear()
    assert await listed(store) == ["b"]
    assert ada.agrees
    assert await first.title() is None
    assert await store.conversation("b", owner="ada").trim(0) == 1
    assert ada.stored == {"generation", "cleared"}
    assert 0 < ada.pttl("cleared") <= 2 * 86_400_000
    await first.append("anew")
    assert await listed(store) == ["a"]


@pytest.mark.parametrize("id_", ['"', "\\", "é", "\x00", "[1]", "😀", "x" * 5_000, "0", "null"])
async def test_any_id_is_listed_as_it_is(store: AsyncStore, id_: str) -> None:
    chat = store.conversation(id_, owner="ada")
    await chat.append("hi")
    await chat.set_title("T")
    assert [(info.id, info.title) for info in await store.conversations("ada")] == [(id_, "T")]


async def test_an_id_that_was_lost_is_not_guessed(
    store: AsyncStore, server: Server, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    for name in "ab":
        await store.conversation(name, owner="ada").append("hi")
    first = store.conversation("a", owner="ada")
    server.raw.hdel(Owner(server, prefix).keys.names, digest(first))
    assert await listed(store) == ["b"]
    assert f"the id of conversation {digest(first)} is lost" in caplog.text
    await first.append("hi")
    assert await listed(store) == ["a", "b"], "a write says it again"


# Forks


async def test_a_fork_belongs_to_the_same_owner(store: AsyncStore) -> None:
    chat = store.conversation("a", owner="ada")
    await chat.append("hi")
    copy = await chat.fork("b")
    assert copy.key == store.conversation("b", owner="ada").key
    assert await listed(store) == ["b", "a"]
    await chat.fork("b")
    assert texts(await copy.read()) == ["hi"]
    again = await chat.fork("c", owner="ada")
    assert again.key == store.conversation("c", owner="ada").key
    with pytest.raises(ValueError, match="that owner alone"):
        await chat.fork("d", owner="bob")
    with pytest.raises(ValueError, match="onto itself"):
        await chat.fork("a")


async def test_a_copy_has_no_title(store: AsyncStore) -> None:
    chat, taken = (store.conversation(name, owner="ada") for name in "ab")
    for one in (chat, taken):
        await one.append("hi")
        await one.set_title("Mine")
    await taken.rewind()
    for name in "bc":
        assert await (await chat.fork(name)).title() is None
    assert await chat.title() == "Mine"


async def test_a_conversation_without_owner_is_given_one_by_a_fork(store: AsyncStore) -> None:
    chat = store.conversation("a")
    await chat.append("hi")
    theirs = await chat.fork("a", owner="ada")
    assert texts(await theirs.read()) == ["hi"]
    assert await listed(store) == ["a"]
    await chat.clear()
    assert texts(await theirs.read()) == ["hi"]
    assert (await store.erase("ada")).turns == 1


async def test_a_conversation_says_its_id_and_its_owner(store: AsyncStore) -> None:
    chat = store.conversation("é:{1}", owner="ada@example.com")
    assert (chat.id, chat.owner) == ("é:{1}", "ada@example.com")
    alone = store.conversation("b")
    assert (alone.id, alone.owner) == ("b", None)
    await chat.append("hi")
    copy = await chat.fork("c")
    assert (copy.id, copy.owner) == ("c", "ada@example.com")
    assert "ada@" not in repr(chat), "it is written to logs"
    with pytest.raises(AttributeError):
        chat.id = "d"  # type: ignore[misc]  # what is shown


# What it costs


@pytest.mark.servers("redis", "cluster")
async def test_the_commands(new_store: NewStore, proxy: Proxy) -> None:
    store = new_store(at=proxy)
    chat = store.conversation("c", owner="ada")

    async def commands(doing: Any) -> list[str]:
        await doing()
        proxy.clear()
        await doing()
        return proxy.seen

    async def turn() -> None:
        async with chat.turn("q") as one:
            one.reply("a")

    assert await commands(lambda: chat.append("hi")) == ["EVALSHA"] * 2
    assert await commands(chat.read) == ["LRANGE"]
    assert await commands(turn) == ["EVALSHA", "LRANGE", "EVALSHA"]
    assert await commands(lambda: chat.set_title("T")) == ["EVALSHA"] * 2
    assert await commands(chat.title) == ["EVALSHA"]
    assert await commands(lambda: store.conversations("ada")) == ["EVALSHA"] * 2
    assert await commands(chat.clear) == ["EVALSHA"]
    assert await commands(lambda: store.conversations("ada")) == ["EVALSHA"]
    assert await commands(lambda: store.erase("ada")) == ["EVALSHA"] * 2
