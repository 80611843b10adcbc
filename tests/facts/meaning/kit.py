"""What tests of extractions and memory tools share: an embedder and a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import blake2b
from math import sqrt
from typing import TYPE_CHECKING, Any

from tests.servers.facade import as_async, inner, register
from turnstore import Appended, Store
from turnstore._calls import Call
from turnstore.context import SavedTurn
from turnstore.facts import (
    AsyncExtraction,
    AsyncFacts,
    AsyncMemoryTools,
    AsyncWorkingMemory,
    Extraction,
    Facts,
    MemoryTools,
    WorkingMemory,
)
from turnstore.facts._scoring.text import terms

if TYPE_CHECKING:
    from turnstore import AsyncConversation, AsyncStore

for kind, twin in (
    (Facts, AsyncFacts),
    (Extraction, AsyncExtraction),
    (MemoryTools, AsyncMemoryTools),
    (WorkingMemory, AsyncWorkingMemory),
):
    register(kind, twin)

DIMENSIONS = 64


def embed(texts: list[str]) -> list[list[float]]:
    """Make vectors of which those of texts with the same words are near."""
    return [_vector(text) for text in texts]


def _vector(text: str) -> list[float]:
    vector = [0.001] * DIMENSIONS
    for term, count in terms(text).items():
        digest = blake2b(term.encode(), digest_size=4).digest()
        vector[int.from_bytes(digest) % DIMENSIONS] += count
    return vector


def leaning(texts: list[str]) -> list[list[float]]:
    """Make vectors whose cosine with that of a question is the number in a text, in hundredths."""
    cosines = [1 if text == "?" else int(text.rpartition(" ")[2]) / 100 for text in texts]
    return [[one, sqrt(1 - one**2)] + [0.0] * (DIMENSIONS - 2) for one in cosines]


def facts_in(store: AsyncStore, **options: Any) -> AsyncFacts:
    """Keep facts in a store, or in a view of one."""
    options = {"embed": embed, "dimensions": DIMENSIONS, "embedder": "words:1", **options}
    options = {"ttl": timedelta(hours=1), **options}
    given: Any = inner(store)
    if isinstance(given, Store):
        return as_async(Facts(given, **options))  # type: ignore[arg-type, return-value]  # a view
    return AsyncFacts(given, **options)


Scripted = str | BaseException | list[dict[str, Any]] | Callable[[str], Any]


@dataclass
class Model:
    """A model that answers what it was told to, in this order; it must not be asked more often.

    An answer is text, a list of facts, an error that it raises, or a function of the prompt.
    """

    answers: list[Scripted] = field(default_factory=list[Scripted])
    prompts: list[str] = field(default_factory=list[str])

    def __call__(self, prompt: str) -> Any:
        self.prompts.append(prompt)
        assert self.answers, f"nobody expected this question:\n{prompt[-500:]}"
        answer = self.answers.pop(0)
        if callable(answer):
            return answer(prompt)
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, str) else json.dumps({"facts": answer})

    @property
    def seen(self) -> str:
        """What it was shown last: the known facts and the turns."""
        return self.prompts[-1].partition("What is known:\n")[2].partition("\n\nThe JSON")[0]


def new(text: str, *turns: int, **more: Any) -> dict[str, Any]:
    """Make a fact as a model draws it."""
    return {"verdict": "new", "text": text, "turns": list(turns) or [1], **more}


def news(verdict: str, of: int, text: str, *turns: int, **more: Any) -> dict[str, Any]:
    """Make a fact that speaks of a known one."""
    return {"verdict": verdict, "of": of, "text": text, "turns": list(turns) or [1], **more}


async def note(extraction: AsyncExtraction, chat: AsyncConversation) -> bool:
    """Tell an extraction that a turn was saved, as a context does."""
    place = inner(chat)._place
    done = Appended("1-t1", duplicate=False, turns=1, messages=1, tokens=0, dropped=0)
    turn = SavedTurn(place.identifier, place.owner, "t1", [], "openai.chat", done)
    return await extraction.__call__(turn)


@dataclass
class Kit:
    """A store with facts, a model, and a conversation of Ada's; all of it to be awaited."""

    store: AsyncStore
    facts: AsyncFacts
    model: Model

    @property
    def chat(self) -> AsyncConversation:
        """The conversation."""
        return self.store.conversation("c1", owner="ada")

    def extraction(self, **options: Any) -> AsyncExtraction:
        """Make an extraction that asks the model."""
        options = {"deadline": 30.0, **options}
        facts: Any = inner(self.facts)
        if isinstance(facts, Facts):
            return as_async(Extraction(facts, self.model, **options))  # type: ignore[arg-type, return-value]  # a view
        return AsyncExtraction(facts, self.model, **options)

    def memory(self, *blocks: Any, **options: Any) -> AsyncWorkingMemory:
        """Make a working memory."""
        facts: Any = inner(self.facts)
        given = (blocks,) if blocks else ()
        if isinstance(facts, Facts):
            return as_async(WorkingMemory(facts, *given, **options))  # type: ignore[arg-type, return-value]  # a view
        return AsyncWorkingMemory(facts, *given, **options)

    def tools(self, owner: str = "ada", **options: Any) -> AsyncMemoryTools:
        """Make memory tools."""
        facts: Any = inner(self.facts)
        options = {name: inner(value) for name, value in options.items()}
        if isinstance(facts, Facts):
            return as_async(MemoryTools(facts, owner, **options))  # type: ignore[arg-type, return-value]  # a view
        return AsyncMemoryTools(facts, owner, **options)

    async def say(self, *texts: str, turn_id: str | None = None) -> None:
        """Save a turn for each text: the user says it, and the assistant nods."""
        for text in texts:
            answer = {"role": "assistant", "content": "I see."}
            await self.chat.append([{"role": "user", "content": text}, answer], turn_id=turn_id)

    async def run(self, flow: Any) -> Any:
        """Run a flow where the facts run theirs."""
        given = inner(self.facts)._run(flow)
        return await given if asyncio.iscoroutine(given) else given

    async def lag_is(self, lag: int, owner: str = "ada") -> None:
        """Wait until so many turns of an owner are seen to wait."""
        seen = -1
        for _ in range(3000):
            seen = (await self.facts.health(owner)).lag
            if seen == lag:
                return
            await asyncio.sleep(0.01)
        raise AssertionError(f"{seen} turns wait, and not {lag}")

    async def run_out(self) -> bool:
        """Let the lease of Ada's extraction run out; whether there was one."""
        lease = inner(self.facts)._base.ground.owner("ada").keys.lease

        def flow() -> Any:
            return (yield Call("test", (lease,), "del", (), writes=True, read=bool))

        return bool(await self.run(flow()))

    async def reads_it_later(self) -> None:
        """See that nothing was written, and that the one turn is read by the next extraction."""
        assert await self.texts(include_closed=True) == []
        self.model.answers = [[new("Ada sails.")]]
        assert (await self.extraction().extract(self.chat)).turns == 1
        assert await self.texts() == ["Ada sails."]
        assert (await self.extraction().extract(self.chat)).turns == 0

    async def texts(self, *, include_closed: bool = False) -> list[str]:
        """Give what is known of Ada, sorted."""
        return sorted(
            fact.text for fact in await self.facts.list("ada", include_closed=include_closed)
        )

    async def fact(self, text: str) -> Any:
        """Give the one fact that says this, closed or not."""
        (found,) = [
            fact for fact in await self.facts.list("ada", include_closed=True) if fact.text == text
        ]
        return found
