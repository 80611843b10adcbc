"""What a turn takes with and without `Recall`, and with the same search by hand before it."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar

import harness
import redis
import redis.asyncio

from turnstore import AsyncStore, Store
from turnstore.context import Context
from turnstore.facts import AsyncFacts, Facts, Recall

from . import corpus
from .subjects import EMBEDDER, NAME, TOP

if TYPE_CHECKING:
    from collections.abc import Sequence

EMBEDDING_MS = (0, 10)  # what an embedder takes
BARE, RECALL, NO_DEADLINE, BY_HAND = "turn", "recall", "recall without a deadline", "by hand"
_TURNS = 50  # of a question and an answer, in the window of a hundred messages
Figure = dict[str, Any]


class _Turns:
    """Turns of a conversation of an owner, whose window is full."""

    def __init__(self, facts: Any, owner: str) -> None:
        self.facts = facts
        self.owner = owner
        self.embedding_ms = 0
        self.recall = Recall(facts, min_score=None)
        no_deadline = Recall(facts, min_score=None, deadline=None)
        self.contexts = {
            BARE: Context(),
            RECALL: Context(sources=[self.recall]),
            NO_DEADLINE: Context(sources=[no_deadline]),
        }
        self.window: deque[str] = deque(maxlen=_TURNS)

    @property
    def asked(self) -> dict[str, Any]:
        """How is searched by hand: for as many, but for what the window has."""
        return {"top_k": TOP, "min_score": None, "exclude": tuple(self.window)}


def _request(question: str, hits: Sequence[Any]) -> list[dict[str, str]]:
    known = "\n".join(hit.fact.text for hit in hits)
    return [{"role": "system", "content": known}, {"role": "user", "content": question}]


class SyncTurns(_Turns):
    """With a `Store`; the embedder is a function."""

    kind: ClassVar[harness.Kind] = "sync"

    def __init__(self, url: str, owner: str) -> None:
        self.client = redis.Redis.from_url(url)
        self.store = Store(self.client, name=NAME)
        super().__init__(_facts(Facts, self.store, self._embed), owner)

    def _embed(self, texts: list[str]) -> Any:
        if self.embedding_ms:
            time.sleep(self.embedding_ms / 1000)
        return corpus.embed(texts)

    def turn(self, request: Any, context: str = BARE) -> None:
        """One turn."""
        chat = self.store.conversation(self.kind, owner=self.owner)
        with chat.turn(request, context=self.contexts[context]) as turn:
            turn.reply("Yes.")
        self.window.append(turn.turn_id)

    def by_hand(self, question: str) -> None:
        """One that is told what a search has found."""
        hits = self.facts.search(self.owner, question, **self.asked)
        self.turn(_request(question, hits))

    def close(self) -> None:
        """Let go of the server."""
        self.client.close()


class AsyncTurns(_Turns):
    """With an `AsyncStore`; the embedder is async."""

    kind: ClassVar[harness.Kind] = "async"

    def __init__(self, url: str, owner: str) -> None:
        self.client = redis.asyncio.Redis.from_url(url)
        self.store = AsyncStore(self.client, name=NAME)
        super().__init__(_facts(AsyncFacts, self.store, self._embed), owner)

    async def _embed(self, texts: list[str]) -> Any:
        if self.embedding_ms:
            await asyncio.sleep(self.embedding_ms / 1000)
        return corpus.embed(texts)

    async def turn(self, request: Any, context: str = BARE) -> None:
        """One turn."""
        chat = self.store.conversation(self.kind, owner=self.owner)
        async with chat.turn(request, context=self.contexts[context]) as turn:
            turn.reply("Yes.")
        self.window.append(turn.turn_id)

    async def by_hand(self, question: str) -> None:
        """One that is told what a search has found."""
        hits = await self.facts.search(self.owner, question, **self.asked)
        await self.turn(_request(question, hits))

    async def close(self) -> None:
        """Let go of the server."""
        await self.client.aclose()


def _facts(kind: Any, store: Any, embed: Any) -> Any:
    return kind(store, embed=embed, dimensions=corpus.DIMENSIONS, embedder=EMBEDDER, engine="plain")


def measured(url: str, owner: str, asked: Sequence[str], effort: harness.Effort) -> list[Figure]:
    """Measure what recall adds, sync and async, with an embedder that takes a while and without.

    Args:
        url: Of a server that has the owner's facts.
        owner: Whose they are.
        asked: What is asked.
        effort: How long is measured.
    """
    with contextlib.closing(SyncTurns(url, owner)) as turns:
        found = _of(turns, asked, effort, None)
    with asyncio.Runner() as runner:
        aturns = AsyncTurns(url, owner)
        try:
            return found + _of(aturns, asked, effort, runner)
        finally:
            runner.run(aturns.close())


def _of(
    turns: Any, asked: Sequence[str], effort: harness.Effort, runner: asyncio.Runner | None
) -> list[Figure]:
    harness.run(_fill(turns, asked), runner)
    return [
        figure for taken in EMBEDDING_MS for figure in _added(turns, asked, taken, effort, runner)
    ]


async def _fill(turns: Any, asked: Sequence[str]) -> None:
    for question in asked[:_TURNS]:
        await harness.settle(turns.turn(question), turns.kind)


def _added(
    turns: Any,
    asked: Sequence[str],
    embedding_ms: int,
    effort: harness.Effort,
    runner: asyncio.Runner | None,
) -> list[Figure]:
    turns.embedding_ms = embedding_ms
    failures = turns.recall.failures
    gos = [
        harness.Go(context, lambda at, context=context: turns.turn(asked[at], context))
        for context in turns.contexts
    ]
    gos.append(harness.Go(BY_HAND, lambda at: turns.by_hand(asked[at])))
    harness.run(harness.interleave(gos, turns.kind, effort), runner)
    bare, *recalled, by_hand = ([*map(statistics.median, go.rounds)] for go in gos)
    figures = harness.figures("recall", turns.kind, gos, embedding_ms=embedding_ms)
    for figure, times in zip(figures[1:3], recalled, strict=True):
        rounds = zip(times, by_hand, bare, strict=True)
        share = statistics.median((one - less) / (other - less) for one, other, less in rounds)
        figure["of_hand"] = round(share, 3)
    figures[1]["late"] = turns.recall.failures - failures
    return figures
