"""What the two kinds of turns in the making share: everything but the waiting."""

from __future__ import annotations

import logging
from hashlib import blake2b
from typing import Any

from . import _json
from ._calls import Flow
from ._carrying import carry, load
from ._checks import check_turn_id, plain_meta
from ._compose import Plan, compose, with_context, without_known
from ._history import Draft, new_turn_id
from ._leases import Hold
from ._options import TurnOptions
from ._place import Place
from ._refusing import as_stored, not_saved, refuse, saved_before
from ._replacing import Search
from .context import Recalled, SavedTurn
from .errors import (
    AlreadySavedError,
    ConflictError,
    SaveError,
    ServerError,
    TurnGoneError,
    TurnIdReusedError,
    TurnstoreError,
)
from .messages import Format, Input, Message, format_named, note, plain_messages
from .results import Appended, History, Turn
from .window import Window

__all__ = ["Pending"]

log = logging.getLogger("turnstore")


class Pending:
    """What the two kinds of pending turn share: everything but the waiting."""

    def __init__(  # noqa: PLR0913 - the options of the public `turn`
        self,
        place: Place,
        messages: Input,
        *,
        options: TurnOptions,
        turn_id: str | None,
        format: str,  # noqa: A002 - the public name
        meta: dict[str, Any] | None,
    ) -> None:
        self.meta: dict[str, Any] = plain_meta({} if meta is None else meta)
        """What is stored of the turn beside its messages; may be added to until the save."""
        self.saved: Appended | None = None
        """What the save did; None until the turn is saved."""
        self.load_error: TurnstoreError | None = None
        """Why there is no history, where the turn went on without it."""
        options.context.check_store(str(place.keys))
        if options.replaces is not None and turn_id is not None:
            options.replaces.check_id(turn_id)
        self._place = place
        self._options = options
        self._rules: Format = format_named(format)
        self._request = plain_messages(messages, self._rules)
        self._request_stored: list[Message] = []  # as it would be stored, where that differs
        self._replies: list[Message] = []
        self._answer: Any = None
        self._history: History | None = None
        self._plan: Plan | None = None
        self._after: Flow[Any] | None = None  # what is left to do when the turn was saved
        self._shown: History | None = None  # the part of the history that is sent
        self._recalled: tuple[Recalled, ...] = ()  # what of the sources is in that
        self._noted: dict[str, Any] = {}  # what the context put into `meta`
        self._told: dict[str, Any] = {}  # what the replies say of themselves, there, too
        self._hold: Hold | None = None
        self._began = 0  # the number that the owner gave to this turn
        self._written: list[Message] = []  # the turn as it was stored, all of its pieces
        # A random id is nobody else's; what else may be saved already is looked for.
        self._may_be_saved = turn_id is not None or options.turn_id is not None
        self._was_saved = False  # before it began
        self._asked = b""  # what its id belongs to, where that is one of a job
        self._owns_id = False
        self._handed_out = False
        self.turn_id = self._first_id() if turn_id is None else check_turn_id(turn_id)
        """The idempotency key: a save with the id of a saved turn writes nothing."""

    def _first_id(self) -> str:
        ids = self._options.ids
        if ids is None:
            return new_turn_id()
        # A digest, since clients may change the messages that they are sent.
        asked = [one for one in self._request if not self._rules.is_instruction(one)]
        self._asked = blake2b(_json.dumps(asked)[1]).digest()
        self._owns_id = True
        return ids.take(self._asked)

    def _leave_id(self) -> None:
        """Leave its id to another attempt at the same, if it was not saved."""
        if self._options.ids is not None and self._owns_id and self.saved is None:
            self._owns_id = False
            self._options.ids.leave(self._asked, self.turn_id)

    def _hand_out(self) -> None:
        """Note that somebody else reads the stream of its reply, and may leave it unread."""
        self._handed_out = True
        self._leave_id()

    def _final_id(self) -> str:
        """Give the id to be saved with: another one where a later attempt took it meanwhile."""
        ids = self._options.ids
        if ids is not None and not self._owns_id:
            self._owns_id = ids.take_back(self._asked, self.turn_id)
            if self._handed_out and not self._owns_id:
                self._owns_id = True
                return ids.take(self._asked)
        self._handed_out = False  # a save that is repeated has the id that it had
        return self.turn_id

    @property
    def history(self) -> History:
        """What was read from the store."""
        return self._loaded()[0]

    @property
    def messages(self) -> list[Message]:
        """What to send: instructions, history, the new messages, and the replies so far."""
        return [*self._loaded()[1].send, *map(_json.plain, self._replies)]

    @property
    def recalled(self) -> tuple[Recalled, ...]:
        """What the sources of the context know, as far as it is sent; nothing of it is stored.

        Empty where they know nothing, and where they failed: `context.counts` counts that.
        """
        self._loaded()
        return self._recalled

    @property
    def replaced(self) -> list[Turn]:
        """The turns that go when this one is saved, oldest first: `replaces`, and all after it."""
        cut = self._loaded()[0].cut
        return [] if cut is None else list(cut.turns)

    @property
    def new(self) -> list[Message]:
        """What will be stored: the new messages of the request, and the replies so far.

        As they are: the store's `redact` changes them when they are saved.
        """
        return self._loaded()[1].new + self._replies

    @property
    def revision(self) -> str:
        """The revision of the conversation when its history was read."""
        return self._loaded()[0].revision

    @property
    def fence(self) -> int | None:
        """The number of its lease, under `on_conflict="serialize"`, else None.

        It is larger than that of each turn that had the lease before: hand it to what the
        turn changes elsewhere, which can then refuse a turn that came too late.
        """
        return None if self._hold is None else self._hold.number

    def _ask(self, messages: list[Message]) -> None:
        """Add to the request; for frameworks that tell the question after they have the history."""
        history, _ = self._loaded()
        self._request = [*self._request, *messages]
        self._plan = self._composed(history)

    def reply(self, reply: Input, *, answer: Any = None) -> None:
        """Add what the model said; a turn without a reply is not saved.

        In a tool loop, call it with each answer of the model and with each tool result: all
        of them are stored as one turn, and are part of `messages` from then on. A whole
        answer of an SDK also fills `meta`, as a wrapped client does: `model`,
        `finish_reason`, `usage` (of all answers of the turn together) and `response_id`.
        What you put there stays.

        Args:
            reply: Text of the model, a message, several messages, or the whole answer of an
                SDK in the format of the turn: OpenAI's chat completion or response,
                Anthropic's `Message`, Google's response. What an SDK adds to it, such as
                `parsed`, is not stored.
            answer: What an error at the save carries as its `reply`; by default this
                reply as it was given.

        Raises:
            TypeError, ValueError: It is not a message; it is not added.
            RuntimeError: The turn was saved already; begin another one.
        """
        self._loaded()
        if self.saved is not None:
            msg = "the turn was saved already, and this reply would be lost; begin another turn"
            raise RuntimeError(msg)
        messages = plain_messages(self._rules.answer(reply), self._rules, reply=True)
        self._told = note(self.meta, self._told, self._rules.about(reply))
        self._replies += messages
        self._answer = reply if answer is None else answer

    def amend(self, request: Input) -> None:
        """Store other messages as the request than those that were given.

        For adapters of frameworks that make the request themselves, after the history was
        read. What is sent stays as it is.

        Args:
            request: All new messages but the replies.

        Raises:
            TypeError, ValueError: It is not a message.
        """
        self._plan = self._loaded()[1]._replace(new=plain_messages(request, self._rules))

    def _loaded(self) -> tuple[History, Plan]:
        if self._history is None or self._plan is None:
            msg = "the turn has not begun: use it in a `with` block"
            raise RuntimeError(msg)
        return self._history, self._plan

    def _new_hold(self) -> Hold | None:
        """Make a lease for a block: that of one before may be on its way back still."""
        lease = self._options.lease
        self._hold = None if lease is None else Hold(self._place.keys, lease)
        return self._hold

    def _take(self, hold: Hold) -> Flow[None]:
        """Wait for the lease, before anything is loaded."""
        self.load_error = None
        self._began = 0
        try:
            hold.began = self._began = yield from self._place.begun()
            yield from hold.take()
        except ServerError as error:
            if self._options.on_load_error == "raise":
                raise
            self.load_error = error

    def _load(self) -> Flow[None]:
        self._forget_last_block()
        options = self._options
        try:
            if self.load_error is not None:
                raise self.load_error
            # With a lease it has begun already, before it waited.
            begins = self._hold is None
            history = yield from load(
                self._place, options.context, begins=begins, search=self._search()
            )
            self._began = history.began if begins else self._began
            if self._may_be_saved:
                yield from self._look_for_itself(history)
            if self._place.redacts:
                yield from self._redact_request(history)
            if history.has_older and len(self._request) > len(history):
                # More may have been sent back than the window shows: look further.
                more = Window(messages=2 * len(self._request))
                stored = yield from self._place.read(more, search=self._search())
                self._request = without_known(
                    stored, self._request, self._rules, self._request_stored
                )
                if self._place.redacts:
                    yield from self._redact_request(history)
            plan = self._composed(history)
        except (AlreadySavedError, TurnGoneError, TurnIdReusedError):
            raise  # the memory works, whatever is to be done where it does not
        except TurnstoreError as error:
            if options.on_load_error == "raise":
                raise
            history = History([], 0, has_older=False)
            self._began = 0
            try:
                plan = self._composed(history)
            except ValueError:  # it answers a tool call, which only the memory has
                raise error from None
            log.warning("the turn goes on without memory: %s", error)
            self.load_error = error
        self._history, self._plan = history, (yield from self._with_context(history, plan))

    def _forget_last_block(self) -> None:
        """Drop what was known in a block that failed, before the turn was entered again."""
        self._replies = []
        self._shown, self._recalled, self._after = None, (), None
        self._was_saved = False
        for key, value in (self._noted | self._told).items():
            if self.meta.get(key) == value:
                del self.meta[key]
        self._noted, self._told = {}, {}
        if self._hold is None:  # else it is of this block: it waited for its lease
            self.load_error = None

    def _look_for_itself(self, history: History) -> Flow[None]:
        """Find out whether this turn was saved before; an error where it is not to be asked again.

        It is looked for in the window, and where that shows less than an append remembers, once
        more in as much as that. What was dropped or trimmed is not found.
        """
        raises = self._options.on_duplicate == "raise"
        saved = yield from saved_before(self._place, self.turn_id, history, further=raises)
        self._was_saved = saved is not None
        if saved is None or not raises:
            return
        try:
            yield from refuse(self._place, saved, self._request, self._rules)
        except AlreadySavedError:
            self._owns_id = False  # for good: it has its turn
            self._note_replaced(history.cut is not None and not history.cut.first)
            raise

    def _search(self) -> Search | None:
        """Look for the turn that this one replaces, unless another one of its client has."""
        replaces = self._options.replaces
        if replaces is None or replaces.done:
            return None
        return self._place.search(replaces, self.turn_id)

    def _note_replaced(self, is_replaced: object) -> None:
        if self._options.replaces is not None and is_replaced:
            self._options.replaces.done = True

    def _redact_request(self, history: History) -> Flow[None]:
        """Find out how the request would be stored, where it may hold what is stored already."""
        self._request_stored = []
        if history and any(map(self._rules.is_reply, self._request)):
            self._request_stored = yield from self._place.redacted(self._request, self._rules)

    def _with_context(self, history: History, plan: Plan) -> Flow[Plan]:
        """Put before the history what the context knows, and leave out what it leaves out."""
        context, place = self._options.context, self._place
        prepared = yield from context.prepare(
            history,
            plan.new,
            self._rules,
            place.counter,
            str(place.keys),
            conversation_id=place.identifier,
            owner=place.owner,
        )
        self._noted = {key: value for key, value in prepared.meta.items() if key not in self.meta}
        self.meta |= self._noted
        summary = ""
        if self.load_error is None:
            closes = prepared.boundary is not None
            summary, self._after = yield from carry(
                place, context, history, prepared.history, closes=closes
            )
        self._shown, self._recalled = prepared.history, prepared.recalled
        if prepared.history is not history:
            plan = self._composed(history)
        before = "\n\n".join(text for text in (prepared.injected, summary) if text)
        return with_context(plan, self._request, self._rules, before)

    def _composed(self, history: History) -> Plan:
        return compose(
            history,
            self._request,
            self._rules,
            self._options.on_other_format,
            shown=self._shown,
            stored=self._request_stored,
        )

    def _save(self) -> Flow[Appended | None]:
        """Append request and reply; once it is saved, answer what that did."""
        self._loaded()
        if self.saved is not None:
            return self.saved
        if not self._replies:
            msg = "there is no reply yet, and a turn without one is not saved"
            raise RuntimeError(msg)
        self.turn_id = self._final_id()
        hold = self._hold
        if hold is not None and hold.number is None:
            log.warning("the turn was not saved: without memory, it had no lease either")
            return None
        if self._place.keys.owner is not None and not self._began:
            log.warning("the turn was not saved: without memory, nothing tells what was erased")
            return None
        try:
            self.saved = yield from self._append("" if hold is None else hold.proof)
        except Exception as error:  # whatever it is, the answer must not be lost
            self._may_be_saved = True  # its answer alone may be what was lost
            if hold is not None and isinstance(error, ServerError):
                hold.unreachable = True
            if self.load_error is not None and isinstance(error, ServerError):
                # The caller chose to go on without memory; there was none at either end.
                log.warning("the turn was not saved: %s", error)
                return None
            raise self._unsaved(error) from error
        if self._was_saved and self.saved.duplicate:
            log.warning("the reply was not stored: the turn had been saved before the model spoke")
        self._note_replaced(self.saved.replaced_ids)
        if hold is not None:
            hold.over = True  # the append gave the lease back
        yield from self._finish(self.saved)
        return self.saved

    def _finish(self, saved: Appended) -> Flow[None]:
        """Do what is left to do when the turn was saved; nothing of it fails the turn."""
        place, context = self._place, self._options.context
        if context.after:
            written, rules = self._written, self._rules
            if saved.duplicate:
                older = len(self._loaded()[1].continued or ())
                written, rules = yield from as_stored(place, self.turn_id, (written, rules), older)
            turn = SavedTurn(
                place.identifier,
                place.owner,
                self.turn_id,
                [_json.plain(message) for message in written],
                rules.name,
                saved,
                self._began,
                self._recalled,
            )
            yield from context.finish(turn)
        if self._after is not None:  # a summary: its model takes longer than what was asked for
            yield from self._after

    def _unsaved(self, error: Exception) -> SaveError:
        trouble = None if self._hold is None else self._hold.trouble
        return not_saved(error, self._answer, self, trouble)

    def _append(self, lease: str) -> Flow[Appended]:
        history, plan = self._loaded()
        replaces = history.cut is not None or self._search() is not None
        reject = replaces or self._options.on_conflict == "reject"
        if reject and self.load_error is not None:
            msg = "the history could not be loaded, so that it is not known what came before"
            raise ConflictError(msg)
        expected = history.revision if reject or plan.continued else None
        new, meta = self.new, self.meta
        if self._place.redacts:
            new = yield from self._place.redacted(new, self._rules)
            meta = yield from self._place.redacted_meta(meta)
        self._written = [*(plan.continued or ()), *new]
        try:
            return (
                yield from self._place.append_draft(
                    self._draft(new, meta),
                    expected,
                    continues=plan.continued is not None,
                    lease=lease,
                    began=self._began,
                    cut=history.cut,
                )
            )
        except ConflictError:
            if reject or plan.continued is None:
                raise
        # Another turn came between a tool call and its result. Pieces of a turn stand side
        # by side, so the whole of it follows; its first piece stays, and is never sent.
        draft = self._draft(self._written, meta)
        return (yield from self._place.append_draft(draft, lease=lease, began=self._began))

    def _draft(self, messages: list[Message], meta: dict[str, Any]) -> Draft:
        return self._place.draft(messages, self.turn_id, self._rules, meta)
