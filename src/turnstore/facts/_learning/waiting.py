"""Which conversations have turns that were not read for facts, as far as Redis knows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from turnstore import _owners
from turnstore._calls import Call, Flow, Together
from turnstore._place import Place
from turnstore.errors import CorruptTurnError
from turnstore.results import ConversationInfo, ConversationPage

from .._storing.record import stamp
from .cursors import Cursor

if TYPE_CHECKING:
    from turnstore._place import Home

    from .._owner import OwnerPlace

__all__ = ["told", "unread_of"]

_PAGE = 100
# The ordinal of the newest element, and its id.
_HEAD = re.compile(rb"head 1 (\d+) .* (\S+)$")


class _Seen(NamedTuple):
    """One conversation of an owner: where it is, and whether it was told of, and waits."""

    place: Place
    is_told: bool
    waits: bool


def told(home: Home, owner: OwnerPlace) -> Flow[list[Place]]:
    """Find the conversations that an extraction was told of, and that wait: three calls.

    Of an owner with very many, only the hundred that were written to last are looked at.

    Args:
        home: The store.
        owner: Whose they are.
    """
    page: ConversationPage = yield from _owners.page(owner.owner_keys, _PAGE, None)
    seen = yield from _look(home, owner, page)
    return [one.place for one in seen if one.is_told and one.waits]


def unread_of(home: Home, owner: OwnerPlace) -> Flow[list[Place]]:
    """Find all conversations of an owner that wait, whoever was told of them.

    One call, and three for each hundred conversations. Those that were read and are gone are
    among them: what was drawn from them may have to be undone.

    Args:
        home: The store.
        owner: Whose they are.
    """
    places: list[Place] = []
    listed: set[str] = set()
    before: int | None = None
    while True:
        page: ConversationPage = yield from _owners.page(owner.owner_keys, _PAGE, before)
        for one in (yield from _look(home, owner, page)):
            listed.add(one.place.keys.member)
            if one.waits:
                places.append(one.place)
        before = page.cursor
        if before is None:
            break
    read: list[bytes] = yield _call(owner, "hkeys")
    gone = (digest for digest in map(bytes.decode, read) if digest not in listed)
    return [*places, *(Place(home, owner.owner_keys.conversation(digest)) for digest in gone)]


def _look(home: Home, owner: OwnerPlace, page: ConversationPage) -> Flow[list[_Seen]]:
    """Compare the newest element of each conversation with its cursor: one call."""
    if not page:
        return []
    places = [_place(home, owner, info) for info in page]
    members = tuple(place.keys.member for place in places)
    cursors = _call(owner, "hmget", *members)
    # What cannot be read is not looked into here, where it would be in the way of the others.
    readable = [place for place, info in zip(places, page, strict=True) if info.turns is not None]
    stands, *heads = yield Together((cursors, *map(_head, readable)))
    newest = dict(zip((place.keys.member for place in readable), heads, strict=True))
    return [
        _Seen(place, bool(text), _waits(info, newest.get(place.keys.member, ""), text))
        for place, info, text in zip(places, page, stands, strict=True)
    ]


def _waits(info: ConversationInfo, newest: str, text: bytes | None) -> bool:
    """Tell whether the newest element is another one than the last that was read."""
    try:
        cursor = Cursor.of((text or b"").decode())
    except CorruptTurnError:  # which whoever reads it is told
        return True
    if newest != f"{cursor.no}-{cursor.turn_id}":
        return True
    # A turn that was undone may have come again under its id: it is younger than what was read.
    return stamp(info.last_activity) > cursor.time_ms


def _place(home: Home, owner: OwnerPlace, info: ConversationInfo) -> Place:
    name = _owners.listing_name(info.id)
    keys = owner.owner_keys.conversation(owner.conversation(info.id), name)
    return Place(home, keys, info.id)


def _call(owner: OwnerPlace, command: str, *arguments: str) -> Call:
    return Call("extract", (owner.keys.cursors,), command, arguments, writes=False, read=list)


def _head(place: Place) -> Call:
    return Call("extract", (place.keys.turns,), "lindex", (0,), writes=False, read=_newest)


def _newest(head: bytes | None) -> str:
    """Give the revision of a conversation; no revision where it is gone, or of another layout."""
    found = _HEAD.match(head or b"")
    return "-".join(part.decode() for part in found.groups()) if found else ""
