"""What facts are, and what is answered: plain values that hold no connection.

A fact is true in the world from `valid_from` up to, and not including, `valid_to`. What is
known of that changes once at most: when later news closes the fact, `expired` says when, and
`valid_to_before` what was believed of its end until then. So a search can ask for what is
true at a time, and for what was known at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

__all__ = ["Added", "Fact", "FactPage", "Health", "Hit", "NewFact"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One stored fact, or one stored exchange.

    All times are in UTC and have milliseconds; they come from the server's clock where the
    caller gave none.

    Attributes:
        id: 12 visible ASCII characters; those of older facts sort first.
        text: What it says.
        kind: "fact", "exchange", or a word of the caller's.
        slot: What it is about, such as "home", where facts of one slot replace one another.
        conversation: The id of the conversation that it was drawn from; empty where none.
        sources: The ids of the turns that say it, the newest last; at most 64.
        created: When it was stored.
        observed: When it was last heard.
        valid_from: Since when it is true.
        valid_to: Until when it is true; None where no end is known.
        expired: When later news closed it; None where none has.
        valid_to_before: What `valid_to` was until then.
        superseded_by: The id of the fact that took its place; empty where none has.
        confidence: How sure it is, from 0 to 1.
        pinned: Whether it is kept and found regardless of its age.
        meta: What the caller keeps beside it.
    """

    id: str
    text: str
    kind: str = "fact"
    slot: str = ""
    conversation: str = ""
    sources: tuple[str, ...] = ()
    created: datetime
    observed: datetime
    valid_from: datetime
    valid_to: datetime | None = None
    expired: datetime | None = None
    valid_to_before: datetime | None = None
    superseded_by: str = ""
    confidence: float = 1.0
    pinned: bool = False
    meta: dict[str, Any] = field(default_factory=dict[str, Any])

    def is_valid(self, as_of: datetime, known_at: datetime | None = None) -> bool:
        """Say whether it is true at a time, by all that is known now or was known then.

        Args:
            as_of: The time in the world.
            known_at: The time of the knowledge; None is now.
        """
        end = self.valid_to
        if known_at is not None:
            if self.created > known_at:
                return False
            if self.expired is not None and self.expired > known_at:
                end = self.valid_to_before
        return self.valid_from <= as_of and (end is None or as_of < end)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFact:
    """A fact to be stored; see `Fact` for what its parts mean.

    Args:
        text: What it says; 1 character to 32 KiB.
        kind: "fact", "exchange", or a word of letters, digits, `_` and `-`.
        slot: What it is about.
        conversation: The id of the conversation that it was drawn from.
        sources: The ids of the turns that say it.
        observed: When it was heard; None is now.
        valid_from: Since when it is true; None is when it was heard.
        valid_to: Until when it is true; None where no end is known.
        confidence: How sure it is, from 0 to 1.
        pinned: Whether it is kept and found regardless of its age.
        meta: JSON to keep beside it.
    """

    text: str
    kind: str = "fact"
    slot: str = ""
    conversation: str = ""
    sources: tuple[str, ...] = ()
    observed: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    confidence: float = 1.0
    pinned: bool = False
    meta: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Added:
    """What was stored.

    Attributes:
        id: The id of the fact.
        duplicate: True when the owner had it already: then its sources and the time when it
            was last heard were brought up to date, and nothing else was written.
    """

    id: str
    duplicate: bool


@dataclass(frozen=True, slots=True)
class Hit:
    """A fact that a search found.

    Attributes:
        fact: The fact.
        score: What the hits are ordered by.
        similarity: Its cosine similarity with the query, from -1 to 1.
        lexical: Its score by words, from 0 to 1.
    """

    fact: Fact
    score: float
    similarity: float
    lexical: float


class FactPage(list[Fact]):
    """Facts, newest first.

    Attributes:
        cursor: What to give as `before` to read the older ones; None where there are none.
    """

    def __init__(self, facts: list[Fact], cursor: str | None) -> None:
        super().__init__(facts)
        self.cursor = cursor


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How the facts of a store, or of one owner, are.

    Attributes:
        engine: What searches the vectors: "plain", "vectorset" or "search".
        embedder: The name of the embedder that made them.
        dimensions: How many numbers a vector has.
        owners: Owners with facts.
        facts: Facts and exchanges held, closed ones among them.
        vectors: Vectors held; as many as there are facts.
        indexing: Whether the server is still building its index; searches look past it till then.
        indexing_failures: Documents that the server could not index; 0 for other engines.
        lag: Turns that wait for their extraction, of conversations that one was told of.
        dead_letters: Answers of a model that no facts could be drawn from, and that are kept.
    """

    engine: str
    embedder: str
    dimensions: int
    owners: int
    facts: int
    vectors: int
    indexing: bool = False
    indexing_failures: int = 0
    lag: int = 0
    dead_letters: int = 0

    @property
    def is_well(self) -> bool:
        """Whether nothing has failed, and each fact has its vector.

        Whether each can be read is not looked at: `retain(dry_run=True)` reads all of them.

        An index that is being built passes by itself, and turns wait for their extraction as long
        as its settings say, or for `Extraction.run` where the process that was to read them is
        gone: look at `indexing` and `lag` for as long as they should not last.
        """
        return not (self.indexing_failures or self.dead_letters or self.vectors != self.facts)
