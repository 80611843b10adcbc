"""What several tests of leases need."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING

from tests.store.talk import texts
from turnstore import Lease, _holding

if TYPE_CHECKING:
    from turnstore import AsyncConversation

PATIENT = Lease(wait=timedelta(minutes=5))
SHORT = Lease(ttl=timedelta(milliseconds=300), wait=timedelta(minutes=5))


async def said(chat: AsyncConversation, text: str, lease: Lease = PATIENT) -> list[str]:
    """Take a turn; give what it saw."""
    async with chat.turn(text, on_conflict="serialize", lease=lease) as turn:
        turn.reply(f"re {text}")
        return texts(turn.history)


def nobody_renews() -> bool:
    """Say whether every thread and task that renewed a lease has ended."""
    threads = [one for one in threading.enumerate() if one.name == "turnstore-lease"]
    return not threads and not _holding._TASKS
