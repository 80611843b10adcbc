"""Long-term facts of an owner, recalled across conversations.

Optional in every sense: `import turnstore` brings in nothing of it. It needs numpy, of the extra
`facts`.
"""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("numpy") is None:
    _MSG = "turnstore.facts needs numpy: pip install '.[facts]' in a clone"
    raise ModuleNotFoundError(_MSG, name="numpy")

from turnstore._erasing import ERASERS

from ._aexchanges import AsyncExchanges
from ._aextraction import AsyncExtraction
from ._learning.extracting import Extracted, ExtractionError
from ._learning.letters import DeadLetter
from ._learning.operations import Operation, Undone
from ._learning.prompts import EXTRACTION_PROMPT
from ._model import Added, Fact, FactPage, Health, Hit, NewFact
from ._owner import Ground
from ._scoring.ranking import Decay, Ranking
from ._storing.erasing import Eraser
from ._storing.migration import Migration
from ._storing.retention import Retention
from .aio import AsyncFacts
from .engines import Plain, Search, VectorSet
from .exchanges import Exchanges
from .extraction import Extraction
from .facts import Facts
from .recall import Recall
from .tools import AsyncMemoryTools, MemoryTools
from .working_memory import AsyncWorkingMemory, Block, WorkingMemory

__all__ = [
    "EXTRACTION_PROMPT",
    "Added",
    "AsyncExchanges",
    "AsyncExtraction",
    "AsyncFacts",
    "AsyncMemoryTools",
    "AsyncWorkingMemory",
    "Block",
    "DeadLetter",
    "Decay",
    "Exchanges",
    "Extracted",
    "Extraction",
    "ExtractionError",
    "Fact",
    "FactPage",
    "Facts",
    "Health",
    "Hit",
    "MemoryTools",
    "Migration",
    "NewFact",
    "Operation",
    "Plain",
    "Ranking",
    "Recall",
    "Retention",
    "Search",
    "Undone",
    "VectorSet",
    "WorkingMemory",
]

ERASERS.append(lambda home: Eraser(Ground(home)))
