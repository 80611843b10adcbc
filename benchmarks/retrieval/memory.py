"""The search of turnstore's facts without a server: the same functions on lists in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from turnstore.facts._scoring.ranking import Candidate, Ranking, neighbours_wanted, rank
from turnstore.facts._scoring.text import asks, bm25, terms

if TYPE_CHECKING:
    from collections.abc import Callable

    from .data import Conversation

FIRST_MS = 1_700_000_000_000  # when the first turn was stored; the data do not matter here

DENSE = Ranking(alpha=1, dates=0, neighbours=0, sitting=0, answers=0, questions=0)
WORDS = Ranking(alpha=0, dates=0, neighbours=0, sitting=0, answers=0, questions=0)
FUSED = Ranking(dates=0, neighbours=0, sitting=0, answers=0, questions=0)


@dataclass
class Searched:
    """What a question came upon, before it is put in order."""

    query: str
    candidates: list[Candidate]


@dataclass
class Memory:
    """One conversation, ready to be searched."""

    conversation: Conversation
    embed: Callable[[list[str]], Any]
    facts: list[Candidate] = field(init=False)
    exact: Any = field(init=False)
    questions: Any = field(init=False)

    def __post_init__(self) -> None:
        turns = self.conversation.turns
        texts = [turn.said() for turn in turns]
        vectors = np.asarray(self.embed(texts))
        self.questions = np.asarray(
            self.embed([question.text for question in self.conversation.questions])
        ).astype(np.float64)
        self.exact = vectors.astype(np.float64)
        self._postings: dict[str, list[tuple[str, int, int]]] = {}
        self._length = 0
        for turn, text in zip(turns, texts, strict=True):
            counted = terms(text)
            self._length += counted.total()
            for term, count in counted.items():
                self._postings.setdefault(term, []).append((turn.id, count, counted.total()))
        self.facts = [
            Candidate(
                turn.id,
                0.0,
                0.0,
                FIRST_MS + at,
                conversation=str(turn.session),
                vector=vector,
                text=text,
                observed_ms=int(turn.time.timestamp() * 1000),
                asks=asks(text),
            )
            for at, (turn, text, vector) in enumerate(zip(turns, texts, vectors, strict=True))
        ]
        for at, (one, other) in enumerate(pairwise(turns)):
            self.facts[at] = self.facts[at]._replace(after=other.id)
            self.facts[at + 1] = self.facts[at + 1]._replace(before=one.id)
        self._place = {turn.id: at for at, turn in enumerate(turns)}

    def exactly(self, number: int, most: int) -> list[str]:
        """The nearest turns to a question by an exact computation: what dense alone must match."""
        cosines = self.exact @ self.questions[number]
        order = sorted(range(len(cosines)), key=lambda at: -cosines[at])
        return [self.facts[at].id for at in order[:most]]

    def search(self, number: int, ranking: Ranking, most: int) -> list[str]:
        """What a question finds, best first."""
        found = self.look(number, ranking, most)
        ranked = rank(found.candidates, ranking, FIRST_MS, most, query=found.query)
        return [one.id for one in ranked]

    def look(self, number: int, ranking: Ranking, most: int) -> Searched:
        """Find the candidates of a question as a search does."""
        query = self.conversation.questions[number].text
        cosines = self.exact @ self.questions[number]
        found = terms(query)
        lexical = bm25(found, self._postings, len(self.facts), self._length)
        count = ranking.reach(most)
        near = [self.facts[at].id for at in np.argsort(-cosines, kind="stable")[:count]]
        worded = sorted(lexical, key=lambda id_: (-lexical[id_], id_))[:count]

        def made(ids: list[str]) -> list[Candidate]:
            return [
                self.facts[at]._replace(cosine=float(cosines[at]), lexical=lexical.get(id_, 0.0))
                for id_ in ids
                for at in (self._place[id_],)
            ]

        candidates = made(list(dict.fromkeys((*near, *worded))))
        more = neighbours_wanted(candidates, ranking, FIRST_MS, most, query)
        return Searched(query, candidates + made(more))
