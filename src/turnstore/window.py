"""How much of a conversation is read: whole turns, counted from the newest."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Window"]


@dataclass(frozen=True, slots=True)
class Window:
    """Limit what is read to the newest turns that fit.

    Limits hold together, and only whole turns are counted in. The newest turn is always
    part of the window, even where it alone is larger than the limit: a tool call is
    never parted from its result.

    Args:
        turns: At most so many turns; None sets no limit.
        messages: At most so many messages; None sets no limit.

    Raises:
        TypeError: A limit is not a whole number.
        ValueError: A limit is below 1.

    Example:
        >>> Window(turns=20)
        Window(turns=20, messages=None)
        >>> Window(messages=0)
        Traceback (most recent call last):
            ...
        ValueError: Window(messages=0): a limit is at least 1; None means no limit
    """

    turns: int | None = None
    messages: int | None = None

    def __post_init__(self) -> None:
        for name in ("turns", "messages"):
            limit(f"Window({name}={{}})", getattr(self, name))


def limit(what: str, value: int | None) -> int | None:
    """Check that a limit is None or a whole number of at least 1, and give it back.

    Args:
        what: How the limit is named in an error; `{}` stands for its value.
        value: The limit.

    Raises:
        TypeError: It is neither None nor an int (a bool is not).
        ValueError: It is below 1.
    """
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        msg = f"{what.format(repr(value))}: a limit is a whole number, or None for no limit"
        raise TypeError(msg)
    if value < 1:
        msg = f"{what.format(value)}: a limit is at least 1; None means no limit"
        raise ValueError(msg)
    return value
