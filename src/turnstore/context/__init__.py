"""What the model sees of a conversation: how much of it, and what goes before it."""

from .processor import SUMMARY_HEADING, SUMMARY_PROMPT, Processor
from .tokens import TokenCounter

__all__ = ["SUMMARY_HEADING", "SUMMARY_PROMPT", "Processor", "TokenCounter"]
