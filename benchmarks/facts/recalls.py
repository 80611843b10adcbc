"""What a turn takes with `Recall` or `Exchanges`, and with the same done by hand beside it."""

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
from turnstore.facts import AsyncExchanges, AsyncFacts, Exchanges, Facts, Recall

from . import corpus
from .subjects import EMBEDDER, NAME, TOP

if TYPE_CHECKING:
    from collections.abc import Sequence

EMBEDDING_MS = (0, 10)  # what an embedder takes
KEEPER = "keeper"  # whose exchanges are kept: with each turn there is one more
_TURNS = 50  # of a question and an answer, in the window of a hundred messages
_REPLY = "Yes."
Figure = dict[str, Any]


class _Turns:
    """Turns of a conversation whose window is full."""

    def __init__(self, facts: Any, exchanges: Any) -> None:
        self.facts = facts
        self.embedding_ms = 0
        self.recall = Recall(facts, min_score=None)
        no_deadline = Recall(facts, min_score=None, deadline=None)
        self.background = exchanges(facts, background=True)
        self.bare = Context()
        self.recalling = {
            "Recall()": Context(sources=[self.recall]),
            "Recall(deadline=None)": Context(sources=[no_deadline]),
        }
        self.keeping = {
            "Exchanges()": Context(after=[exchanges(facts)]),
            "Exchanges(background=True)": Context(after=[self.background]),
        }
        self.window: deque[str] = deque(maxlen=_TURNS)

    @property
    def asked(self) -> dict[str, Any]:
        """How is searched by hand: for as many, but for what the window has."""
        return {"top_k": TOP, "min_score": None, "exclude": tuple(self.window)}


def _request(question: str, hits: Sequence[Any]) -> list[dict[str, str]]:
    known = "\n".join(hit.fact.text for hit in hits)
    return [{"role": "system", "content": known}, {"role": "user", "content": question}]


def _exchange(question: str) -> str:
    return f"User: {question}\nAssistant: {_REPLY}"


class SyncTurns(_Turns):
    """With a `Store`; the embedder is a function."""

    kind: ClassVar[harness.Kind] = "sync"

    def __init__(self, url: str) -> None:
        self.client = redis.Redis.from_url(url)
        self.store = Store(self.client, name=NAME)
        super().__init__(_facts(Facts, self.store, self._embed), Exchanges)

    def _embed(self, texts: list[str]) -> Any:
        if self.embedding_ms:
            time.sleep(self.embedding_ms / 1000)
        return corpus.embed(texts)

    def turn(self, owner: str, request: Any, context: Context) -> None:
        """One turn."""
        chat = self.store.conversation(self.kind, owner=owner)
        with chat.turn(request, context=context) as turn:
            turn.reply(_REPLY)
        self.window.append(turn.turn_id)

    def search_and_turn(self, owner: str, question: str) -> None:
        """One that is told what a search has found."""
        hits = self.facts.search(owner, question, **self.asked)
        self.turn(owner, _request(question, hits), self.bare)

    def turn_and_keep(self, owner: str, question: str) -> None:
        """One whose exchange is stored."""
        self.turn(owner, question, self.bare)
        self.facts.add_exchange(owner, self.kind, self.window[-1], _exchange(question))

    def close(self) -> None:
        """Let go of the server."""
        self.background.close()
        self.client.close()


class AsyncTurns(_Turns):
    """With an `AsyncStore`; the embedder is async."""

    kind: ClassVar[harness.Kind] = "async"

    def __init__(self, url: str) -> None:
        self.client = redis.asyncio.Redis.from_url(url)
        self.store = AsyncStore(self.client, name=NAME)
        super().__init__(_facts(AsyncFacts, self.store, self._embed), AsyncExchanges)

    async def _embed(self, texts: list[str]) -> Any:
        if self.embedding_ms:
            await asyncio.sleep(self.embedding_ms / 1000)
        return corpus.embed(texts)

    async def turn(self, owner: str, request: Any, context: Context) -> None:
        """One turn."""
        chat = self.store.conversation(self.kind, owner=owner)
        async with chat.turn(request, context=context) as turn:
            turn.reply(_REPLY)
        self.window.append(turn.turn_id)

    async def search_and_turn(self, owner: str, question: str) -> None:
        """One that is told what a search has found."""
        hits = await self.facts.search(owner, question, **self.asked)
        await self.turn(owner, _request(question, hits), self.bare)

    async def turn_and_keep(self, owner: str, question: str) -> None:
        """One whose exchange is stored."""
        await self.turn(owner, question, self.bare)
        await self.facts.add_exchange(owner, self.kind, self.window[-1], _exchange(question))

    async def close(self) -> None:
        """Let go of the server."""
        await self.background.close()
        await self.client.aclose()


def _facts(kind: Any, store: Any, embed: Any) -> Any:
    return kind(store, embed=embed, dimensions=corpus.DIMENSIONS, embedder=EMBEDDER, engine="plain")


def measured(url: str, owner: str, asked: Sequence[str], effort: harness.Effort) -> list[Figure]:
    """Measure what they add, sync and async, with an embedder that takes a while and without.

    Args:
        url: Of a server that has the owner's facts.
        owner: Whose they are.
        asked: What is asked.
        effort: How long is measured.
    """
    with contextlib.closing(SyncTurns(url)) as turns:
        found = _of(turns, owner, asked, effort, None)
    with asyncio.Runner() as runner:
        aturns = AsyncTurns(url)
        try:
            return found + _of(aturns, owner, asked, effort, runner)
        finally:
            runner.run(aturns.close())


def _of(
    turns: Any,
    owner: str,
    asked: Sequence[str],
    effort: harness.Effort,
    runner: asyncio.Runner | None,
) -> list[Figure]:
    figures: list[Figure] = []
    for whose, contexts, by_hand in (
        (owner, turns.recalling, turns.search_and_turn),
        (KEEPER, turns.keeping, turns.turn_and_keep),
    ):
        harness.run(_fill(turns, whose, asked), runner)
        for turns.embedding_ms in EMBEDDING_MS:
            gos = _gos(turns, whose, asked, contexts, by_hand)
            failures = turns.recall.failures
            harness.run(harness.interleave(gos, turns.kind, effort), runner)
            late = turns.recall.failures - failures
            figures += _added(gos, turns.kind, turns.embedding_ms, late)
    return figures


async def _fill(turns: Any, owner: str, asked: Sequence[str]) -> None:
    for question in asked[:_TURNS]:
        await harness.settle(turns.turn(owner, question, turns.bare), turns.kind)


def _gos(
    turns: Any, owner: str, asked: Sequence[str], contexts: dict[str, Context], by_hand: Any
) -> list[harness.Go]:
    """What is measured in the same rounds: a turn, what adds to it, and the same by hand."""
    named = {"turn": turns.bare, **contexts}
    gos = [
        harness.Go(name, lambda at, context=context: turns.turn(owner, asked[at], context))
        for name, context in named.items()
    ]
    return [*gos, harness.Go("by hand", lambda at: by_hand(owner, asked[at]))]


def _added(gos: list[harness.Go], kind: harness.Kind, embedding_ms: int, late: int) -> list[Figure]:
    bare, *added, by_hand = ([*map(statistics.median, go.rounds)] for go in gos)
    case = {"embedding_ms": embedding_ms, "of": gos[1].name}
    figures = harness.figures("added", kind, gos, **case)
    for figure, times in zip(figures[1:-1], added, strict=True):
        rounds = zip(times, by_hand, bare, strict=True)
        share = statistics.median((one - less) / (other - less) for one, other, less in rounds)
        figure["of_hand"] = round(share, 3)
    figures[1]["late"] = late
    return figures
