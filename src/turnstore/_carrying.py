"""What is carried into a turn: the window, and the summary of what stands before it."""

from __future__ import annotations

from ._calls import Flow
from ._place import Place
from ._replacing import Search
from .context import Context, Summary
from .context.summary import Carried, carried, fold, is_due, summary_call, warn_of_uncounted
from .errors import TurnGoneError
from .results import History

__all__ = ["carry", "load", "summarize"]


def load(
    place: Place, context: Context, *, begins: bool, search: Search | None = None
) -> Flow[History]:
    """Read the window; with the summary, once a turn of the store needed one."""
    if search is not None:
        return _load_before(place, context, search, begins=begins)
    along = context.summary is not None and place.density.outgrown
    beside = summary_call(place.keys) if along else None
    return place.read(context.window, begins=begins, beside=beside)


def _load_before(place: Place, context: Context, search: Search, *, begins: bool) -> Flow[History]:
    """Read a window that ends before a turn, which is to be replaced.

    Raises:
        TurnGoneError: The turn is not held, or a summary has taken it in.
    """
    history = yield from place.read(
        context.window, begins=begins, beside=summary_call(place.keys), search=search
    )
    search.mark(history)
    cut = history.cut
    if cut is not None and cut.turns:
        # Asked whatever the context is: what writes the summary may have another one.
        known: Carried = history.beside or (yield from carried(place.keys, context.counts))
        history.beside = known
        if known.turn >= cut.turns[0].number:
            msg = (
                f"the summary of {place.keys} tells of the turn {cut.turns[0].id}, which is to be "
                "replaced, and would go on telling of it; the model was not asked, and nothing "
                "was written. rewind() undoes the turn, and the summary with it"
            )
            raise TurnGoneError(msg)
    return history


def carry(
    place: Place, context: Context, history: History, shown: History, *, closes: bool
) -> Flow[tuple[str, Flow[Carried] | None]]:
    """Give the summary to send before a history, and what is to be folded after the save.

    Args:
        place: Of the conversation.
        context: What has a summary, or none.
        history: What the window holds.
        shown: The part of it that is sent.
        closes: Whether a topic ends with this history, which is then folded whole.
    """
    summary = context.summary
    if summary is None:
        return "", None
    if summary.after_tokens is not None and place.counter is None:
        yield from place.count()
        warn_of_uncounted(history)
    if history:
        first = shown.first_turn if shown else history.elements[-1].turn + 1
    else:
        first = history.cut.turns[0].number if history.cut and history.cut.turns else 1
    if first == 1:
        return "", None  # nothing stands before it, and nothing ever did
    place.density.outgrown = True
    known: Carried = history.beside or (yield from carried(place.keys, context.counts))
    after: Flow[Carried] | None = None
    # Where no older turn is held, those before the window were dropped: nothing to fold.
    due = shown.has_older and is_due(summary, known, first, shown.tokens_before)
    if closes or due:
        folding = fold(place.keys, summary, first, context.counts, clean=place.redacted_text)
        if summary.when == "before":
            folded = yield from folding
            known = folded if folded.text else known
        elif summary.when == "after":
            after = folding
    return summary.carried(known), after


def summarize(place: Place, context: Context) -> Flow[str]:
    """Fold what stands before the window into the summary."""
    if not isinstance(context, Context) or context.summary is None:
        msg = "summarize() takes a Context that has a summary, as in Context(summary=Summary(…))"
        raise TypeError(msg)
    return _summarize(place, context, context.summary)


def _summarize(place: Place, context: Context, summary: Summary) -> Flow[str]:
    history = yield from place.read(context.window)
    if not history.elements:
        return ""
    first = history.first_turn
    known = yield from fold(
        place.keys, summary, first, context.counts, clean=place.redacted_text, strict=True
    )
    return known.text
