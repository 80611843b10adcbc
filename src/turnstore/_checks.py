"""What callers hand in, checked before anything is sent."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from . import _json
from .window import MOST, Window

__all__ = [
    "DEFAULT_WINDOW",
    "check_revision",
    "check_turn_id",
    "check_window",
    "milliseconds",
    "ordinal",
    "plain_meta",
]

DEFAULT_WINDOW = Window(messages=100)

_MILLISECOND = timedelta(milliseconds=1)
# Visible ASCII without what would need an escape between the quotes of JSON.
_TURN_ID = re.compile(r"[!#-\[\]-~]{1,64}")
_REVISION = re.compile(r"0|\d+-[!#-\[\]-~]{1,64}")


def milliseconds(ttl: timedelta | None) -> int:
    """Give a time to live in whole milliseconds; 0 for None, which keeps forever.

    Raises:
        TypeError: It is not a timedelta.
        ValueError: It is below one millisecond.
    """
    if ttl is None:
        return 0
    if not isinstance(ttl, timedelta):
        msg = f"ttl is a timedelta, or None to keep forever; not {type(ttl).__name__}"
        raise TypeError(msg)
    if ttl < _MILLISECOND:
        msg = f"ttl {ttl} is below one millisecond; None keeps forever, clear() deletes"
        raise ValueError(msg)
    return ttl // _MILLISECOND


def check_window(window: Window | None) -> Window:
    """Give a window, the default one for None."""
    if window is None:
        return DEFAULT_WINDOW
    if not isinstance(window, Window):
        msg = f"window is a Window, as in Window(turns=20); not {type(window).__name__}"
        raise TypeError(msg)
    return window


def check_turn_id(turn_id: str) -> str:
    """Give back a turn id that a header can hold."""
    if not isinstance(turn_id, str):
        msg = f"turn_id is text, not {type(turn_id).__name__}"
        raise TypeError(msg)
    if not _TURN_ID.fullmatch(turn_id):
        msg = (
            f"turn_id {turn_id[:80]!r}: use 1 to 64 visible ASCII characters, no blanks, "
            "double quotes or backslashes"
        )
        raise ValueError(msg)
    return turn_id


def check_revision(revision: str | None) -> str | None:
    """Give back a revision of ours, or None."""
    if revision is None:
        return None
    if not isinstance(revision, str):
        msg = f"a revision is text, not {type(revision).__name__}"
        raise TypeError(msg)
    if not _REVISION.fullmatch(revision):
        msg = f"{revision[:100]!r} is not a revision; take it from a read or an append"
        raise ValueError(msg)
    return revision


def ordinal(what: str, value: int | None, *, optional: bool = False, least: int = 1) -> None:
    """Check a number that counts turns or messages, or names a turn.

    Raises:
        TypeError: It is no whole number.
        ValueError: It is below the least one, or above 2**53.
    """
    if optional and value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        msg = f"{what.format(repr(value))}: a whole number is needed"
        raise TypeError(msg)
    if value < least:
        msg = f"{what.format(value)}: the least is {least}"
        raise ValueError(msg)
    if value > MOST:
        msg = f"{what.format('…')}: the most is 2**53"
        raise ValueError(msg)


def plain_meta(meta: dict[str, Any]) -> dict[str, Any]:
    """Copy what is kept beside the messages of a turn; refuse what is not JSON."""
    if not meta and isinstance(meta, dict):
        return meta
    if not isinstance(meta, dict):
        msg = f"meta is a dict, not {type(meta).__name__}"
        raise TypeError(msg)
    try:
        return _json.plain(meta)  # type: ignore[no-any-return]  # a dict gives a dict
    except ValueError as error:
        msg = f"meta{error}; nothing was written"
        raise ValueError(msg) from error
