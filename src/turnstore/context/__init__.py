"""What the model sees of a conversation: how much of it, and what goes before it."""

from .after import After, SavedTurn
from .context import Context
from .entities import Entities, simple_entities
from .processor import SUMMARY_HEADING, SUMMARY_PROMPT, Processor
from .retrieval import FRAME, Query, Recalled, Retrieval, Source
from .rewrite import REWRITE_PROMPT, Rewrite
from .summary import Summary
from .tokens import TokenCounter
from .topics import Boundary, Topics

__all__ = [
    "FRAME",
    "REWRITE_PROMPT",
    "SUMMARY_HEADING",
    "SUMMARY_PROMPT",
    "After",
    "Boundary",
    "Context",
    "Entities",
    "Processor",
    "Query",
    "Recalled",
    "Retrieval",
    "Rewrite",
    "SavedTurn",
    "Source",
    "Summary",
    "TokenCounter",
    "Topics",
    "simple_entities",
]
