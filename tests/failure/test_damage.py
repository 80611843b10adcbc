"""What is stored was changed by hand, or by a later version: told apart, never guessed at.

Whatever was done to a list: no operation fails with another error than ours, what fails
changes nothing, `clear` works, and the conversation can then be used again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from turnstore import (
    AsyncConversation,
    ConflictError,
    CorruptTurnError,
    FormatError,
    TurnstoreError,
    Window,
    WrongTypeError,
)

if TYPE_CHECKING:
    from tests.servers.running import Client, Server
    from turnstore import AsyncStore

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis", "valkey")]

Damage = Callable[["Client", str], object]

ALL = Window()
FIELDS = ("format number", "no", "turn", "messages", "tokens", "time", "count", "format", "id")
HEAD = (
    *("word", "format number", "no", "turn", "messages", "tokens"),
    *("first_no", "first_turn", "messages_before", "tokens_before", "oldest id"),
)


async def _chat(store: AsyncStore) -> AsyncConversation:
    """Make a conversation of the turns 1 to 6, of which the third has two pieces."""
    chat = store.conversation("ada")
    for number in range(1, 8):
        await chat.append(f"say {number}", turn_id=f"id-{number}", continues=number == 4)
    return chat


def _element(index: int, change: Callable[[list[Any]], object]) -> Damage:
    def damage(client: Client, key: str) -> None:
        row = json.loads(client.lindex(key, index))
        change(row)
        client.lset(key, index, json.dumps(row, separators=(",", ":")))

    return damage


def _field(index: int) -> Damage:
    def change(row: list[Any]) -> None:
        row[index] = row[index] + 7 if isinstance(row[index], int) else "other"

    return _element(4, change)


def _without_field(index: int) -> Damage:
    return _element(4, lambda row: row.pop(index))


def _head_field(index: int) -> Damage:
    def damage(client: Client, key: str) -> None:
        words = client.lindex(key, 0).split(b" ")
        words[index] = b"%d" % (int(words[index]) + 7) if words[index].isdigit() else b"other"
        client.lset(key, 0, b" ".join(words))

    return damage


def _text(index: int, text: bytes) -> Damage:
    return lambda client, key: client.lset(key, index, text)


def _removed(index: int) -> Damage:
    def damage(client: Client, key: str) -> None:
        client.lset(key, index, b"gone")
        client.lrem(key, 1, b"gone")

    return damage


def _doubled(client: Client, key: str) -> None:
    element = client.lindex(key, 4)
    client.linsert(key, "BEFORE", element, element)


# A read of everything says that these are wrong.
SEEN: dict[str, tuple[Damage, type[TurnstoreError]]] = {
    "format number of an element": (_field(0), FormatError),
    "messages of an element": (_element(4, lambda row: row[-1].clear()), CorruptTurnError),
    "half an element": (_text(4, b'[1,4,3,4,0,1795991367444,1,"openai.'), CorruptTurnError),
    "an empty element": (_text(4, b""), CorruptTurnError),
    "text for an element": (_text(4, b"hello"), CorruptTurnError),
    "bytes for an element": (_text(4, b"\xff\x00\xfe"), CorruptTurnError),
    "JSON for an element": (_text(4, b'{"role":"user"}'), CorruptTurnError),
    "an element removed": (_removed(4), CorruptTurnError),
    "an element doubled": (_doubled, CorruptTurnError),
    "a later format of the head": (_text(0, b"head 2 something else"), FormatError),
    "a later element": (_text(4, b'[2,"something else"]'), FormatError),
    "no head": (_removed(0), CorruptTurnError),
    "an empty head": (_text(0, b""), CorruptTurnError),
    "text for the head": (_text(0, b"hello"), CorruptTurnError),
    "half a head": (_text(0, b"head 1 7 6"), CorruptTurnError),
    **{
        f"no {name}": (_without_field(index), CorruptTurnError)
        for index, name in enumerate(FIELDS[1:], 1)
    },
}

# These still look like something that turnstore wrote.
PLAUSIBLE: dict[str, Damage] = {
    **{f"{name} of an element": _field(index) for index, name in enumerate(FIELDS) if index > 0},
    **{f"{name} of the head": _head_field(index) for index, name in enumerate(HEAD) if index > 1},
    "the oldest element removed": _removed(1),
    "the newest element removed": _removed(-1),
}


async def _turn(chat: AsyncConversation) -> None:
    async with chat.turn("new", turn_id="new") as turn:
        turn.reply("answer")


Act = Callable[[AsyncConversation], Awaitable[object]]

OPERATIONS: dict[str, Act] = {
    "append": lambda chat: chat.append("new", turn_id="new"),
    "append-expecting": lambda chat: chat.append("new", expected_revision="7-id-7"),
    "append-again": lambda chat: chat.append("say 7", turn_id="id-7"),
    "read": lambda chat: chat.read(),
    "read-two": lambda chat: chat.read(Window(turns=2)),
    "turns": lambda chat: chat.turns(),
    "turns-before": lambda chat: chat.turns(2, before=5),
    "trim": lambda chat: chat.trim(turns=2),
    "rewind": lambda chat: chat.rewind(4),
    "fork": lambda chat: chat.fork("other"),
    "stat": lambda chat: chat.stat(),
    "expire": lambda chat: chat.expire(timedelta(hours=1)),
    "turn": _turn,
}


@pytest.mark.parametrize("name", SEEN)
async def test_a_read_says_what_is_wrong(store: AsyncStore, server: Server, name: str) -> None:
    damage, error = SEEN[name]
    chat = await _chat(store)
    damage(server.raw, chat.key)
    before = server.raw.lrange(chat.key, 0, -1)
    with pytest.raises(error, match=re.escape(chat.key)):
        await chat.read(ALL)
    with pytest.raises(error):
        await chat.turns()
    assert server.raw.lrange(chat.key, 0, -1) == before


@pytest.mark.parametrize("name", [*SEEN, *PLAUSIBLE])
async def test_only_errors_of_ours_and_nothing_half_done(
    store: AsyncStore, server: Server, name: str
) -> None:
    damage = SEEN[name][0] if name in SEEN else PLAUSIBLE[name]
    for operation, act in OPERATIONS.items():
        chat = await _chat(store)
        damage(server.raw, chat.key)
        before = server.raw.lrange(chat.key, 0, -1)
        try:
            await act(chat)
        except (CorruptTurnError, FormatError, ConflictError) as error:
            assert server.raw.lrange(chat.key, 0, -1) == before, operation
            if "a stored turn has the format" not in str(error):
                left = re.search("nothing was (written|undone)|left as it is", str(error))
                assert left, error  # noqa: PT017 (some operations rightly succeed)
        assert await chat.clear(), operation
        await store.conversation("other").clear()
        await chat.append("afresh")
        assert [message["content"] for message in await chat.read()] == ["afresh"]
        await chat.clear()


@pytest.mark.parametrize("name", ["an element removed", "an empty element", "a later element"])
async def test_newer_turns_are_still_read_and_a_trim_drops_the_damage(
    store: AsyncStore, server: Server, name: str
) -> None:
    chat = await _chat(store)
    SEEN[name][0](server.raw, chat.key)
    newer = ["say 6", "say 7"]
    assert [message["content"] for message in await chat.read(Window(turns=2))] == newer
    await chat.append("say 8")
    if name != "an element removed":
        with pytest.raises((CorruptTurnError, FormatError)):
            await chat.trim(turns=3)
        return
    await chat.trim(turns=3)
    assert [message["content"] for message in await chat.read(ALL)] == [*newer, "say 8"]


async def test_a_lost_newest_element_is_noticed_after_the_next_append(
    store: AsyncStore, server: Server
) -> None:
    chat = await _chat(store)
    server.raw.rpop(chat.key)
    await chat.append("say 8")
    with pytest.raises(CorruptTurnError, match="element 6 is followed by element 8"):
        await chat.read()


@pytest.mark.parametrize("operation", [*OPERATIONS, "clear"])
@pytest.mark.parametrize("kind", ["string", "hash", "stream"])
async def test_a_key_of_another_type_stays(
    store: AsyncStore, server: Server, kind: str, operation: str
) -> None:
    chat, other = store.conversation("ada"), store.conversation("bob")
    fill = {
        "string": lambda: server.raw.set(chat.key, "x"),
        "hash": lambda: server.raw.hset(chat.key, "x", "y"),
        "stream": lambda: server.raw.xadd(chat.key, {"x": "y"}),
    }
    fill[kind]()
    server.raw.pexpire(chat.key, 60_000)
    act: Act = {**OPERATIONS, "clear": lambda chat: chat.clear()}[operation]
    if operation == "expire":
        await act(chat)  # any key can be given a life
    else:
        with pytest.raises(TurnstoreError) as caught:
            await act(chat)
        error = caught.value
        assert isinstance(error, WrongTypeError)
        assert "nothing was changed" in str(error)
    assert server.raw.type(chat.key) == kind.encode()
    await other.append("elsewhere")
    server.raw.delete(chat.key)
    await chat.append("afresh")
    assert len(await chat.read()) == 1
