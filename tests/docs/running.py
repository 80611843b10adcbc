"""Runs the examples in pages and docstrings as a reader would type them.

An example may await at its top level. All examples of a page, or of a docstring, run in one event
loop and one namespace, one after the other.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import doctest
import gc
import io
import re
import sys
import traceback
from importlib import import_module
from types import CodeType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pathlib import Path

    from sybil import Example

_OUTPUT = re.compile(r"^ *#> ?(.*)$", re.MULTILINE)
_CLOSABLE = ("turnstore", "redis", "openai", "anthropic", "google")
_CHECKER = doctest.OutputChecker()


class Examples:
    """Runs examples in one namespace; what they opened is closed at the end."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self._runner = asyncio.Runner()

    def run(self, code: CodeType) -> str:
        """Run code to its end, and give what it printed."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            waiting = eval(code, self.names)  # noqa: S307 - our own documentation
            if asyncio.iscoroutine(waiting):
                self._runner.run(waiting)
        return printed.getvalue()

    def __enter__(self) -> Self:
        self._runner.get_loop()  # or LiteLLM, called without one, makes one and leaves it
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._close())
        self._runner.close()

    async def _close(self) -> None:
        for value in list(self.names.values()):
            if type(value).__module__.partition(".")[0] not in _CLOSABLE:
                continue
            for one in (value, getattr(value, "aio", None)):  # Google's client is of two halves
                close = getattr(one, "aclose", None) or getattr(one, "close", None)
                closing = close() if callable(close) else None
                if asyncio.iscoroutine(closing):
                    await closing
        if "litellm" in sys.modules:  # it keeps the clients that it makes
            await import_module("tests.litellms").close_clients()
        if "httpx2" in sys.modules:  # frameworks make clients of their own, and keep them
            for found in gc.get_objects():
                if isinstance(found, sys.modules["httpx2"].AsyncClient) and not found.is_closed:
                    await found.aclose()


def compiled(source: str, path: str, mode: str) -> CodeType:
    """Compile an example that may await at its top level."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile(source, path, mode, flags=flags, dont_inherit=True)
    assert isinstance(code, CodeType)
    return code


def check_block(examples: Examples, example: Example, addresses: dict[str, str]) -> None:
    """Run a block of a page, and compare what it prints with its comments `#> …`.

    Args:
        examples: Where it runs.
        example: The block, as Sybil found it.
        addresses: What stands for an address in the pages.
    """
    source = str(example.parsed)
    expected = "\n".join(_OUTPUT.findall(source))
    for written, real in addresses.items():
        source = source.replace(written, real)
    line = example.line + example.parsed.line_offset
    printed = examples.run(compiled("\n" * line + source, example.path, "exec")).rstrip("\n")
    flags = doctest.ELLIPSIS
    assert _CHECKER.check_output(expected + "\n", printed + "\n", flags), (
        f"{example.path}, line {example.line} prints\n{printed}\nand not\n{expected}"
    )


def check_docstring(examples: Examples, test: doctest.DocTest) -> None:
    """Run the examples of a docstring, and compare their output and their exceptions."""
    for example in test.examples:
        flags = sum(flag for flag, on in example.options.items() if on)
        if flags & doctest.SKIP:
            continue
        where = f"{test.filename}, line {(test.lineno or 0) + example.lineno + 1}"
        try:
            said = examples.run(compiled(example.source, where, "single"))
        except Exception as error:  # noqa: BLE001 - an example may show any
            said = "".join(traceback.format_exception_only(error))
            assert example.exc_msg is not None, f"{where}: {said}"
            assert _CHECKER.check_output(example.exc_msg, said, flags), f"{where}: {said}"
        else:
            assert _CHECKER.check_output(example.want, said, flags), (
                f"{where}: {example.source}gives\n{said}and not\n{example.want}"
            )


def pages(root: Path) -> list[Path]:
    """Give the pages for readers, the README first."""
    return [root / "README.md", *sorted(root.glob("docs/**/*.md"))]
