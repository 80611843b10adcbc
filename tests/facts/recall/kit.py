"""What tests of recall and of exchanges share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.facts.meaning.kit import facts_in
from tests.servers.facade import as_async, inner, register
from turnstore.facts import AsyncExchanges, Exchanges, Facts, Recall

if TYPE_CHECKING:
    from turnstore import AsyncStore
    from turnstore.context import Context
    from turnstore.facts import AsyncFacts

__all__ = ["Memory", "facts_in"]

register(Exchanges, AsyncExchanges)

Json = dict[str, Any]


@dataclass
class Memory:
    """A store with facts."""

    store: AsyncStore
    facts: AsyncFacts

    def recall(self, **options: Any) -> Recall:
        """Make a recall that waits as long as it takes."""
        return Recall(inner(self.facts), **{"deadline": None, "min_score": 0.3, **options})

    def exchanges(self, **options: Any) -> AsyncExchanges:
        """Make exchanges, to be awaited."""
        facts: Any = inner(self.facts)
        if isinstance(facts, Facts):
            return as_async(Exchanges(facts, **options))  # type: ignore[arg-type, return-value]  # a view
        return AsyncExchanges(facts, **options)

    async def ask(
        self, text: str, context: Context, *, chat: str = "c", owner: str | None = "ada"
    ) -> str:
        """Have a turn, and give what the model was sent before the conversation."""
        conversation = self.store.conversation(chat, owner=owner)
        async with conversation.turn(text, context=context) as turn:
            first = turn.messages[0]
            turn.reply("I see.")
        return first["content"] if first["role"] == "system" else ""

    async def texts(self, owner: str = "ada", **options: Any) -> list[str]:
        """Give what is known, oldest first."""
        return [fact.text for fact in reversed(await self.facts.list(owner, **options))]
