"""One conversation of one store: where it lies, and the store's settings for it.

Checks what callers hand in, before anything is sent, and answers the flows of
`_history`. Sync and async handles share it; it holds no connection.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypedDict

from . import _element, _history, _json, _keys
from ._calls import Flow
from ._history import Draft
from ._keys import Keys
from ._windowing import Density
from .context import Context, Summary, TokenCounter
from .context.summary import Carried, carried, fold, is_due
from .context.tokens import token_counter
from .errors import LimitError
from .messages import Format, Input, Message, format_named, plain_messages
from .results import Appended, History, Stat, Turn, TurnPage
from .window import Window, limit

__all__ = [
    "DEFAULT_WINDOW",
    "Home",
    "Place",
    "Settings",
    "check_turn_id",
    "check_window",
    "plain_meta",
]

DEFAULT_WINDOW = Window(messages=100)

_MILLISECOND = timedelta(milliseconds=1)
# Visible ASCII without what would need an escape between the quotes of JSON.
_TURN_ID = re.compile(r"[!#-\[\]-~]{1,64}")
_REVISION = re.compile(r"0|\d+-[!#-\[\]-~]{1,64}")


class StoreOptions(TypedDict, total=False):
    """What `Store` takes beside a client and a name; see there."""

    prefix: str
    secret: bytes | None
    max_messages: int | None
    ttl: timedelta | None
    max_turn_messages: int | None
    max_turn_bytes: int | None
    count_tokens: str | Callable[[Message], int] | TokenCounter | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The limits of a store, checked once."""

    max_messages: int | None
    ttl: timedelta | None
    max_turn_messages: int | None
    max_turn_bytes: int | None
    count_tokens: str | Callable[[Message], int] | TokenCounter | None
    ttl_ms: int = field(init=False)
    """The time to live in milliseconds, 0 for ever."""

    def __post_init__(self) -> None:
        for name in ("max_messages", "max_turn_messages", "max_turn_bytes"):
            limit(f"{name}={{}}", getattr(self, name))
        object.__setattr__(self, "ttl_ms", milliseconds(self.ttl))

    def draft(
        self,
        messages: list[Message],
        turn_id: str | None,
        rules: Format,
        meta: dict[str, Any],
        counter: TokenCounter | None,
    ) -> Draft:
        """Count and serialise the messages of a turn.

        Raises:
            LimitError: They are too many, or too large.
            ValueError: The turn id or the meta cannot be stored.
        """
        turn_id = _history.new_turn_id() if turn_id is None else check_turn_id(turn_id)
        if self.max_turn_messages is not None and len(messages) > self.max_turn_messages:
            msg = (
                f"the turn has {len(messages)} messages, and max_turn_messages is "
                f"{self.max_turn_messages}; nothing was written"
            )
            raise LimitError(msg)
        payload = _element.encode(messages, plain_meta(meta))
        if self.max_turn_bytes is not None and len(payload.data) > self.max_turn_bytes:
            msg = (
                f"the turn has {len(payload.data)} bytes, and max_turn_bytes is "
                f"{self.max_turn_bytes}; nothing was written"
            )
            raise LimitError(msg)
        tokens, name = (counter.total(messages), counter.name) if counter else (0, "")
        return Draft(turn_id, rules.name, len(messages), tokens, name, payload)


class Home:
    """A store without its connection: names, settings, and what its reads have learnt."""

    __slots__ = ("_prefix", "_secret", "_store", "counter", "density", "settings")

    def __init__(self, name: str, prefix: str, secret: bytes | None, settings: Settings) -> None:
        self._prefix = _keys.check_prefix(prefix)
        self._secret = _keys.check_secret(secret)
        self._store = _keys.store_digest(name, self._secret)
        self.settings = settings
        self.density = Density()
        self.counter: TokenCounter | None = None
        """What counts tokens: what the settings say, or from the first limit of tokens on,
        the default."""
        if settings.count_tokens is not None:
            self.counter = token_counter(settings.count_tokens)

    def place(self, identifier: str) -> Place:
        """Find the place of a conversation by its id."""
        digest = _keys.conversation_digest(identifier, self._secret)
        return Place(self, _keys.key_names(self._prefix, self._store, digest))


class Place:
    """The operations of one conversation, as flows."""

    __slots__ = ("_home", "keys")

    def __init__(self, home: Home, keys: Keys) -> None:
        self.keys = keys
        self._home = home

    @property
    def settings(self) -> Settings:
        """The settings of the store."""
        return self._home.settings

    @property
    def counter(self) -> TokenCounter | None:
        """What counts the tokens of the store."""
        return self._home.counter

    def summarize(self, context: Context) -> Flow[str]:
        """Fold what stands before the window into the summary."""
        if not isinstance(context, Context) or context.summary is None:
            msg = (
                "summarize() takes a Context that has a summary, as in Context(summary=Summary(…))"
            )
            raise TypeError(msg)
        return self._summarize(context, context.summary)

    def carry(
        self, context: Context, history: History, shown: History, *, closes: bool
    ) -> Flow[tuple[str, Flow[Carried] | None]]:
        """Give the summary to send before a history, and what is to be folded after the save.

        Args:
            context: What has a summary, or none.
            history: What the window holds.
            shown: The part of it that is sent.
            closes: Whether a topic ends with this history, which is then folded whole.
        """
        summary = context.summary
        if summary is None or not history:
            return "", None
        first = shown.elements[0].turn if shown else history.elements[-1].turn + 1
        if first == 1:
            return "", None  # nothing stands before it, and nothing ever did
        known = yield from carried(self.keys, context.counts)
        after: Flow[Carried] | None = None
        # Where no older turn is held, those before the window were dropped: nothing to fold.
        due = shown.has_older and is_due(summary, known, first, shown.tokens_before)
        if closes or due:
            folding = fold(self.keys, summary, first, context.counts)
            if summary.when == "before":
                folded = yield from folding
                known = folded if folded.text else known
            elif summary.when == "after":
                after = folding
        return summary.carried(known), after

    def _summarize(self, context: Context, summary: Summary) -> Flow[str]:
        history = yield from self.read(context.window)
        elements = history.elements
        if not elements:
            return ""
        known = yield from fold(self.keys, summary, elements[0].turn, context.counts, strict=True)
        return known.text

    def sibling(self, identifier: str) -> Place:
        """Find the place of another conversation of the same store."""
        return self._home.place(identifier)

    def append(  # noqa: PLR0913 - the options of the public append
        self,
        messages: Input,
        *,
        turn_id: str | None,
        expected_revision: str | None,
        continues: bool,
        format: str,  # noqa: A002 - the public name
        meta: dict[str, Any] | None,
    ) -> Flow[Appended]:
        """Append what a caller gave."""
        rules = format_named(format)
        plain = plain_messages(messages, rules)
        draft = self.draft(plain, turn_id, rules, meta or {})
        return self.append_draft(draft, expected_revision, continues=continues)

    def draft(
        self, messages: list[Message], turn_id: str | None, rules: Format, meta: dict[str, Any]
    ) -> Draft:
        """Count and serialise the messages of a turn; see `Settings.draft`."""
        return self.settings.draft(messages, turn_id, rules, meta, self._home.counter)

    def append_draft(
        self,
        draft: Draft,
        expected_revision: str | None = None,
        *,
        continues: bool = False,
        lease: str = "",
    ) -> Flow[Appended]:
        """Append a turn that is ready; with a lease, only if no other was granted since."""
        return _history.append(
            self.keys,
            draft,
            ttl_ms=self.settings.ttl_ms,
            max_messages=self.settings.max_messages or 0,
            expected=check_revision(expected_revision),
            continues=continues,
            lease=lease,
        )

    def read(self, window: Window | None) -> Flow[History]:
        """Read the newest turns that fit."""
        window = check_window(window)
        home = self._home
        if window.tokens is not None and home.counter is None:
            home.counter = token_counter(None)
        return _history.read(self.keys, window, home.density, home.counter)

    def turns(self, limit_: int, before: int | None) -> Flow[TurnPage]:
        """Read a page of turns."""
        ordinal("turns({})", limit_)
        ordinal("turns(before={})", before, optional=True)
        return _history.page(self.keys, limit_, before)

    def trim(self, messages: int | None, turns: int | None) -> Flow[int]:
        """Drop the oldest turns, or all of them."""
        if messages is None and turns is None:
            msg = "trim() needs a limit: the messages or the turns to keep"
            raise TypeError(msg)
        # 0 is the one limit that keeps no turn; `window.limit` has no word for it.
        nothing = [type(kept) is int and kept == 0 for kept in (messages, turns)]
        for what, kept, none in (
            ("trim({})", messages, nothing[0]),
            ("trim(turns={})", turns, nothing[1]),
        ):
            ordinal(what, 1 if none else kept, optional=True, least=0)
        if any(nothing):
            return _history.clear(self.keys)
        return _history.trim(self.keys, messages or 0, turns or 0)

    def clear(self) -> Flow[int]:
        """Delete everything."""
        return _history.clear(self.keys)

    def expire(self, ttl: timedelta | None) -> Flow[bool]:
        """Set the remaining life."""
        return _history.expire(self.keys, milliseconds(ttl))

    def rewind(self, turns: int, expected_revision: str | None) -> Flow[list[Turn]]:
        """Undo the newest turns."""
        ordinal("rewind({})", turns)
        return _history.rewind(self.keys, turns, check_revision(expected_revision))

    def fork(self, target: Place, upto: int | None) -> Flow[int]:
        """Copy to another place."""
        ordinal("fork(upto={})", upto, optional=True)
        if target.keys == self.keys:
            msg = "a conversation cannot be forked onto itself; give another id"
            raise ValueError(msg)
        ttl_ms = self.settings.ttl_ms
        return _history.fork(self.keys, target.keys, upto, ttl_ms)

    def stat(self) -> Flow[Stat]:
        """Measure it."""
        return _history.stat(self.keys)


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
            "quotes or backslashes"
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
        ValueError: It is below the least one.
    """
    if optional and value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        msg = f"{what.format(repr(value))}: a whole number is needed"
        raise TypeError(msg)
    if value < least:
        msg = f"{what.format(value)}: the least is {least}"
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
