"""Changes of facts as values, and the one script that makes them: all of them or none.

Whoever writes begins first (`begin`): the number that this gives is the proof that the owner was
not erased since, and its time is the one by which everything is dated. What is written may rest
on what was read after that, as far as it demands the revision of it.

Each commit has a token, so that one which is sent twice, as redis-py does after a lost answer,
changes nothing the second time and answers the same.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from turnstore import _json
from turnstore._calls import Flow
from turnstore.errors import ConflictError, TurnstoreError

from .._model import Fact
from .._owner import OwnerPlace, script_call
from .._scoring.text import terms
from .reading import all_ids, words
from .record import NOTHING, Record, encode, moment, norm_of, posted, stamp, term_list, times_of

if TYPE_CHECKING:
    from .._embedding import Vector
    from ..engines._engine import Engine

__all__ = [
    "STAYS",
    "Add",
    "Began",
    "Blocked",
    "Change",
    "Close",
    "Commit",
    "CursorMove",
    "Discard",
    "Remove",
    "Replace",
    "Seen",
    "Unseen",
    "again",
    "batches",
    "begin",
    "commit",
    "renew",
]

STAYS = "="
"""Of a cursor that does not move."""

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"  # of the idempotency key; a script reads it
_KEY_LENGTH = 8
_MOST_CHANGES, _MOST_TEXT = 100, 65_536  # of one commit; bytes
_TRIES = 5
_RENEWED_AT_A_TIME = 500

R = TypeVar("R")
T = TypeVar("T")


class Add(NamedTuple):
    """Store a fact; where one that holds says the same, only its sources are brought up to date.

    Attributes:
        fact: The fact, with its id and all its times.
        vector: Of its text; None where it is known to be there, and nothing was asked for it.
        norm: The digest of what it says; empty makes it of the text.
    """

    fact: Fact
    vector: Vector | None
    norm: str = ""


class Close(NamedTuple):
    """Say until when a fact is true, as it became known.

    Attributes:
        id: Of the fact.
        valid_to: Until when; None where no end is known.
        expired: When it became known; None opens the fact again.
        superseded_by: The id of the fact in its place.
        valid_to_before: What was believed before, for an undo; None where the fact knows it.
    """

    id: str
    valid_to: datetime | None
    expired: datetime | None
    superseded_by: str = ""
    valid_to_before: datetime | None = None


class Seen(NamedTuple):
    """Note that a fact was heard again, from these turns, at this time."""

    id: str
    sources: tuple[str, ...]
    observed: datetime


class Unseen(NamedTuple):
    """Take back that a fact was heard from these turns; it was last heard at this time.

    Attributes:
        id: Of the fact.
        sources: The turns.
        observed: When it was last heard.
        revision: That it has to have; empty for any.
    """

    id: str
    sources: tuple[str, ...]
    observed: datetime
    revision: str = ""


class Remove(NamedTuple):
    """Remove a fact, as if it had never been.

    Attributes:
        record: The fact as it was read.
        unless_changed: Whether it stays where it was changed since.
    """

    record: Record
    unless_changed: bool = False


class Discard(NamedTuple):
    """Remove a fact that cannot be read, with whatever else has its id."""

    id: str


class Replace(NamedTuple):
    """Put a changed fact in the place of one that was read, unless it was changed meanwhile.

    Attributes:
        record: The fact as it was read.
        fact: The fact as it is to be, with the same id.
        vector: Of its text, where that is another one.
    """

    record: Record
    fact: Fact
    vector: Vector | None


Change: TypeAlias = Add | Close | Seen | Unseen | Remove | Discard | Replace


class CursorMove(NamedTuple):
    """Say up to where a conversation was read for facts, if it stands where it did.

    Attributes:
        conversation: The digest of the conversation; what began before it was cleared, or
            forgotten, is refused.
        expected: Where the cursor stands; empty where there is none, and STAYS for anywhere.
        cursor: Where it is to stand: the number of a turn, and what else is needed. STAYS
            leaves it.
    """

    conversation: str
    expected: str
    cursor: str


class Began(NamedTuple):
    """What a write began with.

    Attributes:
        number: The proof that it began; no smaller one follows it.
        now_ms: The server's clock when it began, in milliseconds.
        spaces: The tokens of the spaces that the owner's vectors lie in, the one to be searched
            first; none where the owner has none.
        ids: For each norm asked for, the id of the fact; empty where there is none.
        since: The number of an earlier beginning of the same write, which is shown in the
            place of this one: what was erased since then does not come back. 0 shows this one.
    """

    number: int
    now_ms: int
    spaces: tuple[str, ...]
    ids: tuple[str, ...]
    since: int = 0

    @property
    def now(self) -> datetime:
        """When it began, the last time; by which what it writes is dated."""
        return moment(self.now_ms)


class Commit(NamedTuple):
    """What is committed, beside the changes.

    Attributes:
        began: From `begin`.
        engine: What writes the vectors.
        target: The token of the space that they are of.
        ttl_ms: The time to live of everything of the owner; 0 keeps it forever, and -1 leaves
            it as it is.
        operation: The name under which the log can undo it; empty is not logged.
        note: JSON for the log. No text of a user belongs into it, as it outlives facts.
        cursor: The cursor that moves along.
        fence: The lease that it demands, as "<number> <token>".
    """

    began: Began
    engine: Engine
    target: str
    ttl_ms: int
    operation: str = ""
    note: dict[str, Any] | None = None
    cursor: CursorMove | None = None
    fence: str = ""


class Blocked(TurnstoreError):  # noqa: N818 - what is in the way may be gone at the next try
    """A commit that was not made, as something changed since it was begun.

    Attributes:
        what: "spaces", "cursor", "changed" or "taken"; or "gone", where facts were removed that
            were taken for known.
        detail: The spaces or the cursor now, the number of the change, from 1, or how many are
            gone.
    """

    def __init__(self, what: str, detail: str) -> None:
        super().__init__(f"{what}: {detail}")
        self.what = what
        self.detail = detail


class Committed(NamedTuple):
    """What a commit did.

    Attributes:
        answers: For each change "1" where it was made, "0" where there is no such fact, or the
            id of the fact that was there already.
        is_short: Whether the owner's search documents need another time to live.
    """

    answers: tuple[str, ...]
    is_short: bool


def begin(
    place: OwnerPlace,
    norms: Sequence[str] = (),
    operation: str = "begin",
    *,
    takes_away: bool = False,
) -> Flow[Began]:
    """Begin to write for an owner: one call.

    Args:
        place: The owner's.
        norms: What is going to be stored, to be told what is there already.
        operation: What the caller asked for, in the words of an error.
        takes_away: Whether it only removes, which a full server has to let it do.

    Raises:
        ErasedError: Everything of the owner is being erased just now.
        OutOfMemoryError: The server is full.
    """
    values = {"takes_away": int(takes_away)}
    began: Began = yield script_call(
        "facts_begin", place, values, _read_began, more=norms, operation=operation
    )
    return began


def commit(
    place: OwnerPlace, changes: Sequence[Change], what: Commit, operation: str
) -> Flow[Committed]:
    """Make changes, all of them or none: one call.

    Raises:
        Blocked: Something changed since it was begun; nothing was written.
        ErasedError: The owner was erased since it was begun, or the conversation of a fact was
            cleared, or its facts were forgotten; nothing was written.
        LeaseLostError: The fence is not of the newest grant; nothing was written.
    """
    tokens = what.began.spaces or (what.target,)
    parts = [_parts(place, change, what.engine) for change in changes]
    move = what.cursor or CursorMove("", "", "")
    values = {
        "began": what.began.since or what.began.number,
        "token": "".join(secrets.choice(_DIGITS) for _ in range(_KEY_LENGTH)),
        "fence": what.fence,
        "digest": place.digest,
        "spaces": " ".join(what.began.spaces),
        "target": what.target,
        "ttl_ms": what.ttl_ms,
        "conversation": move.conversation,
        "expected": move.expected,
        "cursor": move.cursor,
        "operation": what.operation,
        "note": b"" if what.note is None else b"".join(_json_parts(what.note)),
    }
    committed: Committed = yield script_call(
        "facts_commit",
        place,
        values,
        _read_committed,
        more_keys=place.vector_keys(tokens, [part[1] for part in parts]),
        more=[field for part in parts for field in part],
        operation=operation,
    )
    return committed


def batches(items: Iterable[T], text_of: Callable[[T], str]) -> Iterator[list[T]]:
    """Divide what is changed such that no commit holds up the server for long.

    What takes the time are the words of all texts: a commit has a hundred changes at most, and
    texts of 64 KiB, or one.
    """
    batch, size = list[T](), 0
    for item in items:
        more = len(text_of(item).encode("utf-8", "surrogatepass"))
        if batch and (len(batch) == _MOST_CHANGES or size + more > _MOST_TEXT):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += more
    if batch:
        yield batch


def again(work: Callable[[], Flow[R]], passing: Iterable[str], tries: int = _TRIES) -> Flow[R]:
    """Do something once more where what it rested on was changed meanwhile.

    Args:
        work: What is done.
        passing: What may be in the way and then be gone, as `Blocked.what` names it.
        tries: How often, in all.

    Raises:
        ConflictError: It was changed each time; nothing was written.
        Blocked: Something else is in the way.
    """
    for left in reversed(range(tries)):
        try:
            return (yield from work())
        except Blocked as blocked:
            if blocked.what not in passing:
                raise
            if not left:
                msg = (
                    f"others have changed the owner's facts at each of {tries} tries ({blocked}); "
                    "nothing was written. Do it again when fewer write"
                )
                raise ConflictError(msg) from None
    raise AssertionError  # the loop returns or raises


def renew(place: OwnerPlace, spaces: Sequence[str], ttl_ms: int) -> Flow[None]:
    """Let the search documents of an owner live on, where each has a key of its own."""
    ids = yield from all_ids(place, "renewal")
    keys = [
        place.vector(token, id_) for token in spaces if token.startswith("search:") for id_ in ids
    ]
    for start in range(0, max(len(keys), 1), _RENEWED_AT_A_TIME):
        part = keys[start : start + _RENEWED_AT_A_TIME]
        is_all = start + _RENEWED_AT_A_TIME >= len(keys)
        yield script_call(
            "facts_renew",
            place,
            {"ttl_ms": 2 * ttl_ms, "is_all": int(is_all)},
            int,
            more_keys=part,
            operation="renewal",
        )


_Part: TypeAlias = tuple[str, str, str, bytes, bytes, bytes, bytes, str]


def _parts(place: OwnerPlace, change: Change, engine: Engine) -> _Part:
    """Give the eight fields that the script has for a change."""
    if isinstance(change, Add | Replace):
        return _writing(place, change, engine)
    if isinstance(change, Remove):
        fact = change.record.fact
        revision = change.record.revision if change.unless_changed else ""
        return ("remove", fact.id, revision, b"", term_list(terms(fact.text)), b"", b"", "")
    if isinstance(change, Discard):
        return ("discard", change.id, "", b"", b"", b"", b"", "")
    if isinstance(change, Close):
        before = change.valid_to_before
        detail = (
            stamp(change.valid_to),
            stamp(change.expired),
            change.superseded_by or NOTHING,
            NOTHING if before is None else stamp(before),
        )
        return ("close", change.id, "", b"", b"", b"", b"", " ".join(map(str, detail)))
    kind, revision = ("see", "") if isinstance(change, Seen) else ("unsee", change.revision)
    detail_text = " ".join([str(stamp(change.observed)), *change.sources])
    return (kind, change.id, revision, b"", b"", b"", b"", detail_text)


def _writing(place: OwnerPlace, change: Add | Replace, engine: Engine) -> _Part:
    fact = change.fact
    digest = place.conversation(fact.conversation)
    if isinstance(change, Add):
        kind, revision, old = "add", "", b""
        record = encode(fact, digest=digest, norm=change.norm or norm_of(fact))
    else:
        kind, revision = "replace", change.record.revision
        norm = norm_of(fact) if fact.kind != "exchange" else change.record.norm
        record = encode(fact, digest=digest, norm=norm, revision=int(revision) + 1)
        old = b"" if change.vector is None else term_list(terms(change.record.fact.text))
    if change.vector is None:
        return (kind, fact.id, revision, record, b"", b"", b"", "")
    vector = engine.pack(change.vector, times_of(fact), fact.kind, digest)
    postings = posted(fact.id, terms(fact.text))
    return (kind, fact.id, revision, record, old, postings, vector, "")


def _json_parts(note: dict[str, Any]) -> tuple[bytes, bytes]:
    codec, data = _json.dumps(_json.plain(note))
    return codec.encode(), data


def _read_began(reply: list[Any]) -> Began:
    number, now_ms, spaces, *ids = reply
    its, known = tuple(words(spaces)), tuple(id_.decode() for id_ in ids)
    return Began(number, now_ms, its, known)


def _read_committed(reply: list[Any]) -> Committed:
    what, detail, *answers = reply
    if what != b"done":
        raise Blocked(what.decode(), detail.decode())
    return Committed(tuple(answer.decode() for answer in answers), bool(detail))
