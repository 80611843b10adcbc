"""What belongs to an owner: the list of conversations, and their titles.

An owner's keys lie in one slot, with all of the owner's conversations, so that each script
sees them at one moment. Whatever is going to write is given a number first (`begun`), and
each script that writes demands that nothing was erased at a later one: `lua/lib/owner.lua`.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from . import _json
from ._calls import Call, Flow
from ._history import script_call
from ._keys import Keys, OwnerKeys
from .results import ConversationInfo, ConversationPage

__all__ = [
    "TITLE_LENGTH",
    "begin",
    "begun",
    "listing_name",
    "page",
    "set_title",
    "title",
]

log = logging.getLogger("turnstore")

TITLE_LENGTH = 200
"""Characters that a title may have."""


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def begin(keys: Keys | OwnerKeys) -> Call:
    """Ask for the number of what begins now."""
    return script_call("owner_begin", keys, {}, int, writes=False, operation="begin")


def begun(keys: Keys | OwnerKeys) -> Flow[int]:
    """Begin; 0 without a call where the conversation has no owner."""
    if isinstance(keys, Keys) and keys.owner is None:
        return 0
    number: int = yield begin(keys)
    return number


def listing_name(identifier: str, title: str = "") -> bytes:
    """Write what an owner's list has for a conversation: its id, and its title."""
    parts = [identifier, title] if title else [identifier]
    return _json.dumps(parts)[1]


class _Row(NamedTuple):
    member: bytes
    number: int
    name: bytes


def page(keys: OwnerKeys, limit: int, before: int | None) -> Flow[ConversationPage]:
    """List an owner's conversations: two calls, more where some have ended."""
    shown: list[tuple[int, ConversationInfo]] = []
    number = before or 0
    while True:
        wanted = limit + 1 - len(shown)
        rows: list[_Row] = yield script_call(
            "owner_page",
            keys,
            {"before": number, "limit": wanted},
            _read_rows,
            writes=False,
            operation="list",
        )
        if rows:
            number = rows[-1].number
            counts: list[int] = yield script_call(
                "owner_counts",
                keys,
                {},
                list,
                writes=False,
                further=[row.member for row in rows],
                further_keys=[keys.conversation(row.member.decode()).turns for row in rows],
                operation="list",
            )
            for row, turns, messages in zip(rows, counts[::2], counts[1::2], strict=True):
                if turns:  # 0: it has ended
                    shown += [(row.number, info) for info in _info(row, turns, messages)]
        if len(shown) > limit or len(rows) < wanted:
            break
    cursor = shown[limit - 1][0] if len(shown) > limit else None
    return ConversationPage([info for _, info in shown[:limit]], cursor)


def _info(row: _Row, turns: int, messages: int) -> list[ConversationInfo]:
    if not row.name:
        log.warning("the id of conversation %s is lost; it is not listed", row.member.decode())
        return []
    identifier, *titles = _json.loads(row.name)
    return [
        ConversationInfo(
            id=identifier,
            title=titles[0] if titles else None,
            last_activity=_EPOCH + timedelta(microseconds=row.number),
            turns=turns if turns >= 0 else None,
            messages=messages if turns >= 0 else None,
        )
    ]


def title(keys: Keys) -> Flow[str | None]:
    """Read the title of a conversation: one call."""
    stored: str | None = yield script_call(
        "owner_name", keys, {}, _read_title, writes=False, operation="title"
    )
    return stored


def set_title(keys: Keys, title: bytes) -> Flow[bool]:
    """Give a conversation another title: two calls."""
    began = yield from begun(keys)
    found: bool = yield script_call(
        "owner_title", keys, {"title": title}, bool, began=began, operation="title"
    )
    return found


def _read_rows(reply: list[Any]) -> list[_Row]:
    return [_Row(*reply[place : place + 3]) for place in range(0, len(reply), 3)]


def _read_title(reply: bytes) -> str | None:
    titles = _json.loads(reply)[1:] if reply else []
    return titles[0] if titles else None
