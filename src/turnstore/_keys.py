"""The names of Redis keys.

``{prefix}:1:{<store>:<conversation>}:<part>``, and with an owner
``{prefix}:1:{<store>:<owner>}:<conversation>:<part>``. The braces around two digests are
the hash tag of Redis Cluster, so that everything of one conversation, and everything of
one owner, lies in one slot. All names are digested (BLAKE2b, 128 bits, each kind with a
personalisation of its own): no delimiter, brace, blank or length in an id can reach the
key, and two ids cannot collide. A secret makes the digests unguessable. This keeps ids
apart and out of sight; it does not decide who may read a conversation.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import NamedTuple

from . import _json

__all__ = [
    "DATA_VERSION",
    "Keys",
    "OwnerKeys",
    "check_prefix",
    "check_secret",
    "conversation_digest",
    "key_names",
    "literal",
    "owner_digest",
    "owner_key_names",
    "store_digest",
    "tag_of",
]

DATA_VERSION = 1
"""The version of the data under a key. It rises when older code could misread the data."""

_SECRET_BYTES = range(16, 65)
_SPECIAL = re.compile(rb"[\\*?\[\]^-]")  # to SCAN
# Of facts, which are in a package of their own that not every process has.
_SIGNS = (b"facts", b"facts:postings", b"facts:cursors", b"facts:dead", b"memory")


def store_digest(name: str, secret: bytes) -> str:
    """Digest the name of a store."""
    return _digest("the name of a store", name, b"turnstore.store", secret)


def conversation_digest(identifier: str, secret: bytes) -> str:
    """Digest the id of a conversation."""
    return _digest("the id of a conversation", identifier, b"turnstore.conv", secret)


def owner_digest(owner: str, secret: bytes) -> str:
    """Digest the id of an owner: a user."""
    return _digest("the id of an owner", owner, b"turnstore.owner", secret)


class OwnerKeys(NamedTuple):
    """The keys of one owner that every part of turnstore knows; all in one slot.

    So do the owner's conversations lie there, and whatever else belongs to the owner.
    """

    generation: bytes
    """What was begun and erased: what began before an erasure is refused after it."""
    conversations: bytes
    """The owner's conversations by the time when they were last written to."""
    lives: bytes
    """The same by the end of their lives."""
    names: bytes
    """Their ids and titles."""
    cleared: bytes
    """Those that were cleared of late, and when."""

    def __str__(self) -> str:
        """Name the owner in an error: by the first key."""
        return self.generation.decode()

    @property
    def tag(self) -> bytes:
        """What every key of the owner begins with, up to the colon before the part."""
        return self.generation.removesuffix(b"generation")

    @property
    def signs(self) -> tuple[bytes, ...]:
        """The keys of which one is there where the owner has more than conversations: facts."""
        return tuple(self.tag + part for part in _SIGNS)

    def conversation(self, digest: str, name: bytes = b"") -> Keys:
        """Name the keys of one of the owner's conversations, by its digest."""
        tag = self.tag + digest.encode() + b":"
        parts = tag + b"turns", tag + b"summary", tag + b"lease", tag + b"queue"
        return Keys(*parts, self, digest, name)


class Keys(NamedTuple):
    """The keys of one conversation, by the names that the scripts have for them.

    `owner` is None where it has no owner. `member` and `name` are what the owner's lists
    have for it: its digest, and its id as JSON.
    """

    turns: bytes
    summary: bytes
    lease: bytes
    queue: bytes
    owner: OwnerKeys | None = None
    member: str = ""
    name: bytes = b""

    def __str__(self) -> str:
        """Name the conversation in an error: by its first key."""
        return self.turns.decode()


def tag_of(prefix: str, *digests: str) -> str:
    """Join what the keys of one slot begin with, up to the colon before the part."""
    return f"{prefix}:{DATA_VERSION}:{{{':'.join(digests)}}}:"


def literal(name: bytes) -> bytes:
    """Write a name such that a pattern of SCAN means just that."""
    return _SPECIAL.sub(rb"\\\g<0>", name)


def key_names(prefix: str, store: str, conversation: str) -> Keys:
    """Join the names of the keys of a conversation without an owner, from two digests."""
    tag = tag_of(prefix, store, conversation).encode()
    return Keys(tag + b"turns", tag + b"summary", tag + b"lease", tag + b"queue")


def owner_key_names(prefix: str, store: str, owner: str) -> OwnerKeys:
    """Join the names of an owner's keys from a prefix and two digests."""
    tag = tag_of(prefix, store, owner).encode()
    return OwnerKeys(
        tag + b"generation",
        tag + b"conversations",
        tag + b"lives",
        tag + b"names",
        tag + b"cleared",
    )


def check_prefix(prefix: str) -> str:
    """Give back a prefix that is fit for a key: visible ASCII without braces.

    A brace would become the hash tag and scatter a conversation over a cluster.
    """
    if not isinstance(prefix, str):
        msg = f"prefix is text, not {type(prefix).__name__}"
        raise TypeError(msg)
    if not prefix or not all("!" <= letter <= "~" and letter not in "{}" for letter in prefix):
        msg = f"prefix {prefix!r}: use visible ASCII characters without blanks and braces"
        raise ValueError(msg)
    return prefix


def check_secret(secret: bytes | None) -> bytes:
    """Give back the bytes that key the digests; no bytes where there is no secret."""
    if secret is None:
        return b""
    if not isinstance(secret, bytes):
        msg = f"secret is bytes, not {type(secret).__name__}"
        raise TypeError(msg)
    if len(secret) not in _SECRET_BYTES:
        msg = f"secret has {len(secret)} bytes; 16 to 64 are needed"
        raise ValueError(msg)
    return secret


def _digest(what: str, text: str, person: bytes, secret: bytes) -> str:
    if not isinstance(text, str):
        msg = f"{what} is text, not {type(text).__name__}"
        raise TypeError(msg)
    if not text:
        msg = f"{what} is empty; there is no default"
        raise ValueError(msg)
    data = _json.utf8(what, text)
    return blake2b(data, digest_size=16, person=person, key=secret).hexdigest()
