"""One call of Google's client with a memory, however many requests the SDK makes of it.

The SDK asks again by itself: with what its automatic function calling found out, and for the rest
of a long reply that the provider broke off. All of that is one turn. No SDK is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnstore.clients import _calling
from turnstore.clients import _google_contents as contents_api
from turnstore.clients._calling import Answer
from turnstore.clients._google_contents import FORMAT, ReplyFolding
from turnstore.formats.replies import added

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnstore.clients._deltas import Json
    from turnstore.turn import AsyncPendingTurn, PendingTurn


class Call(_calling.Call):
    """One call.

    Args:
        model: Makes the SDK's object of a reply's fields.
    """

    def __init__(self, model: Callable[..., object]) -> None:
        self._reply = ReplyFolding()  # the newest
        super().__init__(
            [], format=FORMAT, read=self._answer, folding=self._reply, model=model, raw=""
        )
        self.turn: Any = None
        self._history: list[Json] = []  # what the first request was sent
        self._said: list[Json] = []  # calls and their results, after that
        self._known = 0  # how many of the caller's contents were in the newest request
        self._used: Json = {}
        self._broken = ""  # why a reply before the last one is not fit

    def takes(self, body: Json) -> bool:
        """Take a request of the SDK; tell whether it is the first, for which a turn begins.

        Raises:
            ValueError: An option of the request does not go with a memory.
        """
        begins = self.turn is None
        if begins:
            self.given = contents_api.given(body)
        elif contents_api.is_continued(body):
            self._add_usage(self._reply.go_on())
        else:
            messages, meta, unfit = contents_api.read(self._reply.reply())
            self._add_usage(meta.get("usage"))
            self._broken = self._broken or unfit
            self._said += messages + contents_api.results(body, self._known)
            self._folding = self._reply = ReplyFolding()
        self._known = len(body["contents"])
        return begins

    def loaded(self, turn: PendingTurn | AsyncPendingTurn) -> None:
        """Take the turn, whose history was read."""
        self.turn, self._history = turn, turn.messages

    def asking(self, body: Json) -> Json:
        """The request for the provider, with the history in it."""
        return contents_api.sending(body, self._history + self._said)

    def keep(self, answer: object = None) -> None:
        """Give the turn what was said.

        Args:
            answer: The SDK's object; None after a stream.

        Raises:
            RuntimeError: No request was seen, and so nothing can be saved.
            SaveError: What was said cannot be stored.
        """
        if self.turn is None:
            raise RuntimeError(
                "the client answered without a request that turnstore saw, as where a method of "
                "its models was replaced; nothing was saved. Replace it in the wrapped client"
            )
        if answer is None:
            self.keep_stream(self.turn)
        else:
            self._keep(self.turn, self._reply.reply(), answer)

    def _answer(self, reply: Json) -> Answer:
        messages, meta, unfit = contents_api.read(reply)
        self._add_usage(meta.get("usage"))
        usage = {"usage": self._used} if self._used else {}
        return Answer(self._said + messages, meta | usage, self._broken or unfit)

    def _add_usage(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self._used = added(self._used, usage)
