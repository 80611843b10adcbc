"""A small memory that is in every prompt: labelled blocks of text, of each owner."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from turnstore._calls import Flow
from turnstore.context.retrieval import Query, Retrieval

from ._storing.handles import base_in, check_store, run_in
from ._tools.blocks import Block, append_to, change, labelled, read, replace_in

if TYPE_CHECKING:
    from turnstore._holding import AsyncRunner, Runner

    from ._owner import OwnerPlace
    from ._storing.base import Base
    from .aio import AsyncFacts
    from .facts import Facts

__all__ = ["DEFAULT_BLOCKS", "TITLE", "AsyncWorkingMemory", "Block", "WorkingMemory"]

DEFAULT_BLOCKS = (
    Block("human", "What you know of the user: name, preferences, what matters to them."),
    Block("persona", "How you are to be and to speak with this user."),
)
"""The blocks of a working memory where no others are named."""

TITLE = "Your working memory of this user"
"""What stands above the blocks in what the model reads."""


class _Blocks(Retrieval):
    """What the two kinds of working memory share: everything but the waiting."""

    def __init__(
        self,
        base: Base,
        blocks: Sequence[Block],
        *,
        deadline: float | None,
        strict: bool,
        title: str,
    ) -> None:
        super().__init__(self._known, deadline=deadline, tokens=None, strict=strict, title=title)
        self.blocks = labelled(blocks)
        """The blocks by their labels."""
        self._base = base

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.blocks)})"

    def _known(self, query: Query) -> str | Awaitable[str]:
        """Give what the blocks say, to a context."""
        raise NotImplementedError

    def _check_store(self, conversation: str) -> None:
        """Refuse a conversation of another store; asked by a context."""
        check_store(self._base, conversation)

    def _place(self, owner: str) -> OwnerPlace:
        return self._base.ground.owner(owner)

    def _block(self, label: str) -> Block:
        if label not in self.blocks:
            msg = f"there is no block {label!r}; the blocks are {', '.join(self.blocks)}"
            raise ValueError(msg)
        return self.blocks[label]

    def _read(self, owner: str) -> Flow[dict[str, str]]:
        return read(self._place(owner), list(self.blocks))

    def _read_for(self, query: Query) -> Flow[dict[str, str]]:
        """Read the blocks of the owner of a conversation.

        Raises:
            ValueError: It has no owner.
        """
        if not query.owner:
            msg = (
                "the conversation has no owner, and a working memory is an owner's: "
                "store.conversation(id, owner=…)"
            )
            raise ValueError(msg)
        return self._read(query.owner)

    def _change(self, owner: str, label: str, edit: Callable[[str], str]) -> Flow[str]:
        ttl_ms = self._base.settings.ttl_ms
        block = self._block(label)
        return change(self._place(owner), block, edit, self._base.redacted, ttl_ms)

    def _text(self, known: dict[str, str]) -> str:
        return "\n\n".join(
            f"[{label}] {self.blocks[label].about} ({len(text)} of {self.blocks[label].limit} "
            f"characters)\n{text}"
            for label, text in known.items()
        )


class WorkingMemory(_Blocks):
    """Carry a few labelled blocks of text in every prompt, and let them be changed.

    What is to be known in each turn and not only where it is searched for: who the user is,
    what was agreed. Give it to a context as a source, and to `MemoryTools`, by which a model
    changes it. Each owner has blocks of their own, which are erased with the owner.

    Args:
        facts: The facts beside which the blocks lie.
        blocks: The blocks that there are.
        deadline: Seconds that reading them may take in a turn; None waits.
        strict: Whether a turn fails where they cannot be read; else it goes on without them.
        title: What stands above them in what the model reads.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: There is no block, or two have one label.

    Cost:
        One round trip in each turn.

    Example:
        >>> facts = Facts(store, embed=embed, dimensions=8, embedder="demo:1", engine="plain")
        >>> memory = WorkingMemory(facts, [Block("human", limit=500)])
        >>> memory.append("ada", "human", "Her name is Ada.")
        'Her name is Ada.'
        >>> memory.read("ada")
        {'human': 'Her name is Ada.'}
    """

    def __init__(
        self,
        facts: Facts,
        blocks: Sequence[Block] = DEFAULT_BLOCKS,
        *,
        deadline: float | None = 2.0,
        strict: bool = False,
        title: str = TITLE,
    ) -> None:
        base = base_in("WorkingMemory", facts, asynchronous=False)
        super().__init__(base, blocks, deadline=deadline, strict=strict, title=title)
        self._run: Runner = run_in(facts)

    def read(self, owner: str) -> dict[str, str]:
        """Read what the blocks of an owner say.

        Args:
            owner: Whose they are.

        Returns:
            The texts by their labels; blocks that say nothing are missing.

        Raises:
            TypeError, ValueError: The owner is not text, or empty.
            CorruptTurnError, FormatError: What is stored cannot be read.
            ServerError: Redis failed.

        Cost:
            One round trip.
        """
        return self._run(self._read(owner))

    def append(self, owner: str, label: str, content: str) -> str:
        """Add a line to a block.

        Args:
            owner: Whose it is.
            label: Of the block.
            content: What is added.

        Returns:
            What the block says now.

        Raises:
            TypeError, ValueError: An argument is of no use, or the block would be too long;
                nothing was written.
            ErasedError: The owner was erased meanwhile; nothing was written.
            ConflictError: Others change it without pause; nothing was written.
            ServerError: Redis failed.

        Atomicity:
            All of it or nothing; of two at the same time, both count.

        Cost:
            Two round trips.
        """
        return self._run(self._change(owner, label, append_to(content)))

    def replace(self, owner: str, label: str, old: str, new: str) -> str:
        """Replace a part of a block.

        Args:
            owner: Whose it is.
            label: Of the block.
            old: The part that is replaced. It has to stand there, and only once.
            new: What stands there instead; empty removes the part.

        Returns:
            What the block says now.

        Raises:
            TypeError, ValueError, ErasedError, ConflictError, ServerError: As for `append`.

        Atomicity:
            As for `append`.

        Cost:
            Two round trips.
        """
        return self._run(self._change(owner, label, replace_in(label, old, new)))

    def write(self, owner: str, label: str, text: str) -> str:
        """Let a block say something else altogether.

        Args:
            owner: Whose it is.
            label: Of the block.
            text: What it says from now on; empty empties it.

        Returns:
            What the block says now.

        Raises:
            TypeError, ValueError, ErasedError, ConflictError, ServerError: As for `append`.

        Cost:
            Two round trips.
        """
        return self._run(self._change(owner, label, _instead(text)))

    def _known(self, query: Query) -> str:
        return self._text(self._run(self._read_for(query)))


class AsyncWorkingMemory(_Blocks):
    """Carry a few labelled blocks of text in every prompt, and let them be changed.

    What is to be known in each turn and not only where it is searched for: who the user is,
    what was agreed. Give it to a context as a source, and to `MemoryTools`, by which a model
    changes it. Each owner has blocks of their own, which are erased with the owner.

    Args:
        facts: The facts beside which the blocks lie.
        blocks: The blocks that there are.
        deadline: Seconds that reading them may take in a turn; None waits.
        strict: Whether a turn fails where they cannot be read; else it goes on without them.
        title: What stands above them in what the model reads.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: There is no block, or two have one label.

    Cost:
        One round trip in each turn.

    Example:
        >>> facts = AsyncFacts(store, embed=embed, dimensions=8, embedder="demo:1", engine="plain")
        >>> memory = AsyncWorkingMemory(facts, [Block("human", limit=500)])
        >>> await memory.append("ada", "human", "Her name is Ada.")
        'Her name is Ada.'
        >>> await memory.read("ada")
        {'human': 'Her name is Ada.'}
    """

    def __init__(
        self,
        facts: AsyncFacts,
        blocks: Sequence[Block] = DEFAULT_BLOCKS,
        *,
        deadline: float | None = 2.0,
        strict: bool = False,
        title: str = TITLE,
    ) -> None:
        base = base_in("WorkingMemory", facts, asynchronous=True)
        super().__init__(base, blocks, deadline=deadline, strict=strict, title=title)
        self._run: AsyncRunner = run_in(facts)

    async def read(self, owner: str) -> dict[str, str]:
        """Read what the blocks of an owner say.

        Args:
            owner: Whose they are.

        Returns:
            The texts by their labels; blocks that say nothing are missing.

        Raises:
            TypeError, ValueError: The owner is not text, or empty.
            CorruptTurnError, FormatError: What is stored cannot be read.
            ServerError: Redis failed.

        Cost:
            One round trip.
        """
        return await self._run(self._read(owner))

    async def append(self, owner: str, label: str, content: str) -> str:
        """Add a line to a block.

        Args:
            owner: Whose it is.
            label: Of the block.
            content: What is added.

        Returns:
            What the block says now.

        Raises:
            TypeError, ValueError: An argument is of no use, or the block would be too long;
                nothing was written.
            ErasedError: The owner was erased meanwhile; nothing was written.
            ConflictError: Others change it without pause; nothing was written.
            ServerError: Redis failed.

        Atomicity:
            All of it or nothing; of two at the same time, both count.

        Cost:
            Two round trips.
        """
        return await self._run(self._change(owner, label, append_to(content)))

    async def replace(self, owner: str, label: str, old: str, new: str) -> str:
        """Replace a part of a block.

        Args:
            owner: Whose it is.
            label: Of the block.
            old: The part that is replaced. It has to stand there, and only once.
            new: What stands there instead; empty removes the part.

        Returns:
            What the block says now.

        Raises:
            TypeError, ValueError, ErasedError, ConflictError, ServerError: As for `append`.

        Atomicity:
            As for `append`.

        Cost:
            Two round trips.
        """
        return await self._run(self._change(owner, label, replace_in(label, old, new)))

    async def write(self, owner: str, label: str, text: str) -> str:
        """Let a block say something else altogether.

        Args:
            owner: Whose it is.
            label: Of the block.
            text: What it says from now on; empty empties it.

        Returns:
            What the block says now.

        Raises:
            TypeError, ValueError, ErasedError, ConflictError, ServerError: As for `append`.

        Cost:
            Two round trips.
        """
        return await self._run(self._change(owner, label, _instead(text)))

    async def _known(self, query: Query) -> str:
        return self._text(await self._run(self._read_for(query)))


def _instead(text: str) -> Callable[[str], str]:
    if not isinstance(text, str):
        msg = f"a block says text, not {type(text).__name__}"
        raise TypeError(msg)
    return lambda _: text.strip()
