"""What an owner has, with every server, protocol and decoding; the other files look at rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.owners.helping import NOTE, Owner, digest
from tests.store.talk import texts
from turnstore import ErasedError, Erasure, Window
from turnstore.context import Context, Summary

if TYPE_CHECKING:
    from tests.servers.running import Server
    from turnstore import AsyncStore

IDS = ['"', "\\", "é", "\x00", "[1]", "😀", "x" * 5_000, "0", "null"]


async def test_the_list_and_its_pages(store: AsyncStore) -> None:
    assert await store.conversations("ada") == []
    for number, id_ in enumerate(IDS):
        chat = store.conversation(id_, owner="ada")
        await chat.append(["q", "a"])
        await chat.append(["q"] * number)
        await chat.set_title(f"Title {number} {id_[:20]}")
        assert await chat.title() == f"Title {number} {id_[:20]}"
    page = await store.conversations("ada", 4)
    rest = await store.conversations("ada", 50, before=page.cursor)
    assert rest.cursor is None
    newest_first = [*page, *rest][::-1]
    assert [(one.id, one.title) for one in newest_first] == [
        (id_, f"Title {number} {id_[:20]}") for number, id_ in enumerate(IDS)
    ]
    assert [(one.turns, one.messages) for one in newest_first[:3]] == [(1, 2), (2, 3), (2, 4)]
    for one in newest_first:
        assert one.last_activity.tzinfo is UTC
        assert abs(datetime.now(UTC) - one.last_activity) < timedelta(minutes=5)


async def test_what_leaves_the_list(
    store: AsyncStore, server: Server, ada: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    cleared, lost, undone, stays = (store.conversation(name, owner="ada") for name in "abcd")
    for chat in (cleared, lost, undone, stays):
        await chat.append("hi")
        await chat.set_title("T")
    copy = await stays.fork("e")
    assert await copy.title() is None
    assert await cleared.clear()
    await undone.rewind()
    assert await stays.expire(timedelta(days=40))
    server.raw.hdel(ada.keys.names, digest(lost))
    assert [one.id for one in await store.conversations("ada")] == ["e", "d"]
    assert f"the id of conversation {digest(lost)} is lost" in caplog.text


async def test_an_erasure_and_its_receipt(store: AsyncStore, ada: Owner) -> None:
    context = Context(Window(turns=1), summary=Summary(lambda _: "summary"))
    for name in ("one", "two"):
        chat = store.conversation(name, owner="ada")
        await chat.append(["q", {"role": "assistant", "content": "a"}])
        for number in (2, 3):
            async with chat.turn(f"q{number}", context=context, on_conflict="serialize") as turn:
                turn.reply(f"a{number}")
        await chat.set_title(f"Title of {name}")
    first, second = (store.conversation(name, owner="ada") for name in ("one", "two"))
    receipt = await first.erase(verify=True)
    assert receipt == Erasure(
        conversations=1, turns=3, messages=6, keys=3, verified=True, parts={"summaries": 1}
    )
    assert await first.read() == []
    assert [one.id for one in await store.conversations("ada")] == ["two"]
    older = second.turn("q")
    await older.__aenter__()
    older.reply("a")
    receipt = await store.erase("ada")
    assert receipt == Erasure(
        conversations=1, turns=3, messages=6, keys=4, verified=False, parts={"summaries": 1}
    ), "three keys, and the one that knew of the first conversation's end"
    assert ada.stored == NOTE
    with pytest.raises(ErasedError):
        await older.save()
    nothing = Erasure(conversations=0, turns=0, messages=0, keys=0, verified=True)
    assert await store.erase("ada", verify=True) == nothing
    await second.append("anew")
    assert texts(await second.read()) == ["anew"]
