"""What sync and async exchanges share: what is stored of a turn, and what is counted."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from turnstore._calls import Flow
from turnstore._counting import count
from turnstore.context import SavedTurn
from turnstore.errors import ClosedError, ErasedError
from turnstore.messages import format_named
from turnstore.window import limit

from ._learning.wording import said_in, shortened
from ._model import NewFact
from ._storing.adding import add_exchange
from ._storing.base import Base
from ._storing.commit import begin
from ._storing.forgetting import forget_turns
from ._storing.handles import check_store

__all__ = ["Exchange", "ExchangesBase", "log", "waits_for"]

log = logging.getLogger("turnstore")

_WAITS = (0.5, 2.0, 8.0)  # seconds between the tries of what is stored in the background

_HOPELESS = (ClosedError, ErasedError, TypeError, ValueError, LookupError)

_MOST_CHARACTERS = 4000  # of one side; with both, less than a fact may have in any script


class Exchange(NamedTuple):
    """What is stored of a turn."""

    owner: str
    conversation: str
    turn_id: str
    text: str
    began: int  # the number of the turn; 0 where its conversation has no owner


class ExchangesBase:
    """What is stored of turns, and what became of it.

    Attributes:
        counts: `stored`; `duplicate` where the turn was stored before; `left_out` where one
            side said nothing, or the model waits for a tool; `failed`; `erased` where the
            owner was erased since the turn began, the conversation cleared, or its facts
            forgotten.
    """

    _belongs = "after"

    def __init__(  # noqa: PLR0913 - settings, by keyword
        self,
        base: Base,
        *,
        background: bool,
        limit_: int,
        most: int,
        speakers: Sequence[str],
        owner: str | None,
    ) -> None:
        if not isinstance(background, bool):
            msg = f"background is True or False, not {type(background).__name__}"
            raise TypeError(msg)
        limit("Exchanges(limit={})", limit_)
        limit("Exchanges(most={})", most)
        if most > _MOST_CHARACTERS:
            msg = (
                f"Exchanges(most={most}): at most {_MOST_CHARACTERS} characters of a side are kept"
            )
            raise ValueError(msg)
        names = tuple(speakers)
        if len(names) != 2 or not all(isinstance(name, str) for name in names):  # noqa: PLR2004 - both sides
            msg = "speakers are two names: the user's and the model's"
            raise TypeError(msg)
        if owner is not None:
            base.ground.owner(owner)  # refuses what is no owner
        self.counts: Counter[str] = Counter()
        self._base = base
        self._background = background
        self._limit = limit_
        self._most = most
        self._user, self._assistant = names
        self._owner = owner

    def _check_store(self, conversation: str) -> None:
        """Refuse a conversation of another store; asked by a context."""
        check_store(self._base, conversation)

    def _forgetting(self, turn: SavedTurn) -> Flow[None]:
        """Forget what only turns have said in whose place this one is.

        Never later than at once: a turn may have the id of one of them again.
        """
        owner, replaced = self._owner_of(turn), turn.appended.replaced_ids
        try:
            yield from forget_turns(self._base, owner, turn.conversation, replaced)
        except ErasedError:
            log.info("what turns have said that are replaced goes with all of their owner")

    def _exchange(self, turn: SavedTurn) -> Exchange | None:
        """Give what is stored of a turn; None where it is no exchange, or not yet one."""
        rules = format_named(turn.format)
        messages = list(turn.messages)
        waits = bool(messages and rules.calls(messages[-1]))
        said: dict[str, list[str]] = {"user": [], "assistant": []}
        for speaker, text in said_in(messages, rules):
            said[speaker].append(text)
        if waits or not all(said.values()):
            count(self.counts, "left_out")
            return None
        user, assistant = (shortened("\n".join(texts), self._most) for texts in said.values())
        text = f"{self._user}: {user}\n{self._assistant}: {assistant}"
        return Exchange(self._owner_of(turn), turn.conversation, turn.turn_id, text, turn.began)

    def _owner_of(self, turn: SavedTurn) -> str:
        owner = turn.owner or self._owner
        if turn.owner and self._owner not in (None, turn.owner):
            msg = "the conversation has another owner than the one that Exchanges was given"
            raise LookupError(msg)
        if not owner:
            msg = "the conversation has no owner: store.conversation(id, owner=…)"
            raise LookupError(msg)
        return owner

    def _begun(self, exchange: Exchange) -> Flow[Exchange]:
        """Give an exchange that is going to wait a number, where its turn has none."""
        if not exchange.began:
            began = yield from begin(self._base.ground.owner(exchange.owner))
            exchange = exchange._replace(began=began.number)
        return exchange

    def _storing(self, exchange: Exchange) -> Flow[None]:
        """Store an exchange, unless the owner was erased, or so, since its turn began."""
        owner, conversation, turn_id, text, began = exchange
        new = NewFact(text=text, kind="exchange", conversation=conversation, sources=(turn_id,))
        added = yield from add_exchange(self._base, owner, conversation, turn_id, new, since=began)
        count(self.counts, "duplicate" if added.duplicate else "stored")

    def _failed(self, exchange: Exchange, error: BaseException) -> None:
        is_erased = isinstance(error, ErasedError)
        count(self.counts, "erased" if is_erased else "failed")
        log.log(
            logging.INFO if is_erased else logging.WARNING,
            "the exchange of the turn %s is not among the facts (%s: %s)",
            exchange.turn_id,
            type(error).__name__,
            error,
        )


def waits_for(error: BaseException, tries: int) -> float | None:
    """Say in how many seconds to try again; None where that is of no use."""
    if isinstance(error, _HOPELESS) or tries > len(_WAITS):
        return None
    return _WAITS[tries - 1]
