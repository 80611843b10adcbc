"""Long-term facts of an owner, recalled across conversations.

Optional in every sense: `import turnstore` brings in nothing of it. It needs numpy, of the extra
`facts`.
"""

from __future__ import annotations

from ._migration import Migration
from ._model import Added, Fact, FactPage, Health, Hit, NewFact
from ._ranking import Decay, Ranking
from ._retention import Retention
from .aio import AsyncFacts
from .engines import Plain, Search, VectorSet
from .facts import Facts

__all__ = [
    "Added",
    "AsyncFacts",
    "Decay",
    "Fact",
    "FactPage",
    "Facts",
    "Health",
    "Hit",
    "Migration",
    "NewFact",
    "Plain",
    "Ranking",
    "Retention",
    "Search",
    "VectorSet",
]
