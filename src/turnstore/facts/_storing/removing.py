"""Remove one fact, and make sure that nothing of it is left."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from turnstore._calls import Call, Flow, in_steps
from turnstore._erasing import scan
from turnstore.errors import CorruptTurnError, ServerError
from turnstore.results import Erasure

from .._owner import OwnerPlace, script_call
from ..engines import documents_of
from .adding import check_id
from .commit import Discard, again
from .forgetting import make_changes, remove
from .reading import read_records, texts

if TYPE_CHECKING:
    from .base import Base

__all__ = ["forget"]

_FORGET = "forget"
_TRIES = 5


class _Left(NamedTuple):
    """What there was of a fact that is removed: vectors that were dropped, and whether it ends."""

    vectors: int
    is_more: bool


@in_steps
def forget(
    base: Base,
    owner: str,
    id: str,  # noqa: A002 - the name of the field
    *,
    verify: bool,
) -> Flow[Erasure]:
    """Remove a fact, readable or not: three calls; with `verify` it is looked for until it is gone.

    Raises:
        CorruptTurnError: Something of it is left, as a part of the owner's facts is lost.
        ServerError: Something of it comes again and again.
    """
    place = base.ground.owner(owner)
    check_id(id)
    parts = Counter[str]()
    for _ in range(_TRIES):
        removed = yield from _remove(place, id, base.settings.ttl_ms)
        parts[removed] += bool(removed)
        left = (yield from _sweep(place, id)) if verify else _Left(0, is_more=False)
        parts["vectors"] += left.vectors
        if not (left.vectors or left.is_more):
            return Erasure(0, 0, 0, 0, verify, {name: n for name, n in parts.items() if n})
    msg = f"forget of fact {id} of {place.keys}: something of it comes again and again"
    raise ServerError(msg)


def _remove(place: OwnerPlace, id_: str, ttl_ms: int) -> Flow[str]:
    """Remove a fact with all that is known to have its id; give what it was, empty for none."""
    try:
        records = yield from read_records(place, [id_])
        if not (yield from remove(place, list(records.values()), _FORGET, ttl_ms=ttl_ms)):
            return ""
        return "exchanges" if records[id_].fact.kind == "exchange" else "facts"
    except CorruptTurnError:
        discard = partial(make_changes, place, [Discard(id_)], _FORGET, ttl_ms)
        return "facts" if "1" in (yield from again(discard, ("spaces",))) else ""


def _sweep(place: OwnerPlace, id_: str) -> Flow[_Left]:
    """Look for a removed fact wherever there are ids of facts, and drop vectors that it left."""
    known: list[str] = yield Call(
        _FORGET, (place.ground.registry,), "hkeys", (), writes=False, read=texts
    )
    spaces = [token for token in known if ":" in token]  # not "current"
    keys = [place.vector(token, id_) for token in spaces]
    dropped, *stands = yield script_call(
        "facts_traces", place, {"id": id_}, list, more_keys=keys, more=spaces, operation=_FORGET
    )
    if stands == [b"facts"]:
        return _Left(0, is_more=True)
    if stands:
        msg = (
            f"forget of fact {id_} of {place.keys}: it was removed, but its id still stands in "
            f"{', '.join(map(bytes.decode, stands))}: a part of the owner's facts is lost, as by "
            "eviction. store.erase(owner) removes all of them"
        )
        raise CorruptTurnError(msg)
    # Documents of an index that no register knows any more.
    strays = yield from scan(_FORGET, place.keys.facts, place.documents(id_))
    if strays:
        dropped += yield Call(_FORGET, tuple(strays), "unlink", (), writes=True, read=int)
    counted = 0
    for token, key in zip(spaces, keys, strict=True):
        if token.startswith("search:"):
            found = yield from documents_of(place.index(token), place.digest, 0, key=key)
            counted += found.total
    return _Left(dropped, is_more=bool(counted))
