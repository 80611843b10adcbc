"""How a turn deals with its history: what `turn` and `wrap` take, checked once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import Any, Literal

from ._checks import check_turn_id, check_window
from ._leases import Lease
from ._replacing import Replaces
from .context import Context
from .results import Turn
from .window import Window

__all__ = ["TurnIds", "TurnOptions"]

# A turn id has 64 characters, and later calls of a client have up to `.9999` behind the first one.
_FIRST_ID = 59


class TurnIds:
    """The ids of the turns of a job, so that one that runs again finds what it had stored.

    The first is that of the job, further ones have `.2`, `.3`, … behind it. Each belongs to what
    is asked with it: an attempt that stored nothing (it failed, its stream was left, its reply was
    not fit to be stored) leaves its id to the next one that asks the same. Threads may share it:
    each step is one that nothing comes between.

    Args:
        first: The first id.
    """

    def __init__(self, first: str) -> None:
        self._first = first
        self._numbers = count(1)
        self._left: dict[bytes, list[str]] = {}

    def take(self, asked: bytes) -> str:
        """Give the id of a turn that begins.

        Args:
            asked: What it asks, or a digest of that.
        """
        try:
            return self._left[asked].pop(0)
        except (KeyError, IndexError):
            number = next(self._numbers)
            return self._first if number == 1 else f"{self._first}.{number}"

    def leave(self, asked: bytes, turn_id: str) -> None:
        """Leave an id to the next turn that asks the same."""
        self._left.setdefault(asked, []).append(turn_id)

    def take_back(self, asked: bytes, turn_id: str) -> bool:
        """Take an id that was left; False where another turn has it by now."""
        try:
            self._left[asked].remove(turn_id)
        except (KeyError, ValueError):
            return False
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOptions:
    """How a turn deals with its history; checked once, shared by many turns."""

    context: Context = field(default_factory=Context)
    on_conflict: Literal["append", "reject", "serialize"] = "append"
    on_load_error: Literal["raise", "continue"] = "raise"
    on_other_format: Literal["raise", "text"] = "raise"
    on_duplicate: Literal["ask", "raise"] = "ask"
    lease: Lease | None = None
    """Under "serialize" alone, and then never None."""
    turn_id: str | None = None
    """The id of the first turn; later ones have `.2`, `.3`, … behind it. None: random ones."""
    replaces: Replaces | None = None
    """What the first turn that is saved replaces."""
    ids: TurnIds | None = field(default=None, init=False, repr=False, compare=False)
    """Gives them; None where they are random."""

    def __post_init__(self) -> None:
        for name, choices in (
            ("on_conflict", ("append", "reject", "serialize")),
            ("on_load_error", ("raise", "continue")),
            ("on_other_format", ("raise", "text")),
            ("on_duplicate", ("ask", "raise")),
        ):
            if getattr(self, name) not in choices:
                msg = f"{name} is one of {choices}, not {getattr(self, name)!r}"
                raise ValueError(msg)
        if self.turn_id is not None:
            object.__setattr__(self, "ids", TurnIds(_check_first_id(self.turn_id)))
            if self.replaces is not None:
                self.replaces.check_id(self.turn_id)
        if self.on_conflict == "serialize":
            object.__setattr__(self, "lease", self.lease or Lease())
        elif self.lease is not None:
            msg = f'a lease goes with on_conflict="serialize", not with {self.on_conflict!r}'
            raise ValueError(msg)

    @classmethod
    def of(
        cls,
        window: Window | None,
        context: Context | None,
        *,
        replaces: Turn | str | None = None,
        **options: Any,
    ) -> TurnOptions:
        """Make options of what `turn` and `wrap` take: a window is a context of its own.

        Raises:
            TypeError: One of them is of another kind.
            ValueError: Both were given.
        """
        lease = options.get("lease")
        if lease is not None and not isinstance(lease, Lease):
            msg = f"lease is a Lease, as in Lease(wait=…), not {type(lease).__name__}"
            raise TypeError(msg)
        if replaces is not None:
            options["replaces"] = Replaces(replaces)
        if context is None and options.keys().isdisjoint(("turn_id", "replaces")):
            return _windowed(check_window(window), **options)
        if context is None:
            context = Context(check_window(window))
        elif window is not None:
            msg = "give a window or a context; a context has its own, as in Context(window=…)"
            raise ValueError(msg)
        elif not isinstance(context, Context):
            msg = f"context is a Context, not {type(context).__name__}"
            raise TypeError(msg)
        return cls(context=context, **options)


def _check_first_id(turn_id: str) -> str:
    """Give back a turn id that leaves room for the end that later ones have."""
    if isinstance(turn_id, str) and len(turn_id) > _FIRST_ID:
        msg = (
            f"turn_id {turn_id[:80]!r} has {len(turn_id)} characters: use 1 to {_FIRST_ID} visible "
            "ASCII characters, no blanks, double quotes or backslashes; later calls have .2, .3, … "
            "behind it"
        )
        raise ValueError(msg)
    return check_turn_id(turn_id)


@lru_cache(maxsize=64)
def _windowed(window: Window, **options: Any) -> TurnOptions:
    """Make the options of a turn without a context, once for all turns that are alike."""
    return TurnOptions(context=Context(window), **options)
