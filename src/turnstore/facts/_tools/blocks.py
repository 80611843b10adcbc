"""The working memory of an owner: a few labelled blocks of text, as flows.

A block is changed by reading it, working out the new text, and storing that if nobody has
stored another one meanwhile. So each change is whole, and two at once both count. A block knows
the revisions of its newest writes: one that is sent again, as its answer was lost, is done once,
though others wrote since.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from turnstore._calls import Call, Flow
from turnstore.errors import ConflictError, CorruptTurnError, FormatError
from turnstore.window import limit

from .._owner import OwnerPlace, script_call

__all__ = [
    "Block",
    "Clean",
    "Edit",
    "EditError",
    "append_to",
    "change",
    "labelled",
    "read",
    "replace_in",
]

Clean: TypeAlias = Callable[[str], Flow[str]]
"""Makes of a text what is stored of it."""

Edit: TypeAlias = Callable[[str], str]
"""Makes of what a block says what it says next; raises EditError where it cannot."""

_LABEL = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_LONGEST = 20_000
_STORED = re.compile(r"(\d+) (\S+) ", re.ASCII)
_TRIES = 10
_NONE = "-"  # the revisions of a block that is not stored


class EditError(ValueError):
    """A block cannot be changed so; nothing was written."""


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a working memory.

    Args:
        label: Its name: 1 to 32 lower-case letters, digits, `_` and `-`; a letter first.
        about: What it is for, in the words that the model reads.
        limit: How many characters it holds at most, up to 20,000.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: The label is no such name, or the limit not within 1 and 20,000.

    Example:
        >>> Block("human", "What you know of the user.", limit=500).label
        'human'
    """

    label: str
    about: str = ""
    limit: int = 2000

    def __post_init__(self) -> None:
        for name in ("label", "about"):
            value = getattr(self, name)
            if not isinstance(value, str):
                msg = f"Block({name}={value!r}): it is text"
                raise TypeError(msg)
        if not _LABEL.fullmatch(self.label):
            msg = (
                f"Block({self.label[:40]!r}): a label is 1 to 32 lower-case letters, digits, "
                "_ and -, a letter first"
            )
            raise ValueError(msg)
        if (limit("Block(limit={})", self.limit) or _LONGEST + 1) > _LONGEST:
            msg = f"Block(limit={self.limit}): at most {_LONGEST} characters"
            raise ValueError(msg)


def labelled(blocks: Sequence[Block]) -> dict[str, Block]:
    """Give blocks by their labels.

    Raises:
        TypeError: One is no block.
        ValueError: There is none, or two have one label.
    """
    named: dict[str, Block] = {}
    for block in blocks:
        if not isinstance(block, Block):
            msg = f"blocks are Blocks, and one is {type(block).__name__}"
            raise TypeError(msg)
        if block.label in named:
            msg = f"two blocks have the label {block.label!r}"
            raise ValueError(msg)
        named[block.label] = block
    if not named:
        msg = "a working memory has at least one block"
        raise ValueError(msg)
    return named


def read(place: OwnerPlace, labels: Sequence[str]) -> Flow[dict[str, str]]:
    """Read blocks: one call. Those that hold nothing are missing."""

    def texts(reply: list[Any]) -> dict[str, str]:
        found = {label: _stored(raw).text for label, raw in zip(labels, reply, strict=True)}
        return {label: text for label, text in found.items() if text}

    # In small letters, to keep redis-py's client-side cache out of it.
    keys = (place.keys.memory,)
    found: dict[str, str] = yield Call("memory", keys, "hmget", tuple(labels), False, texts)  # noqa: FBT003 - as it is declared
    return found


def change(  # noqa: PLR0913 - what a change is made of
    place: OwnerPlace, block: Block, edit: Edit, clean: Clean, ttl_ms: int, *, since: int = 0
) -> Flow[str]:
    """Change what a block says: two calls, more where others change it at the same time.

    Args:
        place: The owner's.
        block: Which.
        edit: Makes the new text out of the old one.
        clean: Makes of that what is stored.
        ttl_ms: The time to live in milliseconds; 0 keeps it.
        since: The number with which it began, where that was earlier: what was erased since
            then does not come back. 0 begins now.

    Returns:
        What it says now.

    Raises:
        EditError: The edit cannot be made, or the block is too small; nothing was written.
        ErasedError: The owner was erased meanwhile; nothing was written.
        ConflictError: Others change it without pause; nothing was written.
    """
    for _ in range(_TRIES):
        begun: _Begun = yield script_call(
            "memory_begin", place, {"label": block.label}, _read_begun, operation="memory"
        )
        since = since or begun.number  # all tries show the first
        text = yield from clean(edit(begun.text))
        if len(text) > block.limit:
            msg = (
                f"{block.label} would have {len(text)} of {block.limit} characters; shorten "
                "what it says first. Nothing was changed"
            )
            raise EditError(msg)
        values = {
            "began": since,
            "ttl_ms": ttl_ms,
            "label": block.label,
            "expected": begun.revisions,
            "revision": secrets.token_urlsafe(6),
            "text": text,
        }
        stored: int = yield script_call("memory_write", place, values, int, operation="memory")
        if stored:
            return text
    msg = f"{block.label} is changed by others without pause; nothing was changed. Try again"
    raise ConflictError(msg)


def append_to(content: str) -> Edit:
    """Add a line.

    Raises:
        EditError: There is nothing to add.
    """
    added = content.strip()
    if not added:
        msg = "there is nothing to add"
        raise EditError(msg)
    return lambda text: f"{text}\n{added}" if text else added


def replace_in(label: str, old: str, new: str) -> Edit:
    """Replace a part that stands there once; empty lines that are left go too.

    Raises:
        EditError: There is nothing to be replaced.
    """
    if not old.strip():
        msg = "the part to be replaced is empty"
        raise EditError(msg)

    def edit(text: str) -> str:
        found = text.count(old)
        if found != 1:
            where = "does not stand" if not found else f"stands {found} times"
            msg = f"{old!r} {where} in {label}, and it has to stand there once; nothing was changed"
            raise EditError(msg)
        lines = text.replace(old, new).split("\n")
        return "\n".join(line.rstrip() for line in lines if line.strip())

    return edit


class _Stored(NamedTuple):
    revisions: str
    text: str


class _Begun(NamedTuple):
    number: int
    revisions: str
    text: str


def _read_begun(reply: list[Any]) -> _Begun:
    number, raw = reply
    return _Begun(number, *_stored(raw))


def _stored(raw: bytes | None) -> _Stored:
    if not raw:
        return _Stored(_NONE, "")
    text = raw.decode()
    header = _STORED.match(text)
    if header is None:
        msg = f"a block of the working memory is not one of ours; it begins with {text[:40]!r}"
        raise CorruptTurnError(msg)
    if header[1] != "1":
        msg = f"a block of the working memory has format {header[1]}, and this version reads 1"
        raise FormatError(msg)
    return _Stored(header[2], text[header.end() :])
