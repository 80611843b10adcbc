"""What the model sees of a conversation: a window, and what is put before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

from turnstore.messages import Format, Message, format_named
from turnstore.results import History, Turn
from turnstore.window import Window

from ._common import Asking, is_async, name_of, said
from ._models import is_async_model
from .after import After, SavedTurn, check_after, finish
from .entities import Entities, tracked
from .retrieval import (
    FRAME,
    Query,
    Recalled,
    Retrieval,
    Source,
    check_frame,
    framed,
    recall,
)
from .rewrite import Rewrite, standalone
from .summary import Summary
from .tokens import TokenCounter
from .topics import Boundary, Topics, begins, meta_of, since_boundary, without

__all__ = ["Context", "Prepared"]


class Prepared(NamedTuple):
    """What a context makes of a history, for one call of the model.

    Attributes:
        history: The turns to send. Its revision is the conversation's, even where it
            holds no turn.
        injected: What the sources know; empty where that is nothing.
        meta: What is kept in the meta of the new turn.
        boundary: The topic that ends before the new turn, for a summary to close; None
            where none ends, or a function of the caller's saw to it.
        recalled: What of the sources is in `injected`.
    """

    history: History
    injected: str
    meta: dict[str, Any]
    boundary: Boundary | None
    recalled: tuple[Recalled, ...] = ()


@dataclass(frozen=True, slots=True)
class Context:
    """What the model sees of a conversation, turn by turn.

    The model is sent the request's own instructions, then as one system message what the
    sources know and the summary, then the window, then the new messages. What is put in
    is never stored. Where a part of it fails, the turn goes on without that part: it is
    logged as a warning, and counted in `counts`.

    A context holds no conversation: make one, and give it to every turn. One for each request is
    as well, with sources and summaries that are shared.

    Args:
        window: How much of the history is read; None for the newest 100 messages, `Window()`
            for all.
        summary: Carries on what falls out of the window.
        topics: Starts a fresh window where another topic begins.
        rewrite: Makes the question that the sources are asked stand alone.
        entities: Keeps track of names and terms, for the sources.
        sources: Functions that are asked for what they know, with the limits of a
            `Retrieval` or the usual ones.
        after: Functions that are given each turn when it was saved, as a `SavedTurn`. The
            caller of a plain call waits for them, as for the save.
        frame: What stands around the texts of the sources; `{texts}` is where they go.

    Attributes:
        counts: How often each part failed: `recall`, `rewrite`, `entities`, `topics`,
            `on_boundary`, `summary`, `after`. And `summary_cut`: a summary was too long.

    Raises:
        TypeError: An argument has the wrong type, or a part stands where another one belongs.
        ValueError: The frame has no place for the texts.

    Example:
        >>> from turnstore import Window
        >>> def handbook(query):
        ...     return ["The office opens at 9."] if "open" in query.text else []
        >>> context = Context(window=Window(turns=20), sources=[handbook])
        >>> context.counts
        Counter()
    """

    window: Window | None = None
    _: KW_ONLY
    summary: Summary | None = None
    topics: Topics | None = None
    rewrite: Rewrite | None = None
    entities: Entities | None = None
    sources: Sequence[Source | Retrieval] = ()
    after: Sequence[After] = ()
    frame: str = FRAME
    counts: Counter[str] = field(
        init=False, repr=False, compare=False, default_factory=Counter[str]
    )
    _retrievals: tuple[Retrieval, ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        for name, kind in (
            ("window", Window),
            ("summary", Summary),
            ("topics", Topics),
            ("rewrite", Rewrite),
            ("entities", Entities),
        ):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                article = "an" if kind is Entities else "a"
                msg = f"{name} is {article} {kind.__name__}, not {type(value).__name__}"
                raise TypeError(msg)
        check_frame(self.frame)
        if callable(self.sources) or isinstance(self.sources, Retrieval | str):
            msg = "sources is a list of functions; put this one into a list"
            raise TypeError(msg)
        retrievals = tuple(
            source if isinstance(source, Retrieval) else Retrieval(source)
            for source in self.sources
        )
        object.__setattr__(self, "_retrievals", retrievals)
        check_after(self.after)

    def check_store(self, conversation: str) -> None:
        """Refuse a conversation of another store than that of a part; for turnstore itself.

        Args:
            conversation: The key of the conversation.

        Raises:
            ValueError: A part keeps what it knows in another store.
        """
        for part in (*self._retrievals, *self.after):
            check = getattr(part, "_check_store", None)
            if check is not None:
                check(conversation)

    def check_sync(self) -> None:
        """Refuse what is async for a conversation of a sync store; for turnstore itself.

        Raises:
            TypeError: A part says that it is async.
        """
        name = next(self._async_parts(), None)
        if name is not None:
            msg = (
                f"{name} is async, and this store is not. In a context for a Store, functions, "
                "clients and facts are sync (Facts, not AsyncFacts); or use AsyncStore"
            )
            raise TypeError(msg)

    def _async_parts(self) -> Iterator[str]:
        """Name the parts that say that they are async."""
        for retrieval in self._retrievals:
            if is_async(retrieval.source):
                yield name_of(retrieval.source if type(retrieval) is Retrieval else retrieval)
        functions: list[object] = [*self.after]
        if self.rewrite is not None:
            functions.append(self.rewrite.model)
        if self.entities is not None:
            functions.append(self.entities.extract)
        if self.topics is not None:
            functions += [self.topics.embed, self.topics.on_boundary]
        yield from (name_of(function) for function in functions if is_async(function))
        if self.summary is not None and is_async_model(self.summary.ask):
            yield f"the model of the summary ({name_of(self.summary.ask)})"

    def prepare(  # noqa: PLR0913 - what a turn has
        self,
        history: History,
        new: Sequence[Message],
        rules: Format,
        counter: TokenCounter | None = None,
        conversation: str = "",
        *,
        conversation_id: str = "",
        owner: str = "",
    ) -> Asking[Prepared]:
        """Find out what of a history is sent, and what is put before it; for turnstore itself.

        Args:
            history: What the window holds.
            new: The new messages of the request, without instructions.
            rules: Their format.
            counter: What counts tokens, where something does.
            conversation: The key of the conversation.
            conversation_id: Its id.
            owner: Its owner; empty where it has none.
        """
        if self.topics is None and self.entities is None and not self._retrievals:
            return Prepared(history, "", {}, None)
        # The results of tools belong to the turn before: they are no question of their own.
        continues = bool(new) and bool(rules.results(new[0]))
        looks_back = continues or any((self.topics, self.entities, self.rewrite))
        turns = history.turns if looks_back else []
        question = said(new, rules)
        opens = None if continues or not new else question
        shown, topic, boundary = yield from self._topic(history, turns, opens)
        meta = {} if boundary is None else meta_of(boundary)
        names: list[str] = []
        if self.entities is not None:
            names = yield from tracked(self.entities, turns, new, rules, self.counts)
            if names:
                meta["entities"] = names
        recalled: tuple[Recalled, ...] = ()
        if self._retrievals:
            if continues and topic:
                question, topic = _asked(topic[-1]), topic[:-1]
            if self.rewrite is not None:
                question = yield from standalone(self.rewrite, question, topic, self.counts)
            query = Query(
                question,
                list(new),
                shown,
                tuple(names),
                conversation,
                conversation_id,
                owner,
                shown.piece_ids,
                () if history.cut is None else history.cut.ids,
            )
            recalled = yield from recall(self._retrievals, query, counter, self.counts)
        if self.topics is not None and self.topics.on_boundary is not None:
            boundary = None
        return Prepared(shown, framed(recalled, self.frame), meta, boundary, recalled)

    def finish(self, turn: SavedTurn) -> Asking[None]:
        """Do what is to be done with a turn that was saved; for turnstore itself."""
        return finish(self.after, turn, self.counts)

    def _topic(
        self, history: History, turns: list[Turn], question: str | None
    ) -> Asking[tuple[History, list[Turn], Boundary | None]]:
        """Give the turns of the topic, and the boundary where a question ends it."""
        if self.topics is None:
            return history, turns, None
        shown = since_boundary(history)
        topic = turns if shown is history else shown.turns
        if question is None:
            return shown, topic, None
        boundary = yield from begins(self.topics, topic, question, self.counts)
        if boundary is not None:
            shown, topic = without(history), []
        return shown, topic, boundary


def _asked(turn: Turn) -> str:
    return said(turn.messages, format_named(turn.format))
