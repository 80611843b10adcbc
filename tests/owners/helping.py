"""Looks at what is stored of an owner behind the store's back, and moves its clock by hand."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.failure.helping import load_scripts
from turnstore import _keys

if TYPE_CHECKING:
    from tests.servers.running import Server
    from turnstore import AsyncConversation

_LAYOUT = re.compile(rb"generation 1 (\d+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)")


@dataclass(frozen=True)
class Generation:
    """What `lua/README.md` says of the text that knows what was begun and erased."""

    number: int
    erased: int
    ended: int
    closed_until_ms: int
    conversations: int
    turns: int
    messages: int
    keys: int

    @property
    def text(self) -> str:
        """The text as it is stored."""
        fields = [*vars(self).values()]
        return "generation 1 " + " ".join(map(str, fields))


class Owner:
    """The keys of an owner of the store `test`."""

    def __init__(self, server: Server, prefix: str, owner: str = "ada") -> None:
        self._redis = server.raw
        store, digest = _keys.store_digest("test", b""), _keys.owner_digest(owner, b"")
        self.keys = _keys.owner_key_names(prefix, store, digest)
        self._server = server
        self._prefix = prefix

    def load_scripts(self) -> None:
        """Let the server know all scripts, so that none is sent twice for being unknown."""
        load_scripts(self._server, self.keys.generation.decode())

    @property
    def stored(self) -> set[str]:
        """What is behind the tag of each key that the owner has."""
        tag = self.keys.tag.partition(b":{")[2]
        lives = self._server.lives(self._prefix)
        return {key.partition(tag)[2].decode() for key in lives if tag in key}

    @property
    def generation(self) -> Generation | None:
        """What was begun and erased; None where no key says so."""
        text = self._redis.get(self.keys.generation)
        if text is None:
            return None
        found = _LAYOUT.fullmatch(text)
        assert found, text
        return Generation(*map(int, found.groups()))

    def change(self, **fields: int) -> None:
        """Set fields of it."""
        generation = self.generation
        assert generation
        self._redis.set(self.keys.generation, replace(generation, **fields).text, px=600_000)

    @property
    def listed(self) -> list[str]:
        """The digests of the listed conversations, oldest first."""
        return [member.decode() for member in self._redis.zrange(self.keys.conversations, 0, -1)]

    def pttl(self, name: str) -> int:
        """Give what a list has left to live."""
        return int(self._redis.pttl(getattr(self.keys, name)))

    def age_undone(self, chat: AsyncConversation) -> None:
        """Let it be two days ago that all turns of a conversation were undone."""
        days = {self.keys.conversations: digest(chat), self.keys.cleared: f"{digest(chat)}:undone"}
        for key, member in days.items():
            self._redis.zincrby(key, -2 * 86_400_000_000, member)

    @property
    def agrees(self) -> bool:
        """Whether the lists know just the conversations that are stored, or were undone."""
        stored = {one.partition(":")[0] for one in self.stored if one.endswith(":turns")}
        lists = [
            set(self._redis.zrange(self.keys.conversations, 0, -1)),
            set(self._redis.zrange(self.keys.lives, 0, -1)),
            set(self._redis.hkeys(self.keys.names)),
        ]
        noted = {one.decode() for one in self._redis.zrange(self.keys.cleared, 0, -1)}
        undone = {one.removesuffix(":undone") for one in noted if one.endswith(":undone")}
        known = {one.decode() for one in lists[0]}
        return lists[0] == lists[1] == lists[2] and stored <= known <= stored | undone


NOTE = {"generation"}
"""What is left of an owner that was erased."""


def digest(chat: AsyncConversation) -> str:
    """Give the digest of a conversation with an owner."""
    return chat.key.removesuffix(":turns").rpartition(":")[2]
