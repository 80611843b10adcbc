"""One conversation of one store: where it lies, and the store's settings for it.

Checks what callers hand in, before anything is sent, and answers the flows of
`_history`. Sync and async handles share it; it holds no connection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypedDict

from . import _element, _erasing, _history, _json, _keys, _owners
from ._calls import Ask, Call, Flow
from ._checks import (
    check_revision,
    check_turn_id,
    check_window,
    milliseconds,
    ordinal,
    plain_meta,
)
from ._history import Draft
from ._keys import Keys, OwnerKeys
from ._redaction import Redact, redacted, redacted_text
from ._replacing import Replaces, Search
from ._windowing import Density
from .context import TokenCounter
from .context.tokens import token_counter
from .errors import LimitError
from .messages import Format, Input, Message, format_named, plain_messages
from .results import (
    Appended,
    ConversationPage,
    Cut,
    Erasure,
    History,
    Stat,
    Turn,
    TurnPage,
)
from .window import Window, limit

__all__ = [
    "Home",
    "Place",
    "Settings",
    "StoreOptions",
]


class StoreOptions(TypedDict, total=False):
    """What `Store` takes beside a client and a name; see there."""

    prefix: str
    secret: bytes | None
    max_messages: int | None
    ttl: timedelta | None
    max_turn_messages: int | None
    max_turn_bytes: int | None
    count_tokens: str | Callable[[Message], int] | TokenCounter | None
    redact: Redact | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The limits of a store, checked once."""

    max_messages: int | None
    ttl: timedelta | None
    max_turn_messages: int | None
    max_turn_bytes: int | None
    count_tokens: str | Callable[[Message], int] | TokenCounter | None
    redact: Redact | None = None
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

    __slots__ = ("_secret", "counter", "density", "prefix", "settings", "store")

    def __init__(self, name: str, prefix: str, secret: bytes | None, settings: Settings) -> None:
        self._secret = _keys.check_secret(secret)
        self.prefix = _keys.check_prefix(prefix)
        """What every key begins with."""
        self.store = _keys.store_digest(name, self._secret)
        """The digest of the store's name."""
        self.settings = settings
        self.density = Density()
        self.counter: TokenCounter | None = None
        """What counts tokens: what the settings say, or from the first limit of tokens on,
        the default."""
        if settings.count_tokens is not None:
            self.counter = token_counter(settings.count_tokens)

    def conversation_digest(self, identifier: str) -> str:
        """Digest the id of a conversation."""
        return _keys.conversation_digest(identifier, self._secret)

    def owner_digest(self, owner: str) -> str:
        """Digest the id of an owner."""
        return _keys.owner_digest(owner, self._secret)

    def place(self, identifier: str, owner: str | None = None) -> Place:
        """Find the place of a conversation by its id, and its owner's where it has one."""
        digest = self.conversation_digest(identifier)
        if owner is None:
            keys = _keys.key_names(self.prefix, self.store, digest)
            return Place(self, keys, identifier)
        keys = self.owner(owner).conversation(digest, _owners.listing_name(identifier))
        return Place(self, keys, identifier, owner)

    def owner(self, owner: str) -> OwnerKeys:
        """Find the keys of an owner."""
        return _keys.owner_key_names(self.prefix, self.store, self.owner_digest(owner))

    def conversations(self, owner: str, limit_: int, before: int | None) -> Flow[ConversationPage]:
        """List an owner's conversations."""
        ordinal("conversations(limit={})", limit_)
        ordinal("conversations(before={})", before, optional=True)
        return _owners.page(self.owner(owner), limit_, before)

    def ping(self) -> Flow[None]:
        """Ask for a key of the store, whether or not it is there."""
        key = self.place("ping").keys.turns
        yield Call("ping", (key,), "exists", (), writes=False, read=bool)

    def erase(self, owner: str, *, verify: bool) -> Flow[Erasure]:
        """Delete everything of an owner."""
        return _erasing.erase(self.owner(owner), self.erasers(), verify=bool(verify))

    def erasers(self) -> list[_erasing.Eraser]:
        """Make what an erasure deletes beside conversations."""
        return [make(self) for make in _erasing.ERASERS]


class Place:
    """The operations of one conversation, as flows."""

    __slots__ = ("_home", "identifier", "keys", "owner")

    def __init__(self, home: Home, keys: Keys, identifier: str = "", owner: str = "") -> None:
        self.keys = keys
        self.identifier = identifier
        """The id of the conversation; empty where only its digest is known."""
        self.owner = owner
        """The owner; empty where there is none, or only a digest is known."""
        self._home = home

    @property
    def settings(self) -> Settings:
        """The settings of the store."""
        return self._home.settings

    @property
    def redacts(self) -> bool:
        """Whether messages are changed before they are stored."""
        return self._home.settings.redact is not None

    @property
    def counter(self) -> TokenCounter | None:
        """What counts the tokens of the store."""
        return self._home.counter

    @property
    def density(self) -> Density:
        """What reads of the store have learnt."""
        return self._home.density

    def sibling(self, identifier: str, owner: str | None = None) -> Place:
        """Find the place of another conversation of the same store, and of the same owner.

        Raises:
            ValueError: An owner was given where this conversation has another one.
        """
        mine = self.keys.owner
        if mine is None:
            return self._home.place(identifier, owner)
        if owner is not None and self._home.owner(owner) != mine:
            msg = "a conversation with an owner is forked for that owner alone"
            raise ValueError(msg)
        return self._home.place(identifier, self.owner)

    def begun(self) -> Flow[int]:
        """Begin to write for its owner; 0 without a call where it has none."""
        return _owners.begun(self.keys)

    def title(self) -> Flow[str | None]:
        """Read its title."""
        self._check_owned("title()")
        return _owners.title(self.keys)

    def set_title(self, title: str | None) -> Flow[bool]:
        """Give it another title."""
        self._check_owned("set_title()")
        if title is not None and not isinstance(title, str):
            msg = f"a title is text, or None for none; not {type(title).__name__}"
            raise TypeError(msg)
        if title is not None and not 1 <= len(title) <= _owners.TITLE_LENGTH:
            msg = f"a title of {len(title)} characters: use 1 to {_owners.TITLE_LENGTH}, or None"
            raise ValueError(msg)
        _json.utf8("the title", title or "")
        (identifier,) = _json.loads(self.keys.name)
        return _owners.set_title(self.keys, _owners.listing_name(identifier, title or ""))

    def _check_owned(self, what: str) -> None:
        if self.keys.owner is None:
            msg = f"{what} needs an owner: store.conversation(id, owner=…)"
            raise TypeError(msg)

    def redacted(self, messages: list[Message], rules: Format) -> Flow[list[Message]]:
        """Give messages as they are to be stored."""
        return redacted(self.settings.redact, messages, rules)

    def redacted_meta(self, meta: dict[str, Any]) -> Flow[dict[str, Any]]:
        """Give what is known of a turn as it is to be stored: the names in it, changed too."""
        names = meta.get("entities")
        if self.settings.redact is None or not isinstance(names, list) or not names:
            return meta
        text = yield from self.redacted_text("\n".join(map(str, names)))
        return {**meta, "entities": [name for name in text.split("\n") if name]}

    def redacted_text(self, text: str) -> Flow[str]:
        """Give a text as it is to be stored."""
        return redacted_text(self.settings.redact, text)

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
        home = self._home
        if home.settings.redact is None:
            draft = home.settings.draft(plain, turn_id, rules, meta or {}, home.counter)
            if self.keys.owner is None:
                return self.append_draft(draft, expected_revision, continues=continues)
            check_revision(expected_revision)
            return self._append_owned(draft, expected_revision, continues=continues)
        check_revision(expected_revision)
        turn_id = _history.new_turn_id() if turn_id is None else check_turn_id(turn_id)
        meta = plain_meta(meta or {})
        return self._append_redacted(
            plain, turn_id, rules, meta, expected_revision, continues=continues
        )

    def _append_owned(
        self, draft: Draft, expected_revision: str | None, *, continues: bool
    ) -> Flow[Appended]:
        began = yield from self.begun()
        return (
            yield from self.append_draft(draft, expected_revision, continues=continues, began=began)
        )

    def _append_redacted(  # noqa: PLR0913 - the options of the public append
        self,
        plain: list[Message],
        turn_id: str,
        rules: Format,
        meta: dict[str, Any],
        expected_revision: str | None,
        *,
        continues: bool,
    ) -> Flow[Appended]:
        began = yield from self.begun()
        messages = yield from self.redacted(plain, rules)
        draft = self.draft(messages, turn_id, rules, meta)
        return (
            yield from self.append_draft(draft, expected_revision, continues=continues, began=began)
        )

    def draft(
        self, messages: list[Message], turn_id: str | None, rules: Format, meta: dict[str, Any]
    ) -> Draft:
        """Count and serialise the messages of a turn as they are; see `Settings.draft`."""
        return self.settings.draft(messages, turn_id, rules, meta, self._home.counter)

    def append_draft(  # noqa: PLR0913 - what one append is made of
        self,
        draft: Draft,
        expected_revision: str | None = None,
        *,
        continues: bool = False,
        lease: str = "",
        began: int = 0,
        cut: Cut | None = None,
    ) -> Flow[Appended]:
        """Append a turn that is ready; with a lease, only if no other was granted since."""
        settings = self._home.settings
        return _history.append(
            self.keys,
            draft,
            ttl_ms=settings.ttl_ms,
            max_messages=settings.max_messages or 0,
            expected=check_revision(expected_revision),
            continues=continues,
            lease=lease,
            began=began,
            cut=cut,
        )

    def search(self, replaces: Replaces, turn_id: str) -> Search:
        """Look in a read for a turn that another one is going to replace."""
        return Search(replaces, turn_id, _history.IDS_KEPT, str(self.keys))

    def read(
        self,
        window: Window | None,
        *,
        begins: bool = False,
        beside: Call | None = None,
        search: Search | None = None,
    ) -> Flow[History]:
        """Read the newest turns that fit; where something begins with it, the history says so."""
        window = check_window(window)
        home = self._home
        begin = _owners.begin(self.keys) if begins and self.keys.owner else None
        if window.tokens is not None and home.counter is None:
            return self._read_counting(window, begin=begin, beside=beside, search=search)
        return _history.read(
            self.keys, window, home.density, home.counter, begin=begin, beside=beside, search=search
        )

    def _read_counting(self, window: Window, **along: Any) -> Flow[History]:
        home = self._home
        yield from self.count()
        return (yield from _history.read(self.keys, window, home.density, home.counter, **along))

    def count(self) -> Flow[None]:
        """Count tokens from now on, if nothing did so; an event loop goes on meanwhile."""
        if self._home.counter is None:
            self._home.counter = yield Ask(token_counter, (None,))

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
            return self.clear()
        return _history.trim(self.keys, messages or 0, turns or 0)

    def clear(self) -> Flow[int]:
        """Delete all turns, and what belongs to them."""
        cleared = yield from _history.clear(self.keys)
        return cleared.turns

    def erase(self, *, verify: bool) -> Flow[Erasure]:
        """Delete everything, and what was remembered of it."""
        self._check_owned("erase()")
        return _erasing.erase_conversation(self.keys, self._home.erasers(), verify=bool(verify))

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
        return self._fork(target.keys, upto)

    def _fork(self, target: Keys, upto: int | None) -> Flow[int]:
        began = yield from _owners.begun(target)
        return (
            yield from _history.fork(self.keys, target, upto, self.settings.ttl_ms, began=began)
        )

    def stat(self) -> Flow[Stat]:
        """Measure it."""
        return _history.stat(self.keys)
