"""Recall: what is known of the owner of a conversation, put before what the model is asked."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Any, TypeAlias

from turnstore._calls import Flow
from turnstore.context import Query, Recalled, Retrieval

from ._finding.asking import check_question, check_score
from ._finding.searching import Question, search
from ._model import Hit
from ._storing.handles import base_in, check_store, run_in
from .aio import AsyncFacts
from .facts import Facts

__all__ = ["TITLE", "Recall", "worded"]

TITLE = "What is known from earlier conversations with this user, and when it was said"
"""What stands above recalled facts."""

_EXCHANGE = "exchange"
_MOST_CHARACTERS = 2000  # of a question: its beginning and its end
_DAY = timedelta(days=1)

Wording: TypeAlias = Callable[[Hit], str]


class Recall(Retrieval):
    """A source for a `Context`: facts of the conversation's owner that fit the question.

    Before each call of the model, the user's message (or its rewriting, where the context has
    a `Rewrite`) is searched for among the owner's facts and exchanges. What is found is sent
    as part of the context's system message, each with the day when it was said, and is never
    stored as history. Left out is what comes from turns that are sent anyway, or are being
    replaced, and of several facts that say nearly the same, all but the best.

    A search that fails or is too late, and a conversation without an owner, add nothing: the
    turn goes on as if nothing were known, the failure is logged as a warning and counted, in
    `failures` here and as `recall` in the context's `counts`.

    What was found and sent is `turn.recalled`, each with its `Hit` as `item`.

    Args:
        facts: `Facts` for contexts of a `Store`, `AsyncFacts` for those of an `AsyncStore`.
        top_k: Facts at most.
        min_score: The least cosine similarity of a fact; None takes all. What is near depends
            on the embedder: measure it with yours.
        exchange_min_score: The same for exchanges, which are longer, and less like a question.
        deadline: Seconds for the embedding and the search together; None waits.
        strict: Whether a failure is raised, so that the model is not asked.
        tokens: At most so many tokens of facts; only whole ones are taken. None takes all.
        kinds: Only facts of these kinds; None is any.
        owner: Whose facts are meant in conversations that have no owner.
        wording: What is written of a hit; None is `worded`.
        title: Stands above the facts.

    Raises:
        TypeError, ValueError: An argument is of no use.

    Cost:
        The embedding of a question, and the three to five round trips of a search.

    Example:
        >>> from turnstore.context import Context
        >>> facts.add("ada", "Ada lives in Paris.").duplicate
        False
        >>> context = Context(sources=[Recall(facts, min_score=0.3)])
        >>> chat = store.conversation("trip", owner="ada")
        >>> with chat.turn("Where does Ada live?", context=context) as turn:
        ...     "Ada lives in Paris." in turn.messages[0]["content"]
        True
    """

    __slots__ = ("_base", "_owner", "_question", "_wording")

    def __init__(  # noqa: PLR0913 - settings, by keyword
        self,
        facts: Facts | AsyncFacts,
        *,
        top_k: int = 3,
        min_score: float | None = 0.7,
        exchange_min_score: float | None = 0.3,
        deadline: float | None = 0.3,
        strict: bool = False,
        tokens: int | None = 1000,
        kinds: Collection[str] | None = None,
        owner: str | None = None,
        wording: Wording | None = None,
        title: str | None = TITLE,
    ) -> None:
        base = base_in("Recall", facts, asynchronous=isinstance(facts, AsyncFacts))
        if owner is not None:
            base.ground.owner(owner)  # which checks it
        if wording is not None and not callable(wording):
            msg = f"wording is a function from a Hit to text, not {type(wording).__name__}"
            raise TypeError(msg)
        asked = check_question("", top_k, min_score, kinds, "", None, None, ())
        check_score(exchange_min_score)
        self._base = base
        self._owner = owner
        self._wording = wording or worded
        self._question = asked._replace(least={_EXCHANGE: exchange_min_score})
        super().__init__(
            self._source(facts), deadline=deadline, tokens=tokens, strict=strict, title=title
        )

    def _check_store(self, conversation: str) -> None:
        """Refuse a conversation of another store; asked by a context."""
        check_store(self._base, conversation)

    def _source(self, facts: Facts | AsyncFacts) -> Any:
        run = run_in(facts)

        def recall(query: Query) -> list[Recalled]:
            return self._worded(run(self._find(query)))

        async def arecall(query: Query) -> list[Recalled]:
            return self._worded(await run(self._find(query)))

        source = recall if isinstance(facts, Facts) else arecall
        source.__qualname__ = "Recall"  # what the log calls it
        return source

    def _find(self, query: Query) -> Flow[list[Hit]]:
        owner = self._owner_of(query)
        text = _shortened(query.text)
        if not text:
            return []
        passed = frozenset((*query.turns, *query.replaced))
        question: Question = self._question._replace(
            text=text, passed={query.conversation_id: passed}
        )
        return (yield from search(self._base, owner, question))

    def _owner_of(self, query: Query) -> str:
        if query.owner and self._owner not in (None, query.owner):
            msg = "the conversation has another owner than the one that Recall was given"
            raise LookupError(msg)
        owner = query.owner or self._owner
        if not owner:
            msg = "the conversation has no owner: store.conversation(id, owner=…)"
            raise LookupError(msg)
        return owner

    def _worded(self, hits: list[Hit]) -> list[Recalled]:
        return [Recalled(self._wording(hit), hit) for hit in hits]


def worded(hit: Hit) -> str:
    """Write a hit down for a model: when it was said, since when and until when, and the text."""
    fact = hit.fact
    notes = [f"said on {fact.observed.date().isoformat()}"]
    if abs(fact.valid_from - fact.observed) >= _DAY:
        notes.append(f"true since {fact.valid_from.date().isoformat()}")
    if fact.valid_to is not None:
        notes.append(f"until {fact.valid_to.date().isoformat()}")
    between = "\n" if fact.kind == _EXCHANGE else " "
    return f"[{', '.join(notes)}]{between}{fact.text}"


def _shortened(text: str) -> str:
    text = text.strip()
    if len(text) <= _MOST_CHARACTERS:
        return text
    half = _MOST_CHARACTERS // 2
    return f"{text[:half]} {text[-half:]}"
