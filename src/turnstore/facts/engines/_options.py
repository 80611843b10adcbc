"""Options of engines, checked once."""

from __future__ import annotations

from turnstore.window import MOST

__all__ = ["number", "one_of"]


def one_of(owner: str, name: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuse what is none of the choices.

    Raises:
        ValueError: It is not.
    """
    if value not in choices:
        msg = f"{owner}({name}={value!r}): it is one of {choices}"
        raise ValueError(msg)


def number(owner: str, name: str, value: int | None, least: int = 1, most: int = MOST) -> None:
    """Refuse what is neither None nor a whole number between two.

    Raises:
        TypeError: It is no whole number.
        ValueError: It is below the least one, or above the most.
    """
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        msg = f"{owner}({name}={value!r}): it is a whole number"
        raise TypeError(msg)
    if value < least:
        msg = f"{owner}({name}={value}): the least is {least}"
        raise ValueError(msg)
    if value > most:
        msg = f"{owner}({name}=…): the most is {most:,}"
        raise ValueError(msg)
