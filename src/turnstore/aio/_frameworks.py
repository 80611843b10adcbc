"""What a conversation gives to frameworks that are async alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

if TYPE_CHECKING:
    from turnstore._leases import Lease
    from turnstore.context import Context
    from turnstore.integrations.openai_agents import AgentsSession
    from turnstore.window import Window

    from .conversation import AsyncConversation

__all__ = ["AsyncFrameworks"]


class AsyncFrameworks:
    """The methods that make the adapters of frameworks."""

    def agents_session(  # noqa: PLR0913 - options by keyword
        self,
        *,
        window: Window | None = None,
        context: Context | None = None,
        turn_id: str | None = None,
        meta: dict[str, Any] | None = None,
        on_conflict: Literal["append", "reject", "serialize"] = "append",
        lease: Lease | None = None,
        on_load_error: Literal["raise", "continue"] = "raise",
        on_other_format: Literal["raise", "text"] = "raise",
        on_duplicate: Literal["ask", "raise"] = "ask",
    ) -> AgentsSession:
        """Make a session for the OpenAI Agents SDK that is one unit of work.

        In an `async with` block, a run is one turn: it is saved when the block ends, and not
        if an exception leaves the block or a streamed run in it was not read to its end.
        Without a block, each step is saved as soon as the SDK adds it.

        Args:
            window: As for `turn`. The `limit` of the SDK holds beside it, in whole turns.
            context: A context that has a window and a summary alone: a session gives its
                history before it is told the question.
            turn_id: As for `turn`, of what the block saves.
            meta: As for `turn`.
            on_conflict: As for `turn`; all but "append" need the block.
            lease: As for `turn`, for as long as the block.
            on_load_error: As for `turn`.
            on_other_format: As for `turn`.
            on_duplicate: As for `turn`; it needs the block, which raises where it begins.

        Raises:
            TypeError, ValueError: An option is of no use.

        Cost:
            Nothing here; one round trip when the block begins, one when it ends.

        Example:
            >>> async with chat.agents_session() as session:
            ...     await session.add_items([{"role": "user", "content": "Hi"}])
            ...     await session.add_items([{"role": "assistant", "content": "Hello"}])
            >>> len(await chat.turns())
            1
        """
        from turnstore.integrations.openai_agents import (  # noqa: PLC0415 - used by few
            AgentsSession,
        )

        return AgentsSession(
            cast("AsyncConversation", self),
            turn_id=turn_id,
            window=window,
            context=context,
            meta=meta,
            on_conflict=on_conflict,
            lease=lease,
            on_load_error=on_load_error,
            on_other_format=on_other_format,
            on_duplicate=on_duplicate,
        )
