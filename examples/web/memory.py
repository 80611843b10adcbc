"""What is done around each turn: recall before the model is asked, remember when it was saved.

A user's chats have nothing in common but their owner. `Exchanges` keeps what was said in each
of them among the owner's facts, and `Recall` puts what fits a question before the model, in
whatever chat of the same owner it is asked. Nobody else's is ever found.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from zlib import crc32

from turnstore import AsyncStore
from turnstore.context import Context, SavedTurn

# ---- The embedder: put a real one here ----------------------------------------------------------

EMBEDDER = "three-letters:1"
DIMENSIONS = 512
NEAR = 0.25  # the least cosine similarity of what is recalled; measure it with yours


def embed(texts: list[str]) -> list[list[float]]:
    """Make a vector of each text: how often it has each three letters in a row.

    So texts are found that share words, or parts of them, in any form ("move", "moved"). It knows
    no meanings: a cat is no pet to it. A real embedder is a function like this, which may be
    async, and asks a model, such as `openai.embeddings.create(model=…, input=texts)`. Give it a
    name of its own: vectors of two embedders are never compared.
    """
    return [_vector(text) for text in texts]


def _vector(text: str) -> list[float]:
    vector = [0.01] * DIMENSIONS  # so that no vector is zero
    for word in re.findall(r"\w{3,}", text.lower()):
        for start in range(len(word)):
            vector[crc32(f" {word} "[start : start + 3].encode()) % DIMENSIONS] += 1
    return vector


# -------------------------------------------------------------------------------------------------

KEPT = timedelta(days=30)  # after a user's last turn: chats, and what is remembered of them
DEADLINE = 5  # seconds for a recall; after it, the model is asked without
TITLE = "From earlier chats with this user"
LONGEST = 80  # characters of a chat's title

log = logging.getLogger("uvicorn.error")


def context_of(store: AsyncStore) -> Context:
    """Make the context of all turns; without numpy, one that has no long-term memory."""
    try:
        from turnstore.facts import AsyncExchanges, AsyncFacts, Recall  # noqa: PLC0415 - optional
    except ModuleNotFoundError as error:
        log.warning("Nothing is recalled across chats: %s", error)
        return Context(after=[titles_in(store)])
    facts = AsyncFacts(store, embed=embed, dimensions=DIMENSIONS, embedder=EMBEDDER, ttl=KEPT)
    recall = Recall(facts, exchange_min_score=NEAR, deadline=DEADLINE, title=TITLE)
    # The turn waits for the embedding. With an embedder that takes its time, let it be done in the
    # background, and close the exchanges before the store.
    return Context(sources=[recall], after=[titles_in(store), AsyncExchanges(facts)])


def titles_in(store: AsyncStore) -> Callable[[SavedTurn], Awaitable[None]]:
    """Make what names a chat by its first question, for the list of chats."""

    async def name(turn: SavedTurn) -> None:
        if turn.appended.turns == 1:
            chat = store.conversation(turn.conversation, owner=turn.owner)
            await chat.set_title(turn.messages[0]["content"][:LONGEST])

    return name
