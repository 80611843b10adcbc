"""Where the facts of an owner lie: the names of their keys, and how ids are made.

All keys of an owner are in one slot, beside the owner's conversations. The keys of the documents
of a search index have letters behind the number of the version, so that nothing else is indexed.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from turnstore import _scripts
from turnstore._calls import Call
from turnstore._keys import DATA_VERSION, OwnerKeys, literal, owner_key_names, tag_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnstore._place import Home

__all__ = [
    "FactKeys",
    "Ground",
    "OwnerPlace",
    "clock_call",
    "is_id",
    "new_ids",
    "script_call",
]

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"  # sorted as ASCII
_TIME_DIGITS, _RANDOM_DIGITS = 9, 3
_DOCUMENTS = f"{DATA_VERSION}f"


class FactKeys(NamedTuple):
    """The keys of the facts of one owner, by the names that the scripts have for them."""

    generation: bytes
    cleared: bytes
    forgotten: bytes
    facts: bytes
    order: bytes
    norms: bytes
    postings: bytes
    used: bytes
    uses: bytes
    cursors: bytes
    lease: bytes
    ops: bytes
    dead: bytes
    memory: bytes

    def __str__(self) -> str:
        """Name the owner's facts in an error: by their key."""
        return self.facts.decode()


_PARTS = ("facts", *(f"facts:{part}" for part in FactKeys._fields[4:-1]), "memory")


class OwnerPlace:
    """Where one owner's facts lie.

    Attributes:
        ground: Where all facts of the store lie.
        digest: Of the owner.
        keys: The keys of the facts.
        owner_keys: The keys that every part of turnstore knows of.
    """

    __slots__ = ("digest", "ground", "keys", "owner_keys")

    def __init__(self, ground: Ground, digest: str) -> None:
        self.ground = ground
        self.digest = digest
        self.owner_keys: OwnerKeys = owner_key_names(ground.prefix, ground.store, digest)
        tag = self.owner_keys.tag
        self.keys = FactKeys(
            self.owner_keys.generation,
            self.owner_keys.cleared,
            tag + b"facts:forgotten",
            *(tag + part.encode() for part in _PARTS),
        )

    def conversation(self, identifier: str) -> str:
        """Digest the id of a conversation; an empty one has an empty digest."""
        return self.ground.conversation(identifier) if identifier else ""

    def vectors(self, token: str) -> bytes:
        """Name the key of all vectors of a space; the facts where each has its own key.

        Args:
            token: Of the space.
        """
        engine, digest, *_ = token.split(":")
        if engine == "search":
            return self.keys.facts
        part = "vectors" if engine == "plain" else "vset"
        return self.keys.facts + f":{part}:{digest}".encode()

    def engine_at(self, key: bytes, id: str) -> str:  # noqa: A002 - the name of the field
        """Name the engine that may have a vector of a fact in a key of the owner; empty for none.

        Args:
            key: The owner's.
            id: Of the fact.
        """
        for engine, part in (("plain", b":vectors:"), ("vectorset", b":vset:")):
            if key.startswith(self.keys.facts + part):
                return engine
        return "search" if key.endswith(b"}:" + id.encode()) else ""

    def vector(self, token: str, id: str) -> bytes:  # noqa: A002 - the name of the field
        """Name the key in which the vector of a fact lies."""
        engine, digest, *_ = token.split(":")
        if engine != "search":
            return self.vectors(token)
        return self.ground.documents(digest) + f"{self.digest}}}:{id}".encode()

    def index(self, token: str) -> bytes:
        """Name the search index of a space."""
        return self.ground.index(token.split(":")[1])

    def vector_keys(self, tokens: Sequence[str], ids: Sequence[str]) -> tuple[bytes, ...]:
        """Name the keys of a commit: of each space, then of each fact in each space."""
        homes = [self.vectors(token) for token in tokens]
        return (*homes, *(self.vector(token, id_) for id_ in ids for token in tokens))


class Ground:
    """Where all facts of a store lie.

    Attributes:
        prefix: What every key begins with.
        store: The digest of the store's name.
    """

    __slots__ = ("_home", "prefix", "store")

    def __init__(self, home: Home) -> None:
        self._home = home
        self.prefix = home.prefix
        self.store = home.store

    def __eq__(self, other: object) -> bool:
        """Tell whether both are the facts of one store."""
        return isinstance(other, Ground) and self.registry == other.registry

    def __hash__(self) -> int:
        return hash(self.registry)

    def holds(self, key: str) -> bool:
        """Tell whether a key is one of a conversation of this store, or of an owner's."""
        return key.startswith(self._start)

    @property
    def _start(self) -> str:
        """What the keys of a conversation, or of an owner, begin with, up to the digest."""
        return tag_of(self.prefix, self.store, "").removesuffix("}:")

    def owner(self, owner: str) -> OwnerPlace:
        """Find the place of an owner by the id.

        Raises:
            TypeError, ValueError: It is not text, is empty, or has a lone surrogate.
        """
        return OwnerPlace(self, self._home.owner_digest(owner))

    def conversation(self, identifier: str) -> str:
        """Digest the id of a conversation.

        Raises:
            TypeError, ValueError: As for an owner.
        """
        return self._home.conversation_digest(identifier)

    @property
    def registry(self) -> bytes:
        """The key that says which spaces the store's facts are in."""
        return tag_of(self.prefix, self.store).encode() + b"facts"

    def documents(self, digest: str) -> bytes:
        """Give what the keys of a space's search documents begin with, up to the owner."""
        return f"{self.prefix}:{_DOCUMENTS}{digest}:{{{self.store}:".encode()

    def index(self, digest: str) -> bytes:
        """Name the search index of a space."""
        return f"{self.prefix}:{_DOCUMENTS}:{self.store}:{digest}".encode()

    @property
    def alias(self) -> bytes:
        """Name the alias of the search index that the store uses now."""
        return f"{self.prefix}:{_DOCUMENTS}:{self.store}".encode()

    @property
    def probe(self) -> bytes:
        """Name a key that never exists: what is asked about it tells what the server has."""
        return f"{self.prefix}:probe".encode()

    def pattern(self, part: str) -> bytes:
        """Give the pattern for SCAN of the keys of one kind of all owners, such as "facts"."""
        return literal(self._start.encode()) + b"*}:" + part.encode()

    def owner_in(self, key: bytes) -> OwnerPlace:
        """Find the place of the owner of a key that the pattern found."""
        digest = key[: key.rindex(b"}")].rpartition(b":")[2]
        return OwnerPlace(self, digest.decode())


def new_ids(number: int, count: int) -> list[str]:
    """Make ids of facts: 12 letters and digits each, of which later ones sort last.

    Args:
        number: With which their writing began, in microseconds; an owner has no other with it.
        count: How many; they follow one another.
    """
    random = secrets.randbelow(len(_DIGITS) ** _RANDOM_DIGITS - count)
    start = _number_text(number, _TIME_DIGITS)
    return [start + _number_text(random + place, _RANDOM_DIGITS) for place in range(count)]


def _number_text(number: int, digits: int) -> str:
    text = ""
    for _ in range(digits):
        number, rest = divmod(number, len(_DIGITS))
        text = _DIGITS[rest] + text
    return text


def is_id(text: object) -> bool:
    """Tell whether this can be the id of a fact."""
    return (
        isinstance(text, str)
        and len(text) == _TIME_DIGITS + _RANDOM_DIGITS
        and text.isascii()
        and text.isalnum()
    )


def script_call(  # noqa: PLR0913 - a call has these parts; all but two go by name
    name: str,
    place: OwnerPlace,
    values: dict[str, Any],
    read: Callable[[Any], Any],
    *,
    writes: bool = True,
    more_keys: Sequence[bytes] = (),
    more: Sequence[bytes | str] = (),
    operation: str,
) -> Call:
    """Call a script on the facts of an owner; its header says the order of the arguments.

    Args:
        name: Of the script.
        place: The owner's.
        values: The arguments by name.
        read: Makes the result out of the answer.
        writes: Whether it can change something.
        more_keys: What stands behind the keys that have names.
        more: What stands behind the arguments that have names.
        operation: What the caller asked for, in the words of an error.
    """
    script = _scripts.load(name)
    touched = tuple(getattr(place.keys, key) for key in script.keys)
    arguments = (*script.order(values), *more)
    return Call(operation, (*touched, *more_keys), script, arguments, writes, read)


def clock_call(place: OwnerPlace, operation: str) -> Call:
    """Read the server's clock, in milliseconds since 1970.

    Args:
        place: The owner's.
        operation: As for `script_call`.
    """
    # Of the facts it reads no more than how many there are.
    return script_call(
        "facts_look", place, {"few": 0}, itemgetter(0), writes=False, operation=operation
    )
