"""What the model sees of a conversation: how much of it, and what goes before it."""

from .context import Context
from .entities import Entities, simple_entities
from .processor import SUMMARY_HEADING, SUMMARY_PROMPT, Processor
from .retrieval import FRAME, Query, Retrieval, Source
from .rewrite import REWRITE_PROMPT, Rewrite
from .summary import Summary
from .tokens import TokenCounter
from .topics import Boundary, Topics

__all__ = [
    "FRAME",
    "REWRITE_PROMPT",
    "SUMMARY_HEADING",
    "SUMMARY_PROMPT",
    "Boundary",
    "Context",
    "Entities",
    "Processor",
    "Query",
    "Retrieval",
    "Rewrite",
    "Source",
    "Summary",
    "TokenCounter",
    "Topics",
    "simple_entities",
]
