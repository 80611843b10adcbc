"""Vectors of texts: the caller's embedder, asked in batches, and what it answers checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from turnstore._calls import Ask, Flow
from turnstore.context._common import check_function

__all__ = ["Embedder", "Vector", "Vectors"]

Vector = npt.NDArray[np.float32]
"""One vector of length 1."""

Vectors = npt.NDArray[np.float32]
"""Vectors of length 1, one in each row."""

_NAME = re.compile(r"[!-~]{1,64}")
_MOST_DIMENSIONS = 32_768
_BATCH = 64


class Embedder:
    """The caller's embedder: what turns texts into vectors.

    Args:
        function: Takes a list of texts, and answers a vector for each.
        name: Its name and version; another name is another space.
        dimensions: How many numbers a vector has.
        batch: How many texts it is given at most.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is of no use.
    """

    __slots__ = ("batch", "dimensions", "function", "name")

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        name: str,
        dimensions: int,
        batch: int = _BATCH,
    ) -> None:
        check_function("embed", function)
        if not isinstance(name, str):
            msg = f"embedder is the embedder's name and version, not {type(name).__name__}"
            raise TypeError(msg)
        if not _NAME.fullmatch(name):
            msg = f"embedder {name[:80]!r}: use 1 to 64 visible ASCII characters without blanks"
            raise ValueError(msg)
        _check_count("dimensions", dimensions, _MOST_DIMENSIONS)
        _check_count("batch", batch, 10_000)
        self.function = function
        self.name = name
        self.dimensions = dimensions
        self.batch = batch

    def embed(self, texts: Sequence[str], deadline: float | None = None) -> Flow[Vectors]:
        """Ask for the vectors of texts, and bring them to length 1.

        Args:
            texts: The texts.
            deadline: Seconds that the embedder may take for each batch; None waits.

        Returns:
            A row for each text.

        Raises:
            TypeError: What it answers are no numbers.
            ValueError: It answers too few vectors or too many, of another size, with NaN or
                infinity, or one without a direction.
            TimeoutError: It was too late.
        """
        rows: list[Vectors] = []
        for start in range(0, len(texts), self.batch):
            part = list(texts[start : start + self.batch])
            answer = yield Ask(self.function, (part,), deadline)
            rows.append(self._checked(answer, len(part)))
        if not rows:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        return np.concatenate(rows)

    def _checked(self, answer: Any, wanted: int) -> Vectors:
        found = self._numbers(answer, wanted)
        if found.shape != (wanted, self.dimensions):
            each = f"{found.shape[1]} numbers" if found.ndim == 2 else f"shape {found.shape}"  # noqa: PLR2004 - rows and columns
            msg = (
                f"embedder {self.name} answered {len(found)} vectors of {each} for {wanted} "
                f"texts; {self.dimensions} numbers are wanted for each. Nothing was written"
            )
            raise ValueError(msg)
        if not np.isfinite(found).all():
            msg = f"embedder {self.name} answered NaN or infinity; nothing was written"
            raise ValueError(msg)
        largest = np.abs(found).max(axis=1, keepdims=True)
        if not largest.all():
            msg = (
                f"embedder {self.name} answered a vector of zeros, which is near to nothing; "
                "nothing was written"
            )
            raise ValueError(msg)
        found = found / largest  # so that no square is too large or too small for a float
        unit: npt.NDArray[np.float64] = found / np.linalg.norm(found, axis=1, keepdims=True)
        return unit.astype(np.float32)

    def _numbers(self, answer: Any, wanted: int) -> npt.NDArray[np.float64]:
        if isinstance(answer, str | bytes | dict) or answer is None:
            msg = f"embedder {self.name} answers vectors, not {type(answer).__name__}"
            raise TypeError(msg)
        rows = answer if hasattr(answer, "__len__") else list(answer)
        if len(rows) != wanted:
            msg = (
                f"embedder {self.name} answered {len(rows)} vectors for {wanted} texts; "
                "nothing was written"
            )
            raise ValueError(msg)
        try:
            return np.asarray(rows, dtype=np.float64)
        except ValueError as error:
            msg = (
                f"embedder {self.name} answered vectors of different sizes, or no numbers: "
                f"{error}. Nothing was written"
            )
            raise ValueError(msg) from error


def _check_count(name: str, value: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        msg = f"{name}={value!r}: it is a whole number"
        raise TypeError(msg)
    if not 1 <= value <= most:
        msg = f"{name}={value}: it is from 1 to {most}"
        raise ValueError(msg)
