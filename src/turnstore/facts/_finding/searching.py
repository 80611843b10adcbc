"""Find facts by their meaning and their words, and list them: flows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from turnstore._calls import Flow
from turnstore.errors import ServerError

from .._model import Fact, FactPage, Hit
from .._owner import OwnerPlace, began_ms, is_id, script_call
from .._scoring.ranking import Candidate, Ranking, neighbours_wanted, rank
from .._scoring.text import asks, bm25_packed, terms
from .._storing.reading import Row, all_ids, page, read_records, read_rows
from .._storing.record import Record, moment, stamp
from ..engines._engine import Filter

if TYPE_CHECKING:
    from .._embedding import Vector
    from .._storing.base import Backend, Base

__all__ = ["Question", "get", "list_facts", "read_records", "search", "search_in"]

_READ_AT_ONCE = 200


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
        passed: Conversations and ids of turns in them, whose facts are left out.
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
    passed: frozenset[tuple[str, str]] = frozenset()
    least: Mapping[str, float | None] = MappingProxyType({})


class _Looked(NamedTuple):
    now_ms: int
    spaces: tuple[str, ...]
    facts: int
    length: int
    since_ms: int
    records: list[bytes]


class _Found(NamedTuple):
    row: Row
    vector: Vector | None


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
    yield from base.prepare()
    counted = terms(question.text)
    looked: _Looked = yield script_call(
        "facts_look",
        place,
        {},
        _read_looked,
        writes=False,
        more=[term.encode("utf-8", "surrogatepass") for term in counted],
        operation="search",
    )
    if not looked.facts:
        return []
    backend = yield from base.backend_of(looked.spaces)
    (vector,) = yield from base.embed(backend, [question.text])
    lexical = bm25_packed(
        counted,
        dict(zip(counted, looked.records, strict=True)),
        looked.facts,
        looked.length,
    )
    rules = ranking or base.settings.ranking
    finder = _Finder(base, place, backend, question, digest, rules, vector, lexical, looked)
    hits = yield from finder.hits()
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
        lexical: dict[str, float],
        looked: _Looked,
    ) -> None:
        self._base = base
        self._place = place
        self._backend = backend
        self._question = question
        self._ranking = ranking
        self._vector = vector
        self._lexical = lexical
        self._looked = looked
        self._as_of = question.as_of or moment(looked.now_ms)
        self._digest = digest
        # Those that are left out must not take the place of others.
        self._most = ranking.reach(question.top_k) + len(question.exclude) + len(question.passed)
        self._looks_around = bool(ranking.neighbours or ranking.answers)

    def hits(self) -> Flow[list[Hit]]:
        """Read the candidates, and put them in order."""
        near = yield from self._near()
        found = yield from self._candidates(near)
        question, now_ms = self._question, self._looked.now_ms
        pool = self._pool(found)
        wanted = neighbours_wanted(pool, self._ranking, now_ms, question.top_k, question.text)
        if wanted:
            more = yield from self._read(wanted, {})
            pool += self._pool(more)
            found.update(more)
        ranked = rank(pool, self._ranking, now_ms, question.top_k, query=question.text)
        return [
            Hit(found[one.id].row.record.fact, one.score, one.cosine, one.lexical) for one in ranked
        ]

    def _near(self) -> Flow[dict[str, Vector | None]]:
        engine, space = self._backend.engine, self._backend.space
        known_at, facts = self._question.known_at, self._looked.facts
        wanted = Filter(
            stamp(self._as_of),
            None if known_at is None else stamp(known_at),
            self._question.kinds,
            self._digest,
            self._looked.since_ms,
        )
        looked_for = (self._place, space, self._vector, self._most, wanted, facts)
        near = yield from engine.nearest(*looked_for)
        if len(near) >= min(self._most, facts):
            return near
        # Fewer than there may be: because the others may not be shown, or as the server has not
        # indexed all of them yet, after a restart. Then all of them are looked at here.
        state = yield from engine.state(self._base.ground, space)
        if not state.indexing:
            # Where the index was not whole before, it became so after it was searched.
            return (yield from engine.nearest(*looked_for)) if state.documents else near
        self._base.warn_once(
            "indexing", "the server is building its index; facts are compared without it till then"
        )
        return {**dict.fromkeys((yield from all_ids(self._place, "search"))), **near}

    def _candidates(self, near: dict[str, Vector | None]) -> Flow[dict[str, _Found]]:
        """Read the facts that are near, and the best by their words, of those that are shown."""
        lexical = self._lexical
        order = list(lexical)  # the best come first
        found: dict[str, _Found] = {}
        by_words: list[str] = []
        unread = dict.fromkeys(near)  # they are read with the first ones
        for start in range(0, max(len(order), 1), self._most):
            part = order[start : start + self._most]
            unread.update((one, None) for one in part if start == 0 or one not in near)
            found.update((yield from self._read(list(unread), near)))
            unread = {}
            by_words += [one for one in part if one in found]
            if len(by_words) >= self._most:
                break
        return {
            one: found[one]
            for one in dict.fromkeys((*near, *by_words[: self._most]))
            if one in found
        }

    def _read(self, ids: Sequence[str], near: dict[str, Vector | None]) -> Flow[dict[str, _Found]]:
        """Read facts with their vectors, and give those that may be shown."""
        found: dict[str, _Found] = {}
        for start in range(0, len(ids), 2 * self._most):
            part = ids[start : start + 2 * self._most]
            # Only the first ones are asked for their vectors: those that did not come along.
            lacking = [one for one in part if near.get(one) is None]
            rows = yield from read_rows(
                self._place,
                [*lacking, *(one for one in part if near.get(one) is not None)],
                operation="search",
                token=self._backend.space.token,
                vectors=len(lacking),
                around=self._looks_around,
            )
            found.update(
                (id_, _Found(row, self._unpacked(row, near.get(id_))))
                for id_, row in rows.items()
                if self._is_shown(row.record)
            )
        return found

    def _unpacked(self, row: Row, vector: Vector | None) -> Vector | None:
        if vector is None and row.packed:
            return self._backend.engine.unpack(row.packed, self._backend.space)
        return vector

    def _is_shown(self, record: Record) -> bool:
        """Say whether a fact may be found: the one rule, whatever an engine has let through."""
        fact, question = record.fact, self._question
        return (
            fact.is_valid(self._as_of, question.known_at)
            and (question.kinds is None or fact.kind in question.kinds)
            and (not self._digest or record.digest == self._digest)
            and fact.id not in question.exclude
            and question.exclude.isdisjoint(fact.sources)
            and not any((fact.conversation, one) in question.passed for one in fact.sources)
        )

    def _pool(self, found: dict[str, _Found]) -> list[Candidate]:
        """Give the candidates; similarities are computed here, for all engines alike."""
        cosines = _cosines([vector for _, vector in found.values()], self._vector)
        pool: list[Candidate] = []
        for (id_, (row, vector)), cosine in zip(found.items(), cosines, strict=True):
            fact = row.record.fact
            pool.append(
                Candidate(
                    id=id_,
                    cosine=cosine,
                    lexical=self._lexical.get(id_, 0.0),
                    created_ms=stamp(fact.created),
                    used_ms=row.used_ms,
                    pinned=fact.pinned,
                    conversation=fact.conversation,
                    vector=vector,
                    observed_ms=stamp(fact.observed),
                    from_ms=stamp(fact.valid_from),
                    asks=asks(fact.text),
                    before=row.before,
                    after=row.after,
                    least=self._least(fact.kind),
                )
            )
        return pool

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
    asked = max(limit + 1, _READ_AT_ONCE if kinds or digest else 0)
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


def _cosines(vectors: Sequence[Vector | None], query: Vector) -> list[float]:
    """Compute the similarities of vectors with one; 0 for those that are not there."""
    known = [at for at, vector in enumerate(vectors) if vector is not None]
    cosines = [0.0] * len(vectors)
    if known:
        matrix = np.array([vectors[at] for at in known], dtype=np.float64)
        wide = np.asarray(query, dtype=np.float64)
        lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(wide)
        # Row by row: what is computed for one vector must not depend on the others.
        for at, cosine in zip(known, np.einsum("ij,j->i", matrix, wide) / lengths, strict=True):
            cosines[at] = float(cosine)
    return cosines


def _read_looked(reply: list[Any]) -> _Looked:
    now_ms, spaces, facts, length, oldest, *records = reply
    first = oldest.decode()
    since_ms = began_ms(first) if is_id(first) else 0
    return _Looked(now_ms, tuple(spaces.decode().split()), facts, length, since_ms, records)
