"""Facts of owners, on an asyncio store: the same names, signatures and texts as `facts`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from ._aupkeep import AsyncUpkeep
from ._embedding import EmbeddingClient
from ._finding import searching
from ._finding.asking import base_of, check_listing, check_question
from ._model import Added, Fact, FactPage, Hit, NewFact
from ._scoring.ranking import Ranking
from ._storing import adding
from .engines import Engine

if TYPE_CHECKING:
    from turnstore.aio.store import AsyncStore

__all__ = ["AsyncFacts"]


class AsyncFacts(AsyncUpkeep):
    """Keep facts of owners, and find them by their meaning and their words.

    Made once beside the store, and shared by all tasks of a process. An owner is a user:
    every method takes one, and no method ever shows or touches what is another one's.

    Args:
        store: Where the facts lie.
        embed: What makes vectors: a function of a list of texts that gives a vector for each,
            as lists or as an array of numpy; or a client of the openai package, whose model is
            `embedder`. Either may be async on an async store.
        dimensions: How many numbers a vector has. A client is told, where the name of the model
            has "text-embedding-3" in it; other models have a number of their own.
        embedder: The name and version of what makes them, such as "minilm:1"; of a client, the
            name of the model, in Azure that of the deployment. It is kept with the vectors, so
            that those of two embedders are never compared.
        engine: "plain", "vectorset" or "search", or an engine with options, such as
            `Search(algorithm="hnsw")`; "auto" goes on with what the store uses, and begins with
            "search" where the server has it, otherwise with "plain".
        ranking: How what is found is put in order; None is `Ranking()`.
        batch: How many texts the embedder is given at most.
        deadline: Seconds that it may take for a batch; None waits.
        ttl: How long everything of an owner outlives the last write; None keeps it for good,
            whatever the `ttl` of the store's conversations is.
        track_use: Whether a search notes which facts it found, for `Decay` and `retain`.
        previous: The facts of the same store with the embedder or the engine before: owners
            whose facts `migrate` has not moved yet are found by it.

    Raises:
        TypeError, ValueError: An argument is of no use; nothing was sent.

    Cost:
        No I/O. The first operation asks the server which engine it has, and makes the index
        where that needs one.

    Example:
        >>> facts = AsyncFacts(store, embed=embed, dimensions=8, embedder="demo:1", engine="plain")
        >>> (await facts.add("ada", "Ada lives in Paris.")).duplicate
        False
        >>> [hit.fact.text for hit in await facts.search("ada", "Where does Ada live?")]
        ['Ada lives in Paris.']
    """

    def __init__(  # noqa: PLR0913 - settings, by keyword
        self,
        store: AsyncStore,
        *,
        embed: Callable[[list[str]], Any] | EmbeddingClient,
        dimensions: int,
        embedder: str,
        engine: str | Engine = "auto",
        ranking: Ranking | None = None,
        batch: int = 64,
        deadline: float | None = None,
        ttl: timedelta | None = None,
        track_use: bool = True,
        previous: AsyncFacts | None = None,
    ) -> None:
        self._home, self._run, self._base = base_of(
            store,
            previous,
            embed=embed,
            dimensions=dimensions,
            embedder=embedder,
            engine=engine,
            ranking=ranking,
            batch=batch,
            deadline=deadline,
            ttl=ttl,
            track_use=track_use,
            asynchronous=True,
        )

    async def add(  # noqa: PLR0913 - what a fact is made of, by name
        self,
        owner: str,
        text: str,
        *,
        kind: str = "fact",
        slot: str = "",
        conversation: str = "",
        sources: Sequence[str] = (),
        observed: datetime | None = None,
        valid_from: datetime | None = None,
        valid_to: datetime | None = None,
        confidence: float = 1.0,
        pinned: bool = False,
        meta: dict[str, Any] | None = None,
    ) -> Added:
        """Store a fact of an owner, unless one that holds says the same word for word.

        Args:
            owner: Whose it is: any non-empty text.
            text: What it says; at most 32 KiB.
            kind: "fact", "exchange", or a word of letters, digits, `_` and `-`.
            slot: What it is about.
            conversation: The id of the conversation that it was drawn from.
            sources: The ids of the turns that say it; of more than 64, the newest are kept.
            observed: When it was heard; None is now.
            valid_from: Since when it is true; None is when it was heard.
            valid_to: Until when it is true; None where no end is known.
            confidence: How sure it is, from 0 to 1.
            pinned: Whether it is kept and found regardless of its age.
            meta: JSON to keep beside it.

        Returns:
            Its id. As a duplicate the id of the fact that was there, whose sources and time
            of hearing were brought up to date.

        Raises:
            TypeError, ValueError: An argument is of no use, or the embedder answered what is
                no vector; nothing was written.
            LimitError: The text, or `meta` as JSON, has more than 32 KiB; nothing was written.
            ErasedError: The owner was erased, or the conversation forgotten, after this had
                begun; nothing was written.
            EngineMismatchError: The owner's facts are of another embedder or engine.
            ServerError: Redis failed. A lost answer leaves it open whether it was written; it
                is safe to do it again.

        Atomicity:
            A fact, its vector and its words are stored together, or not at all.

        Cost:
            Two round trips around the embedder; one more with the first facts of an owner, and
            one more where there is an index of RediSearch, and before a `redact` of the store. A
            duplicate is not embedded. With a `ttl`, one or two more now and then.

        Example:
            >>> (await facts.add("ada", "Ada plays chess.", slot="hobby")).duplicate
            False
            >>> (await facts.add("ada", "ada plays  chess.")).duplicate
            True
        """
        new = NewFact(
            text=text,
            kind=kind,
            slot=slot,
            conversation=conversation,
            sources=tuple(sources) if isinstance(sources, list) else sources,  # type: ignore[arg-type]  # checked there
            observed=observed,
            valid_from=valid_from,
            valid_to=valid_to,
            confidence=confidence,
            pinned=pinned,
            meta={} if meta is None else meta,
        )
        (added,) = await self._run(adding.add_many(self._base, owner, [new]))
        return added

    async def add_many(self, owner: str, facts: Iterable[NewFact]) -> list[Added]:
        """Store several facts of an owner.

        Args:
            owner: Whose they are.
            facts: The facts.

        Returns:
            What became of each, in their order.

        Raises:
            TypeError, ValueError, LimitError: One of them cannot be stored; none was written.
            ErasedError, EngineMismatchError, ServerError: As for `add`; those of earlier
                parts are stored, and doing it again stores none twice.

        Atomicity:
            A hundred at a time are stored together, or not at all; fewer where their texts
            have more than 64 KiB in all, so that the server is not held up.

        Cost:
            As for `add`, for each part, and the embedder's batches; one more where the facts are
            no sequence.

        Example:
            >>> new = [NewFact(text="Ada likes tea."), NewFact(text="Ada likes jam.")]
            >>> [added.duplicate for added in await facts.add_many("ada", new)]
            [False, False]
        """
        return await self._run(adding.add_many(self._base, owner, facts))

    async def add_exchange(  # noqa: PLR0913 - what an exchange is made of
        self,
        owner: str,
        conversation: str,
        turn_id: str,
        text: str,
        *,
        observed: datetime | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Added:
        """Store what was said in a turn as one text, once for each turn.

        A turn is known by its id and its conversation, in Redis: neither a restart nor a
        command that is sent twice stores it again. The first text stays.

        Args:
            owner: Whose it is.
            conversation: The id of the conversation.
            turn_id: The id of the turn.
            text: What both sides said.
            observed: When it was said; None is now.
            meta: JSON to keep beside it.

        Returns:
            The id of the exchange; a duplicate where the turn was stored before.

        Raises:
            TypeError, ValueError, LimitError: As for `add`.
            ErasedError, EngineMismatchError, ServerError: As for `add`.

        Cost:
            As for `add`.

        Example:
            >>> (await facts.add_exchange("ada", "conv-1", "turn-1", "Hello! - Hi, Ada.")).duplicate
            False
            >>> (await facts.add_exchange("ada", "conv-1", "turn-1", "Hello! - Hi, Ada.")).duplicate
            True
        """
        new = NewFact(
            text=text,
            kind="exchange",
            conversation=conversation,
            sources=(turn_id,),
            observed=observed,
            meta={} if meta is None else meta,
        )
        return await self._run(adding.add_exchange(self._base, owner, conversation, turn_id, new))

    async def search(  # noqa: PLR0913 - what can be asked, by name
        self,
        owner: str,
        query: str,
        *,
        top_k: int = 3,
        min_score: float | None = 0.7,
        kinds: Collection[str] | None = None,
        conversation: str = "",
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        exclude: Collection[str] = (),
    ) -> list[Hit]:
        """Find facts of an owner by their meaning and their words.

        Args:
            owner: Whose facts are searched, and nobody else's.
            query: A question, or any text.
            top_k: Hits at most.
            min_score: The least cosine similarity of a hit; None takes all. What is near
                depends on the embedder: small ones seldom give 0.7 for a question.
            kinds: Only facts of these kinds; None is any.
            conversation: Only facts drawn from this one; empty is any.
            as_of: What is true at this time; None is now.
            known_at: By what was known at this time; None is now.
            exclude: Ids of facts that are left out, and of turns whose facts are.

        Returns:
            The best first, 0 to `top_k`.

        Raises:
            TypeError, ValueError: An argument is of no use, or the embedder answered what is
                no vector.
            TimeoutError: The embedder took longer than `deadline`.
            EngineMismatchError: The owner's facts are of another embedder or engine.
            ServerError: Redis failed; an empty result always means that nothing matched.

        Cost:
            Three round trips around the embedder where the owner has few facts, else four or
            five; the last one notes what was found. The engine says how much is looked at.

        Example:
            >>> (await facts.add("ada", "Ada was born in London.")).duplicate
            False
            >>> [hit.fact.text for hit in await facts.search("ada", "Where was Ada born?", top_k=1)]
            ['Ada was born in London.']
            >>> await facts.search("bob", "Where was Ada born?")
            []
        """
        question = check_question(
            query, top_k, min_score, kinds, conversation, as_of, known_at, exclude
        )
        return await self._run(searching.search(self._base, owner, question))

    async def get(self, owner: str, id: str) -> Fact | None:  # noqa: A002 - the name of the field
        """Read a fact of an owner; None where the owner has no such fact.

        Args:
            owner: Whose it is.
            id: Of the fact.

        Raises:
            TypeError, ValueError: An argument is of no use.
            CorruptTurnError, FormatError: What is stored cannot be read.
            ServerError: Redis failed.

        Cost:
            One round trip.

        Example:
            >>> id = (await facts.add("ada", "Ada likes tea.")).id
            >>> (await facts.get("ada", id)).text
            'Ada likes tea.'
        """
        adding.check_id(id)
        return await self._run(searching.get(self._base, owner, id))

    async def list(  # noqa: PLR0913 - what can be asked, by name
        self,
        owner: str,
        limit: int = 50,
        *,
        before: str | None = None,
        kinds: Collection[str] | None = None,
        conversation: str = "",
        include_closed: bool = False,
    ) -> FactPage:
        """List facts of an owner, newest first.

        Args:
            owner: Whose they are.
            limit: Facts on the page, at most.
            before: The `cursor` of the page before.
            kinds: Only facts of these kinds; None is any.
            conversation: Only facts drawn from this one; empty is any.
            include_closed: Whether those are listed that later news has closed.

        Returns:
            The facts, with the `cursor` of the next page (None where there is none).

        Raises:
            TypeError, ValueError: An argument is of no use.
            CorruptTurnError, FormatError: What is stored cannot be read.
            ServerError: Redis failed.

        Cost:
            One round trip; more where many are left out.

        Example:
            >>> (await facts.add("ada", "Ada likes tea.")).duplicate
            False
            >>> [fact.text for fact in await facts.list("ada", 1)]
            ['Ada likes tea.']
        """
        cursor, wanted = check_listing(limit, before, kinds, conversation)
        return await self._run(
            searching.list_facts(
                self._base, owner, limit, cursor, wanted, conversation, bool(include_closed)
            )
        )

    async def update(  # noqa: PLR0913 - what can be changed, by name
        self,
        owner: str,
        id: str,  # noqa: A002 - the name of the field
        *,
        text: str | None = None,
        valid_to: datetime | EllipsisType | None = ...,
        pinned: bool | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Fact | None:
        """Change a fact in place; what was stored before is gone.

        Args:
            owner: Whose it is.
            id: Of the fact.
            text: What it says from now on; None leaves it.
            valid_to: Until when it is true; None says that no end is known, and `...` leaves it.
            pinned: Whether it is kept and found regardless of its age; None leaves it.
            meta: JSON to keep beside it; None leaves it.

        Returns:
            The fact as it is now; None where the owner has no such fact.

        Raises:
            TypeError, ValueError: An argument is of no use, or another fact of the owner says
                just that; nothing was written.
            ConflictError: Others changed the fact each time; nothing was written.
            LimitError, ErasedError, EngineMismatchError, ServerError: As for `add`.

        Atomicity:
            All of it or nothing; where another process changes the fact meanwhile, it is read
            and changed again.

        Cost:
            Three round trips, one more where there is an index of RediSearch, and the embedder
            where the text is another one.

        Example:
            >>> id = (await facts.add("ada", "Ada likes tea.")).id
            >>> (await facts.update("ada", id, text="Ada likes green tea.", pinned=True)).pinned
            True
        """
        return await self._run(
            adding.update(
                self._base, owner, id, text=text, valid_to=valid_to, pinned=pinned, meta=meta
            )
        )

    async def end(
        self,
        owner: str,
        id: str,  # noqa: A002 - the name of the field
        *,
        valid_to: datetime | None = None,
        superseded_by: str = "",
    ) -> bool:
        """Say that a fact is not true any more, and keep it for questions about the past.

        Args:
            owner: Whose it is.
            id: Of the fact.
            valid_to: Until when it was true; None is now.
            superseded_by: The id of the fact in its place.

        Returns:
            Whether the owner has such a fact.

        Raises:
            TypeError, ValueError: An argument is of no use; nothing was written.
            ErasedError, EngineMismatchError, ServerError: As for `add`.

        Cost:
            Two round trips, and one more where there is an index of RediSearch.

        Example:
            >>> id = (await facts.add("ada", "Ada likes tea.")).id
            >>> await facts.end("ada", id)
            True
            >>> await facts.search("ada", "What does Ada like?")
            []
        """
        return await self._run(adding.end(self._base, owner, id, valid_to, superseded_by))
