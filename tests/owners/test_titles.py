"""The titles of an owner's conversations, and how long they last."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.owners.helping import NOTE, Owner, digest
from tests.owners.test_list import listed
from tests.waiting import wait_until_async

if TYPE_CHECKING:
    from tests.servers.running import Server
    from turnstore import AsyncStore

# What protocol and decoding do to lists of owners, test_list.py looks at.
pytestmark = pytest.mark.one_setup


async def test_a_title(store: AsyncStore) -> None:
    chat = store.conversation("c", owner="ada")
    assert await chat.title() is None
    assert not await chat.set_title("Too early")
    assert await chat.title() is None
    await chat.append("hi")
    for title in ("Boats", "x" * 200, 'é"😀\\\n', None, "Again"):
        assert await chat.set_title(title)
        assert await chat.title() == title
        assert [(info.id, info.title) for info in await store.conversations("ada")] == [
            ("c", title)
        ]
    await chat.append("more")
    assert await chat.title() == "Again", "an append keeps it"
    await chat.clear()
    assert await chat.title() is None
    assert not await chat.set_title("Too late")


LISTED = pytest.mark.parametrize("is_listed", [True, False])
"""Whether somebody lists meanwhile: a page that shows the list does so at any moment."""


@LISTED
async def test_a_title_outlasts_an_undo(store: AsyncStore, *, is_listed: bool) -> None:
    chat = store.conversation("c", owner="ada")
    await chat.append("hi")
    await chat.set_title("Mine")
    for _ in range(2):
        await chat.rewind()
        if is_listed:
            assert await listed(store) == []
        assert await chat.title() is None
        await chat.append("Said in another way")
        assert await chat.title() == "Mine"
        assert [info.title for info in await store.conversations("ada")] == ["Mine"]
    for title in (None, "Another", None):
        await chat.rewind()
        assert await chat.set_title(title), "it is for the turn that comes"
        assert await chat.title() is None
        await chat.append("And again")
        assert await chat.title() == title


@LISTED
async def test_a_title_outlasts_an_undo_while_numbers_are_ahead_of_the_clock(
    store: AsyncStore, ada: Owner, *, is_listed: bool
) -> None:
    """As they are after the server's clock was ahead for a while."""
    chat = store.conversation("c", owner="ada")
    await chat.append("hi")
    await chat.set_title("Mine")
    assert ada.generation
    ada.change(number=ada.generation.number + 3_600_000_000)
    await chat.append("more")
    await chat.rewind(2)
    if is_listed:
        assert await listed(store) == []
    await chat.append("Said in another way")
    assert await chat.title() == "Mine"


@LISTED
async def test_a_title_does_not_outlast_an_undo_for_ever(
    store: AsyncStore, server: Server, prefix: str, *, is_listed: bool
) -> None:
    chat = store.conversation("c", owner="ada")
    await chat.append("hi")
    await chat.set_title("Mine")
    await chat.rewind()
    Owner(server, prefix).age_undone(chat)
    if is_listed:
        assert await listed(store) == []
    assert not await chat.set_title("Too late")
    await chat.append("The day after tomorrow")
    assert await chat.title() is None


@LISTED
@pytest.mark.parametrize("before", ["nothing", "undone", "replaced"])
async def test_a_title_expires_with_its_conversation(
    store: AsyncStore, server: Server, *, is_listed: bool, before: str
) -> None:
    chat = store.conversation("c", owner="ada")
    await chat.append("hi", turn_id="first")
    await chat.set_title("Mine")
    if before == "undone":
        await chat.rewind()
        await chat.append("Said in another way")
    if before == "replaced":
        async with chat.turn("Said in another way", replaces="first") as turn:
            turn.reply("Yes?")
        assert await chat.title() == "Mine"
    await chat.expire(timedelta(milliseconds=1))
    await wait_until_async(lambda: not server.raw.exists(chat.key))
    if is_listed:
        assert await listed(store) == []
    assert await chat.title() is None
    await chat.append("Another conversation")
    assert await chat.title() is None
    assert [info.title for info in await store.conversations("ada")] == [None]


async def test_what_was_undone_is_cleared_and_erased(
    store: AsyncStore, server: Server, prefix: str
) -> None:
    ada = Owner(server, prefix)
    first, second = (store.conversation(name, owner="ada") for name in "ab")
    for chat in (first, second):
        await chat.append("hi")
        await chat.set_title("Mine")
        await chat.rewind()
    assert len(ada.listed) == 2
    assert not await first.clear()
    assert ada.listed == [digest(second)]
    await first.append("Anew")
    assert await first.title() is None
    await store.erase("ada")
    assert ada.stored == NOTE


@pytest.mark.parametrize(
    "title, error",
    [
        ("", ValueError),
        ("x" * 201, ValueError),
        ("\ud83d", ValueError),
        (7, TypeError),
        (b"", TypeError),
    ],
)
async def test_what_is_no_title(store: AsyncStore, title: Any, error: type[Exception]) -> None:
    chat = store.conversation("c", owner="ada")
    await chat.append("hi")
    with pytest.raises(error, match="title"):
        await chat.set_title(title)
    assert await chat.title() is None


async def test_a_title_needs_an_owner(store: AsyncStore) -> None:
    chat = store.conversation("c")
    await chat.append("hi")
    with pytest.raises(TypeError, match="needs an owner"):
        await chat.set_title("x")
    with pytest.raises(TypeError, match="needs an owner"):
        await chat.title()
