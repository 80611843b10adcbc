"""How an asyncio conversation is kept: its life, its end, and its title."""

from __future__ import annotations

from datetime import timedelta

from turnstore._holding import AsyncRunner
from turnstore._place import Place
from turnstore.results import Erasure

__all__ = ["AsyncKeeping"]


class AsyncKeeping:
    """The methods that deal with a conversation as a whole."""

    _place: Place
    _run: AsyncRunner

    @property
    def id(self) -> str:
        """The id that it was opened with."""
        return self._place.identifier

    @property
    def owner(self) -> str | None:
        """The id of its owner; None where it has none."""
        return self._place.owner or None

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
        """Delete the conversation with its summary and its title, also one that is not readable.

        With an owner, a turn that began before does not bring it back: its save raises
        `ErasedError`. Long-term facts and exchanges that were drawn from it stay, and are
        recalled: the facts until an extraction notices. `erase` removes them too.

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

    async def erase(self, *, verify: bool = False) -> Erasure:
        """Delete the conversation and what was remembered of it, for good.

        Its turns, summary, title, queue and place in the list of its owner; and where the store
        has long-term facts, the exchanges that were kept of it, the facts that were first drawn
        from it, what could not be drawn, and what the log says of it. What began before it does
        not come back: the save of a turn that is under way raises `ErasedError`, with the answer;
        an extraction or an exchange in the background is refused.

        Facts that were first drawn from other conversations stay, and so does the working
        memory: they are the owner's. Repeat it after any error.

        Args:
            verify: Look again until nothing is found, also at every key of the server and at
                the index of the facts.

        Returns:
            What this call removed: what a command had removed whose answer was lost is not
            counted. What is left are notes, for two days: digests with numbers.

        Raises:
            TypeError: The conversation has no owner; `clear` deletes it.
            UnsupportedError: The owner has facts, and this process has not imported
                `turnstore.facts`; nothing was deleted, or the turns alone.
            WrongTypeError: The key of the turns holds something that is not ours; nothing was
                deleted.
            CorruptTurnError: A fact of the conversation cannot be read, or a part of the owner's
                facts is lost, as by eviction. What could be found is deleted; `store.erase`
                deletes all.
            ErasedError: Everything of the owner is being erased just now.
            ServerError: Redis failed, or something of it is written again and again; a part
                may be deleted.

        Atomicity:
            What began before is refused from the first step on, in which the turns go. Facts
            go after it, some at a time.

        Cost:
            Three round trips. Where the store has facts nine, two more for each hundred facts
            that go, and one for each 500 that the owner has. `verify` does all of it twice,
            and scans all keys of the server, of a Cluster those of one node.

        Example:
            >>> chat = store.conversation("conv-1", owner="ada")
            >>> (await chat.append("Hello")).turns
            1
            >>> (await chat.erase(verify=True)).turns
            1
        """
        return await self._run(self._place.erase(verify=verify))

    async def title(self) -> str | None:
        """Read the title.

        Returns:
            What `set_title` was given; None where nothing was, and while there are no turns.

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

        It lives and goes with the conversation: what is begun anew under the id, and a `fork`,
        have none. Where all turns are undone, the next one within a day finds it again. The
        store's `redact` does not see it.

        Args:
            title: 1 to 200 characters; None takes it away.

        Returns:
            False where there is no such conversation, nor one whose turns were all undone within
            a day: nothing was written.

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
