"""How an asyncio conversation is kept: its life, its end, and its title."""

from __future__ import annotations

from datetime import timedelta

from turnstore._holding import AsyncRunner
from turnstore._place import Place

__all__ = ["AsyncKeeping"]


class AsyncKeeping:
    """The methods that deal with a conversation as a whole."""

    _place: Place
    _run: AsyncRunner

    async def expire(self, ttl: timedelta | None) -> bool:
        """Set how long the conversation lives, until its next append starts anew.

        Args:
            ttl: Whole milliseconds, at least one (a fraction is cut off); None keeps it
                forever.

        Returns:
            False where there is no such conversation.

        Raises:
            TypeError, ValueError: Not a timedelta, or below a millisecond.

        Cost:
            One round trip.

        Example:
            >>> await chat.expire(timedelta(minutes=5))
            False
        """
        return await self._run(self._place.expire(ttl))

    async def clear(self) -> bool:
        """Delete the conversation, also one that can no longer be read.

        With an owner, a turn that began before does not bring it back: its save raises
        `ErasedError`. Long-term facts and exchanges that were drawn from it stay, and are
        recalled: the facts until an extraction notices. `Facts.forget_conversation` removes
        all of them at once.

        Returns:
            False where there was none.

        Raises:
            WrongTypeError: The key holds something that is not ours; it stays.

        Atomicity:
            One script.

        Cost:
            One round trip.
        """
        return bool(await self._run(self._place.clear()))

    async def title(self) -> str | None:
        """Read the title.

        Returns:
            What `set_title` was given; None where nothing was.

        Raises:
            TypeError: The conversation has no owner.

        Cost:
            One round trip.

        Example:
            >>> chat = store.conversation("conv-1", owner="ada")
            >>> await chat.title()
        """
        return await self._run(self._place.title())

    async def set_title(self, title: str | None) -> bool:
        """Give the conversation a title, for the list of its owner's conversations.

        It lives and goes with the conversation. The store's `redact` does not see it.

        Args:
            title: 1 to 200 characters; None takes it away.

        Returns:
            False where there is no such conversation: nothing was written.

        Raises:
            TypeError: The conversation has no owner, or it is not text.
            ValueError: It is empty, or too long.
            ErasedError: The owner was erased meanwhile; nothing was written.

        Atomicity:
            One script.

        Cost:
            Two round trips.

        Example:
            >>> chat = store.conversation("conv-1", owner="ada")
            >>> (await chat.append("Do boats need lights?")).turns
            1
            >>> await chat.set_title("Boats")
            True
        """
        return await self._run(self._place.set_title(title))
