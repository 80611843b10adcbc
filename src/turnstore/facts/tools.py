"""Memory as tools: a model keeps, changes and searches the memory of its user by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any

from ._storing.handles import base_in, check_store, home_in, place_in, run_in, shared_in
from ._tools.calling import Toolbox
from ._tools.definitions import (
    Call,
    as_anthropic,
    as_openai,
    as_openai_responses,
    as_schema,
    call_in,
)

if TYPE_CHECKING:
    from turnstore._holding import AsyncRunner, Runner
    from turnstore.aio.conversation import AsyncConversation
    from turnstore.conversation import Conversation
    from turnstore.turn import AsyncPendingTurn, PendingTurn

    from ._storing.base import Base
    from .aio import AsyncFacts
    from .facts import Facts
    from .working_memory import AsyncWorkingMemory, WorkingMemory

__all__ = ["AsyncMemoryTools", "MemoryTools"]


class _Tools:
    """What the two kinds of tools share: everything but the waiting."""

    def __init__(  # noqa: PLR0913, PLR0917 - what the two kinds are given, and what they share
        self,
        base: Base,
        facts: Facts | AsyncFacts,
        owner: str,
        conversation: Conversation | AsyncConversation | None,
        memory: WorkingMemory | AsyncWorkingMemory | None,
        zone: tzinfo,
        turn: PendingTurn | AsyncPendingTurn | None,
    ) -> None:
        if not isinstance(zone, tzinfo):
            msg = f"zone is a time zone, as in ZoneInfo('Europe/Paris'); not {zone!r}"
            raise TypeError(msg)
        place, keys = None, home_in(facts).owner(owner)
        if conversation is not None:
            place = place_in(conversation)
            check_store(base, str(place.keys))
            if place.keys.owner != keys:
                msg = (
                    "the conversation is not one of this owner: store.conversation(id, owner=…) "
                    "with the same owner"
                )
                raise ValueError(msg)
        if turn is not None:
            its = place_in(turn).keys
            check_store(base, str(its))
            if its.owner != keys:
                msg = "the turn is not of a conversation of this owner"
                raise ValueError(msg)
        if memory is not None and shared_in(memory).ground != base.ground:
            msg = "the working memory is one of another store than the facts"
            raise ValueError(msg)
        blocks = {} if memory is None else memory.blocks
        self._toolbox = Toolbox(base, owner, place, blocks, zone, turn)

    @property
    def counts(self) -> Counter[str]:
        """How often a call of each tool failed, the model's own mistakes included."""
        return self._toolbox.counts

    @property
    def openai(self) -> list[dict[str, Any]]:
        """The tools as `tools` of OpenAI's chat completions takes them."""
        return [as_openai(tool) for tool in self._toolbox.definitions.values()]

    @property
    def openai_responses(self) -> list[dict[str, Any]]:
        """The tools as `tools` of OpenAI's responses takes them."""
        return [as_openai_responses(tool) for tool in self._toolbox.definitions.values()]

    @property
    def anthropic(self) -> list[dict[str, Any]]:
        """The tools as `tools` of Anthropic's messages takes them."""
        return [as_anthropic(tool) for tool in self._toolbox.definitions.values()]

    @property
    def schemas(self) -> list[dict[str, Any]]:
        """The tools as names, descriptions and plain JSON schemas, for anything else."""
        return [as_schema(tool) for tool in self._toolbox.definitions.values()]

    def __contains__(self, name: object) -> bool:
        return name in self._toolbox.definitions

    def __iter__(self) -> Iterator[str]:
        return iter(self._toolbox.definitions)

    def __len__(self) -> int:
        return len(self._toolbox.definitions)


class MemoryTools(_Tools):
    """Let a model keep, change and search what is known of one owner.

    - `core_memory_append`, `core_memory_replace`: change the working memory, which is in
      every prompt. Only with `memory`.
    - `archival_memory_insert`, `archival_memory_search`: keep a fact, and search the facts.
    - `conversation_search`: search the earlier messages of the conversation, without what
      tools have answered. Only with `conversation`.

    A model is never the cause of an exception: what is wrong with a call is said to it, so
    that it can call again. So is a memory that cannot be reached; that is logged as well.

    Args:
        facts: Where facts are kept.
        owner: Whose memory it is; the tools reach no other one.
        conversation: The conversation that goes on; it has to have the same owner.
        memory: The working memory.
        zone: Where the user's dates hold.
        turn: The turn in which the model calls them, as `chat.turn(…)` gives it. What is
            erased once it has begun, its tools do not bring back: they say so to the model.
            Without it, that holds for what is erased after their first call.

    Raises:
        TypeError, ValueError: The owner is empty or not text, the conversation or the turn is
            another owner's, the conversation, the turn or the working memory is of another
            store than the facts, or the zone is none.

    Cost:
        No I/O: make them for each request. Those that outlive an erasure, or a day, change
        nothing any more.

    Example:
        >>> facts = Facts(store, embed=embed, dimensions=8, embedder="demo:1", engine="plain")
        >>> tools = MemoryTools(facts, "ada", memory=WorkingMemory(facts))
        >>> list(tools)  # doctest: +NORMALIZE_WHITESPACE
        ['core_memory_append', 'core_memory_replace', 'archival_memory_insert',
         'archival_memory_search']
        >>> tools.call("archival_memory_insert", {"content": "Ada sails."})
        'It is kept.'
        >>> tools.call("archival_memory_insert", "{}")
        'Error: "content" is missing.'
    """

    def __init__(  # noqa: PLR0913 - settings, by keyword
        self,
        facts: Facts,
        owner: str,
        *,
        conversation: Conversation | None = None,
        memory: WorkingMemory | None = None,
        zone: tzinfo = UTC,
        turn: PendingTurn | None = None,
    ) -> None:
        base = base_in("MemoryTools", facts, asynchronous=False)
        super().__init__(base, facts, owner, conversation, memory, zone, turn)
        self._run: Runner = run_in(facts)

    def call(self, name: str, arguments: object) -> str:
        """Do what a model asks for.

        Args:
            name: Of the tool.
            arguments: JSON as text, or a dict.

        Returns:
            What the model is to be told, errors included.

        Cost:
            Two to four round trips, and the embedder; for a search of the conversation one
            for each 200 turns, of the newest 2,000. One more for the first call, without
            `turn`.
        """
        answer = self._run(self._toolbox.answer(name, arguments))
        return answer.text

    def answer(self, call: object) -> dict[str, Any]:
        """Do what a call asks for, and give the message that answers it.

        Args:
            call: One of `message.tool_calls` of OpenAI's chat completions, an item of the
                type `function_call` of its responses, or a block of the type `tool_use` of
                Anthropic's messages; as an object of the SDK or a dict.

        Returns:
            The `tool` message, the item of the type `function_call_output`, or the block of
            the type `tool_result`.

        Raises:
            TypeError: It is no call of a tool.

        Cost:
            As for `call`.
        """
        made: Call = call_in(call)
        answer = self._run(self._toolbox.answer(made.name, made.arguments))
        return made.result(answer.text, failed=answer.failed)


class AsyncMemoryTools(_Tools):
    """Let a model keep, change and search what is known of one owner.

    - `core_memory_append`, `core_memory_replace`: change the working memory, which is in
      every prompt. Only with `memory`.
    - `archival_memory_insert`, `archival_memory_search`: keep a fact, and search the facts.
    - `conversation_search`: search the earlier messages of the conversation, without what
      tools have answered. Only with `conversation`.

    A model is never the cause of an exception: what is wrong with a call is said to it, so
    that it can call again. So is a memory that cannot be reached; that is logged as well.

    Args:
        facts: Where facts are kept.
        owner: Whose memory it is; the tools reach no other one.
        conversation: The conversation that goes on; it has to have the same owner.
        memory: The working memory.
        zone: Where the user's dates hold.
        turn: The turn in which the model calls them, as `chat.turn(…)` gives it. What is
            erased once it has begun, its tools do not bring back: they say so to the model.
            Without it, that holds for what is erased after their first call.

    Raises:
        TypeError, ValueError: The owner is empty or not text, the conversation or the turn is
            another owner's, the conversation, the turn or the working memory is of another
            store than the facts, or the zone is none.

    Cost:
        No I/O: make them for each request. Those that outlive an erasure, or a day, change
        nothing any more.

    Example:
        >>> facts = AsyncFacts(store, embed=embed, dimensions=8, embedder="demo:1", engine="plain")
        >>> tools = AsyncMemoryTools(facts, "ada", memory=AsyncWorkingMemory(facts))
        >>> list(tools)  # doctest: +NORMALIZE_WHITESPACE
        ['core_memory_append', 'core_memory_replace', 'archival_memory_insert',
         'archival_memory_search']
        >>> await tools.call("archival_memory_insert", {"content": "Ada sails."})
        'It is kept.'
        >>> await tools.call("archival_memory_insert", "{}")
        'Error: "content" is missing.'
    """

    def __init__(  # noqa: PLR0913 - settings, by keyword
        self,
        facts: AsyncFacts,
        owner: str,
        *,
        conversation: AsyncConversation | None = None,
        memory: AsyncWorkingMemory | None = None,
        zone: tzinfo = UTC,
        turn: AsyncPendingTurn | None = None,
    ) -> None:
        base = base_in("MemoryTools", facts, asynchronous=True)
        super().__init__(base, facts, owner, conversation, memory, zone, turn)
        self._run: AsyncRunner = run_in(facts)

    async def call(self, name: str, arguments: object) -> str:
        """Do what a model asks for.

        Args:
            name: Of the tool.
            arguments: JSON as text, or a dict.

        Returns:
            What the model is to be told, errors included.

        Cost:
            Two to four round trips, and the embedder; for a search of the conversation one
            for each 200 turns, of the newest 2,000. One more for the first call, without
            `turn`.
        """
        answer = await self._run(self._toolbox.answer(name, arguments))
        return answer.text

    async def answer(self, call: object) -> dict[str, Any]:
        """Do what a call asks for, and give the message that answers it.

        Args:
            call: One of `message.tool_calls` of OpenAI's chat completions, an item of the
                type `function_call` of its responses, or a block of the type `tool_use` of
                Anthropic's messages; as an object of the SDK or a dict.

        Returns:
            The `tool` message, the item of the type `function_call_output`, or the block of
            the type `tool_result`.

        Raises:
            TypeError: It is no call of a tool.

        Cost:
            As for `call`.
        """
        made: Call = call_in(call)
        answer = await self._run(self._toolbox.answer(made.name, made.arguments))
        return made.result(answer.text, failed=answer.failed)
