"""What callers of facts hand in, checked before anything is sent."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING, Any

from turnstore._checks import milliseconds, ordinal
from turnstore.context._common import check_deadline

from .._embedding import Embedder
from .._owner import Ground
from .._scoring.ranking import Ranking
from .._storing.adding import KIND, check_id, check_time
from .._storing.base import Base, Settings
from ..engines import engine_named
from .searching import Question

if TYPE_CHECKING:
    from turnstore._place import Home

__all__ = ["base_of", "check_listing", "check_question", "check_score"]

_MOST_HITS = 1000


def base_of(
    store: Any, previous: Any, *, asynchronous: bool, **options: Any
) -> tuple[Home, Any, Base]:
    """Make what sync and async facts share.

    Returns:
        Where the store lies, what runs its flows, and the facts.

    Raises:
        TypeError, ValueError: An argument is of no use.
    """
    home = getattr(store, "_home", None)
    kind = "AsyncStore" if asynchronous else "Store"
    if home is None or type(store).__name__ != kind:
        taker = "AsyncFacts takes an" if asynchronous else "Facts takes a"
        msg = f"{taker} {kind}, not {type(store).__name__}"
        raise TypeError(msg)
    ranking = Ranking() if options["ranking"] is None else options["ranking"]
    if not isinstance(ranking, Ranking):
        msg = f"ranking is a Ranking, not {type(ranking).__name__}"
        raise TypeError(msg)
    check_deadline("Facts", options["deadline"])
    if not isinstance(options["track_use"], bool):
        msg = f"track_use is True or False, not {type(options['track_use']).__name__}"
        raise TypeError(msg)
    earlier = getattr(previous, "_base", None)
    if previous is not None and not isinstance(earlier, Base):
        msg = f"previous are Facts, not {type(previous).__name__}"
        raise TypeError(msg)
    ground = Ground(home)
    if isinstance(earlier, Base) and earlier.ground.registry != ground.registry:
        msg = "previous are facts of another store"
        raise ValueError(msg)
    embedder = Embedder(
        options["embed"],
        options["embedder"],
        options["dimensions"],
        options["batch"],
        asynchronous=asynchronous,
    )
    settings = Settings(
        milliseconds(options["ttl"]),
        ranking,
        options["track_use"],
        options["deadline"],
        home.settings.redact,
    )
    base = Base(ground, embedder, engine_named(options["engine"]), settings, earlier)
    return home, store._run, base  # noqa: SLF001 - of the same house


def check_question(  # noqa: PLR0913, PLR0917 - what a search is asked
    query: str,
    top_k: int,
    min_score: float | None,
    kinds: Collection[str] | None,
    conversation: str,
    as_of: datetime | None,
    known_at: datetime | None,
    exclude: Collection[str],
) -> Question:
    """Check what a search is asked.

    Raises:
        TypeError, ValueError: An argument is of no use.
    """
    if not isinstance(query, str):
        msg = f"query is text, not {type(query).__name__}"
        raise TypeError(msg)
    _check_conversation(conversation)
    ordinal("top_k={}", top_k)
    if top_k > _MOST_HITS:
        msg = f"top_k={top_k}: the most are {_MOST_HITS}"
        raise ValueError(msg)
    return Question(
        query,
        top_k,
        check_score(min_score),
        _checked_kinds(kinds),
        conversation,
        None if as_of is None else check_time("as_of", as_of),
        None if known_at is None else check_time("known_at", known_at),
        frozenset(_checked_texts("exclude", exclude)),
    )


def check_score(min_score: float | None) -> float | None:
    """Check how near what is found has to be.

    Raises:
        TypeError, ValueError: It is of no use.
    """
    if min_score is None:
        return None
    if not isinstance(min_score, int | float) or isinstance(min_score, bool):
        msg = f"min_score={min_score!r}: it is a number, or None"
        raise TypeError(msg)
    if not -1 <= min_score <= 1:
        msg = f"min_score={min_score}: it is from -1 to 1"
        raise ValueError(msg)
    return min_score


def check_listing(
    limit: int, before: str | None, kinds: Collection[str] | None, conversation: str
) -> tuple[str, tuple[str, ...] | None]:
    """Check what of a list is asked for; gives the cursor, empty for none, and the kinds.

    Raises:
        TypeError, ValueError: An argument is of no use.
    """
    ordinal("limit={}", limit)
    _check_conversation(conversation)
    return "" if before is None else check_id(before), _checked_kinds(kinds)


def _check_conversation(conversation: str) -> None:
    if not isinstance(conversation, str):
        msg = f"conversation is text, not {type(conversation).__name__}"
        raise TypeError(msg)


def _checked_kinds(kinds: Collection[str] | None) -> tuple[str, ...] | None:
    if kinds is None:
        return None
    found = tuple(dict.fromkeys(_checked_texts("kinds", kinds)))
    if not found:
        msg = "kinds is empty, so that nothing could be found; None is any"
        raise ValueError(msg)
    for kind in found:
        if not KIND.fullmatch(kind):
            msg = f"kind {kind[:80]!r}: use 1 to 32 letters, digits, _ and -"
            raise ValueError(msg)
    return found


def _checked_texts(name: str, texts: Collection[str]) -> list[str]:
    if isinstance(texts, str):
        msg = f"{name} are several texts, as in {name}=[…]; not one text"
        raise TypeError(msg)
    found = list(texts)
    for text in found:
        if not isinstance(text, str):
            msg = f"{name} are texts, and one is {type(text).__name__}"
            raise TypeError(msg)
    return found
