"""The model server with long-term facts: it draws them, makes their vectors, and recalls them."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from openai import OpenAI

from tests.waiting import wait_until
from turnstore.context import Context
from turnstore.facts import EXTRACTION_PROMPT, Extraction, Facts, Recall

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnstore import Store
    from turnstore.testing import ModelServer

SECONDS = 60


def facts_of(client: OpenAI, known: str, turns: str) -> list[dict[str, Any]]:
    """Ask as an extraction does."""
    prompt = EXTRACTION_PROMPT.replace("{facts}", known).replace("{transcript}", turns)
    answer = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": prompt}]
    )
    return json.loads(answer.choices[0].message.content or "")["facts"]  # type: ignore[no-any-return]


def near(client: OpenAI, one: str, other: str, **options: Any) -> float:
    """Give the cosine of two texts."""
    answer = client.embeddings.create(model="m", input=[one, other], **options)
    a, b = (item.embedding for item in answer.data)
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / (math.hypot(*a) * math.hypot(*b))


def test_it_draws_facts_from_what_the_user_says(client: OpenAI) -> None:
    turns = (
        "Turn 1, Monday 2026-11-30 10:00:\nuser: My name is Ada.\nMy cat is called Tom.\n"
        "assistant: My name is Model.\n\nTurn 2, Monday 2026-11-30 10:01:\nuser: Hello."
    )
    assert facts_of(client, "(nothing)", turns) == [
        {"verdict": "new", "text": "The user's name is Ada.", "slot": "name", "turns": [1]},
        {"verdict": "new", "text": "The user's cat is called Tom.", "slot": "cat", "turns": [1]},
    ]
    assert facts_of(client, "(nothing)", "Turn 1, Monday 2026-11-30 10:00:\n(nothing)") == []


def test_a_known_fact_is_said_again_or_gives_way(client: OpenAI) -> None:
    known = (
        "0. The user's name is Ada. (slot: name; heard 2026-11-01)\n"
        "1. The user's cat is called Tom. (slot: cat; heard 2026-11-01)"
    )
    turns = "Turn 1, Monday 2026-11-30 10:00:\nuser: My name is Ada. My cat is called Tim."
    drawn = [(one["verdict"], one["of"]) for one in facts_of(client, known, turns)]
    assert drawn == [("duplicate", 0), ("supersedes", 1)]


def test_texts_are_near_that_share_words(client: OpenAI, model: ModelServer) -> None:
    assert near(client, "My cat is Tom.", "my CAT is tom") == pytest.approx(1)
    assert near(client, "My cat is Tom.", "What is my cat?") > 0.5
    assert near(client, "My cat is Tom.", "Boats sail.") < 0.2
    assert near(client, "a", "a", dimensions=8) == pytest.approx(1)
    assert model.requests == []


@pytest.mark.parametrize(
    "name, more, dimensions",
    [
        ("text-embedding-3-small", {}, 1536),
        ("text-embedding-3-large", {}, 3072),
        ("text-embedding-3-large", {"dimensions": 256}, 256),
    ],
)
def test_vectors_are_as_long_as_asked_for(
    client: OpenAI, name: str, more: dict[str, Any], dimensions: int
) -> None:
    answer = client.embeddings.create(model=name, input="Hello", **more)
    assert [len(item.embedding) for item in answer.data] == [dimensions]
    tokens = client.embeddings.create(model=name, input=[15339, 11], **more)
    assert [len(item.embedding) for item in tokens.data] == [dimensions]


@pytest.mark.servers("redis-8", "redis-url")
@pytest.mark.one_setup
def test_what_it_drew_is_recalled_in_another_conversation(
    make_store: Callable[..., Store], client: OpenAI
) -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        answer = client.embeddings.create(model="m", input=texts, dimensions=256)
        return [item.embedding for item in answer.data]

    store = make_store()
    facts = Facts(
        store,
        embed=embed,
        dimensions=256,
        embedder="words:1",
        engine="plain",
        ttl=timedelta(hours=1),
    )
    extraction = Extraction(facts, client, model="m")
    context = Context(sources=[Recall(facts, min_score=0.3, deadline=SECONDS)])

    def say(day: str, text: str) -> str | None:
        wrapped = store.conversation(day, owner="ada").wrap(client, context=context)
        answer = wrapped.chat.completions.create(
            model="m", messages=[{"role": "user", "content": text}]
        )
        said: str | None = answer.choices[0].message.content
        return said

    for name in ("Tom", "Tim"):
        say("monday", f"My cat is called {name}.")
        extraction.extract(store.conversation("monday", owner="ada"))
        assert say("friday", "What is my cat called?") == f"Your cat is called {name}."
        store.conversation("friday", owner="ada").clear()
    assert facts.health().dead_letters == 0
    store.erase("ada")


class TestTheCommand:
    def test_it_serves_until_ctrl_c(self) -> None:
        command = [sys.executable, "-m", "turnstore.testing"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            lines = [running.stdout.readline() for _ in range(3)]
            url = lines[0].split()[1].removeprefix("OPENAI_BASE_URL=")
            assert f"ANTHROPIC_BASE_URL={url.removesuffix('/v1')} " in lines[1]
            with OpenAI(base_url=url, api_key="none") as client:
                answer = client.responses.create(model="m", input="My name is Ada.")
                assert answer.output_text == "I will remember that your name is Ada."
                port = url.split(":")[2].removesuffix("/v1")
                taken = subprocess.run(
                    [*command, "--port", port],
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=SECONDS,
                )
            assert (taken.returncode, taken.stdout) == (1, "")
            assert taken.stderr.startswith(f"port {port}: ")
            running.send_signal(2)
            wait_until(lambda: running.poll() is not None)
        assert running.returncode == 0
