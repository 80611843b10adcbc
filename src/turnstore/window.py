"""How much of a conversation is read: whole turns, counted from the newest."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MOST", "Window", "limit"]


@dataclass(frozen=True, slots=True)
class Window:
    """Limit what is read to the newest turns that fit.

    Limits hold together, and only whole turns are counted in. The newest turn is always
    part of the window, even where it alone is larger than the limit: a tool call is
    never parted from its result.

    `Window()` has no limit and takes everything. None in the place of a window, which is the
    default of `turn`, `wrap` and `read`, is another one: the newest 100 messages.

    With a `step`, the window starts anew only once in a while: when it is full, that
    share of each limit is dropped at once, and until it is full again the start stays
    where it is. What is sent then begins with the same messages turn after turn, and a
    provider's prompt cache keeps hitting. The start is computed from the running totals
    that are stored with each turn, so that all processes agree on it.

    Args:
        turns: At most so many turns; None sets no limit.
        messages: At most so many messages; None sets no limit.
        tokens: At most so many tokens, as the store counted them when the messages were
            appended; None sets no limit. New messages, instructions and tool definitions
            are not part of it.
        step: The share of each limit that is dropped at once, above 0 and at most 1; None
            drops turn by turn.

    Raises:
        TypeError: A limit is not a whole number, or the step not a number.
        ValueError: A limit is below 1, or the step not a share.

    Example:
        >>> Window(tokens=8000, step=0.25)
        Window(turns=None, messages=None, tokens=8000, step=0.25)
        >>> Window(messages=0)
        Traceback (most recent call last):
            ...
        ValueError: Window(messages=0): a limit is at least 1; None means no limit
    """

    turns: int | None = None
    messages: int | None = None
    tokens: int | None = None
    step: float | None = None

    def __post_init__(self) -> None:
        for name in ("turns", "messages", "tokens"):
            limit(f"Window({name}={{}})", getattr(self, name))
        step = self.step
        if step is None:
            return
        if not isinstance(step, int | float) or isinstance(step, bool):
            msg = f"Window(step={step!r}): a step is a share of the limits, such as 0.25"
            raise TypeError(msg)
        if not 0 < step <= 1:
            msg = f"Window(step={step}): a share of the limits is above 0 and at most 1"
            raise ValueError(msg)

    def dropped(self, total: int, limit: int | None) -> int:
        """Tell how much of a total stands before the window, by one of its limits.

        Without a step that is all beyond the limit. With one, it is the next multiple of
        a block: it stays the same while the total grows by a block, and what is left
        never exceeds the limit.
        """
        if limit is None or total <= limit:
            return 0
        block = max(1, int(limit * self.step)) if self.step is not None else 1
        return -((limit - total) // block) * block


MOST = 2**53
"""The largest whole number that Lua tells from the next one."""


def limit(what: str, value: int | None) -> int | None:
    """Check that a limit is None or a whole number of at least 1, and give it back.

    Args:
        what: How the limit is named in an error; `{}` stands for its value.
        value: The limit.

    Raises:
        TypeError: It is neither None nor an int (a bool is not).
        ValueError: It is below 1, or above `MOST`.
    """
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        msg = f"{what.format(repr(value))}: a limit is a whole number, or None for no limit"
        raise TypeError(msg)
    if value < 1:
        msg = f"{what.format(value)}: a limit is at least 1; None means no limit"
        raise ValueError(msg)
    if value > MOST:
        msg = f"{what.format('…')}: a limit is at most 2**53; None means no limit"
        raise ValueError(msg)
    return value
