"""Vectors of texts: the caller's embedder, asked in batches, and what it answers checked.

It is a function of the caller's, or a client of the openai package, which is known by what it
has, so that no SDK is imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from turnstore._calls import Ask, Flow
from turnstore.context._common import Asking, is_async, name_of
from turnstore.context._models import ask_client, is_async_method

__all__ = ["Embedder", "EmbeddingClient", "Vector", "Vectors"]

Vector = npt.NDArray[np.float32]
"""One vector of length 1."""

Vectors = npt.NDArray[np.float32]
"""Vectors of length 1, one in each row."""

_NAME = re.compile(r"[!-~]{1,64}")
_MOST_DIMENSIONS = 32_768
_BATCH = 64
_ANY_SIZE = "text-embedding-3"  # models of this name make as many numbers as they are asked for


class EmbeddingClient(Protocol):
    """A client of the openai package, sync or async, and others that look like it."""

    @property
    def embeddings(self) -> Any:
        """What has the method `create`."""
        ...


class Embedder:
    """The caller's embedder: what turns texts into vectors.

    Args:
        given: A function that takes a list of texts, and answers a vector for each; or a client.
        name: Its name and version, of a client the model's name; another name is another space.
        dimensions: How many numbers a vector has.
        batch: How many texts it is given at most.
        asynchronous: Whether it may be async.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is of no use.
    """

    __slots__ = ("batch", "dimensions", "given", "name")

    def __init__(
        self,
        given: Callable[[list[str]], Any] | EmbeddingClient,
        name: str,
        dimensions: int,
        batch: int = _BATCH,
        *,
        asynchronous: bool = True,
    ) -> None:
        _check_given(given, asynchronous=asynchronous)
        if not isinstance(name, str):
            msg = f"embedder is the embedder's name and version, not {type(name).__name__}"
            raise TypeError(msg)
        if not _NAME.fullmatch(name):
            msg = f"embedder {name[:80]!r}: use 1 to 64 visible ASCII characters without blanks"
            raise ValueError(msg)
        _check_count("dimensions", dimensions, _MOST_DIMENSIONS)
        _check_count("batch", batch, 10_000)
        self.given: Any = given
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
            answer = yield from self._answer(part, deadline)
            rows.append(self._checked(answer, len(part)))
        if not rows:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        return np.concatenate(rows)

    def _answer(self, texts: list[str], deadline: float | None) -> Asking[Any]:
        create = _endpoint(self.given)
        if create is None:
            return (yield Ask(self.given, (texts,), deadline))
        options: dict[str, Any] = {"model": self.name, "input": texts}
        if _ANY_SIZE in self.name:
            options["dimensions"] = self.dimensions
        reply = yield ask_client(self.given, create, options, deadline)
        return [item.embedding for item in sorted(reply.data, key=lambda item: item.index)]

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
            found = np.asarray(rows)
            if np.iscomplexobj(found):
                msg = f"embedder {self.name} answers real numbers, not {found.dtype}"
                raise TypeError(msg)
            return found.astype(np.float64, copy=False)
        except ValueError as error:
            msg = (
                f"embedder {self.name} answered vectors of different sizes, or no numbers: "
                f"{error}. Nothing was written"
            )
            raise ValueError(msg) from error


def _check_given(given: Any, *, asynchronous: bool) -> None:
    create = _endpoint(given)
    if create is None and not callable(given):
        msg = (
            "embed is a function from a list of texts to a vector for each, or a client of the "
            f"openai package, not {type(given).__name__}. Write one around it, as in "
            "embed=lambda texts: [vector_of(text) for text in texts]"
        )
        raise TypeError(msg)
    if not asynchronous and (is_async(given) if create is None else is_async_method(create)):
        name = name_of(given)
        msg = f"embed={name} is async, and this store is not; AsyncFacts of an AsyncStore take it"
        raise TypeError(msg)


def _endpoint(given: Any) -> Callable[..., Any] | None:
    """Give what a client is asked by; None where it is no client."""
    return getattr(getattr(given, "embeddings", None), "create", None)


def _check_count(name: str, value: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        msg = f"{name}={value!r}: it is a whole number"
        raise TypeError(msg)
    if not 1 <= value <= most:
        msg = f"{name}={value}: it is from 1 to {most}"
        raise ValueError(msg)
