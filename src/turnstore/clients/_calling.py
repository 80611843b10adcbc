"""One call of a client with a memory: what becomes of its reply. No SDK is imported."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from turnstore import _json
from turnstore.clients._deltas import Json, as_dict, is_dict, is_list
from turnstore.errors import SaveError
from turnstore.messages import note

if TYPE_CHECKING:
    from turnstore.turn import AsyncPendingTurn, PendingTurn

_log = logging.getLogger("turnstore")


class Answer(NamedTuple):
    """What a reply leaves in the memory.

    Attributes:
        messages: The model's messages.
        meta: What is known of them: model, finish reason, usage, response id.
        unfit: Why the reply must not be stored; empty if it may.
    """

    messages: list[Json]
    meta: Json
    unfit: str


class Folding(Protocol):
    """Makes a whole reply of the events of a stream."""

    @property
    def complete(self) -> bool:
        """Whether the provider said that the reply is complete."""
        ...

    def add(self, event: Json, /) -> None:
        """Take the next event."""
        ...

    def reply(self) -> Json:
        """The whole reply."""
        ...


class Call:
    """One call.

    Args:
        given: The messages that the caller gave.
        format: Their format.
        read: Reads a whole reply.
        folding: What folds a stream of it.
        model: Makes an object of the SDK of a reply's fields.
        raw: How the caller asked for the raw response: "" if not.
    """

    def __init__(  # noqa: PLR0913 - the parts of a call
        self,
        given: Any,
        *,
        format: str,  # noqa: A002 - the public name
        read: Callable[[Json], Answer],
        folding: Folding,
        model: Callable[..., object],
        raw: str,
    ) -> None:
        self.given = given
        self.format = format
        self.raw = raw
        self._read = read
        self._folding = folding
        self._model = model
        self._fault: Exception | None = None

    def sending(self, messages: list[Json]) -> Any:
        """Give the options for the provider, with these messages in place of the caller's."""
        raise NotImplementedError

    def loaded(self, turn: PendingTurn | AsyncPendingTurn) -> None:
        """Look at a turn whose history was read, before anything is sent."""

    def see(self, data: str) -> None:
        """Take the data of the next event of a stream."""
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):  # not an event; the SDK will complain of it
            return
        try:
            self._folding.add(as_dict(event))
        except Exception as error:  # noqa: BLE001 - the caller's stream goes on, whatever was sent
            self._fault = error

    def keep_stream(self, turn: PendingTurn | AsyncPendingTurn) -> None:
        """Give a turn the reply that the stream made."""
        if self._fault is not None:
            _log.warning("not saved: the stream holds what cannot be folded: %r", self._fault)
            return
        if not self._folding.complete:
            _log.warning(
                "not saved: the stream ended, and the provider did not say it was complete"
            )
            return
        try:
            reply = self._folding.reply()
            answer = self._model(**reply)
        except Exception as error:  # whatever it is, the caller has to know
            raise unstorable(error, None, turn) from error
        self._keep(turn, reply, answer)

    def keep_content(
        self, turn: PendingTurn | AsyncPendingTurn, content: bytes, answer: object
    ) -> None:
        """Give a turn the reply in the body of an HTTP response; `answer` is the SDK's object."""
        try:
            reply = json.loads(content)
        except (ValueError, RecursionError):
            reply = None
        self._keep(turn, as_dict(reply), answer)

    def _keep(self, turn: PendingTurn | AsyncPendingTurn, reply: Json, answer: object) -> None:
        try:
            messages, meta, unfit = self._read(reply)
        except Exception as error:  # whatever it is, the answer must not be lost
            raise unstorable(error, answer, turn) from error
        if unfit:
            _log.warning("not saved: %s", unfit)
            return
        note(turn.meta, {}, meta)
        keep(turn, messages, answer)


def keep(turn: PendingTurn | AsyncPendingTurn, reply: Any, answer: object) -> None:
    """Give a turn a reply; `answer` is what an error carries.

    Raises:
        SaveError: It cannot be stored.
    """
    try:
        turn.reply(reply, answer=answer)
    except (TypeError, ValueError) as error:
        raise unstorable(error, answer, turn) from error


def unstorable(error: Exception, answer: object, turn: PendingTurn | AsyncPendingTurn) -> SaveError:
    """Say that an answer is nothing that can be stored, and carry it."""
    return SaveError(
        f"the model answered, but its answer cannot be stored: {error}", reply=answer, turn=turn
    )


def sendable(messages: list[Json]) -> list[Json]:
    """Give stored messages as any SDK can send them; see `mended`."""
    codec, _ = _json.dumps(messages)
    return messages if codec == _json.FAST else mended(messages)


def mended(value: Any) -> Any:
    """Replace lone surrogates, which JSON can say and UTF-8 cannot; SDKs write UTF-8.

    What is stored keeps them: so one half of a character that a model once answered does not end
    the conversation.
    """
    if isinstance(value, str):
        return _json.in_utf8(value)
    if is_list(value):
        return [mended(item) for item in value]
    if is_dict(value):
        return {mended(key): mended(item) for key, item in value.items()}
    return value
