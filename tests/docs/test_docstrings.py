"""Every example in a docstring of turnstore runs, and gives what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

import pytest
import redis

import turnstore
from tests.docs.running import Examples, check_docstring
from tests.servers.found import lack
from turnstore import AsyncStore, Store
from turnstore import facts as long_term
from turnstore.facts import AsyncFacts, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turnstore.testing import ModelServer


def _modules() -> Iterator[str]:
    yield "turnstore"
    for module in pkgutil.walk_packages(turnstore.__path__, "turnstore."):
        if not module.name.endswith("__main__"):
            yield module.name


def _tests() -> tuple[dict[str, doctest.DocTest], list[str]]:
    """Give the docstrings with examples, and the modules whose SDK is not here."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    found, lacking = {}, []
    for name in _modules():
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if (error.name or "").startswith(("tests", "turnstore")):
                raise
            lacking.append(name)
            continue
        for test in finder.find(module, name):
            if test.examples:
                found[test.name] = test
    return found, lacking


TESTS, LACKING = _tests()
# Frameworks that are async alone.
_ASYNC = ("Async", "pydantic_ai", "agent_framework")
_LETTERS = "abcdefgh"


def _params() -> Iterator[Any]:
    for name in TESTS:
        apart = name.startswith(("turnstore.integrations.", "turnstore.clients."))
        yield pytest.param(name, marks=[pytest.mark.integrations] if apart else [])
    for name in LACKING:
        if name != "turnstore.integrations.railtracks":  # `make test-railtracks` has it
            yield pytest.param(name, marks=[pytest.mark.integrations])


def model(messages: list[dict[str, Any]]) -> str:
    """Stand for any model."""
    return f"I see {len(messages)} messages."


async def amodel(messages: list[dict[str, Any]]) -> str:
    """Stand for any model that is awaited."""
    return model(messages)


def embed(texts: list[str]) -> list[list[float]]:
    """Stand for any embedder: how often a text has each letter, and one more."""
    return [[1.0 + text.lower().count(letter) for letter in _LETTERS] for text in texts]


def facts_of(store: Store | AsyncStore) -> Facts | AsyncFacts:
    """Give facts that are searched on any server."""
    options: dict[str, Any] = {"embed": embed, "dimensions": len(_LETTERS), "embedder": "demo:1"}
    if isinstance(store, AsyncStore):
        return AsyncFacts(store, engine="plain", **options)
    return Facts(store, engine="plain", **options)


@pytest.mark.parametrize("name", list(_params()))
def test_its_examples_hold(name: str, redis_url: str, model_server: ModelServer) -> None:
    if name in LACKING:
        lack(f"{name} needs an SDK that is not installed")
    test = TESTS[name]
    client = redis.Redis.from_url(redis_url)
    async_client = redis.asyncio.Redis.from_url(redis_url)
    store: Store | AsyncStore = Store(client, name="docs")
    if any(part in name for part in _ASYNC):
        store = AsyncStore(async_client, name="docs")
    names = {
        **test.globs,
        **{name: getattr(long_term, name) for name in long_term.__all__},
        "chat": store.conversation("conv-1"),
        "store": store,
        "facts": facts_of(store),
        "embed": embed,
        "redis_url": redis_url,
        "redis_client": client,
        "async_redis_client": async_client,
        "model": model,
        "amodel": amodel,
        "base_url": model_server.base_url,
    }
    with Examples(names) as examples:
        check_docstring(examples, test)


def test_the_examples_were_found() -> None:
    assert {"turnstore.conversation.Conversation.append", "turnstore.store.Store"} < TESTS.keys()
    assert len(TESTS) > 20
