"""How a turn deals with its history: what `turn` and `wrap` take, checked once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from ._leases import Lease
from ._place import check_window
from .context import Context
from .window import Window

__all__ = ["TurnOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOptions:
    """How a turn deals with its history; checked once, shared by many turns."""

    context: Context = field(default_factory=Context)
    on_conflict: Literal["append", "reject", "serialize"] = "append"
    on_load_error: Literal["raise", "continue"] = "raise"
    on_other_format: Literal["raise", "text"] = "raise"
    lease: Lease | None = None
    """Under "serialize" alone, and then never None."""

    def __post_init__(self) -> None:
        for name, choices in (
            ("on_conflict", ("append", "reject", "serialize")),
            ("on_load_error", ("raise", "continue")),
            ("on_other_format", ("raise", "text")),
        ):
            if getattr(self, name) not in choices:
                msg = f"{name} is one of {choices}, not {getattr(self, name)!r}"
                raise ValueError(msg)
        if self.on_conflict == "serialize":
            object.__setattr__(self, "lease", self.lease or Lease())
        elif self.lease is not None:
            msg = f'a lease goes with on_conflict="serialize", not with {self.on_conflict!r}'
            raise ValueError(msg)

    @classmethod
    def of(cls, window: Window | None, context: Context | None, **options: Any) -> TurnOptions:
        """Make options of what `turn` and `wrap` take: a window is a context of its own.

        Raises:
            TypeError: One of them is of another kind.
            ValueError: Both were given.
        """
        lease = options.get("lease")
        if lease is not None and not isinstance(lease, Lease):
            msg = f"lease is a Lease, as in Lease(wait=…), not {type(lease).__name__}"
            raise TypeError(msg)
        if context is None:
            return _windowed(check_window(window), **options)
        if window is not None:
            msg = "give a window or a context; a context has its own, as in Context(window=…)"
            raise ValueError(msg)
        if not isinstance(context, Context):
            msg = f"context is a Context, not {type(context).__name__}"
            raise TypeError(msg)
        return cls(context=context, **options)


@lru_cache(maxsize=64)
def _windowed(window: Window, **options: Any) -> TurnOptions:
    """Make the options of a turn without a context, once for all turns that are alike."""
    return TurnOptions(context=Context(window), **options)
