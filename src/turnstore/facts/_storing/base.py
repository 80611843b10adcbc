"""What all operations on facts share: the settings, the engine, and which space is whose.

Which spaces the facts of a store are in stands in its register, a hash beside them; which one the
facts of an owner are in stands among the owner's keys, and each commit and each search goes by
that. So a process that has another embedder than the one that made the vectors finds it out at
once, and nothing is ever compared that is not comparable.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from time import monotonic
from typing import Any, NamedTuple

from turnstore._calls import Call, Flow, pairs_of
from turnstore._counting import count
from turnstore._redaction import Redact, redacted_text
from turnstore.errors import EngineMismatchError, ServerError, UnsupportedError

from .._embedding import Embedder
from .._model import NewFact
from .._owner import Ground, OwnerPlace
from .._scoring.ranking import Ranking
from .._space import Space
from ..engines import AUTOMATIC, ENGINES, keeping
from ..engines._engine import Engine
from .commit import Add, Began, Change, Commit, CursorMove, Replace, begin, commit, renew

__all__ = ["Backend", "Base", "Settings", "Writer"]

log = logging.getLogger("turnstore")

_LIVES = 4  # times the time to live: documents have up to two of it
_FOR_EVER, _GONE = -1, -2  # as PTTL answers


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for all facts of a store, checked once.

    Attributes:
        ttl_ms: The time to live of everything of an owner; 0 keeps it forever.
        ranking: How what is found is put in order.
        track_use: Whether searches note what they found.
        deadline: Seconds that the embedder may take for a batch; None waits.
        redact: The store's function that changes what is stored.
    """

    ttl_ms: int
    ranking: Ranking
    track_use: bool
    deadline: float | None
    redact: Redact | None


class Backend(NamedTuple):
    """Whose vectors they are, and where they lie."""

    embedder: Embedder
    engine: Engine
    space: Space


class Base:
    """The facts of a store, without its connection.

    Attributes:
        ground: Where they lie.
        embedder: What makes vectors.
        settings: What holds for all.
        counts: What went wrong without an error, by name.
    """

    def __init__(
        self,
        ground: Ground,
        embedder: Embedder,
        engine: Engine | None,
        settings: Settings,
        previous: Base | None = None,
    ) -> None:
        self.ground = ground
        self.embedder = embedder
        self.settings = settings
        self.counts: Counter[str] = Counter()
        self._engine = engine
        self._previous = previous
        self._available: Engine | None = None
        self._backend: Backend | None = None
        self._is_prepared = False
        self._renewal = 0.0
        self._warned: set[str] = set()

    @property
    def engine(self) -> Engine | None:
        """What searches vectors; None where the server was not asked yet which it has."""
        return self._backend.engine if self._backend else self._engine or self._available

    def prepare(
        self, *, moving: bool = False, anew: bool = False, claims: bool = False
    ) -> Flow[Backend]:
        """Choose the engine, and make what it needs: some calls at first, none later.

        A store without a space has none until vectors are written: an embedder that has answered
        nothing yet must not decide which one it is.

        Args:
            moving: Whether facts are in other spaces because they are to be moved, or are being.
            anew: Whether it is looked at again what there is: another process may have dropped
                an index, or the server have lost everything.
            claims: Whether vectors are written, so that this becomes the store's space if it has
                none.

        Raises:
            EngineMismatchError: The store's facts are in another space, or what is on the
                server is not what the engine would make.
            UnsupportedError: The server has not what the engine needs.
            DeniedError: It has, and an ACL does not let this user. No other one is chosen then: a
                wrong ACL must not decide what the facts of a store are kept by.
        """
        if self._backend is not None and not anew and (self._is_prepared or moving):
            return self._backend
        register = yield from self.register()
        backend = yield from self._choose(register)
        current = register.get("current", "")
        if not current:
            yield from self._check_available(backend.engine)
            if not claims:
                self._is_prepared = False
                return backend
            is_new = yield self._write("HSETNX", "current", backend.space.token)
            if is_new and self.settings.ttl_ms:
                yield self._write("PEXPIRE", str(_LIVES * self.settings.ttl_ms))
            register = yield from self.register()
            current = register.get("current", "")
            if not current:
                msg = (
                    "the register of the facts was written, and is gone: the server evicts keys, "
                    "or was flushed. No fact was written; do it again"
                )
                raise ServerError(msg)
        is_ours = current == backend.space.token
        if not is_ours and not moving:
            yield from self._check_previous(current, register, backend)
        yield from backend.engine.prepare(self.ground, backend.space)
        if register.get(backend.space.token) != backend.space.text:
            yield self._write("HSET", backend.space.token, backend.space.text)
        yield from self._renew()
        self._backend = backend
        self._is_prepared = not moving or is_ours
        return backend

    def _check_available(self, engine: Engine) -> Flow[None]:
        if self._available is not engine and not (yield from engine.is_available(self.ground)):
            msg = (
                f"the server has not what the engine {engine.name} needs ({engine.needs}); nothing "
                'was read or written. engine="auto" takes what it has, and "plain" needs nothing'
            )
            raise UnsupportedError(msg)
        self._available = engine

    def wanted(self) -> Flow[Backend]:
        """Choose the engine, and make nothing: one call, and what finds out what the server has."""
        return self._backend or (yield from self._choose((yield from self.register())))

    def register(self) -> Flow[dict[str, str]]:
        """Read which spaces the facts of the store are in: one call."""
        found: dict[str, str] = yield Call(
            "facts", (self.ground.registry,), "hgetall", (), writes=False, read=_texts
        )
        return found

    def set_current(self, space: Space) -> Flow[None]:
        """Write which space new processes have to be of: one call."""
        yield self._write("HSET", "current", space.token)
        self._is_prepared = True

    def _claim(self, backend: Backend) -> Flow[None]:
        """Let the space that vectors are written to be the store's, if it has none."""
        if self._previous is not None and backend.space != (yield from self.prepare()).space:
            yield from self._previous.prepare(moving=True, claims=True)
        else:
            yield from self.prepare(claims=True)

    def _renew(self) -> Flow[None]:
        """Let the register live on, longer than any fact and document: it says where they are.

        It is looked at four times in a time to live, and lives four times as long.
        """
        ttl_ms, now = self.settings.ttl_ms, monotonic()
        if now < self._renewal:
            return
        left: int = yield Call("facts", (self.ground.registry,), "pttl", (), writes=False, read=int)
        if left == _GONE:
            self._is_prepared = False
            return  # it is looked at again when it was written, perhaps by somebody else
        if left != _FOR_EVER:
            if not ttl_ms:
                yield self._write("PERSIST")
            elif left < _LIVES * ttl_ms:
                yield self._write("PEXPIRE", str(_LIVES * ttl_ms))
        self._renewal = now + ttl_ms / 4000 if ttl_ms else inf

    def _write(self, command: str, *arguments: str) -> Call:
        return Call(
            "facts", (self.ground.registry,), command.lower(), arguments, writes=True, read=int
        )

    def _choose(self, register: dict[str, str]) -> Flow[Backend]:
        if self._engine is not None:
            return self._backend_of(self._engine)
        current = register.get("current", "")
        for engine in ENGINES:
            backend = self._backend_of(engine)
            if backend.space.token == current:
                log.info("facts are searched by the engine %s, as they were", engine.name)
                return backend
        self._available = self._available or (yield from self._first_available())
        return self._backend_of(self._available)

    def _first_available(self) -> Flow[Engine]:
        for engine in AUTOMATIC:
            if (yield from engine.is_available(self.ground)):
                log.info("facts are searched by the engine %s, which this server has", engine.name)
                return engine
        raise AssertionError  # the last one is always there

    def _backend_of(self, engine: Engine) -> Backend:
        return Backend(self.embedder, engine, engine.space(self.embedder))

    def _check_previous(
        self, current: str, register: dict[str, str], backend: Backend
    ) -> Flow[None]:
        if self._previous is not None:
            earlier = yield from self._previous.prepare(moving=True)
            if earlier.space.token == current:
                return
        msg = (
            f"the facts of this store are in the space {register.get(current, current)!r}, and "
            f"these settings make {backend.space.text!r} (engine, embedder, dimensions, how a "
            "number is stored). Nothing was read or written: use its embedder and engine, or move "
            "the facts with migrate()"
        )
        raise EngineMismatchError(msg)

    def backend_of(self, spaces: Sequence[str]) -> Flow[Backend]:
        """Find what made the vectors of an owner: no call.

        Args:
            spaces: The tokens of the owner's spaces; the first is searched.

        Raises:
            EngineMismatchError: It is neither this one nor the previous one.
        """
        backend = yield from self.prepare()
        if not spaces or spaces[0] == backend.space.token:
            return backend
        if self._previous is not None:
            earlier = yield from self._previous.prepare(moving=True)
            if earlier.space.token == spaces[0]:
                return earlier
        register = yield from self.register()
        msg = (
            f"the facts of this owner are in the space {register.get(spaces[0], spaces[0])!r}, "
            f"and not in {backend.space.text!r}; nothing was read or written. Move them with "
            "migrate(), or name the embedder that made them as `previous`"
        )
        raise EngineMismatchError(msg)

    def source_of(self, token: str, target: Backend) -> Flow[Backend | None]:
        """Find what reads the vectors of a space, where they are of the same embedder."""
        register = yield from self.register()
        engine, embedder, dimensions, dtype, *_ = [*register.get(token, "").split(" "), "", "", ""]
        if (embedder, dimensions) != (self.embedder.name, str(self.embedder.dimensions)):
            return None
        if token == target.space.token:
            return None
        space = Space(engine, embedder, int(dimensions), dtype)
        return Backend(self.embedder, keeping(engine, dtype), space)

    def begin(self, place: OwnerPlace, norms: Sequence[str], operation: str) -> Flow[Began]:
        """Begin to write for an owner, as `commit.begin` does, and see to the engine."""
        began = yield from begin(place, norms, operation)
        backend = yield from self.prepare()  # after it, as an index may take its time
        if not began.spaces and self._is_prepared:
            # With the first facts of an owner: the server may have lost everything meanwhile.
            register = yield from self.register()
            if register.get("current") != backend.space.token:
                yield from self._prepare_again()
        return began

    def writer(self, place: OwnerPlace, operation: str, since: int = 0) -> Writer:
        """Give what begins a write of several tries or batches; see `Writer`."""
        return Writer(self, place, operation, since)

    def _prepare_again(self) -> Flow[None]:
        self._renewal = 0.0
        yield from self.prepare(anew=True)

    def redacted(self, text: str) -> Flow[str]:
        """Give a text as it is to be stored."""
        return redacted_text(self.settings.redact, text)

    def redacted_fact(self, new: NewFact) -> Flow[NewFact]:
        """Give a fact as it is to be stored: its text, and the slot that a model named."""
        text = yield from self.redacted(new.text)
        slot = (yield from self.redacted(new.slot)) if new.slot else ""
        return replace(new, text=text, slot=slot)

    def embed(self, backend: Backend, texts: Sequence[str]) -> Flow[Any]:
        """Make the vectors of texts, one in each row."""
        return (yield from backend.embedder.embed(texts, self.settings.deadline))

    def commit(  # noqa: PLR0913 - what one commit is made of; all but three go by name
        self,
        place: OwnerPlace,
        began: Began,
        changes: Sequence[Change],
        *,
        operation: str,
        logged: str = "",
        note: dict[str, Any] | None = None,
        cursor: CursorMove | None = None,
        fence: str = "",
    ) -> Flow[tuple[str, ...]]:
        """Make changes, all of them or none: one call, and one more where it has an index.

        Args:
            place: The owner's.
            began: What it began with.
            changes: The changes.
            operation: What the caller asked for, in the words of an error.
            logged: The name under which the log can undo it; empty is not logged.
            note: JSON for the log.
            cursor: The cursor that moves along.
            fence: The lease that it demands.

        Returns:
            For each change "1" where it was made, "0" where there is no such fact, or the id
            of the fact that was there already.

        Raises:
            Blocked, ErasedError, LeaseLostError: As from `commit.commit`.
        """
        backend = yield from self.backend_of(began.spaces)
        yield from self._renew()
        if any(isinstance(one, Add | Replace) and one.vector is not None for one in changes):
            yield from self._claim(backend)
        what = Commit(
            began,
            backend.engine,
            backend.space.token,
            self.settings.ttl_ms,
            logged,
            note,
            cursor,
            fence,
        )
        committed = yield from commit(place, changes, what, operation)
        if committed.is_short:
            spaces = began.spaces or (backend.space.token,)
            yield from renew(place, spaces, self.settings.ttl_ms)
        if any(answer == "1" for answer in committed.answers):
            yield from self._look_after(backend)
        return committed.answers

    def _look_after(self, backend: Backend) -> Flow[None]:
        """See whether the server could index what was written."""
        state = yield from backend.engine.state(self.ground, backend.space)
        more = state.failures - self.counts["indexing_failures"]
        if more > 0:
            self.counts["indexing_failures"] = state.failures
            log.warning(
                "the search index of the space %r could not take %d documents in all; they are "
                "found by their words alone",
                backend.space.text,
                state.failures,
            )

    def warn_once(self, name: str, text: str, *values: object) -> None:
        """Count something, and say it in the log the first time."""
        count(self.counts, name)
        if name not in self._warned:
            self._warned.add(name)
            log.warning(text, *values)


class Writer:
    """Begins what takes several tries or batches: all of them show the number of the first.

    A try that is blocked begins anew, to see in which spaces the owner's facts are by then, and
    for ids and times of its own. What was erased since the first beginning is refused all the
    same.

    Args:
        base: The facts.
        place: The owner's.
        operation: What the caller asked for, in the words of an error.
        since: The number with which it began, where that was earlier.
    """

    __slots__ = ("_base", "_operation", "_place", "_since")

    def __init__(self, base: Base, place: OwnerPlace, operation: str, since: int) -> None:
        self._base = base
        self._place = place
        self._operation = operation
        self._since = since

    def ahead(self) -> Flow[None]:
        """Begin before it is known what is written: one call, none where it has begun."""
        if not self._since:
            began = yield from begin(self._place, (), self._operation)
            self._since = began.number

    def begin(self, norms: Sequence[str] = ()) -> Flow[Began]:
        """Begin, or begin anew: one call; see `Base.begin`."""
        began = yield from self._base.begin(self._place, norms, self._operation)
        self._since = self._since or began.number
        return began._replace(since=self._since)


def _texts(reply: Any) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in pairs_of(reply).items()}
