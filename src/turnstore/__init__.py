"""A memory in Redis for any LLM client.

A `Store` (or `AsyncStore`) holds conversations; a conversation is a sequence of turns; a
turn is one or more messages that were saved together.
"""

from ._leases import Lease
from .aio import AsyncConversation, AsyncStore
from .clients.callables import remember
from .conversation import Conversation
from .errors import (
    AlreadySavedError,
    ClosedError,
    ConflictError,
    CorruptTurnError,
    DeniedError,
    EngineMismatchError,
    ErasedError,
    FormatError,
    LeaseError,
    LeaseLostError,
    LeaseQueueFullError,
    LeaseTimeoutError,
    LimitError,
    OutOfMemoryError,
    ReadOnlyError,
    SaveError,
    ScriptError,
    ServerError,
    TurnConflictError,
    TurnGoneError,
    TurnIdReusedError,
    TurnstoreError,
    UnavailableError,
    UnsupportedError,
    WrongTypeError,
)
from .messages import Input, Message
from .results import (
    Appended,
    ConversationInfo,
    ConversationPage,
    Erasure,
    History,
    Stat,
    Turn,
    TurnPage,
)
from .store import Store
from .turn import AsyncPendingTurn, PendingTurn
from .window import Window

__all__ = [
    "AlreadySavedError",
    "Appended",
    "AsyncConversation",
    "AsyncPendingTurn",
    "AsyncStore",
    "ClosedError",
    "ConflictError",
    "Conversation",
    "ConversationInfo",
    "ConversationPage",
    "CorruptTurnError",
    "DeniedError",
    "EngineMismatchError",
    "ErasedError",
    "Erasure",
    "FormatError",
    "History",
    "Input",
    "Lease",
    "LeaseError",
    "LeaseLostError",
    "LeaseQueueFullError",
    "LeaseTimeoutError",
    "LimitError",
    "Message",
    "OutOfMemoryError",
    "PendingTurn",
    "ReadOnlyError",
    "SaveError",
    "ScriptError",
    "ServerError",
    "Stat",
    "Store",
    "Turn",
    "TurnConflictError",
    "TurnGoneError",
    "TurnIdReusedError",
    "TurnPage",
    "TurnstoreError",
    "UnavailableError",
    "UnsupportedError",
    "Window",
    "WrongTypeError",
    "remember",
]
