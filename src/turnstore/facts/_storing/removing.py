"""Remove one fact, and make sure that nothing of it is left."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from turnstore._calls import Call, Flow, in_steps
from turnstore._erasing import keys_of
from turnstore.errors import CorruptTurnError, FormatError, ServerError
from turnstore.results import Erasure

from .._owner import OwnerPlace, script_call
from ..engines import ENGINES, documents_of
from .adding import check_id
from .commit import Discard, again
from .forgetting import make_changes, remove
from .reading import read_records

if TYPE_CHECKING:
    from .base import Base

__all__ = ["forget"]

_FORGET = "forget"
_TRIES = 5
_CURRENT = b"current"  # of the register: which space is searched
_SPACE = re.compile(rf"({'|'.join(one.name for one in ENGINES)}):\w+")


class _Left(NamedTuple):
    """What was found of a fact that had been removed: vectors that were dropped, or more."""

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
        FormatError: The facts of the store are in a space that only a later version knows.
        CorruptTurnError: Something of it is left, as a part of the owner's facts is lost.
        ServerError: Something of it comes again and again.
    """
    place = base.ground.owner(owner)
    check_id(id)
    spaces = (yield from _spaces(place)) if verify else []
    parts = Counter[str]()
    for _ in range(_TRIES):
        removed = yield from _remove(place, id, base.settings.ttl_ms)
        parts[removed] += bool(removed)
        left = (yield from _sweep(place, id, spaces)) if verify else _Left(0, is_more=False)
        parts["vectors"] += left.vectors
        if not (left.vectors or left.is_more):
            return Erasure(0, 0, 0, 0, verified=bool(verify), parts=dict(+parts))
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


def _spaces(place: OwnerPlace) -> Flow[list[str]]:
    """Read in which spaces the facts of the store are.

    Raises:
        FormatError: It says what this version does not know.
    """
    names: list[bytes] = yield Call(
        _FORGET, (place.ground.registry,), "hkeys", (), writes=False, read=list
    )
    spaces = [name.decode("ascii", "replace") for name in names if name != _CURRENT]
    for token in spaces:
        if _SPACE.match(token) is None:
            msg = (
                f"forget of {place.keys}: the register of the store names a space {token!r}, which "
                "this version does not know, so that it cannot look there. Nothing was removed"
            )
            raise FormatError(msg)
    return spaces


def _sweep(place: OwnerPlace, id_: str, spaces: list[str]) -> Flow[_Left]:
    """Look for a removed fact wherever it may have left something, and drop that."""
    places = {place.vector(token, id_): token.partition(":")[0] for token in spaces}
    # Where a register was lost, it does not know of all spaces.
    for key in (yield from keys_of(_FORGET, place.owner_keys)):
        if engine := place.engine_at(key, id_):
            places[key] = engine
    is_fact, has_words, vectors, others = yield script_call(
        "facts_traces",
        place,
        {"id": id_},
        list,
        more_keys=list(places),
        more=list(places.values()),
        operation=_FORGET,
    )
    if has_words:
        msg = (
            f"forget of fact {id_} of {place.keys}: it is not there, but its words are: the facts "
            "themselves are lost, as by eviction. store.erase(owner) removes all that is left"
        )
        raise CorruptTurnError(msg)
    counted = 0
    for token in spaces:
        if token.startswith("search:"):
            key = place.vector(token, id_)
            found = yield from documents_of(place.index(token), place.digest, 0, key=key)
            counted += found.total
    return _Left(vectors, is_more=bool(is_fact or others or counted))
