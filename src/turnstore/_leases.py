"""One turn of a conversation at a time: the lease around a turn, as flows of calls.

`lua/lib/queue.lua` says what lies in Redis. A turn asks for the lease until it gets it;
each time it is told its place in the queue, and keeps it for some seconds more. So nobody
is told anything that could be lost: whoever dies is passed over when his time is up, the
one who waits as the one who holds the lease, by the server's clock alone. A grant has a
number that only grows; the append demands that its turn's is the newest.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from ._calls import Call, Flow, Pause
from ._history import new_turn_id, script_call
from ._keys import Keys
from .errors import LeaseQueueFullError, LeaseTimeoutError, ServerError, UnavailableError

__all__ = ["Hold", "Lease"]

log = logging.getLogger("turnstore")

_MILLISECOND = timedelta(milliseconds=1)
_SHORTEST_TTL = timedelta(milliseconds=100)
_MOST_WAITERS = 1000  # each command reads and writes the whole queue

# How long the place of one who does not ask again is kept: longer than any pause below, and
# than a process that is held up for a moment.
_TICKET_MS = 5000
# The pause between two questions, in seconds: it grows while the place stays the same, up to
# so much for each place, so that those who are far from the lease ask less often.
_FIRST_PAUSE, _GROWTH, _LONGEST_PAUSE, _SLOWEST_PLACE = 0.02, 1.6, 0.25, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """How turns of one conversation wait for one another, under `on_conflict="serialize"`.

    Turns that meet should have the same lease settings; each goes by its own.

    Args:
        ttl: How long the lease outlives a process that dies; at least 100 ms. While a turn
            goes on, the lease is renewed three times in this time, however long the model
            takes.
        wait: How long to wait for the lease; 0 does not wait.
        waiters: How many turns of a conversation may wait at a time, 0 to 1000.

    Raises:
        TypeError: A time is no timedelta, or `waiters` is not a whole number.
        ValueError: One of them is too small or too large.

    Example:
        >>> Lease(wait=timedelta(seconds=10), waiters=2).waiters
        2
    """

    ttl: timedelta = timedelta(seconds=30)
    wait: timedelta = timedelta(seconds=60)
    waiters: int = 16

    def __post_init__(self) -> None:
        for name, least in (("ttl", _SHORTEST_TTL), ("wait", timedelta(0))):
            value = getattr(self, name)
            if not isinstance(value, timedelta):
                msg = f"Lease({name}={value!r}): {name} is a timedelta"
                raise TypeError(msg)
            if value < least:
                msg = f"Lease({name}={value}): {name} is at least {least}"
                raise ValueError(msg)
        if not isinstance(self.waiters, int) or isinstance(self.waiters, bool):
            msg = f"Lease(waiters={self.waiters!r}): waiters is a whole number"
            raise TypeError(msg)
        if not 0 <= self.waiters <= _MOST_WAITERS:
            msg = f"Lease(waiters={self.waiters}): waiters is from 0 to {_MOST_WAITERS}"
            raise ValueError(msg)


class Hold:
    """The lease of one turn: to be taken, renewed meanwhile, and given back.

    Attributes:
        number: The number of the grant; None where there is none.
        over: Whether there is nothing to give back, or not any more.
        unreachable: Whether the server failed, so that giving back had better not be
            waited for.
        trouble: Why the newest renewal failed.
        began: When the turn began, where the conversation has an owner.
    """

    def __init__(self, keys: Keys, lease: Lease) -> None:
        self.number: int | None = None
        self.over = True
        self.unreachable = False
        self.trouble: Exception | None = None
        self.renewal_seconds = lease.ttl.total_seconds() / 3
        self.began = 0
        self._keys = keys
        self._lease = lease
        self._token = ""
        self._moved = False  # since the last look
        self._has_chunk = False  # the reader of a stream, who is waited for and not the model

    @property
    def proof(self) -> str:
        """What an append has to show; empty where the lease was not taken."""
        return "" if self.number is None else f"{self.number} {self._token}"

    def take(self) -> Flow[None]:
        """Wait for the lease, and take it.

        Raises:
            LeaseTimeoutError: It took too long.
            LeaseQueueFullError: Too many wait already.
            ServerError: Redis failed.
        """
        self._token = new_turn_id()
        self.number, self.over = None, False
        try:
            self.number = yield from self._wait()
        except LeaseQueueFullError:
            self.over = True
            raise
        except ServerError as error:
            self.unreachable = True
            # Where the command may have arrived, it is called back.
            self.over = not (isinstance(error, UnavailableError) and error.outcome_unknown)
            raise

    def _wait(self) -> Flow[int]:
        pause, place, deadline_ms = _FIRST_PAUSE, 0, None
        while True:
            asked: _Asked = yield self._asking()
            if asked.number:
                return asked.number
            if deadline_ms is None:
                deadline_ms = asked.now_ms + self._lease.wait // _MILLISECOND
            left = (deadline_ms - asked.now_ms) / 1000
            if left <= 0:
                yield from self.release()
                msg = (
                    f"the lease of {self._keys} was not to be had in {self._lease.wait}: this turn "
                    f"was number {asked.place} of those that wait; the model was not asked, "
                    "and nothing was written"
                )
                raise LeaseTimeoutError(msg)
            pause = min(pause * _GROWTH, _LONGEST_PAUSE * min(asked.place, _SLOWEST_PLACE))
            if asked.place != place:
                pause, place = _FIRST_PAUSE, asked.place
            yield Pause(min(pause, left))

    def _asking(self) -> Call:
        values = {
            "token": self._token,
            "lease_ms": self._lease.ttl // _MILLISECOND,
            "ticket_ms": _TICKET_MS,
            "max_waiters": self._lease.waiters,
        }
        return script_call(
            "lease_take", self._keys, values, _read_asked, began=self.began, operation="lease"
        )

    def renew(self) -> Flow[bool]:
        """Hold the lease for longer, unless the turn stands still; never raises.

        Returns:
            Whether to go on with renewing.
        """
        if self._stands_still():
            return True
        values = {
            "token": self._token,
            "lease": self.proof,
            "lease_ms": self._lease.ttl // _MILLISECOND,
        }
        try:
            held: int = yield script_call(
                "lease_renew", self._keys, values, int, operation="renewal"
            )
        except Exception as error:  # noqa: BLE001 - noticed at the save, which decides
            self.trouble = error
            log.warning("a lease was not renewed, and is tried again: %s", error)
            return True
        if held:
            self.trouble = None
        elif not self.over:
            log.warning("the lease of %s is lost; the turn will not be saved", self._keys)
        return bool(held)

    def release(self) -> Flow[None]:
        """Give back the lease, or the place in the queue; never raises, twice is harmless."""
        if self.over:
            return
        self.over = True
        values = {"token": self._token}
        try:
            yield script_call(
                "lease_release", self._keys, values, int, began=self.began, operation="release"
            )
        except Exception as error:  # noqa: BLE001 - then it runs out by itself
            log.warning("a lease was not given back, and runs out by itself: %s", error)

    def move(self, *, has_chunk: bool) -> None:
        """Note that the reader of a stream was given a chunk, or wants the next one, or no more."""
        self._moved = True
        self._has_chunk = has_chunk

    def _stands_still(self) -> bool:
        # If no move came since the last look, nobody may be there any more.
        moved, self._moved = self._moved, False
        return self._has_chunk and not moved


class _Asked(NamedTuple):
    number: int
    place: int
    now_ms: int


def _read_asked(reply: list[Any]) -> _Asked:
    return _Asked(*reply)
