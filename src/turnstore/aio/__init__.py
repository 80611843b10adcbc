"""The asyncio twins of `store` and `conversation`; a test keeps their texts equal."""

from .conversation import AsyncConversation
from .store import AsyncStore

__all__ = ["AsyncConversation", "AsyncStore"]
