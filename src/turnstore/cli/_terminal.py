"""What is printed, and how it looks on a terminal.

Colour is used on a terminal only, and not where NO_COLOR is set (https://no-color.org). Text that
was stored by somebody is shown with its control characters spelled out, since a terminal would
obey them.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable

__all__ = ["Terminal", "counted", "harmless"]

_WIDEST = 88
_NARROWEST = 24
_INDENT = 3

# What steers a terminal, and what turns the direction of text around. Line feed and tab stay.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_STYLES = {"bold": "1", "faint": "2", "red": "31", "green": "32", "cyan": "36"}


def harmless(text: str) -> str:
    """Spell out the control characters in a text, so that a terminal does not obey them."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def counted(count: int, noun: str) -> str:
    """Write how many of something there are, as in "1 turn" and "1,200 turns"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


class Terminal:
    """Standard output, as wide as it is, with colour where that is welcome."""

    def __init__(self) -> None:
        is_terminal = sys.stdout.isatty()
        width = shutil.get_terminal_size().columns if is_terminal else 80
        self.width = max(min(width, _WIDEST), _NARROWEST)
        self.live = is_terminal
        """Whether somebody watches."""
        self._colour = (
            is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        )
        for stream in (sys.stdout, sys.stderr):
            # An old locale cannot say every letter; better a spelled-out one than an error.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")

    def styled(self, text: str, *styles: str) -> str:
        """Give a text with a look, or as it is where there is no colour."""
        if not self._colour or not text:
            return text
        codes = ";".join(_STYLES[style] for style in styles)
        return f"\x1b[{codes}m{text}\x1b[0m"

    def line(self, text: str = "") -> None:
        """Print a line as it is."""
        print(text, flush=True)

    def ask(self, text: str) -> None:
        """Print a question, behind which the answer is typed."""
        print(text, end="", flush=True)

    def title(self, text: str) -> None:
        """Print a line that stands above all others."""
        for line in textwrap.wrap(text, self.width):
            self.line(self.styled(line, "bold"))

    def step(self, number: int, text: str) -> None:
        """Print the title of a step."""
        self.line()
        label = f"{number}."
        for line in self._wrapped(text, label.ljust(_INDENT), _INDENT):
            self.line(self.styled(line, "bold"))

    def text(self, text: str, *styles: str) -> None:
        """Print a paragraph."""
        for line in self._wrapped(text, " " * _INDENT, _INDENT):
            self.line(self.styled(line, *styles))

    def ok(self, text: str) -> None:
        """Print what was found to be as promised."""
        first, *others = self._wrapped(text, " " * _INDENT + "ok  ", _INDENT + 4)
        label = " " * _INDENT + self.styled("ok", "green", "bold")
        self.line(label + first[_INDENT + 2 :])
        for line in others:
            self.line(line)

    def fact(self, label: str, text: str, room: int = 10) -> None:
        """Print a value with its name before it."""
        indent = _INDENT + room
        first, *others = self._wrapped(text, " " * indent, indent)
        self.line(" " * _INDENT + self.styled(label.ljust(room), "cyan") + first[indent:])
        for line in others:
            self.line(line)

    def code(self, text: str) -> None:
        """Print code, as it is."""
        for line in textwrap.indent(text.rstrip(), " " * (_INDENT + 2)).splitlines():
            self.line(self.styled(line, "faint"))

    def speech(self, label: str, pieces: Iterable[str], room: int = 10) -> str:
        """Print what somebody says while it arrives, piece by piece.

        Returns:
            All of it.
        """
        indent = _INDENT + room
        print(" " * _INDENT + self.styled(label.ljust(room), "cyan"), end="", flush=True)
        column, said = indent, ""
        for piece in pieces:
            said += piece
            for word in re.findall(r"\s*\S+|\s+", harmless(piece)):
                if column + len(word) > self.width and column > indent:
                    print("\n" + " " * indent, end="")
                    column, word = indent, word.lstrip()  # noqa: PLW2901 - the rest of the word
                print(word, end="", flush=True)
                column += len(word)
        print(flush=True)
        return said

    def older(self, what: str, cursor: object, *, is_json: bool) -> None:
        """Say how the next page is had, where there is one; beside JSON, as a note."""
        if cursor is None:
            return
        said = f"older {what}: --before {cursor}"
        if is_json:
            self.note(said)
        else:
            self.line(self.styled(said, "faint"))

    def fail(self, text: str) -> None:
        """Print what went wrong."""
        self.note(text)

    def note(self, text: str) -> None:
        """Print to standard error, which programs that read the output do not see."""
        sys.stdout.flush()
        print(f"turnstore: {harmless(text)}", file=sys.stderr, flush=True)

    def _wrapped(self, text: str, first: str, indent: int) -> list[str]:
        return textwrap.wrap(
            text,
            self.width,
            initial_indent=first,
            subsequent_indent=" " * indent,
            break_on_hyphens=False,
            break_long_words=False,
        ) or [first]
