"""Find facts by their meaning and their words, and list them: flows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from turnstore._calls import Flow
from turnstore.errors import ServerError

from .._model import Fact, FactPage, Hit
from .._owner import OwnerPlace, script_call
from .._scoring.ranking import DIGITS, Candidate, Ranking, neighbours_wanted, rank
from .._scoring.text import Lexical, asks, terms
from .._storing.heads import Head
from .._storing.reading import Seen, all_ids, page, read_records, read_seen, words
from .._storing.record import NOTHING, Record, decode, stamp
from ..engines._engine import Filter

if TYPE_CHECKING:
    from .._embedding import Vector, Vectors
    from .._storing.base import Backend, Base

__all__ = ["Question", "get", "list_facts", "read_records", "search", "search_in"]

_READ_AT_ONCE = 2000
_LEFT_OUT = 10
_LISTED_AT_ONCE = 200


class Question(NamedTuple):
    """What is searched for, checked.

    Attributes:
        text: The question.
        top_k: Hits at most.
        min_score: The least similarity; None takes all.
        kinds: Only facts of these kinds; None is any.
        conversation: Only facts drawn from this one; empty is any.
        as_of: What is true at this time; None is now.
        known_at: By what was known at this time; None is now.
        exclude: The ids of facts, and of turns, whose facts are left out.
        passed: The ids of turns, whose facts are left out, by their conversations.
        least: The least similarity for facts of some kinds, in place of `min_score`.
    """

    text: str
    top_k: int
    min_score: float | None
    kinds: tuple[str, ...] | None
    conversation: str
    as_of: datetime | None
    known_at: datetime | None
    exclude: frozenset[str]
    passed: Mapping[str, frozenset[str]] = MappingProxyType({})
    least: Mapping[str, float | None] = MappingProxyType({})


class _Looked(NamedTuple):
    now_ms: int
    latest_ms: int
    spaces: tuple[str, ...]
    facts: int
    length: int
    since_ms: int
    ids: list[str]
    records: list[bytes]


def search(base: Base, owner: str, question: Question) -> Flow[list[Hit]]:
    """Find facts of an owner: three calls or four, and one to note which were found."""
    return (yield from search_in(base, base.ground.owner(owner), question))


def search_in(
    base: Base,
    place: OwnerPlace,
    question: Question,
    *,
    ranking: Ranking | None = None,
    is_use: bool = True,
) -> Flow[list[Hit]]:
    """Find facts at the place of an owner.

    Args:
        base: The settings.
        place: The owner's.
        question: What is searched for.
        ranking: How what is found is put in order; None is that of the settings.
        is_use: Whether it is noted that they were found.
    """
    digest = place.conversation(question.conversation)
    rules = ranking or base.settings.ranking
    yield from base.prepare()
    counted = terms(question.text)
    most = rules.reach(question.top_k)
    # Neither an engine nor the words know what is left out, and that must not take the place of
    # others. Mostly it is little: then nothing need be asked, or read, a second time.
    left_out = len(question.exclude) + sum(map(len, question.passed.values()))
    asked = most + min(left_out, _LEFT_OUT)
    looked: _Looked = yield script_call(
        "facts_look",
        place,
        {"few": asked},
        _read_looked,
        writes=False,
        more=[term.encode("utf-8", "surrogatepass") for term in counted],
        operation="search",
    )
    if not looked.facts:
        return []
    backend = yield from base.backend_of(looked.spaces)
    (vector,) = yield from base.embed(backend, [question.text])
    finder = _Finder(base, place, backend, question, digest, rules, vector, looked, most, asked)
    hits = yield from finder.hits(counted)
    if is_use:
        yield from _touch(base, place, [hit.fact.id for hit in hits], looked.now_ms)
    return hits


class _Finder:
    """One search, once its question has a vector."""

    def __init__(  # noqa: PLR0913, PLR0917 - what one search has
        self,
        base: Base,
        place: OwnerPlace,
        backend: Backend,
        question: Question,
        digest: str,
        ranking: Ranking,
        vector: Vector,
        looked: _Looked,
        most: int,
        asked: int,
    ) -> None:
        self._base = base
        self._place = place
        self._backend = backend
        self._question = question
        self._ranking = ranking
        self._vector = vector
        self._looked = looked
        self._most = most
        self._asked = asked
        self._as_of_ms = stamp(question.as_of) if question.as_of else looked.latest_ms
        known_at = question.known_at
        self._known_at_ms = None if known_at is None else stamp(known_at)
        self._digest = digest
        self._packed: dict[str, bytes] = {}
        self._passed = {place.conversation(one): ids for one, ids in question.passed.items() if ids}

    def hits(self, counted: Counter[str]) -> Flow[list[Hit]]:
        """Read the candidates, and put them in order."""
        looked, question, ranking = self._looked, self._question, self._ranking
        records = dict(zip(counted, looked.records, strict=True))
        lexical = Lexical(counted, records, looked.facts, looked.length)
        found = yield from self._candidates(lexical)
        pool = self._pool(found, lexical)
        asked = (ranking, looked.now_ms, question.top_k, question.text)
        wanted = neighbours_wanted(pool, *asked)
        if wanted:
            more = yield from self._read(wanted)
            pool += self._pool(more, lexical)
            found.update(more)
        ranked = rank(pool, *asked)
        return [
            Hit(
                decode(one.id, found[one.id].head.raw).fact,
                one.score,
                one.cosine,
                one.lexical,
            )
            for one in ranked
        ]

    def _near(self, asked: int) -> Flow[Sequence[str]]:
        """Find so many nearest facts, and keep what came along of vectors."""
        engine, space = self._backend.engine, self._backend.space
        looked, facts = self._looked, self._looked.facts
        if looked.ids:  # they are so few that all of them are candidates: no index is needed
            return looked.ids
        wanted = Filter(
            self._as_of_ms,
            self._known_at_ms,
            self._question.kinds,
            self._digest,
            looked.since_ms,
        )
        looked_for = (self._place, space, self._vector, asked, wanted, facts)
        near = yield from engine.nearest(*looked_for)
        everything: list[str] = []
        if len(near.ids) < asked:
            # Fewer than there may be: because the others may not be shown, or as the server has
            # not indexed all of them yet, after a restart. Then all of them are looked at here.
            state = yield from engine.state(self._base.ground, space)
            if state.indexing:
                self._base.warn_once(
                    "indexing",
                    "the server is building its index; facts are compared without it till then",
                )
                everything = yield from all_ids(self._place, "search")
            elif state.documents:
                # Where the index was not whole before, it became so after it was searched.
                near = yield from engine.nearest(*looked_for)
        self._packed.update(near.packed)
        return list(dict.fromkeys((*everything, *near.ids)))

    def _candidates(self, lexical: Lexical) -> Flow[dict[str, Seen]]:
        """Read the facts that are near, and the best by their words, of those that are shown."""
        most, asked = self._most, self._asked
        near = dict.fromkeys((yield from self._near(asked)))
        found: dict[str, Seen] = {}
        by_words: list[str] = []
        unread = dict(near)  # they are read with the first ones
        start = 0
        while True:
            part = lexical.best(start + asked)[start:]
            unread.update((one, None) for one in part if start == 0 or one not in near)
            found.update((yield from self._read(list(unread))))
            unread = {}
            by_words += [one for one in part if one in found]
            start += asked
            if len(by_words) >= most or start >= len(lexical):
                break
        shown = [one for one in near if one in found]
        while len(shown) < most and asked <= len(near) < self._looked.facts:
            asked *= 2
            more = dict.fromkeys((yield from self._near(asked)))
            found.update((yield from self._read([one for one in more if one not in near])))
            near = more
            shown = [one for one in near if one in found]
        nearest = self._nearest(shown)
        return {one: found[one] for one in dict.fromkeys((*nearest, *by_words[:most]))}

    def _nearest(self, ids: list[str]) -> list[str]:
        """Take the nearest ones, where an engine has found more; of equals, the oldest."""
        if len(ids) <= self._most:
            return ids
        cosines = _cosines(self._vectors(ids), self._vector)
        order = sorted(range(len(ids)), key=lambda at: (-round(cosines[at], DIGITS), ids[at]))
        return [ids[at] for at in order[: self._most]]

    def _read(self, ids: Sequence[str]) -> Flow[dict[str, Seen]]:
        """Read facts and the vectors that did not come along; give those that may be shown."""
        found: dict[str, Seen] = {}
        ranking, packed = self._ranking, self._packed
        for start in range(0, len(ids), _READ_AT_ONCE):
            part = ids[start : start + _READ_AT_ONCE]
            lacking = [one for one in part if one not in packed]
            seen: dict[str, Seen] = yield from read_seen(
                self._place,
                [*lacking, *(one for one in part if one in packed)],
                token=self._backend.space.token,
                vectors=len(lacking),
                used=ranking.decay is not None,
                around=bool(ranking.neighbours or ranking.answers),
            )
            packed.update((id_, one.packed) for id_, one in seen.items() if one.packed)
            found.update((id_, one) for id_, one in seen.items() if self._is_shown(id_, one.head))
        return found

    def _is_shown(self, id_: str, head: Head) -> bool:
        """Say whether a fact may be found: the one rule, whatever an engine has let through."""
        if not head.is_valid(self._as_of_ms, self._known_at_ms):
            return False
        turns, exclude = self._passed.get(head.digest), self._question.exclude
        if turns and not turns.isdisjoint(head.sources):
            return False
        if exclude and (id_ in exclude or not exclude.isdisjoint(head.sources)):
            return False
        kinds = self._question.kinds
        return (kinds is None or head.kind in kinds) and self._digest in ("", head.digest)

    def _pool(self, found: dict[str, Seen], lexical: Lexical) -> list[Candidate]:
        """Give the candidates; similarities are computed here, for all engines alike."""
        ids = list(found)
        vectors = self._vectors(ids)
        cosines = _cosines(vectors, self._vector)
        scores = lexical.scores(ids)
        return [
            Candidate(
                id_,
                cosine,
                score,
                head.created,
                seen.used_ms,
                head.pinned,
                head.digest if head.digest != NOTHING else "",
                vector if id_ in self._packed else None,
                head.text,
                head.observed,
                head.start,
                asks(head.text),
                seen.before,
                seen.after,
                self._least(head.kind),
            )
            for (id_, seen), vector, cosine, score in zip(
                found.items(), vectors, cosines, scores, strict=True
            )
            for head in (seen.head,)
        ]

    def _vectors(self, ids: Sequence[str]) -> Vectors:
        """Give vectors, one in each row; zeros for those that are not there."""
        engine, space = self._backend.engine, self._backend.space
        packed = [self._packed.get(one) for one in ids]
        known = [one for one in packed if one]
        if known and len(known) == len(ids):
            return engine.unpack_all(known, space)
        vectors = np.zeros((len(ids), space.dimensions), dtype=np.float32)
        if known:
            vectors[[bool(one) for one in packed]] = engine.unpack_all(known, space)
        return vectors

    def _least(self, kind: str) -> float | None:
        """Give the least similarity of a kind, where the engine answers similarities."""
        least = self._question.least.get(kind, self._question.min_score)
        if least is None or self._backend.engine.scored:
            return least
        self._base.warn_once(
            "min_score",
            "min_score is ignored: the engine %s answers ranks, and no similarities",
            self._backend.engine.name,
        )
        return None


def get(base: Base, owner: str, id: str) -> Flow[Fact | None]:  # noqa: A002 - the name of the field
    """Read a fact: one call."""
    records = yield from read_records(base.ground.owner(owner), [id])
    return records[id].fact if id in records else None


def list_facts(  # noqa: PLR0913, PLR0917 - what can be asked for
    base: Base,
    owner: str,
    limit: int,
    before: str,
    kinds: Collection[str] | None,
    conversation: str,
    include_closed: bool,  # noqa: FBT001 - it comes from a keyword
) -> Flow[FactPage]:
    """Read a page of facts, newest first: one call, more where some are left out."""
    place = base.ground.owner(owner)
    digest = place.conversation(conversation)
    facts: list[Fact] = []
    asked = max(limit + 1, _LISTED_AT_ONCE if kinds or digest else 0)
    while True:
        records = yield from page(place, asked, before)
        facts += _listed(records, kinds, digest, include_closed=include_closed)
        if len(facts) > limit:
            return FactPage(facts[:limit], facts[limit - 1].id)
        if len(records) < asked:
            return FactPage(facts, None)
        before = records[-1].fact.id


def _listed(
    records: Iterable[Record],
    kinds: Collection[str] | None,
    digest: str,
    *,
    include_closed: bool,
) -> list[Fact]:
    return [
        record.fact
        for record in records
        if (include_closed or record.fact.expired is None)
        and (kinds is None or record.fact.kind in kinds)
        and (not digest or record.digest == digest)
    ]


def _touch(base: Base, place: OwnerPlace, ids: Sequence[str], now_ms: int) -> Flow[None]:
    """Note that facts were found; a search does not fail of it."""
    if not ids or not base.settings.track_use:
        return
    try:
        yield script_call(
            "facts_touch", place, {"time_ms": now_ms}, int, more=ids, operation="search"
        )
    except ServerError as error:
        base.warn_once("touch", "which facts were found could not be noted: %s", error)


def _cosines(vectors: Vectors, query: Vector) -> list[float]:
    """Compute the similarities of vectors with one; 0 for those that are zero."""
    matrix = vectors.astype(np.float64)
    wide = query.astype(np.float64)
    lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(wide)
    # Row by row: what is computed for one vector must not depend on the others.
    cosines: list[float] = (
        np.einsum("ij,j->i", matrix, wide) / (lengths + (lengths == 0))
    ).tolist()
    return cosines


def _read_looked(reply: list[Any]) -> _Looked:
    now_ms, latest_ms, spaces, facts, length, since_ms, ids, *records = reply
    return _Looked(
        now_ms,
        latest_ms,
        tuple(words(spaces)),
        facts,
        length,
        since_ms,
        [one.decode() for one in ids],
        records,
    )
