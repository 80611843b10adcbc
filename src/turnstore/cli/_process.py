"""A process of the demo, seen from the one that starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

__all__ = ["DemoError", "Process"]

_END_SECONDS = 5


class DemoError(Exception):
    """Something that the demo needs is missing, or something was not as promised."""


class Process:
    """Another process, which runs `_talk`.

    Args:
        place: Where the conversation lies.
        base_url: Where the model is.
    """

    def __init__(self, place: Mapping[str, Any], base_url: str) -> None:
        environment = {
            **os.environ,
            "TURNSTORE_DEMO": json.dumps(place),
            "OPENAI_BASE_URL": base_url,
            "OPENAI_API_KEY": "none-is-needed",
            # A proxy of the user's own cannot reach a server of this machine.
            "NO_PROXY": "*",
            "no_proxy": "*",
        }
        self._pid: int | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self._process = subprocess.Popen(
            # -P: what lies in the current directory is not imported for what it is named like.
            [sys.executable, "-P", "-m", "turnstore.cli._talk"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
        )

    def ready(self) -> int:
        """Wait until it has started.

        Returns:
            Its process id, as it says itself.
        """
        if self._pid is None:
            self._pid = int(self._read()["ready"])
        return self._pid

    def ask(self, text: str, pieces: int | None) -> Iterator[str]:
        """Let it ask the model.

        Args:
            text: The question.
            pieces: After how many pieces of the answer it closes the stream; None reads all.

        Returns:
            The pieces of the answer, as they come.
        """
        assert self._process.stdin  # noqa: S101 - it is a pipe
        with suppress(BrokenPipeError):  # the read tells why
            self._process.stdin.write(json.dumps({"text": text, "pieces": pieces}) + "\n")
            self._process.stdin.flush()
        while "done" not in (answer := self._read()):
            yield answer["piece"]

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout  # noqa: S101 - it is a pipe
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            self._errors.seek(0)
            said = self._errors.read().decode(errors="replace").strip().splitlines()
            why = said[-1] if said else f"exit status {status}"
            raise DemoError(f"process {self._process.pid} ended early: {why}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                with suppress(BrokenPipeError):
                    pipe.close()
        try:
            if error is not None:
                self._process.terminate()
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()
